"""Experiments: a named question that groups runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Experiment:
    id: int
    name: str
    created: float
    updated: float
    archived: float | None = None
    artifact_location: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
