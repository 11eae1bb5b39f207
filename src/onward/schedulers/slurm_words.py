"""Slurm's words for the states of jobs, and what each is taken for. One that is not listed is unknown, never wrong."""

from __future__ import annotations

import logging

from onward.model.job import JobState

log = logging.getLogger(__name__)

STATES = {
    "PENDING": JobState.QUEUED,
    "CONFIGURING": JobState.QUEUED,
    "REQUEUED": JobState.QUEUED,
    "REQUEUE_FED": JobState.QUEUED,
    "REQUEUE_HOLD": JobState.HELD,
    "RESV_DEL_HOLD": JobState.HELD,
    "SPECIAL_EXIT": JobState.HELD,
    "RUNNING": JobState.RUNNING,
    "COMPLETING": JobState.RUNNING,  # its processes are still being ended
    "RESIZING": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "STAGE_OUT": JobState.RUNNING,
    "STOPPED": JobState.RUNNING,
    "SUSPENDED": JobState.RUNNING,
    "COMPLETED": JobState.FINISHED,
    "FAILED": JobState.FAILED,
    "LAUNCH_FAILED": JobState.NODE_FAILED,
    "RECONFIG_FAIL": JobState.NODE_FAILED,
    "BOOT_FAIL": JobState.NODE_FAILED,
    "NODE_FAIL": JobState.NODE_FAILED,
    "TIMEOUT": JobState.TIMED_OUT,
    "DEADLINE": JobState.TIMED_OUT,
    "PREEMPTED": JobState.PREEMPTED,
    "OUT_OF_MEMORY": JobState.OUT_OF_MEMORY,
    "CANCELLED": JobState.CANCELLED,
    "REVOKED": JobState.CANCELLED,
}
HOLDS = ("Dependency", "DependencyNeverSatisfied", "JobHeldUser", "JobHeldAdmin")


def parse_state(native: str) -> JobState:
    word = native.split(maxsplit=1)[0].rstrip("+") if native.strip() else ""
    state = STATES.get(word, JobState.UNKNOWN)
    if state is JobState.UNKNOWN:
        log.warning("Slurm's state %r is not in our table", native)
    return state
