"""One look into the folder: each entry is listed once, open files are asked for at most once, and only where it matters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from onward.checkpoints.watching import file_names
from onward.checkpoints.watching.committed import is_committed
from onward.checkpoints.watching.file_endings import has_proper_end, is_cut_off
from onward.checkpoints.watching.frameworks import POINTERS
from onward.checkpoints.watching.listing import FileVersion, Fingerprint, entries, files
from onward.checkpoints.watching.open_files import open_for_writing

_POINTER_SIZE = 4096


class FolderLook:
    def __init__(
        self,
        folder: Path,
        *,
        now: float,
        closed: bool,
        settled: Mapping[int, tuple[str, ...]],
        were_open: frozenset[str] | None = None,
    ) -> None:
        """`settled`: steps with these very entries need not be looked into this time.

        `were_open`: the training was killed at `now`, and these were the files that it had open before.
        """
        self._folder = folder
        self._links: dict[str, str] = {}
        self._open = were_open
        self.killed = were_open is not None
        self._left = closed and not self.killed  # by itself: nothing is half written
        self.now = now
        self.closed = closed
        self.committed: list[Path] = []
        self.plain: list[FileVersion] = []
        found: dict[int, list[os.DirEntry[str]]] = {}
        for entry in entries(folder):
            step = file_names.number(entry.name)
            if step is not None:
                found.setdefault(step, []).append(entry)
            elif is_committed(entry):
                self.committed.append(Path(entry.path))
            else:
                self.plain += files(entry, self._links)
        self.steps: dict[int, tuple[str, ...]] = {}  # the entries of each
        self.own: dict[int, Fingerprint] = {}  # the files of those that are not settled
        for step in sorted(found):
            self._look_into(step, found[step], settled)

    def _look_into(self, step: int, found: list[os.DirEntry[str]], settled: Mapping[int, tuple[str, ...]]) -> None:
        entry_names = tuple(entry.name for entry in found)
        if settled.get(step) != entry_names:
            marked = [entry for entry in found if is_committed(entry)]
            self.committed += [Path(entry.path) for entry in marked]
            loose = [entry for entry in found if entry not in marked]
            entry_names = tuple(entry.name for entry in loose)
            own = tuple(sorted(seen for entry in loose for seen in files(entry, self._links)))
            if not own:
                return
            self.own[step] = own
        self.steps[step] = entry_names

    def age(self, seen: FileVersion) -> float:
        return self.now - seen[2] / 1e9

    def rests(self, seen: FileVersion, quiet: float) -> bool:
        """It is closed, and has been quiet for so long."""
        return self._left or (self.age(seen) >= quiet and not self.is_open(seen[0]))

    def is_open(self, name: str) -> bool:
        if self._open is None:
            self._open = open_for_writing(self._folder, elsewhere=frozenset(self._links.values()))
        if not self._open:
            return False
        return self._links.get(name, os.path.join(os.path.realpath(self._folder), name)) in self._open

    def busy(self, own: Fingerprint) -> str:
        """A file of these that is open for writing, or lacks its end."""
        for name, _, _ in own:
            if not self._left and self.is_open(name):
                return name
        return next((name for name, _, _ in own if is_cut_off(self._folder / name)), "")

    def proven(self, own: Fingerprint) -> bool:
        """Each of these says itself that it is whole."""
        return all(has_proper_end(self._folder / name) for name, _, _ in own)

    @property
    def open_files(self) -> frozenset[str] | None:
        """None: it did not matter so far."""
        return self._open

    @cached_property
    def pointers(self) -> dict[str, str]:
        """What the files say that name the newest checkpoint."""
        said = {}
        for name, size, _ in self.plain:
            if name in POINTERS and size <= _POINTER_SIZE and name not in self._links:
                try:
                    said[name] = (self._folder / name).read_text(errors="replace").strip()
                except OSError:
                    continue
        return said
