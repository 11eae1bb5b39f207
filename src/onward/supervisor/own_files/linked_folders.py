"""A bounded look behind links of a working folder, one level: in a thread of its own, since what they lead to may hang.

Only links that were there when the leg began are looked behind: what a training links to during a leg may be an older try.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from onward.supervisor.own_files.state_names import looks_like_state
from onward.supervisor.own_files.working_folder import FolderListing, list_state_files, stamps

_MOST_LINKS = 8
_MOST_ENTRIES = 200  # behind all of them
_PATIENCE = 5.0  # seconds


class LinkedFolders:
    """`links`: relative to the folder. `foreign`: folders, each with a slash at its end, in which nothing is the training's own."""

    def __init__(self, folder: Path, links: Sequence[str], *, foreign: tuple[str, ...], patience: float = _PATIENCE) -> None:
        self._paths = [os.path.join(folder, link) for link in links[:_MOST_LINKS]]
        self._foreign = foreign
        self._patience = patience
        self._thread: threading.Thread | None = None

    def list(self) -> FolderListing:
        """By real path. Nothing while a look hangs, this one or one before."""
        if not self._paths or (self._thread and self._thread.is_alive()):
            return FolderListing()
        answers: list[FolderListing] = []
        self._thread = threading.Thread(target=lambda: answers.append(self._look()), name="links of the working folder", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # no address space left for a thread
            self._thread = None
            return FolderListing()
        self._thread.join(self._patience)
        return answers[0] if answers else FolderListing()

    def _look(self) -> FolderListing:
        found = FolderListing()
        left = _MOST_ENTRIES
        for path in self._paths:
            found.operations += 2
            target = os.path.realpath(path)
            if f"{target}/".startswith(self._foreign):
                continue
            if not os.path.isdir(target):
                found.files |= stamps([target], Path("/")) if looks_like_state(target) else {}
                continue
            listing = list_state_files(Path(target), most=left)
            found.operations += listing.operations
            found.files |= {f"{target}/{name}": stamp for name, stamp in listing.files.items()}
            left -= listing.entries
        return found
