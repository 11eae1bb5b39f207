"""Completion for the filter: what could stand where someone is typing."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.routes.path_params import must_be_storable
from onward.tracker.search.completion import SuggestionKind, names_like, values_like

router = APIRouter(prefix="/api/v1", tags=["runs"])


class FilterWord(BaseModel):
    text: str = Field(description="As written in a filter, quoted if necessary.")
    kind: SuggestionKind
    about: str


class FilterWords(BaseModel):
    words: list[FilterWord]


@router.get("/filter-words", summary="Complete a filter")
def words(
    svc: Svc,
    prefix: Annotated[str, Query(max_length=500, description="The word typed so far: `st`, `metrics.lo`, `min(metrics.`.")] = "",
    of: Annotated[str, Query(max_length=500, description="For values: what they are compared with, such as `params.lr` or `state`.")] = "",
    limit: Annotated[int, Query(ge=1, le=200, description="The most to return.")] = 50,
) -> FilterWords:
    """Names that a comparison can begin with; with `of`, values that runs really have."""
    must_be_storable(prefix + of)
    with svc.tracker.reading_points() as connection:
        found = values_like(connection, of, prefix, limit=limit) if of else names_like(connection, prefix, limit=limit)
    return FilterWords(words=[FilterWord(**asdict(one)) for one in found])
