"""What a Slurm site imposes on jobs, read with calls that ask about one thing only: one job, one partition, one user."""

from __future__ import annotations

import getpass
import re
from collections.abc import Iterator

from onward.errors import InvalidInput, SchedulerUnavailable
from onward.model.quantity import parse_duration
from onward.model.spec import Resources
from onward.schedulers.command import Answer, run_command

TIMEOUT = 90.0  # a busy controller takes 20 s and more; without one, Slurm's programs give up by themselves
_ADVICE_TIMEOUT = 30.0  # for what a submit can do without
_EPOCH = {"SLURM_TIME_FORMAT": "%s"}

# `sbatch: error: AssocMaxSubmitJobLimit`, `QOSMaxSubmitJobPerUserLimit`, `QOSGrpSubmitJobsLimit`; or a site's own words.
_COUNT = re.compile(r"Submit\w*Limit|(?:too many|maximum number of|limit of \d+) (?:queued |pending |submitted )?jobs", re.IGNORECASE)
_POLICY = "violates accounting/QOS policy"  # sbatch's last line for every limit
_NAMED = re.compile(r"\b(?:Assoc|QOS)\w+")  # the limit itself, which newer versions print before it


def is_submit_limit(reason: str) -> bool:
    """Whether sbatch refused because of how many jobs there are, and not because of what this one asks for.

    Older versions do not name the limit. Then the number of jobs is the likely one: the leg before asked for the same.
    """
    return bool(_COUNT.search(reason)) or (_POLICY in reason and not _NAMED.search(reason.replace("accounting/QOS", "")))


def submit_limit(account: str | None = None) -> int | None:
    """How many jobs this user may have submitted, running ones included. None: no limit, or it cannot be read.

    Of several associations, and of several QOS, the one with the highest limit counts: it is not known which of them a job will use.
    """
    mine = ["assoc", f"user={getpass.getuser()}", *([f"account={account}"] if account else []), "format=MaxSubmitJobs"]
    try:
        found = [_highest(mine), _highest(["qos", "format=MaxSubmitJobsPerUser"])]
    except SchedulerUnavailable:
        return None
    return min((limit for limit in found if limit is not None), default=None)


def _highest(what: list[str]) -> int | None:
    answer = run_command(["sacctmgr", "-nP", "show", *what], timeout=_ADVICE_TIMEOUT)
    rows = answer.out.splitlines() if not answer.code else []
    return max(map(int, rows)) if rows and all(row.isdigit() for row in rows) else None


def advice(resources: Resources) -> Iterator[str]:
    """What the owner of such a run should know about this site's limit, before the first leg ends."""
    limit = submit_limit(resources.account)
    if limit is not None and limit < 2:
        yield (
            f"you may have {limit} job submitted here (MaxSubmitJobs), so the next leg cannot wait in the queue while one runs: "
            "at its end each leg puts its own job back into the queue and continues there. If the run needs other resources by then, "
            "or Slurm does not allow that, `onward tend` or a running `onward up` submits the next leg"
        )


def end_time(job: str) -> float | None:
    """When a running job is to end, as the controller has it now. None: no limit, or no answer."""
    answer = run_command(["squeue", "-h", "-j", job, "-o", "%e"], timeout=TIMEOUT, extra=_EPOCH)
    text = answer.out.strip()
    return float(text) if text.isdigit() and text != "0" else None


def grace_seconds(*, partition: str, qos: str) -> float | None:
    """Seconds from the first signal of a preemption to the kill: GraceTime of what is preempted, and then KillWait."""
    config = _show("config")
    kill_wait = re.search(r"^KillWait\s*=\s*(\d+)", config, re.MULTILINE)
    if not kill_wait:
        return None
    grace = 0.0
    if re.search(r"^PreemptType\s*=\s*\S*qos", config, re.MULTILINE):
        grace = _qos_grace(qos) if qos else 0.0
    elif partition:
        match = re.search(r"\bGraceTime=(\d+)", _show("partition", partition))
        grace = float(match[1]) if match else 0.0
    return grace + float(kill_wait[1])


def _qos_grace(qos: str) -> float:
    answer = run_command(["sacctmgr", "-nP", "show", "qos", qos, "format=GraceTime"], timeout=TIMEOUT)
    try:
        return float(parse_duration(answer.out.strip()))
    except InvalidInput:
        return 0.0


def requeue(job: str) -> str:
    """Put a running job back into the queue. Returns why that is not allowed, or nothing.

    Our jobs are submitted with --no-requeue, so that Slurm never restarts one on its own. The owner may lift that.
    """
    for words in (["update", f"JobId={job}", "Requeue=1"], ["requeue", job]):
        answer = run_command(["scontrol", *words], timeout=TIMEOUT)
        if answer.code:
            return _said(answer)
    return ""


def forbid_requeue(job: str) -> None:
    """After a requeue of our own: from here on Slurm must not restart the job by itself again."""
    run_command(["scontrol", "update", f"JobId={job}", "Requeue=0"], timeout=TIMEOUT)


def _show(*words: str) -> str:
    answer = run_command(["scontrol", "show", *words], timeout=TIMEOUT)
    return "" if answer.code else answer.out


def _said(answer: Answer) -> str:
    return "; ".join((answer.err or answer.out or f"exit code {answer.code}").split("\n")).strip()
