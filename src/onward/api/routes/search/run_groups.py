"""Runs counted by what they share."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.routes.runs.crud import LIST_FILTER, as_text
from onward.api.schemas.base import State
from onward.tracker.search.run_groups import GroupQuery, run_groups

router = APIRouter(prefix="/api/v1", tags=["runs"])


class GroupCount(BaseModel):
    value: str | None = Field(description="The value that its runs share; null: they have none.")
    runs: int
    states: dict[str, int] = Field(description="How many are in each state.")
    newest: float = Field(description="When the newest of them was created.")


class RunGroups(BaseModel):
    groups: list[GroupCount]
    more: bool = Field(description="There are more groups than requested.")
    read_as: Literal["filter", "text"] = Field(description="`text`: it was not a filter, so its words were searched for instead.")
    note: str = Field(description="If the filter was read as text: why.")


@router.get("/run-groups", summary="Count runs by group")
def listed(
    svc: Svc,
    by: Annotated[
        str, Query(description="`state`, `experiment`, `user`, `cluster`, `source`, `params.KEY` or `tags.KEY`.", max_length=500)
    ],
    filter: Annotated[str, Query(description=LIST_FILTER, max_length=20_000)] = "",
    state: Annotated[State | None, Query(description="Only of this state.")] = None,
    archived: Annotated[bool, Query(description="The archived ones instead.")] = False,
    limit: Annotated[int, Query(ge=1, le=2000, description="The most groups to return.")] = 200,
) -> RunGroups:
    """Numbers in numeric order, otherwise the group with the newest run first."""
    now = svc.clock.now()
    words, note = as_text(filter, now)
    asked = GroupQuery(by=by, filter="" if words else filter, text=words, state=state, archived=archived, limit=limit)
    with svc.tracker.reading_points() as connection:
        groups, more = run_groups(connection, asked, now=now)
    counted = [GroupCount(value=group.value, runs=group.runs, states=group.states, newest=group.newest) for group in groups]
    return RunGroups(groups=counted, more=more, read_as="text" if words else "filter", note=note)
