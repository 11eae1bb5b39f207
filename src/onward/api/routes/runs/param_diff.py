"""Params side by side: what differs between runs, and between the legs of one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.routes.path_params import RunId, run_of

router = APIRouter(prefix="/api/v1", tags=["params"])


class ParamDiff(BaseModel):
    runs: list[str]
    different: dict[str, list[str | None]] = Field(description="By param, one value per run; null if a run has none.")
    same: dict[str, str]


class ParamHistory(BaseModel):
    params: dict[str, dict[int, str]] = Field(description="By param, then by leg.")


@router.get("/params/diff", summary="Compare params of runs")
def diff(svc: Svc, run: Annotated[list[str], Query(description="Two runs or more; repeat.", min_length=2, max_length=200)]) -> ParamDiff:
    """Differing params first; those with the same value in all runs are separate."""
    views = [svc.tracker.runs.view(run_of(svc, one).run_id) for one in run]
    keys = sorted({key for view in views for key in view.params})
    rows = {key: [view.params.get(key) for view in views] for key in keys}
    same = {key: values[0] for key, values in rows.items() if len(set(values)) == 1 and values[0] is not None}
    return ParamDiff(
        runs=[view.info.run_id for view in views], different={key: row for key, row in rows.items() if key not in same}, same=same
    )


@router.get("/runs/{run_id}/params", summary="Show params by leg")
def history(svc: Svc, run_id: RunId) -> ParamHistory:
    """A resumed training may change one; each leg's is kept."""
    return ParamHistory(params=svc.tracker.runs.param_history(run_of(svc, run_id).run_id))
