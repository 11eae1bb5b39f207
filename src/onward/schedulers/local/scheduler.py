"""The `local` scheduler: an ordinary queue on this machine, with no server. See local_queue for what lies where.

Submitting puts a job into a folder and makes sure that a keeper runs (local_keeper), which starts jobs, watches over their
limits and leaves when there is nothing more to do. Any call starts a new keeper if the old one was killed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onward.errors import InvalidInput, SchedulerUnavailable, SubmitRefused, SubmitUnclear
from onward.model.cluster import ClusterSnapshot
from onward.model.job import NAME_PATTERN, Allocation, JobId, JobState, JobStatus
from onward.model.spec import Resources
from onward.schedulers.command import clean_environment
from onward.schedulers.local.job_queue import ENDED, INCOMING, LIVE, JobRecord, LocalJob, LocalQueue
from onward.schedulers.local.job_wrapper import JOB_DEADLINE, JOB_GPUS, JOB_HOST
from onward.schedulers.local.keeper_launch import ensure_keeper, keeper_command
from onward.schedulers.local.machine import MachineCapacity, cpus_here, gpu_types_here, gpus_here, mem_here
from onward.schedulers.local.processes import JOB_ID, JOB_STATE, boot_id
from onward.schedulers.local.resource_request import ResourceRequest, directive_lines, parse_directives
from onward.schedulers.local.snapshot import take_snapshot
from onward.schedulers.state_folder import STATE_HINT, state_folder


class LocalScheduler:
    settle_seconds = 0.0

    def __init__(
        self,
        state: Path | None = None,
        *,
        cpus: int | None = None,
        mem: int | None = None,
        gpus: tuple[str, ...] | None = None,
        keeper_command: Sequence[str] | None = None,
    ) -> None:
        """`cpus`, `mem` (MiB) and `gpus` are what may be handed out, where that is not all there is."""
        self._state = (state or default_state()).resolve()
        self._queue = LocalQueue(self._state)
        self._given = {"cpus": cpus, "mem": mem, "gpus": gpus}
        self._keeper_command = keeper_command
        self._gpu_types: dict[str, str] | None = None

    def directives(self, resources: Resources, *, output: Path) -> Sequence[str]:
        return directive_lines(resources, output=output)

    def submit(self, script: Path, *, name: str, after: JobId | None = None) -> JobId:
        if not NAME_PATTERN.match(name):
            raise SubmitRefused(
                f"{name!r} is not a valid job name", hint="begin with a letter, then letters, digits, dot, dash and underscore"
            )
        try:
            text = script.read_bytes()
        except OSError as error:
            raise SubmitRefused(f"the job script {script} cannot be read: {error.strerror}") from error
        try:
            request = parse_directives(text.decode(errors="surrogateescape"))
        except InvalidInput as error:
            raise SubmitRefused(f"the local queue refused {name}: {error.message}", hint=error.hint) from error
        try:
            self._queue.make()
        except OSError as error:
            if self._state.is_dir() and error.errno not in (errno.EACCES, errno.EPERM):
                raise self._unavailable(error) from error
            raise SubmitRefused(f"the local queue's folder {self._state} cannot be created: {error.strerror}", hint=STATE_HINT) from error
        with self._answering():
            machine, seen = self._machine()
        if excess := machine.excess(request):
            raise SubmitRefused(f"the local queue cannot run {name}: {excess}", hint="request less, or choose another cluster")
        try:
            job = self._queue.add(_as_submitted(name, after, request), text, machine=seen)
        except OSError as error:  # a disk that is full now may have room later
            raise SchedulerUnavailable(f"the local queue could not store {name} in {self._state}: {error.strerror}") from error
        try:
            self._ensure_keeper()
        except SchedulerUnavailable as error:
            raise SubmitUnclear(f"job {job} ({name}) is stored, but {error.message}", hint=error.hint) from error
        return job

    def advice(self, resources: Resources) -> Sequence[str]:
        """That GPUs are handed out, where this may keep a job waiting that asked for none."""
        try:
            gpus = len(self._machine()[0].gpus)
            alone = len(self._queue.unfinished()) <= 1  # the job itself
        except OSError:
            return []
        if resources.asks_gpus() or not gpus or (alone and gpus == 1):
            return []
        all_of_them = "the only GPU" if gpus == 1 else f"all {gpus} GPUs"
        gets = f"it asks for no number of GPUs, so it gets {all_of_them} of this machine"
        return [f"{gets}, and waits while another job of the local queue has one: --gpus N asks for N of them, --gpus 0 for none"]

    def submit_command(self, script: Path, *, name: str, after: JobId | None = None) -> Sequence[str]:
        """There is no program to submit with: this is what the queue will run."""
        return ("bash", str(script))

    def find(self, name: str) -> Sequence[JobId]:
        with self._answering():
            self._ensure_keeper()
            return [job for job, known in self._queue.listing(INCOMING, LIVE, ENDED).items() if known == name]

    def live(self) -> Mapping[JobId, JobStatus]:
        with self._answering():
            unfinished = list(self._queue.unfinished())
        answers = self.status(unfinished)
        return {job: status for job, status in answers.items() if status.state.live}

    def status(self, jobs: Collection[JobId]) -> Mapping[JobId, JobStatus]:
        with self._answering():
            self._ensure_keeper()
            unfinished = self._queue.unfinished()
            names = {**unfinished, **self._queue.listing(ENDED)}
            found = {job: self._queue.read(job, names[job]) for job in jobs if job in names}
            return {id_: _status(*known, unfinished) for id_, known in found.items() if known is not None}

    def cancel(self, jobs: Collection[JobId]) -> None:
        with self._answering():
            for job in set(jobs) & self._queue.unfinished().keys():
                self._queue.ask_to_cancel(job)
            self._ensure_keeper()

    def allocation(self) -> Allocation:
        try:
            job, host = os.environ[JOB_ID], os.environ[JOB_HOST]
        except KeyError as error:
            raise InvalidInput(
                f"this is not inside a job of the local queue: {error.args[0]} is not set", hint="submit it as a job"
            ) from None
        deadline = os.environ.get(JOB_DEADLINE)
        gpus = os.environ.get(JOB_GPUS, "")
        return Allocation(
            job=JobId(job),
            hosts=(host,),
            deadline=float(deadline) if deadline else None,
            gpus=tuple(gpus.split(",")) if gpus else (),
        )

    def check(self) -> str:
        with self._answering():
            self._queue.make()
            machine, _ = self._machine()
            states = [status.state for status in self.status(list(self._queue.unfinished())).values()]
        running = states.count(JobState.RUNNING)
        waiting = states.count(JobState.QUEUED) + states.count(JobState.HELD)
        size = f"{machine.mem / 1024:.0f} GiB" if machine.mem >= 1024 else f"{machine.mem} MiB"
        return (
            f"local queue on {socket.gethostname()}: {machine.cpus} CPUs, {size}, {len(machine.gpus)} GPUs, "
            f"{running} running, {waiting} waiting"
        )

    def snapshot(self) -> ClusterSnapshot:
        """This machine, as far as the queue hands it out, and the queue's own jobs."""
        with self._answering():
            self._queue.make()
            machine, _ = self._machine()
            unfinished = self._queue.unfinished()
            found = [self._queue.read(job, name) for job, name in unfinished.items()]
        if self._gpu_types is None:
            self._gpu_types = gpu_types_here() if machine.gpus else {}
        jobs = [(job, record, _status(job, record, unfinished)) for job, record in filter(None, found)]
        return take_snapshot(machine, self._gpu_types, jobs, host=socket.gethostname(), now=time.time())

    # ── small matters ─────────────────────────────────────────────────────────

    def _ensure_keeper(self) -> None:
        ensure_keeper(self._queue, self._keeper_command or keeper_command(self._state))

    def _machine(self) -> tuple[MachineCapacity, dict[str, Any]]:
        """What there is to hand out, and how the queue notes it. A job that submits takes over what its own submitter saw."""
        noted = self._queue.machine()
        if noted and os.environ.get(JOB_STATE) == str(self._state):
            found = {key: noted[key] for key in ("cpus", "mem", "gpus")}
            gpus = noted.get("gpus_found")
        else:
            gpus = noted.get("gpus_found") if noted.get("boot") == boot_id() else None
            if gpus is None and self._given["gpus"] is None:
                gpus = gpus_here()
            found = {"cpus": cpus_here(), "mem": mem_here(), "gpus": gpus or ()}
        found |= {key: value for key, value in self._given.items() if value is not None}
        machine = MachineCapacity(cpus=found["cpus"], mem=found["mem"], gpus=tuple(found["gpus"]))
        seen = {"cpus": machine.cpus, "mem": machine.mem, "gpus": list(machine.gpus)}
        return machine, {**seen, "boot": boot_id(), "gpus_found": None if gpus is None else list(gpus)}

    @contextlib.contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: OSError) -> SchedulerUnavailable:
        return SchedulerUnavailable(f"the local queue's folder {self._state} cannot be used: {error.strerror}", hint=STATE_HINT)


def default_state() -> Path:
    """Inside a job: its own queue. Elsewhere in the user's state folder, a queue a machine, since homes are shared."""
    if "ONWARD_STATE_DIR" not in os.environ and JOB_STATE in os.environ:
        return Path(os.environ[JOB_STATE])
    return state_folder(os.environ) / f"local-{socket.gethostname()}"


def _as_submitted(name: str, after: JobId | None, request: ResourceRequest) -> LocalJob:
    return LocalJob(
        id=JobId(""),
        name=name,
        after=after,
        submitted=time.time(),
        request=request,
        folder=_working_folder(),
        umask=_umask(),
        environment=clean_environment({name: os.environ[name] for name in ("TMPDIR",) if name in os.environ}),  # the same disk here
    )


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "/"


def _umask() -> int:
    """Read, not set and set back: other threads may be making files."""
    match = re.search(r"^Umask:\s*(\d+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(match.group(1), 8) if match else 0o077


def _status(job: LocalJob, record: JobRecord | None, unfinished: Mapping[JobId, str]) -> JobStatus:
    if record is None and job.after in unfinished:
        record = JobRecord(state=JobState.HELD, reason=f"waits for job {job.after}")
    elif record is None:
        record = JobRecord(reason="waits for the keeper")
    return JobStatus(
        id=job.id,
        name=job.name,
        state=record.state,
        reason=record.reason,
        exit_code=record.exit_code,
        signal=record.signal,
        nodes=(socket.gethostname(),) if record.started is not None else (),
        submitted=job.submitted,
        started=record.started,
        ended=record.ended,
    )
