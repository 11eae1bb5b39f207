"""A run's checkpoints: which there are, whether they are whole, and why each is still there."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.routes.path_params import RunId, run_of
from onward.api.run_folders.locate import folder_of
from onward.api.run_folders.pushed import pushed_checkpoints
from onward.model.checkpoint import Checkpoint, CheckpointName
from onward.model.checkpoint_retention import why_kept
from onward.operations.runs.record import checkpoints as checkpoints_of
from onward.rundir.files.artifacts import plain_file_errors
from onward.rundir.files.no_links import names_beneath
from onward.rundir.journal import read_spec
from onward.rundir.layout import RunDir

router = APIRouter(prefix="/api/v1/runs/{run_id}", tags=["logs and checkpoints"])


class CheckpointOut(BaseModel):
    step: int
    leg: int = Field(description="The leg that saved it; 0: the run was branched from it.")
    bytes: int | None
    state: str = Field(
        description="published, damaged (`problem` says how), or told: published where this server cannot check, perhaps deleted since."
    )
    created: float | None
    metrics: dict[str, Any]
    problem: str | None = None
    folder: str | None = Field(default=None, description="Where it is, as far as this server can see.")
    kept: str = Field(default="", description="Why it is kept; empty if unknown.")


class CheckpointList(BaseModel):
    checkpoints: list[CheckpointOut]


@router.get("/checkpoints", summary="List a run's checkpoints")
def checkpoints(svc: Svc, run_id: RunId) -> CheckpointList:
    """The published ones, sizes compared with their manifests. Of a run that has no folder here, those in its journals."""
    run = run_of(svc, run_id)
    dir = folder_of(svc, run.folder)
    if dir:
        with plain_file_errors("results/checkpoints"), suppress(FileNotFoundError):
            names_beneath(dir.root, dir.checkpoints)  # a link is refused, in words
    found = checkpoints_of(dir) if dir else list(pushed_checkpoints(svc, run))
    kept = _kept(dir, found) if dir else {}
    return CheckpointList(checkpoints=[CheckpointOut(**one, kept=kept.get(CheckpointName(one["leg"], one["step"]), "")) for one in found])


def _kept(dir: RunDir, found: list[dict[str, Any]]) -> dict[CheckpointName, str]:
    good = [
        Checkpoint(name=CheckpointName(one["leg"], one["step"]), bytes=one["bytes"], created=one["created"], metrics=one["metrics"])
        for one in found
        if one["bytes"] is not None and one["created"] is not None
    ]
    try:
        return why_kept(good, read_spec(dir).checkpoints)
    except (OSError, ValueError, KeyError, TypeError):
        return {}  # a folder that cannot be read now
