"""Slurm, through its own programs: sbatch, squeue, sacct, scontrol, scancel. Works with and without accounting."""

from __future__ import annotations

import getpass
import logging
import os
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from onward.errors import InvalidInput, SchedulerUnavailable, SubmitLimitReached, SubmitRefused, SubmitUnclear
from onward.model.cluster import ClusterSnapshot
from onward.model.job import NAME_PATTERN, Allocation, JobId, JobState, JobStatus
from onward.model.quantity import format_duration, format_size
from onward.model.spec import Resources
from onward.schedulers.base import Capabilities, ExpectedStart
from onward.schedulers.command import Answer, run_command
from onward.schedulers.slurm import job_steps
from onward.schedulers.slurm import site_limits as site
from onward.schedulers.slurm.expected_start import expected_start
from onward.schedulers.slurm.job_states import node_names, parse_sacct, parse_squeue
from onward.schedulers.slurm.priority import priority_words
from onward.schedulers.slurm.snapshot import take_snapshot

log = logging.getLogger(__name__)

_QUERY_TIMEOUT = site.TIMEOUT
_SUBMIT_TIMEOUT = 240.0  # sbatch itself tries again for two minutes while a controller is full
_LATE = (0.0, 1.0, 2.0, 4.0, 8.0)  # seconds before each question to an accounting that has not heard yet what the controller knows
_EPOCH = {"SLURM_TIME_FORMAT": "%s"}
_WARN_FROM = 1800  # seconds: below this limit the warning signal, up to 60 s early, would cost more than it saves

# Resources whose name and value Slurm takes as they are.
_SAME_WORDS = (
    *("cpus_per_task", "nodes", "ntasks", "ntasks_per_node", "gpus", "gres", "partition", "account", "qos"),
    *("constraint", "reservation", "nodelist", "exclude", "mail_user", "mail_type"),
)
_OTHER_MEMORY = ("--mem-p",)  # -per-cpu and -per-gpu: excluded by --mem, which is what grows after a leg ran out of memory

# Words after which the job may or may not have been accepted. Anything else sbatch complains of is a refusal.
_UNCLEAR = (
    "socket timed out",
    "unable to contact slurm controller",
    "connect failure",
    "connection refused",
    "communication",
    "rate limit",
    "backing off",
    "try again",
    "zero bytes were transmitted",
    "temporarily unable to accept job",
    "temporarily unavailable",
    "connection timed out",
    "connection reset",
    "transport endpoint",
    "i/o error",
)


class SlurmScheduler:
    capabilities = Capabilities(srun_steps=True)

    def __init__(self) -> None:
        self._settle: float | None = None

    @property
    def settle_seconds(self) -> float:
        """MessageTimeout and 5 s: after that a submit that was going to be accepted has been."""
        if self._settle is None:
            answer = run_command(["scontrol", "show", "config"], timeout=_QUERY_TIMEOUT)
            found = re.search(r"^MessageTimeout\s*=\s*(\d+)", answer.out, re.MULTILINE)
            if not found:
                return 15.0
            self._settle = int(found[1]) + 5.0
        return self._settle

    # ── asking for a job ──────────────────────────────────────────────────────

    def directives(self, resources: Resources, *, output: Path) -> Sequence[str]:
        text = str(output).replace("%", "%%")
        if any(character in text for character in '"\\\n'):
            raise InvalidInput(f"Slurm cannot write to {output}: a quote, backslash or newline is in its path", hint="choose another root")
        lines = [f'--output="{text}"', "--open-mode=append", "--no-requeue"]
        if resources.time is not None:
            lines.append(f"--time={format_duration(-(-resources.time // 60) * 60)}")  # Slurm counts whole minutes
            if resources.time >= _WARN_FROM:
                lines.append("--signal=B:USR1@30")
        if resources.mem is not None:
            lines.append(f"--mem={format_size(resources.mem) if resources.mem else 0}")
        for word in _SAME_WORDS:
            value = getattr(resources, word)
            if value is not None:
                lines.append(f"--{word.replace('_', '-')}={_quoted(value)}")
        lines += [line for line in resources.extra if resources.mem is None or not line.startswith(_OTHER_MEMORY)]
        return [f"#SBATCH {line}" for line in lines]

    def submit_command(self, script: Path, *, name: str, after: JobId | None = None) -> Sequence[str]:
        command = ["sbatch", "--parsable", f"--job-name={name}", f"--chdir={script.parent.parent}"]
        if after:
            command.append(f"--dependency=afterany:{after}")
        return [*command, str(script)]

    def submit(self, script: Path, *, name: str, after: JobId | None = None) -> JobId:
        if not NAME_PATTERN.match(name):
            raise SubmitRefused(f"{name!r} is not a valid job name", hint="use letters, digits, dot, dash and underscore")
        try:
            answer = run_command(self.submit_command(script, name=name, after=after), timeout=_SUBMIT_TIMEOUT)
        except SchedulerUnavailable as error:
            raise SubmitUnclear(f"submitting {name}: {error.message}", hint=error.hint) from error
        job = answer.out.strip().split("\n")[-1].split(";")[0]
        if answer.code == 0 and job.isdigit():
            return JobId(job)
        reason = _reason(answer)
        if answer.code == 0 or any(word in reason.lower() for word in _UNCLEAR):
            raise SubmitUnclear(f"submitting {name}: {reason}")
        if site.is_submit_limit(reason):
            raise SubmitLimitReached(f"Slurm accepts no more jobs from you for now: {reason}", hint=_advice("submit limit"))
        raise SubmitRefused(f"Slurm refused {name}: {reason}", hint=_advice(reason))

    def advice(self, resources: Resources) -> Sequence[str]:
        return list(site.advice(resources))

    # ── asking after jobs ─────────────────────────────────────────────────────

    def find(self, name: str) -> Sequence[JobId]:
        rows = self._squeue("-u", getpass.getuser(), f"--name={name}")
        if not rows:
            rows = self._sacct(["--name", name, "-S", "now-14days", "-u", getpass.getuser()])
        return [status.id for status in sorted(rows, key=lambda s: int(s.id)) if status.name == name]

    def live(self) -> Mapping[JobId, JobStatus]:
        return {status.id: status for status in self._squeue("-u", getpass.getuser()) if status.state.live}

    def status(self, jobs: Collection[JobId]) -> Mapping[JobId, JobStatus]:
        """One squeue for all of them, one more for exit codes if some failed, and one sacct for those that the controller has forgotten."""
        wanted = set(jobs)
        if not wanted:
            return {}
        which = _one_or_mine(wanted)
        known = {status.id: status for status in self._squeue(*which) if status.id in wanted}
        if any(status.state is JobState.FAILED for status in known.values()):
            codes = _exit_codes(which)
            for job in known.keys() & codes.keys():
                code, signal = codes[job]
                known[job] = replace(known[job], exit_code=code, signal=signal or None)
        cancelled = [job for job, status in known.items() if status.state is JobState.CANCELLED]
        for status in self._who_cancelled(cancelled):
            known[status.id] = replace(known[status.id], cancelled_by=status.cancelled_by)
        missing = wanted - set(known)
        if missing:
            for status in self._sacct(["-j", ",".join(sorted(missing))]):
                if status.id in missing:
                    known[status.id] = status
        return known

    def _who_cancelled(self, jobs: Collection[JobId]) -> list[JobStatus]:
        """The controller does not say who cancelled a job. Accounting does, where there is one, a moment later."""
        rows: list[JobStatus] = []
        try:
            for wait in _LATE if jobs else ():
                time.sleep(wait)
                rows = [row for row in self._sacct(["-j", ",".join(sorted(jobs))]) if row.id in jobs]
                if not any(row.state.live for row in rows):
                    break
        except SchedulerUnavailable as error:
            log.warning("job %s was cancelled by an unknown user: %s", ", ".join(sorted(jobs)), error)
        return rows

    def cancel(self, jobs: Collection[JobId]) -> None:
        if not jobs:
            return
        answer = run_command(["scancel", *sorted(jobs)], timeout=_QUERY_TIMEOUT)
        if answer.code and "Invalid job id" not in answer.err and "already completing" not in answer.err:
            raise SchedulerUnavailable(f"scancel {' '.join(sorted(jobs))}: {_reason(answer)}")

    def check(self) -> str:
        version = run_command(["sbatch", "--version"], timeout=_QUERY_TIMEOUT).out.strip()
        ping = run_command(["scontrol", "ping"], timeout=_QUERY_TIMEOUT)
        if ping.code:
            raise SchedulerUnavailable(f"{version}: the controller does not answer: {ping.out.strip() or ping.err}")
        accounting = "with accounting" if _has_accounting() else "without accounting"
        return f"{version}, {ping.out.strip().splitlines()[0]}, {accounting}"

    def expected_start(self, script: str) -> ExpectedStart | None:
        return expected_start(script)

    def priority(self, job: JobId) -> str:
        return priority_words(job)

    def snapshot(self) -> ClusterSnapshot:
        return take_snapshot()

    def _squeue(self, *filters: str) -> list[JobStatus]:
        columns = "%i|%j|%T|%r|%N|%V|%S|%e"
        answer = run_command(["squeue", "-h", "-t", "all", "-o", columns, *filters], timeout=_QUERY_TIMEOUT, extra=_EPOCH)
        if answer.code and "Invalid job id" in answer.err:  # the only job in the query is forgotten
            return []
        if answer.code:
            raise SchedulerUnavailable(f"squeue: {_reason(answer)}")
        return list(parse_squeue(answer.out.splitlines()))

    def _sacct(self, filters: Sequence[str]) -> list[JobStatus]:
        columns = "JobIDRaw,JobName,State,ExitCode,NodeList,Submit,Start,End"
        answer = run_command(["sacct", "-nXP", "-o", columns, *filters], timeout=_QUERY_TIMEOUT, extra=_EPOCH)
        if answer.code:
            if "accounting storage is disabled" in answer.err.lower():
                return []
            raise SchedulerUnavailable(f"sacct: {_reason(answer)}")
        return list(parse_sacct(answer.out.splitlines()))

    # ── inside a job ──────────────────────────────────────────────────────────

    def allocation(self) -> Allocation:
        env = os.environ
        job = env.get("SLURM_JOB_ID")
        if not job:
            raise SchedulerUnavailable("SLURM_JOB_ID is not set: this is not a Slurm job")
        gpus = env.get("SLURM_JOB_GPUS") or env.get("CUDA_VISIBLE_DEVICES") or ""
        return Allocation(
            job=JobId(job),
            hosts=node_names(env.get("SLURM_JOB_NODELIST", "")) or (env.get("SLURMD_NODENAME", "unknown"),),
            deadline=_deadline(job),
            gpus=tuple(part for part in gpus.split(",") if part and part != "NoDevFiles"),
            restarted=env.get("SLURM_RESTART_COUNT", "0") not in ("", "0"),
        )

    def end_time(self, job: JobId) -> float | None:
        return site.end_time(job)

    def node_commands(self, command: Sequence[str], hosts: Sequence[str]) -> Sequence[Sequence[str]]:
        return job_steps.node_commands(command, hosts)

    def grace_seconds(self) -> float | None:
        return site.grace_seconds(partition=os.environ.get("SLURM_JOB_PARTITION", ""), qos=os.environ.get("SLURM_JOB_QOS", ""))

    def requeue(self, job: JobId) -> int | None:
        refused = site.requeue(job)
        if refused:
            raise SubmitRefused(f"Slurm did not put job {job} back into the queue: {refused}")
        return None

    def requeued(self, job: JobId) -> None:
        site.forbid_requeue(job)


def _one_or_mine(jobs: Collection[JobId]) -> list[str]:
    """squeue's filter. The controller itself picks one job, or one user's jobs; for a list of jobs squeue would load everybody's."""
    return ["-j", next(iter(jobs))] if len(jobs) == 1 else ["-u", getpass.getuser()]


def _exit_codes(which: Sequence[str]) -> dict[JobId, tuple[int, int]]:
    """Exit code and signal of these jobs, from the status that the kernel gave: `1792` is exit code 7."""
    columns = "JobID:24,exit_code:24"
    answer = run_command(["squeue", "-h", "-t", "all", "-O", columns, *which], timeout=_QUERY_TIMEOUT)
    rows = [line.split() for line in answer.out.splitlines()]
    return {JobId(row[0]): (int(row[1]) >> 8, int(row[1]) & 0x7F) for row in rows if len(row) == 2 and row[1].isdigit()}


def _deadline(job: str) -> float | None:
    end = os.environ.get("SLURM_JOB_END_TIME", "")
    if end.isdigit():
        return float(end)
    try:
        return site.end_time(job)
    except SchedulerUnavailable:
        return None


def _has_accounting() -> bool:
    answer = run_command(["scontrol", "show", "config"], timeout=_QUERY_TIMEOUT)
    found = re.search(r"^AccountingStorageType\s*=\s*(\S+)", answer.out, re.MULTILINE)
    return bool(found and not found[1].endswith("none"))


def _quoted(value: object) -> str:
    text = str(value)
    return text if re.fullmatch(r"[A-Za-z0-9@._:,+/=\[\]-]*", text) else f'"{text}"'


def _reason(answer: Answer) -> str:
    text = answer.err or answer.out.strip() or f"exit code {answer.code}"
    lines = [re.sub(r"^\w+: (error: )?(Batch job submission failed: )?", "", line) for line in text.splitlines()]
    return "; ".join(line for line in lines if line)


def _advice(reason: str) -> str:
    for words, advice in (
        ("partition", "`sinfo -s` lists the partitions"),
        ("account", "`sacctmgr show assoc user=$USER` lists your accounts"),
        ("qos", "`sacctmgr show qos` lists them"),
        ("node configuration is not available", "no node has that much; request less memory, CPUs or GPUs, or another partition"),
        ("time limit", "`sinfo -s` shows the longest time of each partition"),
        ("submit limit", "you have as many jobs queued as the site allows: cancel one, or wait"),
    ):
        if words in reason.lower():
            return advice
    return ""
