"""Metrics: what a training measures of itself as it goes."""

from __future__ import annotations

Point = tuple[str, int, float, float]  # key, step, time (unix seconds), value
