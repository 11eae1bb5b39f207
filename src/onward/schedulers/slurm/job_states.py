"""Slurm's job states and ours for each; and the rows of squeue and sacct.

A state that is not listed is unknown, never wrong.
"""

from __future__ import annotations

import logging
import os
import pwd
import re
from collections.abc import Iterable

from onward.errors import InvalidInput
from onward.model.job import JobId, JobState, JobStatus
from onward.schedulers.hostlist import expand_hosts

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
PAUSED = {"SUSPENDED": "suspended", "STOPPED": "stopped by a signal"}
HOLDS = ("Dependency", "DependencyNeverSatisfied", "JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue")
_HELD_AGAIN = re.compile(r"requeued[ _](?:in[ _])?held")  # `job requeued in held state`, `launch failed requeued held`


def parse_state(native: str) -> JobState:
    word = native.split(maxsplit=1)[0].rstrip("+") if native.strip() else ""
    state = STATES.get(word, JobState.UNKNOWN)
    if state is JobState.UNKNOWN:
        log.warning("unknown Slurm state %r", native)
    return state


def parse_squeue(lines: Iterable[str]) -> Iterable[JobStatus]:
    for line in lines:
        parts = line.split("|")
        if len(parts) < 8:
            continue
        job, name, native, reason, nodes, submitted, started, ended = parts[0], parts[1], parts[2], "|".join(parts[3:-4]), *parts[-4:]
        state = parse_state(native)
        if state is JobState.QUEUED and (reason in HOLDS or _HELD_AGAIN.search(reason)):
            state = JobState.HELD
        live = state.live
        yield JobStatus(
            id=JobId(job),
            name=name,
            state=state,
            reason=PAUSED.get(native, "") if reason == "None" else reason,
            paused=native in PAUSED,
            nodes=node_names(nodes),
            submitted=_seconds(submitted),
            started=_seconds(started) if state is not JobState.QUEUED and state is not JobState.HELD else None,
            ended=None if live else _seconds(ended),
        )


def parse_sacct(lines: Iterable[str]) -> Iterable[JobStatus]:
    for line in lines:
        parts = line.split("|")
        if len(parts) != 8:
            continue
        job, name, native, exit_code, nodes, submitted, started, ended = parts
        code, _, signal = exit_code.partition(":")
        state = parse_state(native)
        yield JobStatus(
            id=JobId(job),
            name=name,
            state=state,
            reason=native if " " in native else "",
            cancelled_by=_other_user(native),
            exit_code=int(code) if code.isdigit() else None,
            signal=int(signal) if signal.isdigit() and signal != "0" else None,
            nodes=() if nodes in ("", "None assigned") else node_names(nodes),
            submitted=_seconds(submitted),
            started=_seconds(started),
            ended=None if state.live else _seconds(ended),
        )


def _other_user(native: str) -> str:
    """Who cancelled a job, where that was somebody else than us, whose job it is: accounting says `CANCELLED by 0`."""
    found = re.match(r"CANCELLED\+? by (\d+)", native)
    if not found or int(found[1]) == os.getuid():
        return ""
    try:
        return pwd.getpwuid(int(found[1])).pw_name
    except KeyError:
        return f"user {found[1]}"


def node_names(nodes: str) -> tuple[str, ...]:
    """Slurm's node list as names. Not by asking it: a call for every job of many nodes would be too many."""
    if not nodes or nodes.startswith("("):
        return ()
    try:
        return tuple(expand_hosts(nodes))
    except InvalidInput:
        return (nodes,)


def _seconds(text: str) -> float | None:
    return float(text) if text.isdigit() and text != "0" else None
