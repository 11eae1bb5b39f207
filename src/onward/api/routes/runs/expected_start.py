"""When a run that waits will start: what its cluster's scheduler expects, and what stands before it."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.routes.path_params import RunId, run_of
from onward.api.run_folders.history import history_of
from onward.model.run import Leg, Run

router = APIRouter(prefix="/api/v1/runs", tags=["runs"])


class StartOut(BaseModel):
    waiting: bool = Field(description="Whether a leg of it waits in a queue and none is running.")
    leg: int | None
    job: str | None
    expected: float | None = Field(description="When the scheduler expects to start it; null if it does not say.")
    reason: str = Field(description="Why it waits, in plain words.")
    native: str = Field(description="The scheduler's word for it.")
    queue: str
    ahead: int | None = Field(description="Jobs of that queue that are expected to start before it, as far as they are visible.")
    taken_at: float | None = Field(description="When the scheduler was asked; all readers share its answer.")
    trouble: str = Field(description="Why there is nothing newer.")


@router.get("/{run_id}/start", summary="Show when a run will start")
def start(svc: Svc, run_id: RunId) -> StartOut:
    """May take as long as the scheduler does; it is asked at most every 30 s, whatever the number of readers."""
    history = history_of(svc, run_of(svc, run_id))
    leg = _waiting(history.run)
    nothing = StartOut(
        waiting=leg is not None,
        leg=leg.number if leg else None,
        job=leg.job if leg else None,
        expected=None,
        reason="",
        native="",
        queue="",
        ahead=None,
        taken_at=None,
        trouble="",
    )
    if leg is None or not leg.job or history.info.source != "onward":
        return nothing
    seen = svc.clusters.look(history.run.spec.cluster.name)
    found = nothing.model_copy(update={"taken_at": seen.snapshot.taken_at if seen.heard else None, "trouble": seen.trouble})
    if not seen.heard:
        return found
    for job in seen.snapshot.jobs:
        if job.id == leg.job and job.name in leg.submissions:
            before = [o for o in seen.snapshot.jobs if o.waiting and o.queue == job.queue and o.expected_start is not None]
            ahead = sum(o.expected_start < job.expected_start for o in before if o.expected_start) if job.expected_start else None
            body = {"expected": job.expected_start, "reason": job.reason, "native": job.native, "queue": job.queue, "ahead": ahead}
            return found.model_copy(update=body)
    return found.model_copy(update={"reason": "the scheduler's list does not have its job"})


def _waiting(run: Run) -> Leg | None:
    """The leg that the run waits for; one that is held on a leg at work does not count."""
    if run.closed or any(leg.claimed and not leg.end for leg in run.legs.values()):
        return None
    queued = [leg for leg in run.legs.values() if not leg.claimed and not leg.end and leg.submission]
    return min(queued, key=lambda leg: leg.number, default=None)
