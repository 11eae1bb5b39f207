"""Folders under the roots that cannot be read as runs, each with its reason."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc

router = APIRouter(prefix="/api/v1/trouble", tags=["health"])


class UnreadableFolder(BaseModel):
    folder: str
    reason: str = Field(description="What is wrong with it. It is read again when it changes, and every few minutes.")
    since: float = Field(description="When this was first seen, in unix seconds.")


class UnreadableFolders(BaseModel):
    folders: list[UnreadableFolder]
    roots: list[str] = Field(description="Runs folders in which the server looks.")


@router.get("/folders", summary="List folders that cannot be read")
def folders(svc: Svc) -> UnreadableFolders:
    """Links, damaged files, copies of other runs, folders that the server's user may not read. All other folders are read as usual."""
    listed = svc.tracker.files.quarantine.listed()
    return UnreadableFolders(folders=[UnreadableFolder(**vars(one)) for one in listed], roots=list(map(str, svc.context.roots)))
