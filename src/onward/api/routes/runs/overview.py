"""A run's first page: why it is as it is, what next, how far, when it will be done, what is at risk, and what it was made of."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.routes.path_params import RunId, run_of
from onward.api.run_folders.history import RunHistory, history_of, run_pace
from onward.api.schemas.base import MetricOut, finite, json_response, metric_record
from onward.api.schemas.runs import LegCounts, ProgressOut, RunRow, row_record
from onward.api.services import Services
from onward.errors import NotFound
from onward.model.analysis.eta import TrainingPace
from onward.model.analysis.why import no_job_since
from onward.model.policy.leg_history import not_stored
from onward.model.run import Leg, LegEnd, Run, RunState
from onward.model.spec import spec_to_json
from onward.operations.runs.record import time_account
from onward.tracker.runs.rows import RunView
from onward.tracker.series.key_metrics import key_metrics

router = APIRouter(prefix="/api/v1/runs", tags=["runs"])

_PARENT = "mlflow.parentRunId"


class PaceOut(ProgressOut):
    rate: float | None = Field(description="Recent steps per second.")
    at: float | None = Field(description="When the newest step was logged.")


class FinishOut(BaseModel):
    at: float = Field(description="When it will likely be done, waits included.")
    training: float = Field(description="Seconds of training that are left.")
    waiting: float = Field(description="Seconds expected in queues.")
    legs: int = Field(description="How many more legs it needs.")
    words: str = Field(description="What this is based on, or which limit comes first.")


class RiskOut(BaseModel):
    seconds: float = Field(description="Seconds of work since the newest checkpoint.")
    steps: int | None
    since_step: int | None = Field(description="The checkpoint's step; null: everything since the beginning.")
    since: float


class EffortOut(BaseModel):
    """Seconds of jobs. Work at risk does not count in the goodput."""

    allocated: float
    kept: float
    lost: float
    overhead: float
    at_risk: float
    waited: float
    unknown: float = Field(description="Trained by legs of which only the training itself knows what stays.")
    goodput: float | None = Field(description="Kept step time of allocated time, 0 to 1; null where nobody knows.")


class KeyMetric(MetricOut):
    key: str


class ParentOut(BaseModel):
    id: str
    name: str
    different: dict[str, list[str | None]] = Field(description="Params that differ: the parent's value, then this run's.")


class JobOut(BaseModel):
    leg: int
    job: str | None
    end: str | None
    reason: str
    nodes: list[str]
    gpus: list[str]
    mem: int | None = Field(description="MiB that it asked for.")
    submitted: float | None
    started: float | None
    ended: float | None
    deadline: float | None
    resumed_step: int | None
    warnings: list[str]


class Actions(BaseModel):
    """What can be done with the run now."""

    stop: bool
    cancel: bool
    resume: bool
    resume_advised: bool = Field(description="False if its own code must be fixed first: a resumed run uses the code as it was at submit.")
    clone: bool


class Overview(BaseModel):
    as_of: float
    run: RunRow
    no_job_since: float | None = Field(description="Since when no job is queued for it; null if it has one, or needs none.")
    evidence: list[str] = Field(description="The lines that show the cause.")
    pace: PaceOut
    legs: LegCounts
    finish: FinishOut | None
    risk: RiskOut | None = Field(description="Null if no leg is running.")
    effort: EffortOut
    metrics: list[KeyMetric]
    parent: ParentOut | None
    request: str | None = Field(description="The gateway's request that it serves.")
    pipeline: str | None = Field(description="The pipeline that it is part of: its folder's name.")
    command: str
    folder: str | None
    workdir: str
    launcher: str
    resources: dict[str, Any] = Field(description="What a leg asks for, including what a resume changed; unset ones are left out.")
    limits: dict[str, Any]
    environment: dict[str, Any] = Field(description="Modules, conda, venv, setup lines.")
    code: dict[str, Any] = Field(description="Commit, branch and so on, as far as known.")
    jobs: list[JobOut]
    actions: Actions


@router.get("/{run_id}/overview", summary="Show a run's first page", response_model=Overview)
def overview(svc: Svc, run_id: RunId) -> Response:
    """The most important facts in one answer; the same as `onward show` gives without a server."""
    view = svc.tracker.runs.view(run_of(svc, run_id).run_id, metrics=False)
    history, now = history_of(svc, view.info), svc.clock.now()
    at_pace = run_pace(svc, history)
    row = row_record(view, now, {})
    first = (best.metric,) if (best := history.run.spec.checkpoints.best) else ()
    with svc.tracker.reading_points() as connection:
        shown = key_metrics(connection, view.info, first=first)
    return json_response(
        finite(
            {
                "as_of": now,
                "run": row,
                "no_job_since": no_job_since(history.run) if _actions(history)["cancel"] else None,
                "evidence": _evidence(history),
                "pace": _pace(at_pace, row["progress"]),
                "legs": row["legs"],
                **time_account(history.run, at_pace, now=now),
                "metrics": [{"key": metric.key, **metric_record(metric)} for metric in shown],
                "parent": _parent(svc, view, history),
                "request": history.run.spec.request,
                "pipeline": Path(member.pipeline).name if (member := history.run.spec.member) else None,
                **_made_of(view, history),
                "jobs": [_job(leg) for _, leg in sorted(history.run.legs.items()) if leg.claimed or leg.end or leg.submission],
                "actions": _actions(history),
            }
        )
    )


def _pace(pace: TrainingPace, row: Mapping[str, Any]) -> dict[str, Any]:
    """As the row has it, and how fast."""
    return {**row, "rate": pace.rate, "at": pace.at}


def _evidence(history: RunHistory) -> list[str]:
    run = history.run
    last = run.last_leg
    text = run.closed.evidence if run.closed else last.evidence if last else ""
    return text.splitlines()[-40:]


def _parent(svc: Services, view: RunView, history: RunHistory) -> dict[str, Any] | None:
    named = history.run.spec.parent or view.tags.get(_PARENT)
    if not named:
        return None
    try:
        parent = svc.tracker.runs.view(named, metrics=False)
    except NotFound:
        return {"id": named, "name": "", "different": {}}
    keys = sorted(view.params.keys() | parent.params.keys())
    rows = {key: [parent.params.get(key), view.params.get(key)] for key in keys}
    different = {key: pair for key, pair in rows.items() if pair[0] != pair[1]}
    return {"id": parent.info.run_id, "name": parent.info.name, "different": different}


def _made_of(view: RunView, history: RunHistory) -> dict[str, Any]:
    run, spec = history.run, spec_to_json(history.run.spec)
    tags = view.tags
    code = dict(run.spec.code) or {name: tags[key] for name, key in _MLFLOW_CODE.items() if key in tags}
    return {
        "command": shlex.join(run.spec.command) or tags.get("mlflow.source.name", ""),
        "folder": view.info.folder,
        "workdir": run.spec.workdir,
        "launcher": run.spec.launcher,
        "resources": _asked(vars(run.resources)),
        "limits": _asked(vars(run.limits)),
        "environment": _asked(spec["environment"]),
        "code": code,
    }


_MLFLOW_CODE = {"git_commit": "mlflow.source.git.commit", "git_branch": "mlflow.source.git.branch", "from": "mlflow.source.git.repoURL"}


def _asked(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in record.items() if value not in (None, (), [])}


def _job(leg: Leg) -> dict[str, Any]:
    claimed, asked = leg.claimed, leg.submission
    return {
        "leg": leg.number,
        "job": leg.job,
        "end": leg.end,
        "reason": leg.reason,
        "nodes": claimed.hosts if claimed else [],
        "gpus": claimed.gpus if claimed else [],
        "mem": asked.mem if asked else None,
        "submitted": asked.at if asked else None,
        "started": claimed.at if claimed else None,
        "ended": leg.ended if leg.end else None,
        "deadline": claimed.deadline if claimed else None,
        "resumed_step": leg.restored.step if leg.restored else None,
        "warnings": leg.warnings,
    }


def _actions(history: RunHistory) -> dict[str, bool]:
    """Only of a run whose folder this server sees; a finished one has nothing to go on with."""
    state, ours = history.run.state, history.dir is not None and history.info.source == "onward"
    resume = ours and state in (RunState.FAILED, RunState.CANCELLED)
    return {
        "stop": ours and not state.over and history.run.stop is None,
        "cancel": ours and not state.over,
        "resume": resume,
        "resume_advised": resume and not _failed_by_itself(history.run),
        "clone": ours,
    }


def _failed_by_itself(run: Run) -> bool:
    """Whether the training's own code or exit code ended the run, rather than a limit, the storage or a person."""
    last = run.last_leg
    if run.state is not RunState.FAILED or last is None or not_stored(last) is not None:
        return False
    return last.counts and last.end in (LegEnd.CRASHED, LegEnd.STALLED, LegEnd.AGAIN)
