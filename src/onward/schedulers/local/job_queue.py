"""Queue: the folder in which the local scheduler's jobs lie. Nothing else is shared between submitters and the keeper.

    ids.lock              the last number given; locked while a job is added
    keeper.lock           locked by the keeper for its life; says which process that is
    machine.json          how much there is to hand out, as the last submitter saw it
    incoming/12.NAME/     a submitted job: job.json and script, put here whole
    live/12.NAME/         taken by the keeper, not ended yet: and record.json, later claim, output and exit
    ended/12.NAME/
    cancels/12            somebody wants this job gone

A job's folder moves from incoming through live to ended and never back, so whoever looks in this order finds it. Each file
has one writer: job.json the submitter, record.json the keeper, claim and exit the job's wrapper.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from onward.model.job import JobId, JobState
from onward.schedulers.local.resource_request import ResourceRequest
from onward.sdk.atomic_files import write_whole

INCOMING, LIVE, ENDED = "incoming", "live", "ended"
KEPT = 2000  # ended jobs
KEPT_SECONDS = 86400.0  # younger ones are kept whatever their number


@dataclass(frozen=True, kw_only=True)
class LocalJob:
    """A job as it was submitted."""

    id: JobId
    name: str
    after: JobId | None
    submitted: float
    request: ResourceRequest
    folder: str  # where its script starts
    umask: int
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class JobRecord:
    """How a job ended. `ending` is set from the moment an end is certain until nothing of the job is left."""

    state: JobState = JobState.QUEUED
    reason: str = ""
    exit_code: int | None = None
    signal: int | None = None
    started: float | None = None
    ended: float | None = None
    deadline: float | None = None
    gpus: tuple[str, ...] = ()
    ending: JobState | None = None
    kill_at: float | None = None  # with `ending`: when asking is over


class LocalQueue:
    def __init__(self, state: Path) -> None:
        self.state = state
        self.keeper_lock = state / "keeper.lock"
        self.keeper_log = state / "keeper.log"
        self._ids = state / "ids.lock"
        self._machine = state / "machine.json"
        self._partial = state / "partial"
        self._cancels = state / "cancels"

    def make(self) -> None:
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in (INCOMING, LIVE, ENDED, "cancels"):
            (self.state / name).mkdir(exist_ok=True)

    def folder(self, stage: str, job: LocalJob) -> Path:
        return self.state / stage / f"{job.id}.{job.name}"

    # ── reading, by anybody ───────────────────────────────────────────────────

    def listing(self, *stages: str) -> dict[JobId, str]:
        """Job → its name, oldest first. Reads no file but the folders themselves."""
        found: dict[JobId, str] = {}
        for stage in stages:
            for entry in _entries(self.state / stage):
                job, _, name = entry.partition(".")
                if job.isdecimal():
                    found[JobId(job)] = name
        return dict(sorted(found.items(), key=lambda item: int(item[0])))

    def unfinished(self) -> dict[JobId, str]:
        return self.listing(INCOMING, LIVE)

    def read(self, job: JobId, name: str) -> tuple[LocalJob, JobRecord | None] | None:
        """A job and what the keeper wrote of it, if it has taken it."""
        for stage in (INCOMING, LIVE, ENDED):
            folder = self.state / stage / f"{job}.{name}"
            found = _read_json(folder / "job.json")
            record = _read_json(folder / "record.json")
            if found is not None and (record is not None or stage == INCOMING):
                return _job_from(found), _record_from(record) if record else None
        return None

    def machine(self) -> dict[str, Any]:
        return _read_json(self._machine) or {}

    # ── adding, by submitters ─────────────────────────────────────────────────

    def add(self, job: LocalJob, script: bytes, *, machine: Mapping[str, Any]) -> JobId:
        """Add a job, all or nothing, under its own number: `job.id` is ignored."""
        with _locked(self._ids) as file:
            if machine != self.machine():
                write_whole(self._machine, json.dumps(machine))
            job = replace(job, id=self._next_id(file))
            shutil.rmtree(self._partial, ignore_errors=True)  # left by a killed submitter: we hold the lock
            self._partial.mkdir()
            (self._partial / "script").write_bytes(script)
            (self._partial / "job.json").write_text(json.dumps({"schema": 1, **asdict(job)}))
            self._partial.rename(self.folder(INCOMING, job))
        return job.id

    def _next_id(self, file: int) -> JobId:
        text = os.pread(file, 32, 0).decode().strip()
        last = int(text) if text.isdecimal() else max(map(int, self.listing(INCOMING, LIVE, ENDED)), default=0)
        os.pwrite(file, b"%020d\n" % (last + 1), 0)  # one write of fixed length: a kill leaves the old number or the new
        return JobId(str(last + 1))

    def ask_to_cancel(self, job: JobId) -> None:
        (self._cancels / job).touch()

    # ── the keeper's own ──────────────────────────────────────────────────────

    def taken(self) -> list[tuple[LocalJob, JobRecord]]:
        """The jobs that an earlier keeper left."""
        jobs = []
        for id_, name in self.listing(LIVE).items():
            found = self.read(id_, name)
            if found is not None and found[1] is not None:
                jobs.append((found[0], found[1]))
            else:
                self._put_aside(LIVE, f"{id_}.{name}")
        return jobs

    def take(self) -> list[LocalJob]:
        """Everything that came in, until nothing is left there: so a job never comes before the one that it waits for."""
        jobs: list[LocalJob] = []
        while entries := self.listing(INCOMING):
            for id_, name in entries.items():
                found = self.read(id_, name)
                if found is None:
                    self._put_aside(INCOMING, f"{id_}.{name}")
                    continue
                write_whole(self.folder(INCOMING, found[0]) / "record.json", _record_json(JobRecord()))
                self.folder(INCOMING, found[0]).rename(self.folder(LIVE, found[0]))
                jobs.append(found[0])
        return jobs

    def save(self, job: LocalJob, record: JobRecord) -> None:
        write_whole(self.folder(LIVE, job) / "record.json", _record_json(record))

    def close(self, job: LocalJob) -> None:
        self.folder(LIVE, job).rename(self.folder(ENDED, job))

    def cancels(self) -> list[JobId]:
        return [JobId(entry) for entry in _entries(self._cancels)]

    def forget_cancel(self, job: JobId) -> None:
        (self._cancels / job).unlink(missing_ok=True)

    def prune(self, now: float) -> None:
        """Forget the oldest ended jobs beyond `KEPT`, but none that ended within a day."""
        jobs = self.listing(ENDED)
        for job, name in list(jobs.items())[: max(len(jobs) - KEPT, 0)]:
            folder = self.state / ENDED / f"{job}.{name}"
            with contextlib.suppress(OSError):
                if now - folder.stat().st_mtime > KEPT_SECONDS:
                    (folder / "job.json").unlink()  # first: a job is complete or unknown
                    shutil.rmtree(folder)

    def _put_aside(self, stage: str, entry: str) -> None:
        """A job that cannot be read, as a power cut may leave it: nobody knows it any more, and it must not stop the others."""
        (self.state / stage / entry).rename(self.state / ENDED / f"unreadable-{entry}")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _entries(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _job_from(data: Mapping[str, Any]) -> LocalJob:
    return LocalJob(**{**_known(LocalJob, data), "request": ResourceRequest(**_known(ResourceRequest, data["request"]))})


def _record_json(record: JobRecord) -> str:
    return json.dumps({"schema": 1, **asdict(record)})


def _record_from(data: Mapping[str, Any]) -> JobRecord:
    ending = data.get("ending")
    return JobRecord(
        **{
            **_known(JobRecord, data),
            "state": JobState(data["state"]),
            "ending": JobState(ending) if ending else None,
            "gpus": tuple(data["gpus"]),
        }
    )


def _known(cls: type[LocalJob] | type[JobRecord] | type[ResourceRequest], data: Mapping[str, Any]) -> dict[str, Any]:
    """Keys that a newer Onward may have added are left out: keepers and submitters may be of different ages."""
    return {key: value for key, value in data.items() if key in cls.__dataclass_fields__}
