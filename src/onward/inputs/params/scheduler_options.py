"""Options in the scheduler's own words (`resources.extra`): which cannot be handed through. Read as the scheduler itself reads them.

A params file does not say which scheduler it is for. What only one of them can mean is judged as the file is read; a
single letter means one thing to sbatch and another to qsub, so it is judged at submit, when the cluster is known.
"""

from __future__ import annotations

from types import ModuleType

from onward.errors import InvalidInput
from onward.inputs.scripts import qsub_lines, sbatch_lines
from onward.inputs.scripts.contradictions import option_subject, our_subject
from onward.inputs.scripts.requested_options import RequestedOptions, ScriptOption
from onward.model.spec import Resources

_READERS: dict[str, ModuleType] = {"slurm": sbatch_lines, "gridengine": qsub_lines}
_TIMES = {"--time": "resources.time", "-l h_rt": "resources.time", "-l s_rt": "stop.signal"}  # also where it is unlimited
_LOGS = "Onward writes the output of every leg into the run's logs; leave it out"
_QUOTES = 'write an option as on a directive line, and quote a value with blanks, as in --comment="a note"'
_INSTEAD = {
    "name": "expected the run's name (name, or --name)",
    "array": "this would queue several jobs for one leg; submit each task as a run",
    "folder": "a run starts in the folder from which it is submitted; leave it out",
    "out": _LOGS,
    "err": _LOGS,
    "joined": _LOGS,
    "append": _LOGS,
    "stop_signal": "Onward itself asks the training to stop; expected stop.signal",
    "variables": "expected environment.variables",
    "from_shell": "expected environment.variables",
    "shell": "a leg's script is a bash script; leave it out",
}


def option_refusal(entry: str, scheduler: str | None = None) -> str:
    """Why an option cannot be handed through: the chain, its files and its limit are ours. Empty: it can, as far as is known yet."""
    scheduler = scheduler or _only_in(entry)
    reader = _READERS.get(scheduler or "")
    if reader is None:
        return ""
    found: list[str] = []
    for option in reader.options_in(f"{reader.MARK} {entry}"):
        sentence = _judged(option, reader) if isinstance(option, ScriptOption) else f"{option[1]}; {_QUOTES}"
        found += [sentence] if sentence else []
    return "; ".join(found)


def check_extra(asked: Resources, scheduler: str, section: str = "resources") -> None:
    """At submit: every option by the words of the cluster's own scheduler, and against what was asked in ours."""
    for entry in asked.extra:
        if problem := option_refusal(entry, scheduler):
            raise InvalidInput(f"{section}.extra: found {entry}: {problem}", hint="leave it out, or change it as described")
        for key in (key for about in _abouts(entry, scheduler) for key in our_subject(about) if getattr(asked, key) is not None):
            spelled = key.replace("_", "-")
            raise InvalidInput(
                f"{section}.extra: found {entry}, and {section}.{spelled} ({getattr(asked, key)}) sets the same",
                hint="remove one of the two",
            )


def _abouts(entry: str, scheduler: str) -> list[str]:
    if scheduler not in _READERS:
        return []
    reader = _READERS[scheduler]
    options = [option for option in reader.options_in(f"{reader.MARK} {entry}") if isinstance(option, ScriptOption)]
    return [option_subject(f"-l {part}") if o.name == "-l" else o.name.split(" ")[0] for o in options for part in _parts(o)]


def _parts(option: ScriptOption) -> list[str]:
    return (option.value or "").split(",") if option.name == "-l" else [""]


def _only_in(entry: str) -> str | None:
    """Two dashes are Slurm's; one before a longer word is Grid Engine's, and so is -l with a resource of its kind."""
    if entry.startswith("--"):
        return "slurm"
    word = entry.split(maxsplit=1)[0]
    return "gridengine" if qsub_lines.is_long(word) or option_subject(entry) in _TIMES else None


def _judged(option: ScriptOption, reader: ModuleType) -> str:
    name = option.name if reader is qsub_lines else option.name.removeprefix("--")
    reason = reader.not_handed_on(name.split(" ", 1)[0])
    if reason is not None:
        return str(reason)
    times = {option_subject(f"-l {part}") for part in _parts(option)} if option.name == "-l" else {option.name}
    if ours := sorted(_TIMES[one] for one in times if one in _TIMES):
        return f"expected {ours[0]}"
    before, wishes = RequestedOptions(), RequestedOptions()
    reader.take(option, wishes)
    if wishes.problems:
        return wishes.problems[0][1].removeprefix(f"{option}: ")
    if wishes.resources:
        return f"expected resources.{next(iter(wishes.resources)).replace('_', '-')}"
    if wishes.extra:
        return ""
    changed = [key for key in _INSTEAD if getattr(wishes, key) != getattr(before, key)]
    return _INSTEAD[changed[0]] if changed else ""
