"""Notes that people leave on runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc, Who
from onward.api.routes.path_params import RunId, run_of
from onward.api.schemas.base import In, Text

router = APIRouter(prefix="/api/v1/runs/{run_id}/notes", tags=["notes"])


class NoteIn(In):
    text: Annotated[Text, Field(min_length=1, max_length=100_000)]


class NoteOut(BaseModel):
    id: int
    at: float
    author: str
    text: str


class NoteList(BaseModel):
    notes: list[NoteOut]


@router.get("", summary="List notes")
def listed(svc: Svc, run_id: RunId) -> NoteList:
    """Oldest first."""
    return NoteList(notes=[NoteOut(**note) for note in svc.tracker.runs.notes(run_of(svc, run_id).run_id)])


@router.post("", summary="Add a note", status_code=201)
def add(svc: Svc, who: Who, run_id: RunId, asked: NoteIn) -> NoteOut:
    """Signed with the name of the token."""
    id = svc.tracker.runs.add_note(run_of(svc, run_id).run_id, asked.text, author=who.name)
    return next(NoteOut(**note) for note in svc.tracker.runs.notes(run_id) if note["id"] == id)


@router.delete("/{note}", summary="Delete a note", status_code=204)
def delete(svc: Svc, run_id: RunId, note: Annotated[int, Path(ge=0, le=1 << 53, description="Its number.")]) -> None:
    """404 if there is no such note."""
    svc.tracker.runs.delete_note(run_of(svc, run_id).run_id, note)
