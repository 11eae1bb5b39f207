"""The events of a run whose folder nobody here can read: those that were pushed, or what its legs' rows say, told as events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from onward.model import events as ev
from onward.model.run import LegEnd
from onward.model.spec import Cluster, RunSpec, spec_from_json
from onward.tracker import schema
from onward.tracker.runs.legs import legs_of
from onward.tracker.runs.rows import RunInfo

_events = schema.events
_ENDS = {
    "finished": LegEnd.DONE,
    "failed": LegEnd.CRASHED,
    "cancelled": LegEnd.CANCELLED,
    "timed_out": LegEnd.TIME_LIMIT,
    "preempted": LegEnd.PREEMPTED,
    "out_of_memory": LegEnd.OUT_OF_MEMORY,
    "node_failed": LegEnd.NODE_LOST,
}


def stored_history(connection: Connection, info: RunInfo) -> tuple[RunSpec, list[ev.Event]]:
    if "spec" in info.details:
        lines = connection.execute(select(_events.c.line).where(_events.c.run == info.inner)).scalars()
        events = [event for event in map(_parsed, lines) if event]
        if events:
            return spec_from_json(info.details["spec"]), events
    return _spec(info), list(_of_rows(info, legs_of(connection, info.inner)))


def _parsed(line: str) -> ev.Event | None:
    try:
        return ev.parse_event(line)
    except (ValueError, TypeError, AttributeError):
        return None


def _spec(info: RunInfo) -> RunSpec:
    """Of a run that Onward does not execute: who, what and when; nothing was asked for."""
    if "spec" in info.details:
        return spec_from_json(info.details["spec"])
    return RunSpec(
        id=info.run_id,
        name=info.name,
        experiment=info.experiment_name,
        cluster=Cluster(name=info.cluster or "", scheduler=""),
        command=(),
        workdir="",
        created=info.created,
        user=info.user,
    )


def _of_rows(info: RunInfo, legs: Sequence[Mapping[str, Any]]) -> Iterator[ev.Event]:
    for row in legs:
        leg, job, details = row["leg"], row["job"] or "", json.loads(row["details"])
        if row["submitted"] is not None:
            yield ev.Submitting(leg=leg, at=row["submitted"], name=job or f"{info.run_id}.{leg}")
            if job:
                yield ev.Submitted(leg=leg, at=row["submitted"], name=job, job=job)
        if row["started"] is None:
            continue
        hosts = [str(one) for one in details.get("nodes", ())]
        yield ev.Claimed(leg=leg, at=row["started"], job=job, hosts=hosts, deadline=details.get("deadline"))
        yield ev.Started(leg=leg, at=row["started"], pid=0)
        if row["resumed_step"] is not None:
            yield ev.Restored(leg=leg, at=row["started"], step=row["resumed_step"], checkpoint="")
        end = LegEnd(row["end"]) if row["end"] else _ENDS.get(row["state"])
        if row["ended"] is not None:
            yield ev.Ended(leg=leg, at=row["ended"], end=end or LegEnd.LOST, reason=row["reason"])
    if info.state in ("finished", "failed", "cancelled"):
        yield ev.Closed(leg=max(info.leg, 1), at=info.ended or info.updated, state=info.state, cause=info.reason or info.state)
