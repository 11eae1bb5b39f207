"""Whether a training that was asked to stop had in truth reached its end: what it logged, what it saved, what its framework noted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from onward.rundir.progress import Progress

_TRAINER_STATE = "trainer_state.json"
_LARGEST = 64 << 20  # bytes: it grows with each step that is logged
_SAME_MOMENT = 0.05  # seconds by which a file's time may lie before the clock's


def reached_its_end(progress: Progress, *, saved: int | None, folders: Iterable[Path], began: float) -> bool:
    """`saved`: the newest step that it saved in this leg. `folders`: where it saves. `began`: when it was started."""
    if progress.complete:
        return True
    if progress.total is not None and saved is not None and saved >= progress.total:  # of step N: all before N are done
        return True
    return _trainer_is_done(folders, began)


def _trainer_is_done(folders: Iterable[Path], began: float) -> bool:
    """Of Hugging Face's Trainer: the newest state that it wrote in this leg is that of its last step."""
    written = [(path.stat().st_mtime, path) for folder in folders for path in _trainer_states(folder)]
    fresh = [(at, path) for at, path in written if at >= began - _SAME_MOMENT]
    if not fresh:
        return False
    try:
        path = max(fresh)[1]
        state = json.loads(path.read_bytes()) if path.stat().st_size <= _LARGEST else {}
        return bool(state["global_step"] >= state["max_steps"] > 0)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _trainer_states(folder: Path) -> Iterator[Path]:
    for pattern in (_TRAINER_STATE, f"*/{_TRAINER_STATE}"):
        for path in folder.glob(pattern):
            if path.is_file():
                yield path
