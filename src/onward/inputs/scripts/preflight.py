"""Whether a batch script can be started at all: the program that runs it, the folder it starts in, and whether its shell can read it.

Looked at on a machine of the cluster, at submit: a mistake costs seconds there, and two jobs and a night in the queue later.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from onward.errors import InvalidInput
from onward.model.spec import Script

_READS_WITH_N = ("sh", "bash", "dash", "ksh")
_PATIENCE = 20.0  # seconds
_AT_LINE = re.compile(r"line (\d+): (.*)|(?:^|: )(\d+): (.*)", re.MULTILINE)
_LEAVES = re.compile(r"^(?:exit|exec)\b", re.MULTILINE)  # what follows such a line may be anything: it is never read


def check_folder(script: Script, folder: Path) -> None:
    """Slurm would start it in /tmp if its folder cannot be entered; Grid Engine would not start it."""
    if not os.path.isdir(folder):
        raise InvalidInput(f"{script.name} starts in {folder}, which does not exist", hint="create it, or fix the line")
    if not os.access(folder, os.X_OK):
        raise InvalidInput(f"{script.name} starts in {folder}, which you may not enter", hint="fix the line")


def check_program(script: Script, folder: Path, path: str) -> None:
    """The one of its first line, or of -S. `path`: a PATH, for one without a slash."""
    word = script.shell[0]
    if "/" in word:
        found = os.path.isfile(folder / word) and os.access(folder / word, os.X_OK)
    else:
        found = shutil.which(word, path=path) is not None
    if not found:
        raise InvalidInput(
            f"{script.name} is run by {word}, but there is no such program",
            hint="fix its first line (#!/bin/bash), or the -S that names it",
        )


def check_syntax(script: Script, text: str) -> None:
    """As its own shell reads it, where that is one which can read without running."""
    shell = _shell(script.shell)
    problem = _problem([shell, "-n"], text) if shell else None
    if problem and "extglob" in text and shell and PurePosixPath(shell).name == "bash":  # switched on by a line that was not run
        problem = _problem([shell, "-O", "extglob", "-n"], text)
    if problem is None:
        return
    line, words = problem
    if line and _LEAVES.search("\n".join(text.split("\n")[: line - 1])):
        return
    raise InvalidInput(f"{script.name}{f':{line}' if line else ''}: {PurePosixPath(shell or 'sh').name} cannot read it: {words}")


def check_setup(lines: Sequence[str]) -> None:
    """Lines for bash to run before the training, each by itself, of any run."""
    for number, line in enumerate(lines, start=1):
        problem = _problem(["/bin/bash", "-n", "-c", line], "")
        if problem and "extglob" not in line:
            raise InvalidInput(
                f"setup line {number} `{line}`: bash cannot read it: {problem[1]}",
                hint="each line runs by itself, so it must be complete by itself",
            )


def _shell(words: Sequence[str]) -> str | None:
    """The shell that reads the script: also the one after env."""
    if PurePosixPath(words[0]).name == "env" and len(words) > 1:
        words = [word for word in words[1].split() if not word.startswith("-") and "=" not in word] or [""]
    found = shutil.which(words[0])
    return found if found and PurePosixPath(words[0]).name in _READS_WITH_N else None


def _problem(argv: Sequence[str], text: str) -> tuple[int, str] | None:
    """Line and words of the first complaint; None where there is none, or nobody to ask."""
    env = {key: value for key, value in os.environ.items() if key not in ("BASH_ENV", "ENV") and not key.startswith("BASH_FUNC_")}
    given = text.encode(errors="surrogateescape")
    try:
        done = subprocess.run(argv, input=given, capture_output=True, env={**env, "LC_ALL": "C"}, timeout=_PATIENCE, check=False)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").strip()
    match = _AT_LINE.search(said)
    if match is None:
        return 0, said.split("\n")[0][:200] or f"exit code {done.returncode}"
    return int(match[1] or match[3]), (match[2] or match[4])[:200]
