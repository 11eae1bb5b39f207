"""Runs that a pipeline queued, as rows: which pipeline, and one run that stands for all of them in a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, or_, select

from onward.model.spec import PipelineMembership
from onward.model.storable_text import clean
from onward.tracker import schema
from onward.tracker.db.writer import Batch
from onward.tracker.runs.legs import upsert

_runs, _members = schema.runs, schema.memberships
_LONGEST = 600


@dataclass(frozen=True, kw_only=True)
class FoldedPipeline:
    """The runs of a pipeline that a list does not show one by one."""

    folder: str
    states: dict[str, int]  # how many runs in each


def write_membership(batch: Batch, run: int, member: PipelineMembership | None) -> None:
    if member:
        upsert(batch, _members, [{"run": run, "pipeline": clean(member.pipeline)[:_LONGEST]}], keys=("run",), change=("pipeline",))


def pipelines_of(connection: Connection, runs: Sequence[int]) -> dict[int, str]:
    """The folder of the pipeline, by the inner ids of runs that are part of one."""
    found: dict[int, str] = {}
    for i in range(0, len(runs), 500):
        some = select(_members.c.run, _members.c.pipeline).where(_members.c.run.in_(runs[i : i + 500]))
        found |= {row.run: row.pipeline for row in connection.execute(some)}
    return found


def one_of_each(terms: Sequence[ColumnElement[bool]]) -> ColumnElement[bool]:
    """Of the runs that `terms` choose: those of no pipeline, and the newest of each pipeline."""
    newest = select(func.max(_members.c.run)).select_from(_joined()).where(*terms).group_by(_members.c.pipeline)
    return or_(_runs.c.id.not_in(select(_members.c.run)), _runs.c.id.in_(newest.correlate(None)))


def folded(connection: Connection, pipelines: Sequence[str], terms: Sequence[ColumnElement[bool]]) -> dict[str, FoldedPipeline]:
    """By its folder: how many runs of each pipeline `terms` choose."""
    found: dict[str, FoldedPipeline] = {}
    for i in range(0, len(pipelines), 500):
        mine = _members.c.pipeline.in_(pipelines[i : i + 500])
        counted = select(_members.c.pipeline, _runs.c.state, func.count()).select_from(_joined()).where(mine, *terms)
        for folder, state, count in connection.execute(counted.group_by(_members.c.pipeline, _runs.c.state)):
            found.setdefault(folder, FoldedPipeline(folder=folder, states={})).states[state] = count
    return found


def _joined() -> Any:
    return _members.join(_runs, _runs.c.id == _members.c.run)
