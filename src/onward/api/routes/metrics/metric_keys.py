"""Which metrics some runs have, a page at a time, with their last and best values where asked for."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.routes.path_params import must_be_storable
from onward.api.schemas.base import In, MetricOut, Text, json_response, metric_record
from onward.tracker.series.metric_keys import metric_keys

router = APIRouter(prefix="/api/v1", tags=["series"])


class KeySearch(In):
    runs: list[Annotated[Text, Field(max_length=64)]] = Field(min_length=1, max_length=5000)
    text: Annotated[Text, Field(max_length=500)] = Field(
        default="", description="Words that a key must contain, all of them, ignoring case."
    )
    limit: int = Field(default=100, ge=1, le=10_000)
    offset: int = Field(default=0, ge=0, le=1 << 53)
    values: bool = Field(default=False, description="Include each run's last, lowest and highest value of each key.")


class KeyOut(BaseModel):
    key: str
    runs: int = Field(description="How many of the runs have it.")
    points: int
    values: dict[str, MetricOut] | None = Field(default=None, description="By run, if requested.")


class KeyList(BaseModel):
    keys: list[KeyOut]
    total: int = Field(description="How many keys match.")


@router.post("/metrics/search", summary="Find metrics of runs", response_model=KeyList)
def search(svc: Svc, asked: KeySearch) -> Response:
    """By key, numbers in numeric order. Changes nothing."""
    for text in (*asked.runs, asked.text):
        must_be_storable(text)
    with svc.tracker.reading_points() as connection:
        page = metric_keys(connection, asked.runs, words=asked.text.split(), limit=asked.limit, offset=asked.offset, values=asked.values)
    return json_response(
        {
            "keys": [
                {"key": row.key, "runs": row.runs, "points": row.points}
                | ({"values": {run: metric_record(metric) for run, metric in row.values.items()}} if asked.values else {})
                for row in page.keys
            ],
            "total": page.total,
        }
    )
