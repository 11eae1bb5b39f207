"""Options of sbatch and qsub on Onward's own command line: found among its flags, and what they mean for a run.

Onward's flags have Slurm's spelling and come first. A letter that sbatch and qsub both have means what it means to the cluster's scheduler,
and sbatch's where that is neither.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onward.errors import InvalidInput
from onward.inputs.command_line import usable_name
from onward.inputs.scripts import qsub_lines, sbatch_lines
from onward.inputs.scripts.contradictions import FAMILIES, contradictions, option_subject, replaced
from onward.inputs.scripts.requested_options import RequestedOptions, ScriptOption
from onward.model.spec import RunDraft

REFERENCE = "onward help scheduler-options lists what each option becomes"
PROGRAMS = {"slurm": "sbatch", "gridengine": "qsub"}
_PARAMS_FILES = (".yaml", ".yml")
_READERS = {"slurm": sbatch_lines, "gridengine": qsub_lines}
_NOTHING = (None, False, ".")  # as it is without the option; -cwd says what a command does anyway
_SCRIPTS_OWN = {
    "out": "a command's output is in the run's logs, see `onward logs`; a file of its own is for a batch script",
    "err": "a command's output is in the run's logs, see `onward logs`; a file of its own is for a batch script",
    "joined": "a command's output is in the run's logs, see `onward logs`; files of its own are for a batch script",
    "append": "a command's output is in the run's logs, see `onward logs`; files of its own are for a batch script",
    "folder": "a command starts in the folder that it is submitted from; go there first",
    "array": "an array is for a batch script; runs of a command with several values are a pipeline's `matrix`",
    "shell": "a shell is for a batch script; write bash -c '…' after --",
}


@dataclass(frozen=True, kw_only=True)
class GivenOption:
    """One that stood on the command line. `family`: whose it is; "": both have the letter."""

    family: str
    option: ScriptOption

    def of(self, scheduler: str) -> GivenOption:
        """With its family settled, for a cluster of this scheduler."""
        if self.family:
            return self
        family = "gridengine" if scheduler == "gridengine" else "slurm"
        name = self.option.name if family == "gridengine" else sbatch_lines.long_name(self.option.name)
        return GivenOption(family=family, option=replace(self.option, name=name))


# ── among the flags ───────────────────────────────────────────────────────────


def split_off(words: Sequence[str], own: Mapping[str, bool]) -> tuple[list[str], list[GivenOption]]:
    """The words without what only sbatch or qsub know, up to the first word of the command; and that. `own`: our flags, and whether each
    has a value. What nobody knows stays, to be refused with our own flags."""
    kept: list[str] = []
    given: list[GivenOption] = []
    rest = list(words)
    while rest and rest[0] != "--":
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            kept.append(word)
            if not word.endswith(_PARAMS_FILES):
                break
        elif found := list(_foreign(word, rest, own)):
            given += found
        else:
            kept.append(word)
            if own.get(word) and rest:
                kept.append(rest.pop(0))
    return [*kept, *rest], given


def _foreign(word: str, rest: list[str], own: Mapping[str, bool]) -> Iterator[GivenOption]:
    if word.startswith("--"):
        name = word.partition("=")[0]
        if not any(flag.startswith(name) for flag in own) and sbatch_lines.is_known(name):
            yield from _read("slurm", word, rest)
    elif qsub_lines.is_long(word):
        yield from _read("gridengine", word, rest)
    elif word[:2] in own:
        return
    elif word[:2] == "-v" and rest and "=" in rest[0]:
        yield from _read("gridengine", word, rest)
    elif qsub_lines.is_known(word[:2]) and sbatch_lines.long_name(word[:2]):
        yield from (replace(one, family="", option=replace(one.option, name=word[:2])) for one in _read("slurm", word, rest))
    elif qsub_lines.is_known(word):
        yield from _read("gridengine", word, rest)
    elif sbatch_lines.long_name(word[:2]):
        yield from _read("slurm", word, rest)


def _read(family: str, word: str, rest: list[str]) -> Iterator[GivenOption]:
    """Takes the option's values off the rest."""
    words = [word, *rest]
    for found in _READERS[family].next_options(words, 0):
        if not isinstance(found, ScriptOption):
            raise InvalidInput(f"{word}: {found[1]}", hint=f"it is an option of {PROGRAMS[family]}; {REFERENCE}")
        yield GivenOption(family=family, option=found)
    rest[:] = words


# ── what they mean ────────────────────────────────────────────────────────────


def applied(
    draft: RunDraft, given: Sequence[GivenOption], *, scheduler: str, cluster: str, env: Mapping[str, str], asked: Collection[str]
) -> tuple[RunDraft, list[str]]:
    """The draft of a command or of a params file with these options, and what is to be said of them.

    `asked`: what our own flags have settled: keys of Resources, and `name`.
    """
    wishes, problems = RequestedOptions(), []
    for one in given:
        alone = RequestedOptions()
        _READERS[one.family].take(one.option, alone)
        problems += [sentence for _, sentence in alone.problems]
        problems += [f"{one.option}: {words}" for key, words in _SCRIPTS_OWN.items() if getattr(alone, key) not in _NOTHING]
        if alone.extra and one.family != scheduler:
            problems += _misplaced(one, scheduler, cluster, wishes)
            if scheduler in FAMILIES or scheduler == "local":
                continue
        twice = set(asked) & {*alone.resources, *(["name"] if alone.name else [])}
        problems += [f"{one.option}: --{key.replace('_', '-')} says the same; which of the two?" for key in sorted(twice)]
        _READERS[one.family].take(one.option, wishes)
    qsub_lines.settle(wishes)
    problems += [sentence for _, sentence in (*wishes.problems, *contradictions([one.option for one in given]))]
    if problems:
        raise InvalidInput("\n".join(dict.fromkeys(problems)), hint=REFERENCE)
    return _with(draft, wishes, env), [sentence for _, sentence in wishes.notes]


def refuse_alone(given: Iterable[GivenOption]) -> None:
    """Options that are refused whatever is submitted, as --wrap is, which stands where a command should."""
    for one in (one.of("") for one in given):
        if words := _READERS[one.family].refused(one.option.name):
            raise InvalidInput(f"{one.option}: {words}", hint=REFERENCE)


def _misplaced(one: GivenOption, scheduler: str, cluster: str, wishes: RequestedOptions) -> list[str]:
    """An option that only its own scheduler can carry out."""
    if one.option.name == "--export":  # what we make of it is all there is to it
        _READERS[one.family].take(one.option, wishes)
        wishes.extra.clear()
    elif scheduler in FAMILIES:
        return [mismatch(one, f"the cluster {cluster} is {FAMILIES[scheduler]}")]
    elif scheduler == "local":
        wishes.note(one.option, "not passed on: it does not apply to the local queue")
    return []


def mismatch(one: GivenOption, words: str) -> str:
    return f"{one.option}: is an option of {PROGRAMS[one.family]}, and {words}; leave it out"


def _with(draft: RunDraft, wishes: RequestedOptions, env: Mapping[str, str]) -> RunDraft:
    resources = replaced(draft.resources, list(wishes.resources))
    spoken = {option_subject(entry) for entry in wishes.extra}
    extra = (*(entry for entry in resources.extra if option_subject(entry) not in spoken), *wishes.extra)
    shared = {key: env[key] for key in wishes.from_shell if key in env}
    changes: dict[str, Any] = {"name": usable_name(wishes.name)} if wishes.name else {}
    if wishes.stop_signal and draft.stop_signal is None:
        changes["stop_signal"] = wishes.stop_signal
        changes["stop_lead"] = draft.stop_lead if draft.stop_lead is not None else wishes.stop_lead
    return replace(
        draft,
        **changes,
        resources=replace(resources, **wishes.resources, extra=extra),
        variables={**shared, **wishes.variables, **draft.variables},
        carry=draft.carry and wishes.carry,
    )
