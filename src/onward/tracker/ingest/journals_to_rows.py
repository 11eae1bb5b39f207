"""A run of ours as rows: what its journals, folded, say of it and its legs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import select, update

from onward.model.policy.job_end import job_state
from onward.model.run import Leg, Run
from onward.model.spec import spec_to_json
from onward.model.storable_text import clean
from onward.tracker import schema
from onward.tracker.db.writer import Batch
from onward.tracker.runs.memberships import write_membership
from onward.tracker.runs.params import write_params
from onward.tracker.runs.registry import NewRun, create_run, write_legs
from onward.tracker.runs.summaries import write_summary

_runs = schema.runs


def write_run(batch: Batch, run: Run, folder: str | None) -> Mapping[str, Any]:
    """Have the run's rows say what its journals say; its inner id, newest leg and so on."""
    spec = run.spec
    new = NewRun(
        run_id=spec.id,
        experiment=clean(spec.experiment)[:500] or "Default",
        name=clean(spec.name),
        source="onward",
        state=run.state,
        user=clean(spec.user)[:250],
        folder=folder,
        cluster=spec.cluster.name,
        params=spec.params,
    )
    create_run(batch, new, spec.id)
    row = _row(batch, spec.id)
    write_legs(batch, row, [_leg(run, leg) for _, leg in sorted(run.legs.items()) if leg.claimed or leg.end or leg.submission])
    started = min((leg.claimed.at for leg in run.legs.values() if leg.claimed), default=None)
    values = {
        "state": str(run.state),
        "reason": clean(run.closed.cause) if run.closed else "",
        "created": spec.created,
        "started": started,
        "ended": run.closed.at if run.closed else None,
        "folder": folder or row["folder"],
        "details": json.dumps(_details(run)),
        "last_step": _furthest(row["last_step"], run),
        "version": batch.version,
        "updated": batch.now,
    }
    batch.connection.execute(update(_runs).where(_runs.c.id == row["id"]).values(values))
    write_membership(batch, row["id"], spec.member)
    write_summary(batch, row["id"], run)
    if spec.params and run.changes.get("params"):
        write_params(batch, row["id"], run.first_leg, run.changes["params"])
    return _row(batch, spec.id)


def _row(batch: Batch, run_id: str) -> dict[str, Any]:
    c = _runs.c
    columns = select(c.id, c.run_id, c.hex_id, c.leg, c.last_step, c.source, c.state, c.folder).where(c.run_id == run_id)
    return dict(batch.connection.execute(columns).mappings().one())


def _furthest(logged: int | None, run: Run) -> int | None:
    """Also by the checkpoints: a training that logs nothing has steps too."""
    return max([step for leg in run.legs.values() for step in (logged, leg.last_published) if step is not None], default=logged)


def _details(run: Run) -> dict[str, Any]:
    closing = {"cause": run.closed.cause, "evidence": run.closed.evidence, "next": run.closed.next} if run.closed else {}
    return {**closing, "spec": spec_to_json(run.spec)}


def _leg(run: Run, leg: Leg) -> dict[str, Any]:
    claimed, submission = leg.claimed, leg.submission
    return {
        "leg": leg.number,
        "job": clean(leg.job)[:250] if leg.job else None,
        "cluster": run.spec.cluster.name,
        "state": str(job_state(leg)),
        "end": str(leg.end) if leg.end else None,
        "reason": clean(leg.reason),
        "submitted": submission.at if submission else None,
        "started": claimed.at if claimed else None,
        "ended": leg.ended if leg.end else None,
        "resumed_step": leg.restored.step if leg.restored else None,
        "details": json.dumps(
            {
                "nodes": claimed.hosts if claimed else [],
                "gpus": claimed.gpus if claimed else [],
                "deadline": claimed.deadline if claimed else None,
                "checkpoints": [p.step for p in leg.published],
                "missed": [m.step for m in leg.missed],
                "warnings": leg.warnings,
                "evidence": leg.evidence,
            }
        ),
    }
