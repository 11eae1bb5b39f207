"""What contradicts what: options of one script, options and our own flags, a script and the cluster it is sent to, its body and us."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from onward.inputs.scripts.requested_options import ScriptOption
from onward.model.spec import Resources

FAMILIES = {"slurm": "Slurm", "gridengine": "Grid Engine"}

# Our word -> the schedulers' own options that would say something else about the same thing.
_SAME_THING: Mapping[str, tuple[str, ...]] = {
    "time": ("--time", "-l h_rt"),
    "mem": ("--mem", "--mem-per-cpu", "--mem-per-gpu", "-l h_vmem"),
    "cpus_per_task": ("--cpus-per-task", "--cpus-per-gpu", "-pe"),
    "nodes": ("--nodes", "-pe"),
    "ntasks": ("--ntasks", "-pe"),
    "ntasks_per_node": ("--ntasks-per-node", "-pe"),
    "gpus": ("--gpus", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket", "-l gpus", "-l gpu"),
    "gres": ("--gres", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket"),
    "partition": ("--partition", "-q"),
    "account": ("--account", "-P"),
    "qos": ("--qos",),
    "constraint": ("--constraint",),
    "reservation": ("--reservation", "-ar"),
    "nodelist": ("--nodelist", "-l hostname", "-l h"),
    "exclude": ("--exclude",),
    "mail_user": ("--mail-user", "-M"),
    "mail_type": ("--mail-type", "-m"),
}
_EXCLUDE_EACH_OTHER = (("--mem", "--mem-per-cpu", "--mem-per-gpu"), ("--requeue", "--no-requeue"), ("-cwd", "-wd"))
_MAY_REPEAT = ("-v", "-l", "-hard", "-soft", "--export")
_STARTS = r"(?:^|[;&|(]|\bthen\b|\bdo\b)\s*(?:exec\s+|srun\s+)?"
_SUBMITS = re.compile(rf"{_STARTS}(sbatch|qsub|qresub)\b")
_REQUEUES = re.compile(r"\b(scontrol\s+requeue(?:hold)?|qmod\s+-rj)\b")


def option_subject(entry: str) -> str:
    """What an option is about: --mem of --mem=4G, -l gpus of -l gpus=1, -pe of -pe smp 4."""
    if entry.startswith("--"):
        return entry.partition("=")[0]
    words = entry.replace('"', "").split(maxsplit=1)
    return f"-l {words[1].partition('=')[0].strip()}" if words[0] == "-l" and len(words) > 1 else words[0]


def subjects_of(option: ScriptOption) -> set[str]:
    """The same of an option as it was read: one for each request of -l."""
    return {option_subject(about) for about, _ in _said(option)}


def says_the_same(option: ScriptOption, others: Iterable[ScriptOption]) -> bool:
    """Whether the others say all that this one says, in its words or in others. What adds up does not count."""
    about = {subject for subject, _ in _said(option)}
    subjects = {subject for other in others for subject, _ in _said(other)}
    keys = {key for subject in subjects for key in our_subject(subject)}
    return bool(about) and all(subject in subjects or keys.intersection(our_subject(subject)) for subject in about)


def our_subject(about: str) -> list[str]:
    """Our own words for what an option is about."""
    return [key for key, options in _SAME_THING.items() if about in options]


def contradictions(options: Iterable[ScriptOption]) -> list[tuple[int, str]]:
    """The same thing asked for twice, in two ways."""
    chosen: dict[str, tuple[str, ScriptOption]] = {}
    found: list[tuple[int, str]] = []
    for option in options:
        for about, text in _said(option):
            before = chosen.setdefault(about, (text, option))
            if before[0] != text:
                found.append((option.line, f"{text}: line {before[1].line} says {before[0]}; remove one of the two"))
    for group in _EXCLUDE_EACH_OTHER:
        there = sorted((chosen[about] for about in group if about in chosen), key=lambda one: one[1].line)
        if len(there) > 1:
            (first, _), (text, second) = there[0], there[1]
            found.append((second.line, f"{text}: contradicts {first} in line {there[0][1].line}; remove one of the two"))
    gres, gpus = chosen.get("--gres"), chosen.get("--gpus")
    if gres and gpus and any(part.split(":")[0] == "gpu" for part in (gres[1].value or "").split(",")):
        (first, above), (text, below) = sorted((gres, gpus), key=lambda one: one[1].line)
        found.append((below.line, f"{text}: line {above.line} says {first}; remove one of the two: GPUs would be requested twice"))
    return found


def _said(option: ScriptOption) -> list[tuple[str, str]]:
    name = option.name.split(" ", 1)[0]
    if name == "-l":
        return [(f"-l {request.partition('=')[0]}", f"-l {request}") for request in (option.value or "").split(",")]
    return [] if name in _MAY_REPEAT else [(name, str(option))]


def replaced(resources: Resources, keys: Collection[str]) -> Resources:
    """Flags have replaced these of our words: options of the script about the same things are dropped, as on sbatch's own line."""
    gone = {about for key in keys for about in _SAME_THING.get(key, ())}
    changed = replace(resources, extra=tuple(entry for entry in resources.extra if option_subject(entry) not in gone))
    if "gpus" in keys and "gres" not in keys and changed.gres:
        rest = ",".join(part for part in changed.gres.split(",") if part.split(":")[0] != "gpu")
        changed = replace(changed, gres=rest or None)
    if "gres" in keys and "gpus" not in keys:
        changed = replace(changed, gpus=None)
    return changed


def without_clashes(asked: Resources, filled: Resources) -> Resources:
    """A profile's defaults must not speak against what was asked, in our words or in the scheduler's own."""
    about = {option_subject(entry) for entry in asked.extra}
    settled = about | {key for key, value in vars(asked).items() if value is not None} | {key for one in about for key in our_subject(one)}
    extra = (e for e in filled.extra if e in asked.extra or not settled & {option_subject(e), *our_subject(option_subject(e))})
    filled = replace(filled, extra=tuple(extra))
    clashing: dict[str, Any] = {
        key: None
        for key, options in _SAME_THING.items()
        if getattr(asked, key) is None and getattr(filled, key) is not None and about & set(options)
    }
    return replace(filled, **clashing) if clashing else filled


def notes_on_the_body(text: str) -> list[tuple[int, str]]:
    """What a script does to go on by itself, where Onward does so too."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.lstrip().startswith("#"):
            continue
        if match := _REQUEUES.search(line):
            found.append((number, f"{match[1]}: will be refused; Onward queues the next leg itself"))
        elif match := _SUBMITS.search(line):
            found.append((number, f"{match[1]}: queues a job that Onward does not know; Onward itself queues the next leg"))
    return found
