"""Pipelines: which there are, each with its stages, workers and the table of its benchmarks; ended, or tried again.

They are named by their folders' names, never by a path. What only these routes need is loaded by them: a server should be ready soon.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from onward.api.access.caller import ApiCaller
from onward.api.dependencies import Svc, Who
from onward.api.routes.path_params import must_be_storable
from onward.api.schemas.base import json_response
from onward.api.schemas.pipelines import PipelineDetails, PipelineListOut, pipeline_details, pipeline_row
from onward.api.server_log import note
from onward.api.services import Services
from onward.errors import NotFound
from onward.rundir.pipeline.layout import PipelineDir
from onward.tracker.runs.summaries import summaries_of

router = APIRouter(prefix="/api/v1/pipelines", tags=["pipelines"])

PipelineFolder = Annotated[str, Field(max_length=250)]
PipelineName = Annotated[str, Path(min_length=1, max_length=250, description="The name of the pipeline's folder.")]
Baseline = Annotated[
    str | None, Query(max_length=250, description="The baseline: a stage, a model or STAGE@STEP; default: the one in its file.")
]


@router.get("", summary="List pipelines", response_model=PipelineListOut)
def listed(
    svc: Svc,
    text: Annotated[str, Query(max_length=250, description="Part of a folder's name.")] = "",
    limit: Annotated[int, Query(ge=1, le=200, description="The most to return.")] = 50,
    before: Annotated[str | None, Query(max_length=250, description="`next` of the previous page.")] = None,
    name: Annotated[list[PipelineFolder] | None, Query(description="Only these, by their folders' names.", max_length=200)] = None,
) -> Response:
    """Those under the server's roots, newest first."""
    must_be_storable(text)
    if name is None:
        found, following, problems = svc.pipelines.page(text=text, limit=limit, before=before)
    else:
        (found, problems), following = svc.pipelines.named(name), None
    return json_response({"pipelines": [pipeline_row(one) for one in found], "next": following, "problems": problems})


@router.get("/{name}", summary="Show a pipeline", response_model=PipelineDetails)
def shown(svc: Svc, name: PipelineName, baseline: Baseline = None) -> Response:
    """Its state and why, what failed, and the results of its benchmarks so far. No scheduler is asked."""
    return json_response(_told(svc, svc.pipelines.find(name), baseline))


@router.post("/{name}/cancel", summary="Cancel a pipeline", response_model=PipelineDetails)
def cancel(svc: Svc, who: Who, name: PipelineName) -> Response:
    """Nothing more of it starts, and its running jobs are ended."""
    from onward.operations.pipelines.control import cancel_pipeline

    return _act(svc, who, name, "cancel", lambda dir: cancel_pipeline(svc.context, dir))


@router.post("/{name}/rerun", summary="Rerun what failed", response_model=PipelineDetails)
def rerun(svc: Svc, who: Who, name: PipelineName) -> Response:
    """Stages and tasks that failed or were cancelled, and those that were skipped because of them. What is done stays done."""
    from onward.operations.pipelines.control import retry_failed

    return _act(svc, who, name, "rerun", lambda dir: retry_failed(svc.context, dir))


def _act(svc: Services, who: ApiCaller, name: str, what: str, do: Callable[[PipelineDir], object]) -> Response:
    dir = svc.pipelines.find(name)
    try:
        do(dir)
    finally:
        svc.tracker.files.look(svc.context.roots)
        svc.hinted()
    note(logging.INFO, what, f"{what} of the pipeline {dir.path.name} over HTTP", token=who.token)
    return json_response(_told(svc, dir))


def _told(svc: Services, dir: PipelineDir, baseline: str | None = None) -> dict[str, object]:
    from onward.operations.pipelines.record import pipeline_record
    from onward.operations.pipelines.summary import summary_of

    if baseline:
        must_be_storable(baseline)
    return pipeline_details(pipeline_record(svc.context, dir, known=lambda run: _reason(svc, run)), summary_of(dir, baseline=baseline))


def _reason(svc: Services, run: str) -> str | None:
    """As the tracker knows it, which asks schedulers for all who look."""
    try:
        info = svc.tracker.runs.get(run)
    except NotFound:
        return None
    with svc.tracker.reading() as connection:
        held = summaries_of(connection, [info.inner]).get(info.inner)
    return (held.why if held else "") or info.reason
