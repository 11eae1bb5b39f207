"""Checkpoints as a training writes them: a folder that appears all or nothing, and when the next is due."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from onward.sdk import contract
from onward.sdk.atomic_files import sync_folder, write_whole
from onward.sdk.ranks import Ranks
from onward.sdk.stderr import say

TYPE_CHECKING = False
_BY_HAND_KEEPS = 3
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

if TYPE_CHECKING:
    Skipped = Callable[[int, str], None]  # a step that was not saved, and why


class CheckpointSaver:
    def __init__(self, folder: Path, *, ranks: Ranks, by_hand: bool, metrics: Mapping[str, float], skipped: Skipped) -> None:
        """`metrics`: the last value of each, which goes with a checkpoint. `by_hand`: no supervisor carries the folder elsewhere."""
        self._folder = folder
        self._ranks = ranks
        self._by_hand = by_hand
        self._metrics = metrics
        self._skipped = skipped
        self._every = os.environ.get(contract.CHECKPOINT_EVERY, "auto")
        self._saved_at = time.monotonic()
        self._seconds = 0.0

    def due(self) -> bool:
        auto = max(60.0, math.sqrt(2 * max(self._seconds, 0.1) * 12 * 3600))
        interval = auto if self._every == "auto" else float(self._every)
        return time.monotonic() - self._saved_at >= interval

    @contextlib.contextmanager
    def checkpoint(self, step: int, *, written_by: str, began: float | None = None) -> Iterator[Path]:
        """`began`: when the save did, by the monotonic clock, if that was before this call."""
        step = int(step)
        if step < 0:
            raise ValueError(f"checkpoint({step}): a step is 0 or more")
        if written_by not in ("first", "all"):
            raise ValueError(f"checkpoint({step}, written_by={written_by!r}): expected 'first' (only rank 0) or 'all'")
        began = time.monotonic() if began is None else began
        shared = written_by == "all" and self._ranks.several
        partial = self._partial(step, shared)
        shutil.rmtree(partial, ignore_errors=True)
        try:
            _make_folder(partial)
            yield partial
            self._seconds = time.monotonic() - began
            if shared:
                self._commit_share(partial, step)
            elif self._ranks.first:
                self._commit(partial, step)
            else:
                shutil.rmtree(partial, ignore_errors=True)
        except Exception as error:
            full = _is_full(error, partial)
            shutil.rmtree(partial, ignore_errors=True)
            if not full:
                raise
            say(f"checkpoint {step} skipped, {self._folder} is full: {error}; training continues")
            self._skipped(step, f"{self._folder}: {error}")
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        self._saved_at = time.monotonic()

    def handed_over(self, step: int, *, written_by: str, file: str, began: float) -> dict[str, object]:
        """What the save writer must know to make this checkpoint, which counts from now on."""
        self._saved_at = time.monotonic()
        self._seconds = self._saved_at - began
        return {
            "folder": str(self._folder),
            "step": int(step),
            "rank": self._ranks.rank,
            "world": self._ranks.world_size,
            "unmanaged": self._by_hand,
            "metrics": _finite(self._metrics),
            "written_by": written_by,
            "file": file,
            "began": began,
        }

    def _partial(self, step: int, shared: bool) -> Path:
        if shared:
            from onward.sdk.rank_shares import partial_share

            return partial_share(self._folder, step, self._ranks.rank)
        return self._folder / f"{contract.PARTIAL_PREFIX}{contract.step_folder(step)}-{os.getpid()}"

    def _note(self, step: int) -> dict[str, object]:
        return {"step": step, "seconds": round(self._seconds, 3), "metrics": _finite(self._metrics)}

    def _commit_share(self, partial: Path, step: int) -> None:
        from onward.sdk.rank_shares import commit_share, join_unmanaged

        commit_share(partial, self._folder, step, self._ranks, self._note(step))
        if self._by_hand:
            joined = join_unmanaged(self._folder, step, self._ranks)
            if joined:
                self._commit(joined, step)

    def _commit(self, partial: Path, step: int) -> None:
        final = self._folder / contract.step_folder(step)
        note = self._note(step)
        if self._by_hand:  # this folder is all there is: make the data last before the name does
            for path in partial.rglob("*"):
                if path.is_file():
                    with path.open("rb") as file:
                        os.fsync(file.fileno())
        write_whole(partial / contract.COMMIT_FILE, json.dumps(note))
        if final.exists():
            replaced = final.with_name(f"{contract.PARTIAL_PREFIX}replaced-{final.name}-{os.getpid()}")
            os.rename(final, replaced)
            os.rename(partial, final)
            shutil.rmtree(replaced, ignore_errors=True)
        else:
            os.rename(partial, final)
        if self._by_hand:
            sync_folder(self._folder)
            for old in committed(self._folder)[:-_BY_HAND_KEEPS]:
                shutil.rmtree(old, ignore_errors=True)


def committed(folder: Path) -> list[Path]:
    """Checkpoints in this folder, by step."""
    return sorted((path for path in folder.glob("step-*") if (path / contract.COMMIT_FILE).is_file()), key=step_of)


def step_of(folder: Path) -> int:
    return int(folder.name.split("step-")[-1])


def _finite(metrics: Mapping[str, float]) -> dict[str, float]:
    return {str(k): v for k, v in metrics.items() if isinstance(v, (int, float)) and math.isfinite(v)}


def _make_folder(folder: Path) -> None:
    """No room even for a folder is not said here, where it would end the training: the first file will meet it."""
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise


def _is_full(error: Exception, folder: Path) -> bool:
    """Whether a save failed for want of room. Not every library says so: PyTorch's writer raises a RuntimeError. So try."""
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return True
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".room").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 1 << 20)
    except OSError as refused:
        return refused.errno in _NO_ROOM
    return False
