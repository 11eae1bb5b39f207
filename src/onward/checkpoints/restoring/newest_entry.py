"""Of a checkpoint's files and folders the one to resume from: what a training is given as `{checkpoints.newest}`."""

from __future__ import annotations

from pathlib import Path

from onward.checkpoints.manifest import MANIFEST
from onward.checkpoints.watching import file_names


def newest_entry(checkpoint: Path, step: int) -> Path | None:
    """The one with the checkpoint's step in its name; where none has a number, the only one that is no settings file and no "best".

    None where several could be meant.
    """
    try:
        names = sorted(entry.name for entry in checkpoint.iterdir())
    except OSError:
        return None
    entries = [checkpoint / name for name in names if not (name.startswith(".") or name == MANIFEST or file_names.is_log(name))]
    numbered = [entry for entry in entries if file_names.number(entry.name) == step]
    likely = [entry for entry in numbered or entries if not (file_names.may_stay(entry.name) or file_names.is_record(entry.name))]
    for choice in (likely, numbered or entries):
        if len(choice) == 1:
            return choice[0]
    return None
