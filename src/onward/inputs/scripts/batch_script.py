"""Existing batch scripts, unchanged: the third way to submit. `#SBATCH` or `#$` lines set its resources, the rest runs as it is.

A script that knows nothing of Onward is trusted: it saves and goes on by itself, so it is not asked to stop unless it
set a signal for that, and a leg that met its limit is simply followed by the next (ADR 7).
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from onward.errors import InvalidInput
from onward.inputs.command_line import usable_name
from onward.inputs.scripts import qsub_lines, sbatch_lines
from onward.inputs.scripts.contradictions import (
    FAMILIES,
    contradictions,
    notes_on_the_body,
    option_subject,
    says_the_same,
    subjects_of,
)
from onward.inputs.scripts.requested_options import RequestedOptions, ScriptOption, tasks_of
from onward.inputs.scripts.submit_line import GivenOption, mismatch
from onward.model.spec import Outputs, Resources, RunDraft, Script

SUFFIXES = (".sh", ".bash", ".sbatch", ".slurm", ".qsub", ".sge", ".job")
_LARGEST = 4 << 20  # sbatch takes no more either
_MARKS = {"slurm": re.compile(r"^#SBATCH\b", re.MULTILINE), "gridengine": re.compile(r"^#\$\s*-", re.MULTILINE)}
_READERS = {"slurm": sbatch_lines, "gridengine": qsub_lines}
_LOGIN_SHELLS = ("bash", "ksh", "zsh")


@dataclass(frozen=True, kw_only=True)
class ParsedScript:
    """A draft, and what its reader should say about it."""

    draft: RunDraft
    notes: tuple[str, ...] = ()


def is_batch_script(word: str, cwd: Path) -> bool:
    """By its name, or by the directive lines in it."""
    path = cwd / word
    if word.endswith(SUFFIXES):
        return True
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            head = file.read(1 << 16)
    except (OSError, ValueError):
        return False
    return head.startswith(b"#") and b"\0" not in head and bool(_families(head.decode(errors="replace")))


def read_script(
    path: Path, arguments: Sequence[str], *, scheduler: str, cluster: str, env: Mapping[str, str], given: Sequence[GivenOption] = ()
) -> ParsedScript:
    """The script at `path` as a run for a cluster of this scheduler, or InvalidInput with everything that is wrong with it.

    `given`: options that stood before it on the command line. They win over its lines, as on sbatch's own."""
    text = _text(path)
    family = _family(text, path, scheduler, cluster)
    wishes, problems = _wishes(text, family, [one.of(family) for one in given])
    first = text.split("\n", 1)[0]
    if not first.startswith("#!") and family == "slurm":
        problems.append((1, f"found {first[:40]!r}, expected #! and the program that runs it, such as #!/bin/bash"))
    if problems:
        raise InvalidInput("\n".join(_placed(path, said) for said in sorted(problems, key=_line)))
    notes = sorted([*wishes.notes, *notes_on_the_body(text)], key=_line)
    return ParsedScript(
        draft=replace(
            _draft(path, text, arguments, family, wishes, cluster, env), outputs=_outputs(family, wishes, native=scheduler == family)
        ),
        notes=tuple(_placed(path, said) for said in notes),
    )


def expand_array(draft: RunDraft) -> list[RunDraft]:
    """One run a task of an array; else the run itself."""
    if draft.script is None or draft.script.array is None:
        return [draft]
    made = []
    for task in tasks_of(draft.script.array):
        name = f"{draft.name[: 63 - len(str(task))].rstrip('-._')}-{task}"
        made.append(replace(draft, name=name, script=replace(draft.script, task=task)))
    return made


def _line(said: tuple[int, str]) -> int:
    return said[0]


def _placed(path: Path, said: tuple[int, str]) -> str:
    """Line 0 is the command line."""
    line, sentence = said
    return f"{path}:{line}: {sentence}" if line else sentence


# ── the parts ─────────────────────────────────────────────────────────────────


def _text(path: Path) -> str:
    try:
        if path.is_symlink() and not path.exists():
            raise InvalidInput(f"the script {path} is a link to {os.readlink(path)}, which does not exist", hint="fix the link")
        if path.exists() and not path.is_file() and not path.is_dir():  # a pipe has no end, and each leg needs the text
            raise InvalidInput(f"{path} is not a regular file", hint="write the script into a file")
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise InvalidInput(f"no script {path}", hint=_near(path)) from error
    except (OSError, ValueError) as error:
        raise InvalidInput(f"the script {path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > _LARGEST:
        raise InvalidInput(f"the script {path} is larger than 4 MB, which no scheduler accepts")
    if not data.strip():
        raise InvalidInput(f"the script {path} is empty")
    if b"\0" in data:
        raise InvalidInput(f"the script {path} is not text", hint="to run a program, write it after --, as in onward submit -- ./program")
    text = data.decode(errors="surrogateescape")
    if "\r\n" in text:
        line = text[: text.index("\r\n")].count("\n") + 1
        raise InvalidInput(f"{path}:{line}: the line has a DOS line ending, which shells here cannot read", hint=f"dos2unix {path}")
    return text


def _near(path: Path) -> str:
    try:
        near = difflib.get_close_matches(path.name, os.listdir(path.parent), n=1)
    except OSError:
        return f"there is no folder {path.parent}"
    return f"did you mean {near[0]}?" if near else "to run a command of this name, write it after --"


def _families(text: str) -> list[str]:
    return [family for family, mark in _MARKS.items() if mark.search(text)]


def _family(text: str, path: Path, scheduler: str, cluster: str) -> str:
    """Whose words count. A script may have both kinds; a cluster that has neither takes either."""
    found = _families(text)
    if scheduler not in FAMILIES:
        return found[0] if found else "slurm"
    if found and scheduler not in found:
        mark = _MARKS[found[0]].search(text)
        line = text[: mark.start()].count("\n") + 1 if mark else 1
        raise InvalidInput(
            f"{path}:{line}: the script is written for {FAMILIES[found[0]]}, but the cluster {cluster} is {FAMILIES[scheduler]}",
            hint=f"choose another cluster with --cluster, or add {'#SBATCH' if scheduler == 'slurm' else '#$'} lines too",
        )
    return scheduler


def _wishes(text: str, family: str, given: Sequence[GivenOption]) -> tuple[RequestedOptions, list[tuple[int, str]]]:
    reader = _READERS[family]
    wishes = RequestedOptions(carry=family == "slurm")
    words = f"the script is written for {FAMILIES[family]}"
    wishes.problems += [(0, mismatch(one, words)) for one in given if one.family != family]
    spoken = [one.option for one in given if one.family == family]
    options: list[ScriptOption] = []
    for found in reader.options_in(text):
        if not isinstance(found, ScriptOption):
            wishes.problems.append(found)
        elif not says_the_same(found, spoken):
            options.append(found)
            reader.take(found, wishes)
    subjects = {subject for option in spoken for subject in subjects_of(option)}
    wishes.extra = [entry for entry in wishes.extra if option_subject(entry) not in subjects]
    for option in spoken:
        reader.take(option, wishes)
    if family == "gridengine":
        qsub_lines.settle(wishes)
    wishes.extra = list(dict.fromkeys(wishes.extra))
    return wishes, [*wishes.problems, *contradictions(options), *contradictions(spoken)]


def _draft(
    path: Path, text: str, arguments: Sequence[str], family: str, wishes: RequestedOptions, cluster: str, env: Mapping[str, str]
) -> RunDraft:
    shell = _shell(text, family, wishes.shell)
    name = usable_name(wishes.name if wishes.name else PurePosixPath(path.name).stem)
    shared = {key: env[key] for key in wishes.from_shell if key in env}
    script = Script(
        name=path.name,
        folder=str(path.absolute().parent),
        shell=shell,
        arguments=tuple(arguments),
        array=wishes.array,
        family=family,
        job_name=wishes.name or path.name,
        signal_to=wishes.signal_to,
    )
    return RunDraft(
        name=name,
        experiment=name,
        cluster=cluster,
        command=(*shell, path.name, *arguments),
        resources=Resources(**wishes.resources, extra=tuple(wishes.extra)),
        variables={**shared, **wishes.variables},
        stop_signal=wishes.stop_signal,
        stop_lead=wishes.stop_lead,
        script=script,
        script_text=text,
        folder=wishes.folder,
        carry=wishes.carry,
        freeze=False,
    )


def _shell(text: str, family: str, directive: str | None) -> tuple[str, ...]:
    """The program of the script's first line and, as the kernel does it, all that follows as one argument."""
    first = text.split("\n", 1)[0]
    words = first[2:].strip().split(None, 1) if first.startswith("#!") else []
    if family == "gridengine" and directive:
        words = [directive]
    words = [word.strip() for word in words] or ["/bin/sh"]
    login = any(re.match(r"-[a-z]*l|--login\b", word) for word in words[1:])
    if family == "gridengine" and PurePosixPath(words[0]).name in _LOGIN_SHELLS and not login:
        words.insert(1, "-l")  # Grid Engine starts these as login shells: /etc/profile is where `module` comes from
    return tuple(words)


def _outputs(family: str, wishes: RequestedOptions, *, native: bool) -> Outputs:
    """`native`: the script goes to the scheduler that it was written for, whose users look for its output where that puts it."""
    if not native:
        return Outputs(out=wishes.out, err=wishes.err, append=wishes.append or family == "gridengine")
    if family == "slurm":
        default = "slurm-%A_%a.out" if wishes.array else "slurm-%j.out"
        return Outputs(out=wishes.out or default, err=wishes.err, append=wishes.append)
    task = ".$TASK_ID" if wishes.array else ""
    err = None if wishes.joined else wishes.err or f"$JOB_NAME.e$JOB_ID{task}"
    return Outputs(out=wishes.out or f"$JOB_NAME.o$JOB_ID{task}", err=err, append=True)
