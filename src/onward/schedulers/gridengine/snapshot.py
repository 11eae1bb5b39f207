"""A Grid Engine cluster in three calls: one qstat for hosts, queues and jobs, one qconf for limits, one qstat for why mine wait.

What a host has of a resource is what is free of it and what its jobs hold: asking each host for its own would be a call a host. Of a job
over several hosts whose GPUs are counted by the job, nobody says on which host they are; they are then missing from that host's total.
"""

from __future__ import annotations

import getpass
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from xml.etree import ElementTree

from onward.errors import SchedulerUnavailable
from onward.model.cluster import Asked, ClusterJob, ClusterSnapshot, Gpus, Node, NodeState, Queue, by_use, in_order
from onward.model.job import JobId, JobState
from onward.schedulers.command import Answer
from onward.schedulers.gridengine.advice import scheduling_info
from onward.schedulers.gridengine.output_parsing import parse_state, read_duration, read_moment, read_size
from onward.schedulers.gridengine.resource_options import DEFAULT_NAMES
from onward.schedulers.gridengine.wait_reasons import DEPENDENCY, ERROR, HOLD, QUEUED, plain_reason

_MOST_ASKED = 200  # of my jobs that wait: why

# Letters of a queue on a host that starts no jobs there, and what each says. One that is not listed makes it unknown.
_SHUT = {
    "u": (NodeState.DOWN, "does not answer"),
    "E": (NodeState.DRAINED, "a job's failure disabled the queue; qmod -cq enables it"),
    "d": (NodeState.DRAINED, "disabled by an administrator"),
    "D": (NodeState.DRAINED, "disabled by its calendar"),
    "s": (NodeState.DRAINED, "suspended by an administrator"),
    "S": (NodeState.DRAINED, "suspended in favour of another queue"),
    "C": (NodeState.DRAINED, "suspended by its calendar"),
    "c": (NodeState.DOWN, "its configuration is ambiguous"),
    "o": (NodeState.DRAINED, "removed from its queue; its jobs may finish"),
    "a": (NodeState.FULL, "too busy for more jobs"),
    "A": (NodeState.FULL, "too busy: its jobs are suspended"),
    "P": (NodeState.DRAINED, "preempted"),
}
_WORST = (NodeState.UNKNOWN, NodeState.DOWN, NodeState.DRAINED, NodeState.FULL)


@dataclass(frozen=True, kw_only=True)
class ConsumableNames:
    """What this site calls memory and GPUs, and whether each is counted by the slot."""

    mem: str
    mem_by_slot: bool
    gpus: str
    gpus_by_slot: bool
    kind: str

    @classmethod
    def of(cls, names: Mapping[str, str]) -> ConsumableNames:
        called = {**DEFAULT_NAMES, **names}
        (mem, _, mem_by), (gpus, _, gpus_by) = (called[key].partition("/") for key in ("mem", "gpus"))
        return cls(
            mem=mem, mem_by_slot=mem_by == "slot", gpus=gpus, gpus_by_slot=gpus_by == "slot", kind=called["gpu-type"].partition("/")[0]
        )


@dataclass(kw_only=True)
class _Host:
    """What is heard of a host, queue by queue."""

    free: dict[str, tuple[str, str]] = field(default_factory=dict)  # resource → type, amount
    slots: int = 0  # the most that one of its queues has
    used: int = 0
    mem_held: float = 0.0
    gpus_held: int = 0
    shut: list[tuple[NodeState, str]] = field(default_factory=list)
    queues: int = 0


def take_snapshot(ask: Callable[..., Answer], names: Mapping[str, str]) -> ClusterSnapshot:
    words, user = ConsumableNames.of(names), getpass.getuser()
    wanted = ",".join(dict.fromkeys(("slots", words.mem, words.gpus, words.kind, "mem_total", "mem_used")))
    answer = ask("qstat", "-f", "-F", wanted, "-r", "-u", "*", "-xml")
    if answer.code:
        raise SchedulerUnavailable(f"qstat: {answer.err or answer.out.strip() or f'exit code {answer.code}'}")
    root = read_xml(answer.out)
    mine = [job for job in parse_jobs(root, words, user=user) if job.mine and job.waiting][:_MOST_ASKED]
    said = ask("qstat", "-j", ",".join(dict.fromkeys(str(job.id).split(".")[0] for job in mine))).out if mine else ""
    limits = ask("qconf", "-sq", "*").out
    return ClusterSnapshot(
        scheduler="gridengine",
        taken_at=time.time(),
        user=user,
        nodes=tuple(parse_hosts(root, words)),
        queues=tuple(parse_queues(root, limits)),
        jobs=in_order(list(parse_jobs(root, words, user=user, why=scheduling_info(said)))),
        notes=("Grid Engine does not say when a job is expected to start",),
    )


def read_xml(text: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise SchedulerUnavailable(f"qstat -xml did not print XML: {error}") from error


# ── hosts ─────────────────────────────────────────────────────────────────────


def parse_hosts(root: ElementTree.Element, words: ConsumableNames) -> Iterator[Node]:
    hosts: dict[str, _Host] = {}
    for instance in root.iter("Queue-List"):
        host = hosts.setdefault(_text(instance, "name").partition("@")[2], _Host())
        host.queues += 1
        host.slots = max(host.slots, _count(instance, "slots_total"))
        host.used += _count(instance, "slots_used")
        host.free |= {r.get("name", ""): (r.get("type", ""), (r.text or "").strip()) for r in instance.iter("resource")}
        if shut := _shut(_text(instance, "state")):
            host.shut.append(shut)
        for entry in instance.iter("job_list"):
            _hold(host, entry, words)
    for name, host in sorted(hosts.items()):
        yield _node(name, host, words)


def _hold(host: _Host, entry: ElementTree.Element, words: ConsumableNames) -> None:
    slots, asked = _count(entry, "slots") or 1, _requests(entry)
    host.mem_held += (read_size(asked.get(words.mem, "")) or 0) * (slots if words.mem_by_slot else 1)
    spread = _granted(entry) not in (0, slots)
    if words.gpus_by_slot or not spread:
        host.gpus_held += _whole(asked.get(words.gpus, "")) * (slots if words.gpus_by_slot else 1)


def _node(name: str, host: _Host, words: ConsumableNames) -> Node:
    counted, free = host.free.get("slots", ("", ""))
    cpus = _whole(free) + host.used if counted == "hc" else max(host.slots, host.used)
    mem, mem_used = _memory(host, words)
    kind, left = host.free.get(words.kind, ("", ""))[1], host.free.get(words.gpus)
    total = _whole(left[1]) + host.gpus_held if left else 0
    gpus = (Gpus(type=kind, total=total, used=host.gpus_held),) if total else ()
    node = by_use(Node(name=name, state=NodeState.UNKNOWN, cpus=cpus, cpus_used=host.used, mem=mem, mem_used=mem_used, gpus=gpus))
    if not host.shut or len(host.shut) < host.queues:
        return node
    state, why = min(host.shut, key=lambda found: _WORST.index(found[0]))  # no queue starts a job here
    return replace(node, state=NodeState.DRAINING if state is NodeState.DRAINED and host.used else state, why=why)


def _memory(host: _Host, words: ConsumableNames) -> tuple[int, int]:
    """MiB in all and handed out; where the site does not count memory, in all and really in use."""
    how, free = host.free.get(words.mem, ("", ""))
    if how == "hc":
        return round(((read_size(free) or 0) + host.mem_held) / 2**20), round(host.mem_held / 2**20)
    total, used = (read_size(host.free.get(key, ("", ""))[1]) or 0 for key in ("mem_total", "mem_used"))
    return round(total / 2**20), round(used / 2**20)


def _shut(letters: str) -> tuple[NodeState, str] | None:
    found = [_SHUT.get(letter, (NodeState.UNKNOWN, f"Grid Engine says {letters}")) for letter in letters]
    return min(found, key=lambda one: _WORST.index(one[0])) if found else None


# ── queues ────────────────────────────────────────────────────────────────────


def parse_queues(root: ElementTree.Element, limits: str) -> Iterator[Queue]:
    """`limits`: what `qconf -sq` prints of every queue."""
    nodes: dict[str, list[str]] = {}
    closed: dict[str, dict[str, str]] = {}
    for instance in root.iter("Queue-List"):
        queue, _, host = _text(instance, "name").partition("@")
        nodes.setdefault(queue, []).append(host)
        if shut := _shut(_text(instance, "state")):
            closed.setdefault(queue, {})[host] = shut[1]
    times = _time_limits(limits)
    for queue, hosts in nodes.items():
        why = closed.get(queue, {})
        shut_everywhere = len(why) == len(hosts)
        yield Queue(
            name=queue,
            nodes=tuple(sorted(hosts)),
            closed_on=tuple(sorted(why)),
            open=not shut_everywhere,
            why="; ".join(dict.fromkeys(why.values())) if shut_everywhere else "",
            time_limit=times.get(queue),
        )


def _time_limits(text: str) -> dict[str, int]:
    """`h_rt 48:00:00,[e3=2:00:00]`: what holds on most hosts."""
    found: dict[str, int] = {}
    queue = ""
    for line in text.splitlines():
        key, _, rest = line.partition(" ")
        queue = rest.strip() if key == "qname" else queue
        limit = read_duration(rest.strip().split(",")[0]) if key == "h_rt" else None
        if limit is not None and queue:
            found[queue] = limit
    return found


# ── jobs ──────────────────────────────────────────────────────────────────────


def parse_jobs(
    root: ElementTree.Element, words: ConsumableNames, *, user: str, why: Mapping[JobId, list[str]] | None = None
) -> Iterator[ClusterJob]:
    """A parallel job is listed on each of its hosts, and is one here; a task of an array that runs is a line of its own."""
    places: dict[str, list[str]] = {}
    first: dict[str, tuple[ElementTree.Element, str]] = {}
    for instance in root.iter("Queue-List"):
        queue, _, host = _text(instance, "name").partition("@")
        for entry in instance.iter("job_list"):
            places.setdefault(_id(entry), []).append(host)
            first.setdefault(_id(entry), (entry, queue))
    for id_, (entry, queue) in first.items():
        yield _job(entry, words, user=user, queue=queue, hosts=tuple(dict.fromkeys(places[id_])), why={})
    for entry in root.findall("job_info/job_list"):
        yield _job(entry, words, user=user, queue=_text(entry, "hard_req_queue"), hosts=(), why=why or {})


def _job(
    entry: ElementTree.Element, words: ConsumableNames, *, user: str, queue: str, hosts: tuple[str, ...], why: Mapping[JobId, list[str]]
) -> ClusterJob:
    state = parse_state(_text(entry, "state"))
    asked = _asked(entry, words, hosts=len(hosts))
    started = read_moment(_text(entry, "JAT_start_time"))
    owner, waits = _text(entry, "JB_owner"), not hosts
    lines = why.get(JobId(_text(entry, "JB_job_number")), [])
    return ClusterJob(
        id=JobId(_id(entry)),
        name=_text(entry, "full_job_name") or _text(entry, "JB_name"),
        user=owner,
        mine=owner == user,
        state=state if not waits or state is not JobState.RUNNING else JobState.UNKNOWN,
        queue=queue,
        tasks=_tasks(_text(entry, "tasks")) if waits else 1,
        asked=asked,
        nodes=hosts,
        submitted=read_moment(_text(entry, "JB_submission_time")),
        started=started,
        ends=started + asked.time if started and asked.time else None,
        reason=(plain_reason(lines) if lines else _by_state(entry, state)) if waits else "",
        native="; ".join(lines[:2]),
        priority=_fraction(_text(entry, "JAT_prio")) if waits else None,
        in_line=state is JobState.QUEUED and not any("execution time not reached" in line for line in lines),
    )


def _fraction(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _by_state(entry: ElementTree.Element, state: JobState) -> str:
    """For jobs that nobody was asked about."""
    if state is JobState.FAILED:
        return ERROR
    if state is JobState.HELD:
        return DEPENDENCY if entry.find("predecessor_jobs") is not None else HOLD
    return QUEUED


def _asked(entry: ElementTree.Element, words: ConsumableNames, *, hosts: int) -> Asked:
    requests = _requests(entry)
    slots = _granted(entry) or _count(entry, "slots") or 1
    mem = read_size(requests.get(words.mem, ""))
    gpus = _whole(requests.get(words.gpus, "")) * (slots if words.gpus_by_slot else 1)
    return Asked(
        nodes=max(hosts, 1),
        cpus=slots,
        mem=round(mem * (slots if words.mem_by_slot else 1) / 2**20) if mem else None,
        gpus=(Gpus(type=requests.get(words.kind, ""), total=gpus),) if gpus else (),
        time=read_duration(requests.get("h_rt", "")),
    )


def _requests(entry: ElementTree.Element) -> dict[str, str]:
    """What it asks for, and what the site gives to who asks for nothing."""
    found = {one.get("name", ""): (one.text or "").strip() for one in entry.findall("def_hard_request")}
    return found | {one.get("name", ""): (one.text or "").strip() for one in entry.findall("hard_request")}


def _granted(entry: ElementTree.Element) -> int:
    """Slots on all hosts, of a parallel job that runs."""
    return _count(entry, "granted_pe")


def _id(entry: ElementTree.Element) -> str:
    task = _text(entry, "tasks")
    return _text(entry, "JB_job_number") + (f".{task}" if task else "")


def _tasks(text: str) -> int:
    """`7-40:1`, `3,5`."""
    spans = re.findall(r"(\d+)(?:-(\d+)(?::(\d+))?)?", text)
    return sum((int(last) - int(first)) // int(step or 1) + 1 if last else 1 for first, last, step in spans) or 1


# ── values ────────────────────────────────────────────────────────────────────


def _text(entry: ElementTree.Element, key: str) -> str:
    return (entry.findtext(key) or "").strip()


def _count(entry: ElementTree.Element, key: str) -> int:
    return _whole(_text(entry, key))


def _whole(text: str) -> int:
    match = re.match(r"-?\d+", text)
    return max(int(match[0]), 0) if match else 0
