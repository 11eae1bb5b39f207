"""Find the best run of each experiment, by one metric."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.routes.path_params import must_be_storable
from onward.tracker.search import best_runs

router = APIRouter(prefix="/api/v1/bests", tags=["experiments"])


class BestOut(BaseModel):
    experiment: int
    run_id: str
    name: str
    value: float
    step: int | None


class Bests(BaseModel):
    metric: str | None = Field(description="None: no run logs any.")
    mode: Literal["min", "max"]
    bests: list[BestOut]


@router.get("", summary="Find the best run of each experiment")
def listed(
    svc: Svc,
    metric: Annotated[str | None, Query(max_length=250, description="The metric; default: the loss or score that most runs have.")] = None,
    mode: Annotated[
        Literal["min", "max"] | None, Query(description="Which direction is better; default: as the metric's name suggests.")
    ] = None,
) -> Bests:
    """By the lowest or highest finite value that a run reached. Experiments whose runs do not have the metric are left out."""
    must_be_storable(metric or "")
    with svc.tracker.reading_points() as connection:
        by = metric or best_runs.usual_metric(connection)
        better = mode or best_runs.usual_mode(by or "")
        found = best_runs.bests(connection, by, better) if by else []
    return Bests(metric=by, mode=better, bests=[BestOut(**asdict(one)) for one in found])
