"""Grid Engine, through its own programs: qsub, qstat, qdel, qconf; and its accounting file, or qacct.

A job leaves the queue up to 15 s before accounting knows it: in between it is neither, and the answer leaves it out.
its capabilities say how long that may be, and that a job which nobody knows after that was deleted while it waited: such a
job leaves no record. Why its jobs are asked for as they are: docs/adr/0006.
"""

from __future__ import annotations

import getpass
import os
import re
import signal
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from onward.errors import InvalidInput, NotOffered, SchedulerUnavailable, SubmitLimitReached, SubmitRefused, SubmitUnclear
from onward.model.cluster import ClusterSnapshot
from onward.model.job import NAME_PATTERN, Allocation, JobId, JobState, JobStatus
from onward.model.spec import Resources
from onward.schedulers.base import Capabilities
from onward.schedulers.command import Answer, run_command
from onward.schedulers.gridengine.accounting import Accounting
from onward.schedulers.gridengine.advice import advice, notify_seconds, why
from onward.schedulers.gridengine.output_parsing import parse_error_reasons, parse_qstat, status_of
from onward.schedulers.gridengine.priority import priority_words
from onward.schedulers.gridengine.resource_options import options
from onward.schedulers.gridengine.snapshot import take_snapshot

_TIMEOUT = 90.0  # a busy qmaster takes 20 s and more
_SUBMIT_TIMEOUT = 240.0
_AGAIN = 99  # exit code of a job that wants to go back into the queue
_COUNT = re.compile(r"only \d+ jobs? (?:is|are) allowed|only allows \d+ jobs?|max_u_jobs|max_jobs", re.IGNORECASE)  # per user, or in all

# Words after which the job may or may not have been accepted. Anything else qsub complains of is a refusal.
_UNCLEAR = (
    "commlib error",
    "unable to contact qmaster",
    "unable to send message to qmaster",
    "failed receiving gdi request",
    "can't connect to qmaster",
    "got select error",
    "timeout",
    "connection",
    "cannot connect",
    "error getting answer",
)
_MAY_NOT_ASK = ("neither submit nor admin host", "is not a submit host", "is no admin host", "no submit or admin host")


class GridEngineScheduler:
    settle_seconds = 10.0

    def __init__(self, *, names: Mapping[str, str] | None = None, notify: bool = True) -> None:
        self._names = names or {}
        self._notify = notify
        self.capabilities = Capabilities(
            finishing_seconds=30.0,
            deletes_unseen=True,
            delete_notice=signal.SIGUSR2 if notify else None,
            only_notice_tells_deletion=notify,
            again_exit=_AGAIN,
            final_exit=100,
        )
        self._accounting = Accounting(_ask)
        self._seen: dict[JobId, str] = {}  # names, by job
        self._deleted: set[JobId] = set()  # by this object, while they waited: Grid Engine keeps no word of them

    # ── asking for a job ──────────────────────────────────────────────────────

    def directives(self, resources: Resources, *, output: Path) -> Sequence[str]:
        """`-r y`: a job that may not be started again stays `r` on a lost host for ever, and its successor is never released."""
        lines = [f"-o {_path(output)}", "-j y", "-S /bin/bash", "-r y", *(["-notify"] if self._notify else [])]
        return [f"#$ {line}" for line in (*lines, *options(resources, self._names))]

    def submit_command(self, script: Path, *, name: str, after: JobId | None = None) -> Sequence[str]:
        held = ["-hold_jid", after] if after else []
        return ["qsub", "-terse", "-N", name, "-wd", str(script.parent.parent), *held, str(script)]

    def submit(self, script: Path, *, name: str, after: JobId | None = None) -> JobId:
        if not NAME_PATTERN.match(name):
            raise SubmitRefused(f"{name!r} is not a valid job name", hint="use letters, digits, dot, dash and underscore")
        program, *arguments = self.submit_command(script, name=name, after=after)
        try:
            answer = _ask(program, *arguments, timeout=_SUBMIT_TIMEOUT)
        except SchedulerUnavailable as error:
            raise SubmitUnclear(f"submitting {name}: {error.message}", hint=error.hint) from error
        job = answer.out.strip().split("\n")[-1].split(".")[0]  # of an array: 66.1-10:1
        if answer.code == 0 and job.isdigit():
            self._seen[JobId(job)] = name
            return JobId(job)
        reason = _reason(answer)
        if answer.code == 0 or any(word in reason.lower() for word in _UNCLEAR):
            raise SubmitUnclear(f"submitting {name}: {reason}")
        if _COUNT.search(reason):
            raise SubmitLimitReached(f"Grid Engine accepts no more jobs from you for now: {reason}", hint=_advice("only allows"))
        raise SubmitRefused(f"Grid Engine refused {name}: {reason}", hint=_advice(reason))

    def advice(self, resources: Resources) -> Sequence[str]:
        return list(advice(_ask, resources, self._names, notify=self._notify))

    def why(self, jobs: Collection[JobId]) -> Mapping[JobId, str]:
        """Why these wait, where the qmaster collects that: one call."""
        return why(_ask("qstat", "-j", ",".join(sorted(jobs))).out) if jobs else {}

    def priority(self, job: JobId) -> str:
        return priority_words(_ask("qstat", "-pri", "-u", getpass.getuser()).out, job)

    # ── asking after jobs ─────────────────────────────────────────────────────

    def find(self, name: str) -> Sequence[JobId]:
        queued = [status.id for status in self._qstat() if status.name == name]
        every = {*self._accounting.named(name), *queued}
        return sorted(every, key=int)

    def live(self) -> Mapping[JobId, JobStatus]:
        try:
            return {status.id: status for status in self._qstat() if status.state.live}
        except MayNotAsk as error:  # nor may it submit
            raise NotOffered(f"this host cannot list jobs: {error.message}", hint=error.hint) from error

    def status(self, jobs: Collection[JobId]) -> Mapping[JobId, JobStatus]:
        """One qstat for all of them, one more if some are in the error state, and one look into accounting for those that have left.

        A host that may not ask the queue is answered by accounting alone, and not at all if that leaves a job open.
        """
        wanted = set(jobs)
        if not wanted:
            return {}
        shut_out: SchedulerUnavailable | None = None
        try:
            known = {status.id: status for status in self._qstat() if status.id in wanted}
        except MayNotAsk as error:
            known, shut_out = {}, error
        failed = [job for job, status in known.items() if status.state is JobState.FAILED]
        if failed:
            reasons = parse_error_reasons(_ask("qstat", "-j", ",".join(sorted(failed))).out)
            for job in failed:
                known[job] = replace(known[job], reason=f"{known[job].reason}: {reasons[job]}" if job in reasons else known[job].reason)
        missing = wanted - known.keys()
        if missing:
            known.update({job: status_of(records) for job, records in self._accounting.of_jobs(missing).items()})
        for job in (wanted & self._deleted) - known.keys():
            known[job] = JobStatus(id=job, name=self._seen.get(job, ""), state=JobState.CANCELLED, reason="deleted while it waited")
        if shut_out and wanted - known.keys():
            raise shut_out
        return known

    def cancel(self, jobs: Collection[JobId]) -> None:
        if not jobs:
            return
        answer = _ask("qdel", *sorted(jobs))
        said = f"{answer.out}\n{answer.err}"
        self._deleted |= {JobId(job) for job in re.findall(r"has deleted job (\d+)", said)}
        settled = set(re.findall(r'(?:deleted job|registered the job|denied: job|job) "?(\d+)"?', said))
        if answer.code and not set(jobs) <= settled:
            raise SchedulerUnavailable(f"qdel {' '.join(sorted(jobs))}: {_reason(answer)}")

    def check(self) -> str:
        version = _ask("qstat", "-help").out.strip().splitlines()
        answer = _ask("qconf", "-sql")
        if answer.code:
            raise SchedulerUnavailable(f"the qmaster does not answer: {_reason(answer)}")
        queues = answer.out.split()
        return f"Grid Engine {version[0] if version else '?'}, cell {_cell()}, queues {', '.join(queues[:5])}" + (
            " …" if queues[5:] else ""
        )

    def snapshot(self) -> ClusterSnapshot:
        return take_snapshot(_ask, self._names)

    def _qstat(self) -> list[JobStatus]:
        answer = _ask("qstat", "-xml", "-u", getpass.getuser())
        if answer.code:
            kind = MayNotAsk if any(words in answer.err for words in _MAY_NOT_ASK) else SchedulerUnavailable
            raise kind(f"qstat: {_reason(answer)}")
        found = parse_qstat(answer.out)
        self._seen |= {status.id: status.name for status in found}
        return found

    # ── inside a job ──────────────────────────────────────────────────────────

    def allocation(self) -> Allocation:
        """A job cannot see its own limit: the supervisor reckons it from what the run asked for."""
        env = os.environ
        job = env.get("JOB_ID", "")
        if not job.isdigit() or "SGE_ROOT" not in env:
            raise SchedulerUnavailable("JOB_ID is not set: this is not a Grid Engine job")
        gpus = env.get("CUDA_VISIBLE_DEVICES") or env.get("SGE_HGR_gpu") or ""
        return Allocation(
            job=JobId(job),
            hosts=_pe_hosts(env.get("PE_HOSTFILE", "")) or (env.get("HOSTNAME") or socket.gethostname(),),
            deadline=None,
            started=_began(env.get("SGE_JOB_SPOOL_DIR", "")),
            gpus=tuple(part for part in re.split(r"[,\s]+", gpus) if part and part != "NoDevFiles"),
            restarted=env.get("RESTARTED", "0") not in ("", "0"),
        )

    def node_commands(self, command: Sequence[str], hosts: Sequence[str]) -> Sequence[Sequence[str]]:
        """One qrsh for each host, into the job's own slots."""
        return [["qrsh", "-inherit", host, *command, "--host", host] for host in hosts]

    def grace_seconds(self) -> float | None:
        """The `notify` time of the queue that the job is in."""
        queue = os.environ.get("QUEUE", "")
        return notify_seconds(_ask("qconf", "-sq", queue).out) if queue and self._notify else None

    def requeue(self, job: JobId) -> int | None:
        return _AGAIN

    def requeued(self, job: JobId) -> None:
        """Nothing to undo: a job here may always be restarted when its host is lost."""


class MayNotAsk(SchedulerUnavailable):
    """The qmaster answers, but not this host: it is neither submit nor admin host."""


def _ask(program: str, *arguments: str, timeout: float = _TIMEOUT) -> Answer:
    answer = run_command([_located(program), *arguments], timeout=timeout)
    return replace(answer, err=answer.err.replace("\r", ""))


def _located(program: str) -> str:
    """The program itself rather than a distribution's wrapper, which takes ten times as long; jobs often have neither on their PATH."""
    env = os.environ
    own = env.get("SGE_BINARY_PATH") or (f"{env['SGE_ROOT']}/bin/{env.get('SGE_ARCH', 'lx-amd64')}" if "SGE_ROOT" in env else "")
    path = Path(own, program)
    return str(path) if own and os.access(path, os.X_OK) else program


def _cell() -> str:
    return os.environ.get("SGE_CELL") or "default"


def _path(output: Path) -> str:
    text = str(output)
    if re.search(r"""["'\\\n$:]""", text):
        raise InvalidInput(
            f"Grid Engine cannot write to {output}: a quote, backslash, dollar, colon or newline is in its path", hint="choose another root"
        )
    return f'"{text}"'


def _began(spool: str) -> float | None:
    """The execution daemon writes the job's configuration as it starts it, before any prolog: from then on its time counts."""
    try:
        return Path(spool, "config").stat().st_mtime if spool else None
    except OSError:
        return None


def _pe_hosts(file: str) -> tuple[str, ...]:
    try:
        lines = Path(file).read_text().splitlines() if file else []
    except OSError:
        return ()
    return tuple(dict.fromkeys(line.split()[0] for line in lines if line.split()))


def _reason(answer: Answer) -> str:
    text = answer.err or answer.out.strip() or f"exit code {answer.code}"
    lines = [re.sub(r"^(?:Unable to run job: |error: |Exiting\.?$)", "", line.strip()).strip() for line in text.splitlines()]
    return "; ".join(line for line in lines if line)


def _advice(reason: str) -> str:
    for words, what_next in (
        ("unknown resource", "`qconf -sc` lists this site's resources; map Onward's names to them in the profile's `names`"),
        ("unknown queue", "`qconf -sql` lists the queues"),
        ("parallel environment", "`qconf -spl` lists them; set those for cpus-per-task and nodes in the profile's `names`"),
        ("hostname", "`qconf -sel` lists the hosts that run jobs"),
        ("advance reservation", "`qrstat` lists the reservations that you may use"),
        ("invalid option", "resources.extra takes options as on a `#$` line; `man qsub` lists them"),
        ("project", "`qconf -sprjl` lists the projects"),
        ("not a submit host", "submit from a submit host; if jobs may not submit, set legs-ahead in the profile"),
        ("only allows", "you have as many jobs queued as the site allows: cancel one, or wait"),
    ):
        if words in reason.lower():
            return what_next
    return ""
