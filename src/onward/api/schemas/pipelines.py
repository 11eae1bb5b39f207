"""Pipelines as the page and other clients read them: what `onward pipeline show --json` prints, with the benchmarks' table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from onward.api.schemas.base import Number, finite
from onward.inputs.summary.table import BenchmarkSummary, SummaryCell, SummaryColumn
from onward.inputs.summary.text import marks, number

_MOST_ROWS = 1000

RunWord = Literal["submitted", "running", "waiting", "finished", "failed", "cancelled"]


class TaskCounts(BaseModel):
    open: int
    claimed: int = Field(description="A worker is running it.")
    done: int
    failed: int = Field(description="And no retry is left.")


class PipelineRow(BaseModel):
    id: str = Field(description="Its folder's name.")
    name: str
    folder: str
    experiment: str
    cluster: str
    created: float
    ended: float | None
    state: Literal["running", "finished", "failed", "cancelled"]
    cause: str = Field(description="Why it ended this way.")
    stages_done: int
    stages_all: int
    tasks: TaskCounts = Field(description="Benchmark tasks so far: more checkpoints add more.")
    workers_live: int


class PipelineListOut(BaseModel):
    pipelines: list[PipelineRow] = Field(description="Newest first.")
    next: str | None = Field(description="`before` of the next page; none: these are the oldest.")
    problems: list[str] = Field(description="Pipelines of this page that cannot be read, and why.")


class StageProgress(BaseModel):
    step: int | None
    total: int | None
    eta: float | None = Field(description="When it will be done if nothing has to wait.")


class StageOut(BaseModel):
    name: str
    label: str = Field(description="For a sweep, with its point.")
    kind: Literal["environment", "stage", "train"]
    needs: list[str]
    state: Literal["held", "live", "finished", "failed", "cancelled", "unknown"]
    run_state: RunWord | None = Field(description="None: it has not started, or it was skipped.")
    run: str | None = Field(description="Its run; none: it was skipped.")
    why: str
    evidence: str = Field(description="The last lines of a failed one.")
    skipped: bool = Field(description="Another run did it already, and nothing has changed since.")
    done_by: str | None = Field(description="The run that did it; none if that has been deleted.")
    blocked: bool = Field(description="It will not start: something that it needs failed.")
    progress: StageProgress | None


class BenchmarkOut(BaseModel):
    name: str
    of: list[str] = Field(description="Stages and models that it runs on.")


class FailedTask(BaseModel):
    id: str
    of: str
    step: int | None = Field(description="None: a model, which has no steps.")
    benchmark: str
    seed: int
    shard: int = Field(description="From 0.")
    shards: int
    reason: str
    evidence: str = Field(description="Its last lines of output.")
    hint: str


class WorkerOut(BaseModel):
    number: int | None
    pool: str
    run: str
    state: Literal["queued", "running", "finished", "failed", "cancelled"]
    cause: str


class CellOut(BaseModel):
    tasks: int = Field(description="0: not measured.")
    done: int
    failed: int
    mean: Number | None = Field(description="None: no result yet, or no such score.")
    half: Number | None = Field(description="Of the 95 % interval; none: there is only one measurement.")
    text: str = Field(description="Both, with as many digits as are significant.")
    items: int
    seconds: float = Field(description="How long its tasks took together.")
    best: bool = Field(description="Best of its column, among complete ones.")
    against: Literal["better", "worse", ""] = Field(description="Better or worse than the baseline, by more than chance.")
    difference: Number | None = Field(description="Difference from the baseline.")
    p: Number | None = Field(description="Corrected for all comparisons in its column (Holm).")
    reason: str = Field(description="Why one of its tasks failed.")


class ColumnOut(BaseModel):
    benchmark: str
    metric: str
    better: Literal["max", "min"]


class RowOut(BaseModel):
    key: str
    of: str
    step: int | None
    label: str
    baseline: bool
    cells: dict[str, CellOut] = Field(description="By benchmark.")


class SummaryOut(BaseModel):
    columns: list[ColumnOut]
    rows: list[RowOut] = Field(description=f"{_MOST_ROWS} at most; `onward pipeline summary` has all.")
    rows_all: int
    baseline: str | None
    notes: list[str] = Field(description="How to read it, and what is missing.")


class PipelineDetails(PipelineRow):
    stages: list[StageOut]
    benchmarks: list[BenchmarkOut]
    checkpoints: dict[str, list[int]] = Field(description="Steps that were benchmarked, by training.")
    failed_tasks: list[FailedTask] = Field(description="50 at most; `tasks` counts them.")
    workers: list[WorkerOut]
    summary: SummaryOut


def pipeline_row(record: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": Path(record["folder"]).name, **{name: record[name] for name in PipelineRow.model_fields if name != "id"}}


def pipeline_details(record: Mapping[str, Any], found: BenchmarkSummary) -> dict[str, Any]:
    stages = [{**one, "progress": _progress(one["progress"])} for one in record["stages"]]
    kept = {name: record[name] for name in ("benchmarks", "checkpoints", "failed_tasks", "workers")}
    plain: dict[str, Any] = finite({**pipeline_row(record), **kept, "stages": stages, "summary": _summary(found)})
    return plain


def _progress(record: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if record is None else {name: record[name] for name in StageProgress.model_fields}


def _summary(found: BenchmarkSummary) -> dict[str, Any]:
    columns = {column.benchmark: column for column in found.columns}
    return {
        "columns": [vars(column) for column in found.columns],
        "rows": [
            {
                "key": row.key,
                "of": row.of,
                "step": row.step,
                "label": row.label,
                "baseline": row.baseline,
                "cells": {name: _cell(cell, columns[name]) for name, cell in row.cells.items()},
            }
            for row in found.rows[:_MOST_ROWS]
        ],
        "rows_all": len(found.rows),
        "baseline": found.baseline,
        "notes": [*marks(found), *found.notes],
    }


def _cell(cell: SummaryCell, column: SummaryColumn) -> dict[str, Any]:
    against = cell.against
    better = against is not None and column.beats(against.difference, 0.0)
    return {
        **{name: getattr(cell, name) for name in ("tasks", "done", "failed", "mean", "half", "items", "seconds", "best", "reason")},
        "text": "" if cell.mean is None else number(cell.mean, cell.half),
        "against": "" if against is None or not against.significant else "better" if better else "worse",
        "difference": against.difference if against else None,
        "p": against.p if against else None,
    }
