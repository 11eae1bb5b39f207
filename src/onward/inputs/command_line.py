"""The command of a run: split without a shell, and checked where a mistake costs seconds and not a night in the queue."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
import sys
import unicodedata
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from onward.errors import InvalidInput, SchedulerUnavailable
from onward.model.commands.optional_words import check_optional, has_optional, join_optional, with_optional
from onward.model.commands.placeholders import FIXED_PLACEHOLDERS, NEWEST, check_params, placeholders_in
from onward.model.spec import ParamValue
from onward.schedulers.command import run_command

_QUOTED = re.compile(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_OPERATOR = re.compile(r"(?:&&|\|\|?|\|&|;|&)\Z|(?:[0-9]|&)?[<>]|.*[;&]\Z")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = re.compile(r"python(?:\d+(?:\.\d+)*)?\Z")
_SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh"})
_BUILTINS = frozenset({"cd", "export", "source", ".", "module", "ml", "ulimit", "set", "eval", "exec", "alias"})
_SHELL_HINT = "a command is run without a shell; write bash -c '…' around it"
_COMPILE = "import sys; compile(open(sys.argv[1], 'rb').read(), sys.argv[1], 'exec')"


def split_command(command: str | Sequence[str]) -> tuple[str, ...]:
    """Words for `exec`: a string is split as a shell would, but what only a shell could do with it is refused."""
    words = tuple(command) if not isinstance(command, str) else _split_text(command)
    if not words or not words[0].strip():
        raise InvalidInput("found no program, expected a command", hint="write it as in python train.py --lr {params.lr}")
    return join_optional(words)


def _split_text(text: str) -> tuple[str, ...]:
    joined = _QUOTED.sub(lambda match: " " if match[0] == "\\\n" else match[0], text).strip()
    bare = _QUOTED.sub("q", joined)  # quoted parts cannot hold operators
    if "\n" in bare:
        raise InvalidInput("found several lines, expected one command", hint=f"continue a line with \\ at its end, or: {_SHELL_HINT}")
    for word in bare.split():
        if _OPERATOR.match(word):
            raise InvalidInput(f"found the shell's {word!r}, expected one program and its arguments", hint=_SHELL_HINT)
    if assigned := _ASSIGNMENT.match(bare):
        raise InvalidInput(f"found the shell's {assigned[0]}… before the program", hint="set it under environment: variables")
    try:
        return tuple(shlex.split(joined))
    except ValueError as error:
        raise InvalidInput(f"found an unclosed quote or backslash ({error})", hint="close it, or write the command as a list") from error


def check_placeholders(command: Sequence[str], params: Mapping[str, ParamValue], also: tuple[str, ...] = ()) -> None:
    """Every placeholder must have something to stand for when a leg starts, and no param may become source code of a shell.

    `also`: a benchmark's placeholders, not a training's.
    """
    if also and has_optional(command):
        raise InvalidInput("found optional words, expected them in a training only", hint="benchmarks never resume")
    check_optional(command)
    known = [*(also or (*FIXED_PLACEHOLDERS, NEWEST)), *(f"params.{name}" for name in params)]
    for name in placeholders_in(command, also):
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            guess = f"did you mean {{{near[0]}}}? " if near else ""
            family, _, param = name.partition(".")
            if family == "params" and param:
                raise InvalidInput(
                    f"found the placeholder {{{name}}}, but there is no param {param}",
                    hint=f"{guess}give it a value: --param {param}=VALUE, or {param}: VALUE under params; "
                    f"or write {{{{{name}}}}} for literal braces",
                )
            listed = ", ".join(f"{{{key}}}" for key in known)
            raise InvalidInput(
                f"found the placeholder {{{name}}}, expected one of {listed}",
                hint=f"{guess}write {{{{{name}}}}} for literal braces",
            )
        if name == NEWEST and name in placeholders_in(with_optional(command, resuming=False)):
            raise InvalidInput(
                "found {checkpoints.newest}, which is empty in the first leg",
                hint="write it as optional words, as in {?checkpoints.read --resume {checkpoints.newest}}",
            )
        if name.startswith("params.") and params[name.removeprefix("params.")] is None:
            raise InvalidInput(f"found the placeholder {{{name}}}, but its param is null", hint="give the param a value")
    check_params(command, params, also)


@dataclass(frozen=True, kw_only=True)
class _EntryPoint:
    """What a command starts: `kind` is python, module, shell, inline (code in the command itself) or program."""

    kind: str
    word: str


def name_from_command(command: Sequence[str]) -> str:
    """A name for a run that was given none: `python train.py` is `train`."""
    command = with_optional(join_optional(command), resuming=False)
    entry = _entry(command)
    word = entry.word.rsplit(".", 1)[-1] if entry.kind == "module" else entry.word
    if entry.kind == "program" or (entry.kind == "module" and word in ("run", "launch")):  # torchrun and similar start a script too
        word = next((word for word in command if PurePosixPath(word).suffix in (".py", ".sh", ".jl", ".R")), word)
    return usable_name(PurePosixPath(word).stem)


def usable_name(text: str) -> str:
    """The nearest name that can be used for a run: `My model (β)` becomes `My-model`."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-._")
    return (slug if slug[:1].isalpha() else f"run-{slug}" if slug else "run")[:64].rstrip("-._")


def python_script(command: Sequence[str], cwd: Path) -> Path | None:
    """The script that a command starts, also through torchrun and similar, if it is a file in `cwd`."""
    command = with_optional(command, resuming=False)
    entry = _entry(command)
    names = [word for word in command[1:] if word.endswith(".py")]
    if entry.kind == "python":
        names = [entry.word, f"{entry.word}/__main__.py"]
    elif entry.kind == "module":
        path = entry.word.replace(".", "/")
        names = [f"{path}.py", f"{path}/__main__.py", *names]
    elif entry.kind != "program":
        return None
    found = next((cwd / name for name in names if _is_file(cwd / name)), None)
    return found if found and found.resolve().is_relative_to(cwd.resolve()) else None


def check_entry(command: Sequence[str], cwd: Path, path: str, *, prepared: bool = False) -> None:
    """What the command starts must be there: its program on `path` (a PATH) or as a file, its script in `cwd`.

    A Python script must compile too. What only the job's own environment can tell, such as an installed module, is
    left to it; so is every word with a placeholder. Where the environment is `prepared` in the job, so is the program on
    its PATH, and what its Python compiles.
    """
    command = with_optional(command, resuming=False)
    if placeholders_in(command[:1]):
        return
    program = None if prepared and "/" not in command[0] else _program(command[0], cwd, path)
    entry = _entry(command)
    if placeholders_in([entry.word]):
        return
    match entry.kind:
        case "python":
            script = cwd / entry.word
            if not entry.word or not (_is_file(script) or _is_file(script / "__main__.py")):
                what = f"no script {entry.word}" if entry.word else "the command names no script"
                raise InvalidInput(f"{what}: found no file {script}", hint=_near_file(script))
            _check_python(script if _is_file(script) else script / "__main__.py", program)
        case "module":
            _check_module(entry.word, cwd, program)
        case "shell":
            if not entry.word:
                raise InvalidInput(f"{command[0]} has no script to run", hint="name a script, or write bash -c '…'")
            if not _is_file(cwd / entry.word) and shutil.which(entry.word, mode=os.R_OK, path=path) is None:
                raise InvalidInput(f"no script {entry.word}: found no file {cwd / entry.word}", hint=_near_file(cwd / entry.word))
        case _:
            return


def _program(word: str, cwd: Path, path: str) -> str:
    if "/" in word:
        file = cwd / word
        if not _is_file(file):
            raise InvalidInput(f"no program {word}: found no file {file}", hint=_near_file(file))
        if not os.access(file, os.X_OK):
            raise InvalidInput(f"the program {file} is not executable", hint=f"chmod +x {shlex.quote(str(file))}")
        return str(file)
    found = shutil.which(word, path=path)
    if found is None:
        hint = "load its module or activate its environment first, or write its full path"
        if word in _BUILTINS:
            hint = _SHELL_HINT
        elif _is_file(cwd / word):
            hint = f"the folder has a file of that name: write ./{word}, or put its interpreter before it"
        raise InvalidInput(f"the program {word} is not on the PATH", hint=hint)
    return found


def _entry(command: Sequence[str]) -> _EntryPoint:
    program = PurePosixPath(command[0]).name
    if _PYTHON.match(program):
        return _python_entry(command)
    if program in _SHELLS:
        return _shell_entry(command)
    return _EntryPoint(kind="program", word=command[0])


def _python_entry(command: Sequence[str]) -> _EntryPoint:
    words = iter(command[1:])
    for word in words:
        if word in ("-", "--help", "--version", "-V", "-VV", "-h"):
            return _EntryPoint(kind="inline", word=command[0])
        if not word.startswith("-"):
            return _EntryPoint(kind="python", word=word)
        if word.startswith("--"):
            if word == "--check-hash-based-pycs":
                next(words, None)
            continue
        taking = re.match(r"-[^cmWX]*([cmWX])(.*)", word, re.DOTALL)  # `-u`, `-OO`, `-Xdev`, `-um module`
        if taking is None:
            continue
        value = taking[2] or next(words, "")
        if taking[1] == "m":
            return _EntryPoint(kind="module", word=value)
        if taking[1] == "c":
            return _EntryPoint(kind="inline", word=command[0])
    return _EntryPoint(kind="python", word="")


def _shell_entry(command: Sequence[str]) -> _EntryPoint:
    words = iter(command[1:])
    for word in words:
        if word in ("--", "-"):
            return _EntryPoint(kind="shell", word=next(words, ""))
        if not word.startswith(("-", "+")):
            return _EntryPoint(kind="shell", word=word)
        if word.startswith("--"):
            if word in ("--rcfile", "--init-file"):
                next(words, None)
            continue
        if "c" in word or "s" in word:
            return _EntryPoint(kind="inline", word=command[0])
        if word.endswith(("o", "O")):
            next(words, None)
    return _EntryPoint(kind="shell", word="")


def _check_module(module: str, cwd: Path, program: str | None) -> None:
    """Only a module that `cwd` itself holds is looked at: the rest belongs to an environment that is not here."""
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        raise InvalidInput(f"found {module!r} after python -m, expected a module's name")
    base = cwd.joinpath(*parts)
    for file in (base.parent / f"{base.name}.py", base / "__main__.py"):
        if _is_file(file):
            return _check_python(file, program)
    if not _is_file(cwd / parts[0] / "__init__.py") and not _is_file(cwd / f"{parts[0]}.py"):
        return None
    raise InvalidInput(f"python -m {module} has nothing to run: found neither {base}.py nor {base}/__main__.py")


def _check_python(script: Path, program: str | None) -> None:
    try:
        source = script.read_bytes()
        if script.suffix == ".pyc" or zipfile.is_zipfile(script):
            return
    except OSError as error:
        raise InvalidInput(f"the script {script} cannot be read: {error.strerror}") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, str(script), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if program is None or _accepted_by(program, script):
            return
        line = getattr(error, "lineno", None) or 1
        raise InvalidInput(f"{script}:{line}: Python cannot compile it: {getattr(error, 'msg', None) or error}") from error


def _accepted_by(program: str, script: Path) -> bool:
    """The run's own Python may be newer than ours and know more syntax: where they differ, it has the last word."""
    if Path(program).resolve() == Path(sys.executable).resolve():
        return False
    try:
        return run_command([program, "-c", _COMPILE, str(script)], timeout=20).code == 0
    except SchedulerUnavailable:
        return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name too long, a folder we may not enter
        return False


def _near_file(path: Path) -> str:
    try:
        near = difflib.get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=1)
    except (OSError, ValueError):
        return f"there is no folder {path.parent}"
    return f"did you mean {near[0]}?" if near else "paths are relative to the folder in which the command starts"
