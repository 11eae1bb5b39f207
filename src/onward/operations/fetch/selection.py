"""Which of a run's files a person wants: by path, and by kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from onward.errors import NotFound
from onward.model.quantity import counted
from onward.operations.fetch.result_files import CHECKPOINTS, LOGS, OWN, RunFile

_BELOW = ("results/artifacts/", "results/models/", "results/tensorboard/", "results/checkpoints/", "logs/", "code/")
_MOST_NAMED = 8


@dataclass(frozen=True, kw_only=True)
class Selection:
    files: list[RunFile]
    own: list[RunFile]  # checkpoints of the training's own that nobody asked for


def select(files: Sequence[RunFile], paths: Sequence[str], *, checkpoints: bool, logs: bool) -> Selection:
    """`logs`: these, and checkpoints if they are wanted, instead of everything. A path names what it matches, whatever its kind."""
    if logs:
        files = [file for file in files if file.kind == LOGS or (checkpoints and file.kind in (CHECKPOINTS, OWN))]
    if paths:
        for path in paths:
            if not any(_matches(file.path, path) for file in files):
                raise NotFound(f"{path!r} matches no file of the run", hint=_what_there_is(files))
        return Selection(files=[file for file in files if any(_matches(file.path, path) for path in paths)], own=[])
    own = [file for file in files if file.kind == OWN and not checkpoints]
    return Selection(files=[file for file in files if checkpoints or file.kind != OWN], own=own)


def _matches(name: str, path: str) -> bool:
    """A file, a folder or a pattern; as it lies in the run's folder, or in the folder of its kind, which `show` leaves out."""
    path = path.removeprefix("./").rstrip("/")
    names = (name, *(name.removeprefix(folder) for folder in _BELOW if name.startswith(folder)))
    return any(name == path or name.startswith(f"{path}/") or fnmatchcase(name, path) for name in names)


def _what_there_is(files: Sequence[RunFile]) -> str:
    """The upper folders and files, with how many there are below."""
    tops: dict[str, int] = {}
    for file in files:
        below = next((folder for folder in _BELOW if file.path.startswith(folder)), "")
        first, slash, _ = file.path.removeprefix(below).partition("/")
        tops[f"{below}{first}{slash}"] = tops.get(f"{below}{first}{slash}", 0) + 1
    if not tops:
        return "there is no file to fetch yet"
    named = [f"{name} ({counted(number, 'file')})" if name.endswith("/") else name for name, number in sorted(tops.items())]
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return f"there is {', '.join(named[:_MOST_NAMED])}{more}; --dry-run lists them all"
