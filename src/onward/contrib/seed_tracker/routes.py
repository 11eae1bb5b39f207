"""Calls that older scripts make already, at the root: runs of an experiment, metrics, artifacts, and the scheduler's hook.

A job that is restarted asks for its run again with the same job id and the same config: it gets the run it had, and a new leg of it.
A run's own token always gets that run. What a hook says is a hint: it makes the server look, and settles nothing by itself.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Body, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select, update

from onward.api.dependencies import Svc, Who
from onward.api.ingest.point_parser import many_points, one_point, step_of_points
from onward.api.routes.path_params import ExperimentId, RunId, experiment_of, must_be_storable, run_of
from onward.api.schemas.base import Key, Shallow, Text, finite
from onward.api.services import Services
from onward.errors import InvalidInput, NotFound
from onward.tracker import schema
from onward.tracker.access.tokens import Scope
from onward.tracker.db.writer import Batch
from onward.tracker.runs.artifacts import ArtifactRecord, put_artifact
from onward.tracker.runs.experiments import must_take_runs
from onward.tracker.runs.registry import NewRun, create_run, write_legs
from onward.tracker.unmanaged.legs import end_leg, has_logged

router = APIRouter(tags=["older scripts"])

STATES = {
    **dict.fromkeys(("pending", "queued", "submitted", "scheduled"), "submitted"),
    **dict.fromkeys(("running", "started", "completing"), "running"),
    **dict.fromkeys(("completed", "complete", "finished", "success", "succeeded", "done"), "finished"),
    **dict.fromkeys(("failed", "failure", "error", "timeout", "node_fail", "out_of_memory", "preempted"), "failed"),
    **dict.fromkeys(("cancelled", "canceled", "killed", "stopped"), "cancelled"),
}


_JOB = re.compile(r"[0-9]{1,20}(?:[_.+][0-9]{1,20})?")


class LenientIn(Shallow):
    """Other fields of older scripts are ignored."""

    model_config = ConfigDict(extra="ignore")


class ScriptRunIn(LenientIn):
    slurm_job_id: Annotated[Text, Field(max_length=200)] | Annotated[int, Field(strict=True)] | None = Field(
        default=None, description="Identifies a restarted job."
    )
    seed: int | float | Annotated[Text, Field(max_length=200)] | None = None
    config: dict[Key, Any] | None = Field(default=None, max_length=2000, description="Its params.")
    slurm_node: Annotated[Text, Field(max_length=1000)] | None = None
    gpu_type: Annotated[Text, Field(max_length=250)] | None = None
    name: Annotated[Text, Field(max_length=500)] | None = None


class ScriptRunMade(BaseModel):
    run_id: str
    leg: int = Field(description="Increases each time its job restarts.")


class MetricIn(LenientIn):
    name: Key
    value: float | str
    step: int | float | None = 0
    timestamp: float | str | None = None


class ScriptStepIn(LenientIn):
    metrics: dict[Key, float | str] = Field(max_length=10_000)
    step: int | float | None = 0
    timestamp: float | str | None = None


class ScriptStored(BaseModel):
    stored: int


class ArtifactIn(LenientIn):
    path: Annotated[Text, Field(min_length=1, max_length=1000)] = Field(description="Its path; the server never opens it.")
    type: Annotated[Text, Field(max_length=64)] = ""
    size_bytes: int | None = Field(default=None, ge=0, le=(1 << 63) - 1)


class StatusIn(LenientIn):
    status: Annotated[Text, Field(max_length=40)] = Field(description="running, completed, failed, cancelled and similar.")


class ScriptRunStatus(BaseModel):
    run_id: str
    status: str


class HookReceipt(BaseModel):
    received: bool = True


@router.post("/experiments/{experiment:path}/runs", summary="Start a run, or continue it")
def begin(svc: Svc, who: Who, experiment: ExperimentId, asked: ScriptRunIn) -> ScriptRunMade:
    """The experiment is created if none has that name or number; an archived one accepts no new runs (409)."""
    if who.scope is Scope.RUN and who.run is not None:
        run = svc.tracker.runs.get(who.run)
        if asked.config:
            svc.tracker.runs.set_params(run.run_id, _params(asked))
        return ScriptRunMade(run_id=run.run_id, leg=max(run.leg, 1))
    job = str(asked.slurm_job_id) if asked.slurm_job_id not in (None, "") else None
    name = _experiment_name(svc, experiment)
    tags = {key: value for key, value in (("slurm_node", asked.slurm_node), ("gpu_type", asked.gpu_type)) if value}
    new = NewRun(
        experiment=name,
        name=asked.name or (f"job-{job}" if job else ""),
        identity=_identity(name, job, asked) if job else None,
        source="seed",
        user=who.name,
        started=svc.clock.now(),
        cluster="slurm" if job else None,
        leg=1,
        params=_params(asked),
        tags=tags,
    )
    return svc.tracker.write(lambda batch: _begin(batch, new, _leg(svc, asked, job)))


@router.post("/runs/{run_id}/metrics", summary="Log a metric", openapi_extra={"x-hot": True})
def log_metric(svc: Svc, run_id: RunId, asked: Annotated[MetricIn, Body()]) -> ScriptStored:
    """Answers when it is committed."""
    data = asked.model_dump(exclude_none=True)
    found = many_points(data, svc.clock.now()) if "points" in data else [one_point(data, svc.clock.now())]
    svc.tracker.ingest.points(run_id, found)
    return ScriptStored(stored=len(found))


@router.post("/runs/{run_id}/metrics/batch", summary="Log one step's metrics", openapi_extra={"x-hot": True})
def log_step(svc: Svc, run_id: RunId, asked: ScriptStepIn) -> ScriptStored:
    """Answers when they are committed."""
    found = step_of_points(asked.model_dump(exclude_none=True), svc.clock.now())
    svc.tracker.ingest.points(run_id, found)
    return ScriptStored(stored=len(found))


@router.post("/runs/{run_id}/artifacts", summary="Register a file", status_code=201)
def tell_of_artifact(svc: Svc, run_id: RunId, asked: ArtifactIn) -> ArtifactIn:
    """Where it is and what it is. To send the file, PUT it to `/api/v1/runs/{run_id}/artifacts/{path}`."""
    run = run_of(svc, run_id)
    record = ArtifactRecord(path=asked.path, kind=asked.type, bytes=asked.size_bytes, sha256=None, stored=False, created=svc.clock.now())
    put_artifact(svc.tracker, run.run_id, record)
    return asked


@router.get("/runs/{run_id}", summary="Get a run's status")
def status(svc: Svc, run_id: RunId) -> ScriptRunStatus:
    """As in Onward: submitted, running, waiting, finished, failed, cancelled."""
    run = run_of(svc, run_id)
    return ScriptRunStatus(run_id=run.run_id, status=run.state)


@router.patch("/runs/{run_id}", summary="Set a run's status")
def set_status(svc: Svc, run_id: RunId, asked: StatusIn) -> ScriptRunStatus:
    """For an unmanaged run; ignored for others, whose journals decide."""
    run = run_of(svc, run_id)
    state = STATES.get(asked.status.strip().lower())
    if state is None:
        raise InvalidInput(f"status: unknown value {asked.status[:40]!r}", hint=f"use one of {', '.join(STATES)}")
    if run.source != "onward":
        ended = svc.clock.now() if state in ("finished", "failed", "cancelled") else None
        run = svc.tracker.runs.update(run.run_id, state=state, ended=ended)
    return ScriptRunStatus(run_id=run.run_id, status=run.state)


@router.post(
    "/webhooks/slurm",
    summary="Hint that a job's state changed",
    openapi_extra={
        "requestBody": {
            "content": {
                "application/x-www-form-urlencoded": {
                    "schema": {
                        "type": "object",
                        "required": ["job_id"],
                        "properties": {"job_id": {"type": "string"}, "status": {"type": "string"}, "exit_code": {"type": "string"}},
                    }
                }
            }
        }
    },
)
async def slurm(svc: Svc, request: Request) -> HookReceipt:
    """From an epilog. The server soon looks at the scheduler; the hint itself decides nothing."""
    body = (await request.body()).decode("utf-8", "replace")
    if "json" in request.headers.get("content-type", ""):
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InvalidInput("the body is not JSON") from error
        job = str(data.get("job_id", "")) if isinstance(data, dict) else ""
    else:
        try:
            job = parse_qs(body, max_num_fields=20).get("job_id", [""])[0]
        except ValueError as error:
            raise InvalidInput("the body is not a form") from error
    if not _JOB.fullmatch(job):
        raise InvalidInput("job_id: missing, or not a job id", hint="send job_id=4711&status=…, or 4711_3 for a task of an array")
    svc.hinted()
    return HookReceipt()


def _experiment_name(svc: Services, named: str) -> str:
    must_be_storable(named)
    if not (named.isascii() and named.isdigit()):
        return named
    try:
        return experiment_of(svc, named).name
    except NotFound:
        return named


def _identity(experiment: str, job: str, asked: ScriptRunIn) -> str:
    """A job may train several times with other params; started again, it has the same ones."""
    said = json.dumps(finite({"seed": asked.seed, "config": asked.config, "name": asked.name}), sort_keys=True, default=str)
    return f"seed:{hashlib.sha256(experiment.encode()).hexdigest()[:16]}:{job}:{hashlib.sha256(said.encode()).hexdigest()[:16]}"


def _begin(batch: Batch, new: NewRun, leg: dict[str, Any]) -> ScriptRunMade:
    """In one transaction: hundreds of array tasks may start at once. A new leg only if the last has logged: else it was asked twice."""
    c = schema.runs.c
    held = select(c.id, c.run_id, c.leg, c.state)
    before = batch.connection.execute(held.where(c.identity == new.identity)).mappings().first() if new.identity else None
    if before is None:
        must_take_runs(batch.connection, str(new.experiment))
        run_id = secrets.token_hex(16)
        create_run(batch, new, run_id)
        row = batch.connection.execute(held.where(c.run_id == run_id)).mappings().one()
        if leg["job"]:
            write_legs(batch, dict(row), [{"leg": 1, **leg}])
        return ScriptRunMade(run_id=run_id, leg=1)
    newest = max(before["leg"], 1)
    if has_logged(batch, before["id"], newest):
        end_leg(batch, before["id"], newest, state="finished", ended=leg["started"])
        newest += 1
    elif before["state"] == "running":
        return ScriptRunMade(run_id=before["run_id"], leg=newest)
    write_legs(batch, dict(before), [{"leg": newest, "ended": None, "reason": "", **leg}])
    goes_on = {"state": "running", "ended": None, "reason": "", "version": batch.version, "updated": batch.now}
    batch.connection.execute(update(schema.runs).where(c.id == before["id"]).values(goes_on))
    return ScriptRunMade(run_id=before["run_id"], leg=newest)


def _leg(svc: Services, asked: ScriptRunIn, job: str | None) -> dict[str, Any]:
    details = {"nodes": [asked.slurm_node] if asked.slurm_node else [], "gpus": [asked.gpu_type] if asked.gpu_type else []}
    return {"job": job, "cluster": "slurm", "state": "running", "started": svc.clock.now(), "details": json.dumps(details)}


def _params(asked: ScriptRunIn) -> dict[str, Any]:
    params: dict[str, Any] = {key: finite(value) for key, value in (asked.config or {}).items()}
    if asked.seed is not None:
        params.setdefault("seed", finite(asked.seed))
    return params
