"""Runs and experiments as addresses name them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from onward.api.services import Services
from onward.errors import NotFound
from onward.model.experiment import Experiment
from onward.tracker.runs.rows import RunInfo

RunId = Annotated[str, Path(description="A run's id, of eight letters or of 32 hex digits.", max_length=64)]
ExperimentId = Annotated[str, Path(description="An experiment's number, or its name.", max_length=500)]


def run_of(svc: Services, run_id: str) -> RunInfo:
    must_be_storable(run_id)
    return svc.tracker.runs.get(run_id)


def experiment_of(svc: Services, named: str) -> Experiment:
    """By number, otherwise by name: a name that is a number is found only if no experiment has that number."""
    must_be_storable(named)
    if named.isascii() and named.isdigit() and len(named) < 19:
        try:
            return svc.tracker.experiments.get(int(named))
        except NotFound:
            pass
    return svc.tracker.experiments.by_name(named)


def must_be_storable(text: str) -> None:
    """Databases accept neither NUL nor incomplete characters, so nothing can have such a name."""
    if "\x00" in text or not text.isprintable():
        raise NotFound(f"there is nothing named {text[:60]!r}")
