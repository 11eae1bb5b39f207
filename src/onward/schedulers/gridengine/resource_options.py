"""Resources in Slurm's words, said in Grid Engine's: options `-l`, `-pe`, `-P`, `-q`, `-m` …, by a table of what a site calls them.

A name in the table is a resource (`h_vmem`, asked by -l), which may end in `/slot` or `/job` to say what its amount is
counted for; an option (`-q`, `-P`); or, for `cpus-per-task` and `nodes`, a parallel environment, in whose name
`{slots}` stands for the slots a node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from onward.errors import InvalidInput
from onward.model.spec import Resources
from onward.schedulers.hostlist import expand_hosts

DEFAULT_NAMES: Mapping[str, str] = {
    "time": "h_rt",
    "mem": "h_vmem/slot",
    "cpus-per-task": "smp",
    "gpus": "gpus/job",
    "gpu-type": "gpu_type",
    "partition": "-q",
    "account": "-P",
    "reservation": "-ar",
}
KNOWN_NAMES = (*DEFAULT_NAMES, "nodes", "qos")
NAME_OF_ONE = r"-[A-Za-z]+|[A-Za-z_][A-Za-z0-9_.{}-]*(?:/slot|/job)?"

_ENVIRONMENTS = ("cpus-per-task", "nodes")  # names of parallel environments
_AMOUNTS = ("time", "mem", "gpus", "gpu-type")  # said by -l, so that no option can stand for them
_SOFT = ("s_rt", "s_cpu")

_MAILS = {"BEGIN": "b", "END": "e", "FAIL": "a", "ALL": "bea", "NONE": "", "REQUEUE": "a"}
_FEATURE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*(?:=[A-Za-z0-9_.*:+-]+)?")
_SITE = "set this site's name for it in the profile's `names`: onward help gridengine"


def misnamed(key: str, name: str) -> str:
    """What is wrong with a site's name for one of our words, though each could be one; empty: nothing."""
    bare = name.partition("/")[0]
    if key in _ENVIRONMENTS:
        if name.startswith("-") or "/" in name:
            return "expected a parallel environment, such as smp; `qconf -spl` lists them"
        stray = set(re.findall(r"[{}]", name.replace("{slots}", "")))
        return "expected no braces except {slots}, for the slots per node" if stray else ""
    if "{" in name or "}" in name:
        return "expected no braces: {slots} works only in cpus-per-task and nodes"
    if name == "-l" or (key in _AMOUNTS and name.startswith("-")):
        return "expected a resource, such as h_vmem: it is requested with -l; `qconf -sc` lists them"
    if key == "time" and bare in _SOFT:
        return f"expected h_rt: {bare} is only a warning and limits nothing"
    return ""


@dataclass(frozen=True, kw_only=True)
class JobShape:
    """How many slots, and where."""

    nodes: int
    slots: int  # a node

    @property
    def total(self) -> int:
        return self.nodes * self.slots


def shape_of(resources: Resources) -> JobShape:
    nodes = resources.nodes or 1
    tasks = resources.ntasks_per_node or (-(-resources.ntasks // nodes) if resources.ntasks else 1)
    return JobShape(nodes=nodes, slots=tasks * (resources.cpus_per_task or 1))


def options(resources: Resources, names: Mapping[str, str]) -> list[str]:
    """The options, each as on a `#$` line."""
    called = {**DEFAULT_NAMES, **names}
    shape = shape_of(resources)
    asked = [*_environment(shape, called), *_amounts(resources, shape, called)]
    for key, value in (("partition", resources.partition), ("account", resources.account), ("qos", resources.qos)):
        if value is not None:
            asked.append(_as(key, value, called))
    if resources.reservation is not None:
        asked.append(_as("reservation", resources.reservation, called))
    if resources.constraint:
        asked += [f"-l {feature}" for feature in _features(resources.constraint)]
    if hosts := _hosts(resources):
        asked.append(f"-l hostname={hosts}")
    return [*asked, *_mail(resources), *(_plain(option) for option in resources.extra)]


def _environment(shape: JobShape, called: Mapping[str, str]) -> Iterator[str]:
    """Slots beyond the first need a parallel environment; several nodes one that spreads them as asked."""
    if shape.nodes > 1:
        if "nodes" not in called:
            raise InvalidInput(
                f"{shape.nodes} nodes need a parallel environment, but the profile names none",
                hint='in the profile: names = { nodes = "mpi" }, with {slots} if its name contains the slots per node; '
                "`qconf -spl` lists them",
            )
        yield f"-pe {called['nodes'].format(slots=shape.slots)} {shape.total}"
    elif shape.slots > 1:
        yield f"-pe {called['cpus-per-task'].format(slots=shape.slots)} {shape.slots}"


def _amounts(resources: Resources, shape: JobShape, called: Mapping[str, str]) -> Iterator[str]:
    if resources.time is not None:
        name, _ = _counted(called["time"])
        yield f"-l {name}={resources.time}"
    if resources.mem:  # 0: all of the node, which Grid Engine has no word for; without a limit it may use that
        name, by_slot = _counted(called["mem"])
        yield f"-l {name}={-(-resources.mem // shape.slots) if by_slot else resources.mem * shape.nodes}M"
    count, kind = _gpus(resources, shape)
    if count:
        name, by_slot = _counted(called["gpus"])
        if by_slot and count % shape.total:
            raise InvalidInput(
                f"{count} GPUs cannot be divided among {shape.total} slots, and this site counts {name} per slot",
                hint="request as many CPUs as GPUs, or a divisor of them",
            )
        yield f"-l {name}={count // shape.total if by_slot else count}"
        if kind:
            yield f"-l {_counted(called['gpu-type'])[0]}={kind}"
    for request in _gres(resources):
        name, _, amount = request.partition(":")
        yield f"-l {name}={amount or 1}"


def _gpus(resources: Resources, shape: JobShape) -> tuple[int, str]:
    """How many in all, and of which type."""
    count, kind = 0, ""
    for request, nodes in ((resources.gpus, 1), *((g, shape.nodes) for g in (resources.gres or "").split(",") if g.split(":")[0] == "gpu")):
        parts = [part for part in (request or "").split(":") if part]
        parts = parts[1:] if parts[:1] == ["gpu"] else parts
        if request:
            amount = parts[-1] if parts and parts[-1].isdigit() else "1"
            count += int(amount) * nodes
            kind = parts[0] if parts and not parts[0].isdigit() else kind
    return count, kind


def _gres(resources: Resources) -> list[str]:
    return [request for request in (resources.gres or "").split(",") if request and request.split(":")[0] != "gpu"]


def _counted(name: str) -> tuple[str, bool]:
    """The resource, and whether its amount is counted for each slot."""
    bare, _, what = name.partition("/")
    return bare, what == "slot"


def _as(key: str, value: str, called: Mapping[str, str]) -> str:
    if key not in called:
        raise InvalidInput(f"{key}: Grid Engine does not support it ({value!r})", hint=f"leave it out, or {_SITE}")
    name = called[key]
    return f"{name} {value}" if name.startswith("-") else f"-l {_counted(name)[0]}={value}"


def _features(constraint: str) -> list[str]:
    parts = re.split(r"[,&]", constraint)
    if not all(_FEATURE.fullmatch(part) for part in parts):
        raise InvalidInput(
            f"constraint: {constraint!r} cannot be expressed for Grid Engine",
            hint="expected resources of the site separated by commas, such as avx2 or gpu_c=3.5",
        )
    return parts


def _hosts(resources: Resources) -> str:
    wanted, without = (expand_hosts(value) for value in (resources.nodelist, resources.exclude))
    parts = [f"({'|'.join(wanted)})" if len(wanted) > 1 else wanted[0]] if wanted else []
    parts += [f"!{host}" for host in without]
    return "&".join(parts)


def _mail(resources: Resources) -> Iterator[str]:
    if resources.mail_user is not None:
        yield f"-M {resources.mail_user}"
    if resources.mail_type is not None:
        kinds = resources.mail_type.upper().split(",")
        letters = "".join(_MAILS.get(kind, "a" if kind.startswith("TIME_LIMIT") else "") for kind in kinds)
        yield f"-m {''.join(dict.fromkeys(letters)) or 'n'}"


def _plain(option: str) -> str:
    if "\n" in option or "\r" in option:
        raise InvalidInput(f"an option may not contain a line break: {option!r}")
    return option
