"""What `onward cancel --all` would end, and how each was ended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class OpenRun:
    """A run or a pipeline that is not over."""

    id: str  # "pipeline" of a pipeline
    name: str
    state: str
    experiment: str
    cluster: str
    folder: str


@dataclass(frozen=True, kw_only=True)
class CancelResult:
    """A run as it was ended, or the error that was in the way."""

    folder: str
    state: str = ""
    error: str = ""
    hint: str = ""
    exit_code: int = 0
