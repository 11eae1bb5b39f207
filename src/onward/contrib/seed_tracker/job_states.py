"""Jobs of runs that Onward does not execute: their scripts said which job they are, so the scheduler is asked how it is.

One question for all of them, with the round of tending. A job that the scheduler does not know says nothing; one that was submitted
after the run began, or was over before, has only been given the same id (ids are given again, and every cluster counts from 1).
"""

from __future__ import annotations

import re

from sqlalchemy import select

from onward.api.services import Services
from onward.errors import OnwardError
from onward.model.job import JobId, JobState, JobStatus
from onward.tracker import schema

_JOB = re.compile(r"\d{1,15}(?:_\d{1,9})?")
_APART = 60.0  # seconds
_OPEN = ("submitted", "running", "waiting")


def follow_jobs(svc: Services) -> list[str]:
    """Update the states of such runs; returns what could not be asked."""
    runs, legs = schema.runs.c, schema.legs.c
    newest = (legs.run == runs.id) & (legs.leg == runs.leg)
    query = select(runs.run_id, runs.state, legs.leg, legs.job, legs.started).join(schema.legs, newest)
    with svc.tracker.reading() as connection:
        found = connection.execute(query.where(runs.source == "seed", runs.state.in_(_OPEN), legs.job.is_not(None))).all()
    mine = [row for row in found if _JOB.fullmatch(row.job)]
    if not mine:
        return []
    try:
        cluster, _ = svc.context.settings.cluster("slurm")
        answers = svc.context.scheduler(cluster).status({JobId(row.job) for row in mine})
    except OnwardError as error:
        return [f"jobs of older scripts: {error.message}; their states are unknown, nothing was changed"]
    for row in mine:
        status = answers.get(JobId(row.job))
        if status is None or _another(status, row.started):
            continue
        state = run_state(status.state)
        if state != row.state:
            _settle(svc, row.run_id, row.leg, state, status)
    return []


def _another(status: JobStatus, begun: float | None) -> bool:
    """It cannot be the job whose script was here at `begun`, even where the clocks are a minute apart."""
    if not begun:
        return False
    later = status.submitted is not None and status.submitted > begun + _APART
    over = not status.state.live and status.ended is not None and status.ended < begun - _APART
    return later or over


def run_state(state: JobState) -> str:
    match state:
        case JobState.FINISHED:
            return "finished"
        case JobState.CANCELLED:
            return "cancelled"
        case JobState.QUEUED | JobState.HELD:
            return "waiting"  # it ran before: its script has been here
        case JobState.RUNNING | JobState.UNKNOWN:
            return "running"
        case JobState.FAILED | JobState.TIMED_OUT | JobState.PREEMPTED | JobState.OUT_OF_MEMORY | JobState.NODE_FAILED:
            return "failed"


def _settle(svc: Services, run: str, leg: int, state: str, status: JobStatus) -> None:
    over = not status.state.live
    ended = (status.ended or svc.clock.now()) if over else None
    reason = f"its job {status.id} is {status.state.replace('_', ' ')}" + (f": {status.reason}" if status.reason else "")
    svc.tracker.runs.set_leg(run, leg, state=str(status.state), ended=ended, reason=reason if over else "")
    svc.tracker.runs.update(run, state=state, ended=ended, reason=reason)
