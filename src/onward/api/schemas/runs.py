"""A run as a list tells it: state, why, what next, how far, since when; nothing that needs its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Literal

from pydantic import BaseModel, Field

from onward.api.schemas.base import LegOut, RunOut, run_record
from onward.model.analysis.eta import TrainingPace
from onward.model.analysis.run_summary import RunSummary
from onward.model.analysis.why import NO_JOB
from onward.model.run import RunState
from onward.tracker.runs.memberships import FoldedPipeline
from onward.tracker.runs.rows import RunInfo, RunView

_RECORDERS = {"mlflow": "an MLflow client", "by-hand": "its script", "seed": "its script"}
_READ = {"tensorboard": "read from TensorBoard's files", "import": "imported"}


class ProgressOut(BaseModel):
    step: int | None = Field(description="The last logged step.")
    total_steps: int | None
    fraction: float | None = Field(description="0 to 1; null if the training does not report its total steps.")


class LegCounts(BaseModel):
    now: int = Field(description="The current or last leg; 0: none yet.")
    done: int = Field(description="Legs that took place and ended.")
    max: int | None = Field(description="`max-legs`; null for a run that Onward does not execute.")


class SavedOut(BaseModel):
    step: int
    at: float = Field(description="When it was published, unix seconds.")


class RunSummaryOut(RunOut):
    why: str = Field(description="Why it is in this state, in one sentence.")
    next: str = Field(description="What you can do now; empty if nothing is needed.")
    no_job: bool = Field(description="It is not over, but no job is queued for it: it waits until one is.")
    silent_since: float | None = Field(description="Since when nothing was heard of the leg that trains; null if that is not unusual.")
    progress: ProgressOut
    checkpoint: SavedOut | None = Field(description="The newest published checkpoint.")
    queue_wait_s: float | None = Field(description="Seconds that the newest leg waited in a queue, or has waited so far.")
    gpu_use: float | None = Field(description="0 to 1: the mean over its GPUs and about the last five minutes; null without samples.")


class PipelineOfRun(BaseModel):
    id: str = Field(description="The name of the pipeline's folder.")
    folder: str
    states: dict[str, int] | None = Field(
        description="In a list with `fold`: this run stands for its pipeline's runs that match; how many are in each state."
    )


class RunRow(RunSummaryOut):
    legs: LegCounts
    pipeline: PipelineOfRun | None = Field(description="The pipeline that queued it.")


class RunDetails(RunSummaryOut):
    legs: list[LegOut]
    details: dict[str, Any]


class RunPage(BaseModel):
    runs: list[RunRow]
    next: int | None = Field(description="The offset of the next page; null on the last.")
    total: int | None = Field(description="How many match, if requested.")
    read_as: Literal["filter", "text"] = Field(description="`text`: it was not a filter, so its words were searched for instead.")
    note: str = Field(description="If the filter was read as text: why.")


def row_record(view: RunView, now: float, folded: Mapping[str, FoldedPipeline]) -> dict[str, Any]:
    return {**summary_record(view, now), "legs": _legs(view.info, view.standing), "pipeline": _pipeline(view.pipeline, folded)}


def _pipeline(folder: str | None, folded: Mapping[str, FoldedPipeline]) -> dict[str, Any] | None:
    if folder is None:
        return None
    told = folded.get(folder)
    return {"id": PurePath(folder).name, "folder": folder, "states": told.states if told else None}


def summary_record(view: RunView, now: float) -> dict[str, Any]:
    info, held = view.info, view.standing or RunSummary()
    over = RunState(info.state).over
    return {
        **run_record(view),
        "why": held.why or info.reason or _recorded(info),
        "next": held.next,
        "no_job": not over and NO_JOB in held.why,
        "silent_since": held.silent_since(info.updated, now),
        "progress": progress_record(info),
        "checkpoint": {"step": held.saved_step, "at": held.saved_at} if held.saved_step is not None else None,
        "queue_wait_s": held.queue_wait(now, over=over),
        "gpu_use": held.gpu_use,
    }


def _recorded(info: RunInfo) -> str:
    """What there is to say of a run that others execute, where they give no reason."""
    by = _RECORDERS.get(info.source)
    if by is None:
        return _READ.get(info.source, "")
    state = RunState(info.state)
    if not state.over:
        return f"{by} records it"
    return f"{by} recorded its end" if state is RunState.FINISHED else f"{by} set it to {state} without a reason"


def progress_record(info: RunInfo) -> dict[str, Any]:
    """A run that is finished is whole, whatever step it logged last."""
    fraction = TrainingPace(step=info.last_step, total=info.total_steps).fraction
    whole = info.state == RunState.FINISHED and fraction is not None
    return {"step": info.last_step, "total_steps": info.total_steps, "fraction": 1.0 if whole else fraction}


def _legs(info: RunInfo, held: RunSummary | None) -> dict[str, Any]:
    if info.source == "onward" and held:
        return {"now": info.leg, "done": held.legs_done, "max": held.legs_max}
    return {"now": info.leg, "done": info.leg if RunState(info.state).over else max(info.leg - 1, 0), "max": None}
