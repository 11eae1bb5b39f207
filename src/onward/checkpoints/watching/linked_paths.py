"""Files that a training keeps in its working folder (`checkpoints: {paths: …}`), watched through a folder of links on the node.

The links are looked at as the checkpoint folder is: what is whole is told by the same rules, and published from where it lies.
"""

from __future__ import annotations

import glob
import math
import os
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import takewhile
from pathlib import Path

from onward.checkpoints.manifest import OWN, Manifest
from onward.checkpoints.watching import file_names
from onward.checkpoints.watching.candidate import Candidate
from onward.checkpoints.watching.listing import FileVersion, Fingerprint
from onward.checkpoints.watching.watcher import SaveWatcher

_MOST_FILES = 10_000
_SECONDS_PER_FILE = 1.5  # between two looks: each asks shared storage for every file, up to three times
_LONGEST_REST = 60.0
_OVERDUE = 600.0  # seconds without a publish: files that are written again and again are then taken between two writes
_LATE = 1800.0  # seconds after which it is said that this never worked
_SHARE_OF_TIME = 0.1  # that copying in vain may take


def own_paths(folder: Path, patterns: Iterable[str]) -> list[str]:
    """The files that the patterns name, relative to the folder. A pattern that names a folder means all in it.

    A link leads to a file of the training's own only where it stays in the folder, or in one that a pattern spells out.
    """
    return _own_and_led_out(folder, patterns)[0]


def _own_and_led_out(folder: Path, patterns: Iterable[str]) -> tuple[list[str], list[str]]:
    """Also those that are not the training's own, since a link leads out to them."""
    own: set[str] = set()
    found: set[str] = set()
    for pattern in patterns:
        named = _files_of(folder, pattern)
        homes = tuple(f"{os.path.realpath(home)}/" for home in (folder, _spelled_out(folder, pattern)))
        within = cache(os.path.realpath)  # each folder is asked for once
        for name in named:
            path = folder / name
            leads_to = os.path.realpath(path) if path.is_symlink() else f"{within(path.parent)}/{path.name}"
            if leads_to.startswith(homes):
                own.add(name)
        found |= named
        if len(found) >= _MOST_FILES:
            break
    return sorted(own), sorted(found - own)


def _files_of(folder: Path, pattern: str) -> set[str]:
    found: set[str] = set()
    for name in glob.iglob(pattern, root_dir=folder, recursive=True):
        path = folder / name
        if path.is_file():
            found.add(name)
        elif "**" not in pattern:
            found.update(os.path.relpath(os.path.join(at, file), folder) for at, _, files in os.walk(path) for file in files)
        if len(found) >= _MOST_FILES:
            break
    return {name for name in found if not any(file_names.unfinished(part) for part in name.split("/"))}


def _spelled_out(folder: Path, pattern: str) -> Path:
    """The folder that its beginning names without a wildcard."""
    named = folder.joinpath(*takewhile(lambda part: not glob.has_magic(part), pattern.split("/")))
    return named if named.is_dir() or named == folder else named.parent


class LinkedWatcher(SaveWatcher):
    """`published`: the newest checkpoint that was made of these files; what is as it says is not new."""

    overdue_after = math.inf  # it has rules of its own for files that never rest: they may be very large

    def __init__(
        self,
        links: Path,
        folder: Path,
        patterns: Sequence[str],
        *,
        published: Manifest | None = None,
        warn: Callable[[str], None] = lambda words: None,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(links, timer=timer)
        self._links = links
        self._working = folder
        self._patterns = patterns
        files = published.files.items() if published and published.made_by == OWN else ()
        self._known = {(name, entry.size, entry.written) for name, entry in files}
        self._warn = warn
        self._told: set[str] = set()  # each is said once
        self._waits_since: float | None = None  # files that are not published yet; by the clock of `ready`
        self._taken = 0.0  # when files were taken between two writes, by the timer
        self._next_try = -math.inf
        self._before = -math.inf
        self._older: dict[str, FileVersion] = {}  # no work of the run's: left out until they are written

    def ignore_present(self, *, before: float = math.inf, all_here: bool = True) -> None:
        """What was written before this moment, and was not published, is no part of any checkpoint until it is written again."""
        self._before = before
        there = filter(None, map(self._version, own_paths(self._working, self._patterns)))
        self._older = {seen[0]: seen for seen in there if seen not in self._known and super(LinkedWatcher, self)._is_older(seen, before)}
        self._refresh()
        super().ignore_present(before=before, all_here=all_here)

    def ready(self, *, now: float, closed: bool = False, killed: bool = False) -> list[Candidate]:
        files = self._refresh()
        found = super().ready(now=now, closed=closed, killed=killed)
        if not closed and not self._names_steps:
            found = self._worth_a_copy(found, now)
        self.rest = min(max(self.rest, 1.0 + _SECONDS_PER_FILE * files), _LONGEST_REST)
        return found

    def done_with(self, candidate: Candidate) -> None:
        super().done_with(candidate)
        self._waits_since, self._next_try = None, -math.inf

    def not_taken(self, candidate: Candidate) -> None:
        super().not_taken(candidate)
        self._next_try = self._timer() + (self._timer() - self._taken) * (1 / _SHARE_OF_TIME - 1)

    def _worth_a_copy(self, found: list[Candidate], now: float) -> list[Candidate]:
        """Of files without a number, which saves write again: not at once after a copy in vain, and in the end also what never rests."""
        if not self.new_plain:
            self._waits_since = None
            return found
        self._waits_since = now if self._waits_since is None else self._waits_since
        waited = now - self._waits_since
        if waited >= _LATE:
            self._say("late", _never_still(self.new_plain, waited))
        if self._timer() < self._next_try:
            return []
        if not found and waited >= _OVERDUE:
            found = self._between_two_writes(now)
        self._taken = self._timer()
        return found

    def _between_two_writes(self, now: float) -> list[Candidate]:
        """The files as they are: whoever copies them finds out whether they stayed so. Several only if this save has written all."""
        look = self._look(now, closed=False)
        own = tuple(sorted(self._beside.lasting(look.plain)))
        whole = self._rounds.known or {seen[0] for seen in own} <= self._rounds.written
        if not whole or self._rounds.lacking() or look.busy(own):
            return []
        return [self._files(None, own, own, again=False, rewritten=False)]

    def _say(self, what: str, words: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self._warn(words)

    def _is_older(self, seen: FileVersion, before: float) -> bool:
        return seen in self._known or super()._is_older(seen, before)

    def _files(self, step: int | None, own: Fingerprint, whole: Fingerprint, *, again: bool, rewritten: bool) -> Candidate:
        return replace(super()._files(step, own, whole, again=again, rewritten=rewritten), made_by=OWN)

    def _refresh(self) -> int:
        """Make the links those to the files that are there now, and say how many files there are."""
        found, led_out = _own_and_led_out(self._working, self._patterns)
        if led_out:
            self._say("led out", _not_published(led_out))
        wanted = {name for name in found if not self._was_there(name)}
        there = {os.path.relpath(os.path.join(at, name), self._links) for at, _, names in os.walk(self._links) for name in names}
        for name in there - wanted:
            (self._links / name).unlink(missing_ok=True)
        for name in sorted(wanted - there):
            link = self._links / name
            if any(parent.is_symlink() for parent in link.parents if self._links in parent.parents) or link.is_dir():
                shutil.rmtree(self._links)  # a file has become a folder, or the other way round
                return self._refresh()
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(self._working.absolute() / name)
        return len(found) + len(led_out)

    def _was_there(self, name: str) -> bool:
        """It is older than the run and has not been written since, or a new link to such a file."""
        if name not in self._older and not (self._working / name).is_symlink():
            return False
        seen = self._version(name)
        return seen is not None and seen not in self._known and (seen == self._older.get(name) or super()._is_older(seen, self._before))

    def _version(self, name: str) -> FileVersion | None:
        try:
            seen = (self._working / name).stat()
        except OSError:
            return None  # gone
        return name, seen.st_size, seen.st_mtime_ns


def _never_still(names: Sequence[str], waited: float) -> str:
    which = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    return (
        f"not published for {waited / 60:.0f} min: {which}, since it is open, or written again, before a copy of it is done;"
        " save less often, or under a new name each time (epoch_1.pt)"
    )


def _not_published(names: Sequence[str]) -> str:
    which = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    return (
        f"not published: {which}, since a link leads out of the working folder to it;"
        " if the training saves there, make the folder a link instead of the file, and begin a pattern in checkpoints.paths with its name"
    )
