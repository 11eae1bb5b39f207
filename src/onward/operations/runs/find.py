"""Find a run by what a person types: an id or its beginning, a folder, or a name."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from onward.errors import Conflict, InvalidInput, NotFound
from onward.model.events import Submitting
from onward.model.job import JobLabels
from onward.operations.context import OperationsContext
from onward.operations.remembered_roots import roots_text
from onward.rundir.files.no_links import read_beneath
from onward.rundir.home import home_elsewhere
from onward.rundir.journal import read_events
from onward.rundir.layout import RESCUED, RunDir

_RANKS: tuple[Callable[[str, str, str, str], bool], ...] = (  # of the text, and a run's id, name and folder: the best kind first
    lambda text, id, name, folder: text in (id, folder),
    lambda text, id, name, folder: text == name,
    lambda text, id, name, folder: id.startswith(text),
    lambda text, id, name, folder: folder.startswith(text),
)


@dataclass(frozen=True, kw_only=True)
class RunMatch:
    """A run that a text may mean. `rank`: how well it does, 0 the best. Of two alike, one in a root of this place comes first."""

    rank: int
    id: str
    name: str
    folder: str
    host: str | None = None  # None: here
    copy: bool = False  # of a run that another folder holds; told only where several have one id


def find_run(context: OperationsContext, text: str) -> RunDir:
    """The one run of this machine that the text means."""
    check_text(text)
    if is_path(text):
        return _folder(text)
    found = matching_runs(context, text)
    if found:
        return RunDir(Path(best_match(text, found).folder))
    raise run_not_found(text, near=near_names(context, text), where=list(map(str, context.roots)))


def check_text(text: str) -> None:
    if not text.strip():  # an unset variable in somebody's script must not mean "the only run there is"
        raise InvalidInput("no run given", hint="`onward runs` lists the runs; name one by its id, name or folder")


def is_path(text: str) -> bool:
    return "/" in text or text in (".", "..")


def matching_runs(context: OperationsContext, text: str) -> list[RunMatch]:
    """All runs of this machine that the text may mean, oldest first."""
    if is_path(text):
        run = _named(text)
        return [_match(0, run)] if run.is_run() else []
    found, damaged = [], []
    own = context.own_roots
    for run in context.runs():
        id, name = labels(run)
        if (rank := _rank(text, run, id, name, own)) is not None:
            found.append(RunMatch(rank=rank, id=id, name=name, folder=str(run.path)))
        elif not id:
            damaged.append(run)
    for run in damaged if not found else ():  # they do not hide one that can be read
        id, name = _labels_of_damaged(run)
        if (rank := _rank(text, run, id, name, own)) is not None:
            found.append(RunMatch(rank=rank, id=id, name=name, folder=str(run.path)))
    for run in _rescued(context) if not found else ():  # its folder is gone
        id, name = labels(run)
        if id and (rank := _rank(text, run, id, name, own)) is not None:
            found.append(RunMatch(rank=rank, id=id, name=name, folder=str(run.path)))
    ids = Counter(match.id for match in found)
    found = [replace(match, copy=_is_copy(match)) if ids[match.id] > 1 else match for match in found]
    beside = _named(text)
    return found or ([_match(0, beside)] if beside.is_run() else [])


def _rescued(context: OperationsContext) -> list[RunDir]:
    """What was saved of runs whose folders were deleted while they trained."""
    found: list[Path] = []
    for root in context.roots:
        with suppress(OSError):
            found += sorted(path for path in root.iterdir() if path.name.startswith(RESCUED))
    return [RunDir(path) for path in found if RunDir(path).is_run()]


def _rank(text: str, run: RunDir, id: str, name: str, own: Sequence[Path]) -> int | None:
    """None: it means another run."""
    rank = next((rank for rank, means in enumerate(_RANKS) if means(text, id, name, run.path.name)), None)
    return None if rank is None else 2 * rank + (run.root not in own)


def best_match(text: str, found: Sequence[RunMatch]) -> RunMatch:
    """The one of the best kind; several are a conflict."""
    rank = min(match.rank for match in found)
    first = [match for match in found if match.rank == rank]
    first = [match for match in first if not match.copy] or first
    if len(first) == 1:
        return first[0]
    if len({match.id for match in first}) == 1:
        folders = ", ".join(f"{f'{match.host}:' if match.host else ''}{match.folder}" for match in first[-8:])
        raise Conflict(f"{len(first)} folders contain the run {first[0].id}", hint=f"name its folder: {folders}")
    newest = ", ".join(f"{match.id} ({f'{match.host}:' if match.host else ''}{Path(match.folder).name})" for match in first[-8:])
    raise Conflict(f"{text!r} may mean {len(first)} runs", hint=f"use an id: {newest}")


def _is_copy(match: RunMatch) -> bool:
    return home_elsewhere(RunDir(Path(match.folder))) is not None


def near_names(context: OperationsContext, text: str) -> list[str]:
    return difflib.get_close_matches(text, {labels(run)[1] for run in context.runs()}, n=1)


def run_not_found(text: str, *, near: Iterable[str], where: Sequence[str]) -> NotFound:
    guess = "".join(f"did you mean {name}? " for name in near)
    return NotFound(
        f"there is no run {text!r} under {roots_text(where)}", hint=f"{guess}`onward runs` lists the runs; ONWARD_ROOT says where to look"
    )


def _named(text: str) -> RunDir:
    """The folder of a path that somebody typed. If that is a link, or ends in `..`, where it leads: they chose it."""
    path = Path(text).expanduser().absolute()
    return RunDir(path.resolve() if path.is_symlink() or ".." in path.parts else path)


def _folder(text: str) -> RunDir:
    run = _named(text)
    if not run.is_run():
        raise NotFound(f"{text} is not a run's folder", hint="`onward runs` lists the runs")
    return run


def _match(rank: int, run: RunDir) -> RunMatch:
    id, name = labels(run)
    return RunMatch(rank=rank, id=id, name=name, folder=str(run.path))


def labels(run: RunDir) -> tuple[str, str]:
    """Its id and name; nothing where its spec cannot be read."""
    try:
        spec = json.loads(read_beneath(run.root, run.spec))
        return str(spec["id"]), str(spec["name"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "", ""


def _labels_of_damaged(run: RunDir) -> tuple[str, str]:
    """What the names of its jobs tell, else its folder's name."""
    try:
        jobs = [event.name for event in read_events(run) if isinstance(event, Submitting)]
    except (OSError, ValueError):
        jobs = []
    told = next((labels for labels in map(JobLabels.read, jobs) if labels), None)
    return (told.run, told.run_name) if told else ("", run.path.name.partition("_")[2].partition("_")[2])
