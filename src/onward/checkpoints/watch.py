"""Watch the folder a training saves into, and tell which checkpoints are complete.

A folder made by `run.checkpoint()` is complete at once: it carries a commit mark and appeared by rename. Anything else
(files or folders a training writes by itself) is complete when it is closed and has been quiet for a while. Entries
with the same number in their names (`model_100.pt`, `optim_100.pt`) make one checkpoint; entries without a number
(`best.pt`, `config.json`) go with each, and make none by themselves: those written after the last numbered one are
carried with it once the training has gone. Where nothing has a number, the whole folder is one checkpoint. Logs, which
stay open as long as the training lives, and names of files not yet finished are no part of any.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onward.checkpoints.manifest import link_within
from onward.sdk import contract

_EXTENSION = re.compile(r"(\.[A-Za-z][A-Za-z0-9]{0,10})+$")
_SHARD = re.compile(r"[._-]?(\d+[._-]of[._-]\d+|(?<![a-z])(rank|shard|part)[._-]?\d+)", re.IGNORECASE)  # one of several
_FRACTION = re.compile(r"\d+\.\d+")  # a loss or an accuracy
_NUMBER = re.compile(r"(\d+)(?!.*\d)")
_UNFINISHED = re.compile(r"^(\.|tmp[-_])|\.(tmp|part|incomplete)$|~$")
_LOG = re.compile(r"tfevents|\.(log|out|err)$")

Fingerprint = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A complete set of files, ready to be published."""

    step: int | None  # None: the training did not say
    sources: Mapping[str, Path]
    fingerprint: Fingerprint  # of what makes it this checkpoint
    whole: Fingerprint  # with all that goes with it
    made_by: str
    save_seconds: float = 0.0
    metrics: Mapping[str, float] = field(default_factory=dict)
    folder: Path | None = None  # of run.checkpoint(): may be removed once published


@dataclass(frozen=True, kw_only=True)
class _Group:
    """Files that a training wrote by itself and that belong together."""

    step: int | None
    own: list[Path]
    beside: list[Path]  # without a number: they go with each


class Watcher:
    def __init__(self, folder: Path, *, quiet_seconds: float = 2.0) -> None:
        self._folder = folder
        self._quiet = quiet_seconds
        self._known: set[Fingerprint] = set()

    def ignore_present(self, *, before: float = math.inf) -> None:
        """What is there now, and was written before this moment, came from a checkpoint: it is not new."""
        for files in (files for group in self._groups() for files in (group.own, group.own + group.beside)):
            try:
                fingerprint = _fingerprint(self._folder, files)
            except OSError:
                continue  # going away under our eyes
            if all(mtime / 1e9 < before for _, _, mtime in fingerprint):
                self._known.add(fingerprint)

    def done_with(self, candidate: Candidate) -> None:
        self._known |= {candidate.fingerprint, candidate.whole}

    def ready(self, *, now: float, closed: bool = False) -> list[Candidate]:
        """Complete checkpoints not yet dealt with, oldest first. `closed`: the training has gone, so nothing is open."""
        committed = list(self._committed())
        groups = self._groups()
        loose = [self._complete(group, now=now, closed=closed, newest=group is groups[-1]) for group in groups]
        return sorted(committed, key=lambda c: c.step or 0) + [candidate for candidate in loose if candidate]

    def _committed(self) -> Iterator[Candidate]:
        for path in self._entries():
            mark = path / contract.COMMIT_FILE
            if not mark.is_file():
                continue
            try:
                note = json.loads(mark.read_bytes())
                files = [p for p in _files(path) if p != mark]
                fingerprint = _fingerprint(self._folder, [mark, *files])
            except (OSError, ValueError):
                continue
            if fingerprint not in self._known:
                yield Candidate(
                    step=int(note["step"]),
                    sources={str(p.relative_to(path)): p for p in files},
                    fingerprint=fingerprint,
                    whole=fingerprint,
                    made_by="sdk",
                    save_seconds=float(note.get("seconds", 0)),
                    metrics=note.get("metrics", {}),
                    folder=path,
                )

    def _complete(self, group: _Group, *, now: float, closed: bool, newest: bool) -> Candidate | None:
        files = group.own + group.beside
        try:
            fingerprint, whole = _fingerprint(self._folder, group.own), _fingerprint(self._folder, files)
        except OSError:
            return None  # it is changing under our eyes
        if fingerprint in self._known and not (closed and newest and whole not in self._known):
            return None
        if not closed and (now - max(mtime for _, _, mtime in whole) / 1e9 < self._quiet or any_open(files)):
            return None
        sources = {str(p.relative_to(self._folder)): p for p in files}
        return Candidate(step=group.step, sources=sources, fingerprint=fingerprint, whole=whole, made_by="files")

    def _groups(self) -> list[_Group]:
        """By number, the newest last."""
        numbered: dict[int, list[Path]] = {}
        plain: list[Path] = []
        for path in self._entries():
            if (path / contract.COMMIT_FILE).is_file():
                continue
            number = _number(path.name)
            files = [file for file in _files(path) if not _LOG.search(file.name)]
            (plain if number is None else numbered.setdefault(number, [])).extend(files)
        groups = [_Group(step=number, own=files, beside=plain) for number, files in sorted(numbered.items()) if files]
        return groups or ([_Group(step=None, own=plain, beside=[])] if plain else [])

    def _entries(self) -> list[Path]:
        try:
            return sorted(self._folder / name for name in os.listdir(self._folder) if not _UNFINISHED.search(name))
        except FileNotFoundError:
            return []


def _number(name: str) -> int | None:
    """The step a name speaks of: its last whole number, its file extension aside (`model.h5` has none)."""
    match = _NUMBER.search(_FRACTION.sub("", _EXTENSION.sub("", _SHARD.sub("", name))))
    return int(match[1]) if match else None


def _files(path: Path) -> list[Path]:
    if path.is_symlink() or not path.is_dir():
        return _if_whole(path)
    found: list[Path] = []
    for folder, folders, names in os.walk(path):
        for name in [*names, *(name for name in folders if os.path.islink(os.path.join(folder, name)))]:
            found += _if_whole(Path(folder) / name)
    return sorted(found)


def _if_whole(path: Path) -> list[Path]:
    """A file, through a link too; a link to a neighbouring folder (`latest -> step-100`) as such. A link to nowhere is nothing."""
    if path.is_file() or (path.is_dir() and link_within(os.readlink(path))):
        return [path]
    return []


def _fingerprint(base: Path, files: list[Path]) -> Fingerprint:
    stats = ((str(path.relative_to(base)), path.stat() if path.is_file() else path.lstat()) for path in sorted(files))
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)


def any_open(files: list[Path]) -> bool:
    """Whether any of our processes has one of these files open for writing. Where that cannot be told: no."""
    wanted = {str(path.resolve()) for path in files}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            descriptors = os.listdir(process / "fd")
        except OSError:  # gone, or not ours
            continue
        if any(_writes(process, descriptor, wanted) for descriptor in descriptors):
            return True
    return False


def _writes(process: Path, descriptor: str, wanted: set[str]) -> bool:
    try:
        if os.readlink(process / "fd" / descriptor) not in wanted:
            return False
        lines = (process / "fdinfo" / descriptor).read_text().splitlines()
    except OSError:  # closed meanwhile
        return False
    flags = next((int(line.split()[1], 8) for line in lines if line.startswith("flags:")), os.O_RDWR)
    return bool(flags & (os.O_WRONLY | os.O_RDWR))
