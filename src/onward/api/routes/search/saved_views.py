"""Named views of the pages: one's own, and those that others share."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from onward.api.access.caller import ApiCaller
from onward.api.dependencies import Svc, Who
from onward.api.routes.path_params import must_be_storable
from onward.api.schemas.base import In, Text
from onward.tracker.search.saved_views import SavedView

router = APIRouter(prefix="/api/v1/views", tags=["views"])

ViewId = Annotated[int, Path(ge=0, le=1 << 53, description="The view's number.")]


class ViewIn(In):
    page: Annotated[Text, Field(min_length=1, max_length=64)] = Field(description="Which page: runs, compare, cluster …")
    name: Annotated[Text, Field(min_length=1, max_length=250)]
    query: Annotated[Text, Field(max_length=20_000)] = Field(description="The page's address after the question mark.")
    shared: bool = Field(default=False, description="Whether other users see it.")


class ViewOut(BaseModel):
    id: int
    owner: str
    mine: bool
    page: str
    name: str
    query: str
    shared: bool
    created: float
    updated: float


class ViewList(BaseModel):
    views: list[ViewOut]


@router.get("", summary="List views")
def listed(svc: Svc, who: Who, page: Annotated[str | None, Query(max_length=64, description="Only of this page.")] = None) -> ViewList:
    """Your own and shared ones, by page and name."""
    must_be_storable(page or "")
    return ViewList(views=[_told(view, who) for view in svc.tracker.views.of(_owner(who), page=page)])


@router.get("/{view}", summary="Show a view")
def shown(svc: Svc, who: Who, view: ViewId) -> ViewOut:
    """404 also if it belongs to another user and is not shared."""
    return _told(svc.tracker.views.get(_owner(who), view), who)


@router.put("", summary="Save a view")
def save(svc: Svc, who: Who, asked: ViewIn) -> ViewOut:
    """Creates it, or replaces your own of the same page and name."""
    return _told(svc.tracker.views.save(_owner(who), **asked.model_dump()), who)


@router.delete("/{view}", summary="Delete a view", status_code=204)
def delete(svc: Svc, who: Who, view: ViewId) -> None:
    """Only your own."""
    svc.tracker.views.delete(_owner(who), view)


def _owner(who: ApiCaller) -> str:
    """A session bears the name of the token that it was made from."""
    return who.name or f"token {who.token}"


def _told(view: SavedView, who: ApiCaller) -> ViewOut:
    return ViewOut(**asdict(view), mine=view.owner == _owner(who))
