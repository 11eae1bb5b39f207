"""Sparklines: one metric of a page of runs, small enough to draw in a cell; one question for all of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field
from sqlalchemy import or_, select

from onward.api.dependencies import Svc
from onward.api.routes.path_params import must_be_storable
from onward.api.schemas.base import json_response
from onward.api.services import Services
from onward.errors import InvalidInput
from onward.tracker import schema

router = APIRouter(prefix="/api/v1", tags=["series"])

_BUCKETS = 60
_MOST_RUNS = 200


class Sparkline(BaseModel):
    values: list[float | None] = Field(description="By step, at most 60, to four digits; null: no finite values there.")
    first: int | None = Field(description="The steps that they span.")
    last: int | None
    points: int = Field(description="How many points there are.")


class Sparklines(BaseModel):
    metric: str
    sparklines: dict[str, Sparkline] = Field(description="By run, under the id as requested; runs without the metric are left out.")


@router.get("/sparklines", summary="Draw one metric of many runs as sparklines", response_model=Sparklines)
def drawn(
    svc: Svc,
    runs: Annotated[str, Query(description="Comma-separated ids, at most 200; unknown ones are left out.", max_length=15_000)],
    metric: Annotated[str, Query(description="The metric.", max_length=250)],
) -> Response:
    """The mean of each bucket; legs are stitched."""
    must_be_storable(metric)
    asked = list(dict.fromkeys(one for one in runs.split(",") if one))
    if len(asked) > _MOST_RUNS:
        raise InvalidInput(f"runs: {len(asked)} are too many for one answer", hint=f"ask for at most {_MOST_RUNS}")
    known = _known(svc, asked)
    found = svc.tracker.series.charts(known, [metric], buckets=_BUCKETS) if known else []
    lines = {
        chart.run: {
            "values": [None if mean is None else float(f"{mean:.4g}") for mean in chart.means],
            "first": chart.steps[0] if chart.steps else None,
            "last": chart.steps[-1] if chart.steps else None,
            "points": chart.points,
        }
        for chart in found
    }
    return json_response({"metric": metric, "sparklines": lines})


def _known(svc: Services, asked: list[str]) -> list[str]:
    """A list that is a moment old may name a run that is gone."""
    c = schema.runs.c
    plain = [one for one in asked if one.isprintable() and len(one) <= 64]
    with svc.tracker.reading() as connection:
        rows = connection.execute(select(c.run_id, c.hex_id).where(or_(c.run_id.in_(plain), c.hex_id.in_(plain)))).all()
    there = {name for row in rows for name in row}
    return [one for one in plain if one in there]
