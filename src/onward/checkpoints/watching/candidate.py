"""A checkpoint that the watcher found complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onward.checkpoints.watching.listing import Fingerprint


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
    again: bool = False  # a later version of one that was dealt with before
    rewritten: bool = False  # files of that version have changed, instead of some being added
