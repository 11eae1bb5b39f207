"""Folders that `run.checkpoint()` committed: complete at once, since they appear by rename with a mark inside."""

from __future__ import annotations

import json
import os
from pathlib import Path

from onward.checkpoints.watching.candidate import Candidate
from onward.checkpoints.watching.listing import Fingerprint, within
from onward.sdk import contract


def is_committed(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir() and os.path.isfile(os.path.join(entry.path, contract.COMMIT_FILE))


def committed(folder: Path) -> Candidate | None:
    """None: its mark is torn, or it is being removed under our eyes."""
    try:
        note = json.loads((folder / contract.COMMIT_FILE).read_bytes())
        step, seconds, metrics = int(note["step"]), float(note.get("seconds", 0)), note.get("metrics", {})
    except (OSError, ValueError, KeyError):
        return None
    found = fingerprint_of(folder)
    mark = f"{folder.name}/{contract.COMMIT_FILE}"
    return Candidate(
        step=step,
        sources={name.partition("/")[2]: folder.parent / name for name, _, _ in found if name != mark},
        fingerprint=found,
        whole=found,
        made_by="sdk",
        save_seconds=seconds,
        metrics=metrics,
        folder=folder,
    )


def fingerprint_of(folder: Path) -> Fingerprint:
    return tuple(sorted(within(str(folder), folder.name, {})))
