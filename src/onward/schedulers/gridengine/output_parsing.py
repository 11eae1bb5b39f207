"""What Grid Engine writes, read: `qstat -xml`, the accounting file, `qacct -j`, and the job state for each ending in them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from onward.errors import SchedulerUnavailable
from onward.model.job import JobId, JobState, JobStatus

_FIELDS = 45  # of a line of the accounting file; the category, and it alone, may hold more colons
_CATEGORY = 39
_BEFORE_JOB_ENDED = 19  # its host or shepherd died
_RESCHEDULED = 25
_SUSPENDED = {"s": "suspended", "S": "suspended with its queue", "T": "suspended because its host is too busy"}
_DELETING = (137, 140)  # killed, or dead of the notice that it will be
_WORDS = {
    19: "its host was lost",
    25: "it was restarted on another host",
    26: "its output file could not be opened",
    27: "its shell was not found",
    28: "its working folder could not be entered",
    30: "it requested the error state (exit code 100)",
    37: "it exceeded a limit",
}


@dataclass(frozen=True, kw_only=True)
class AccountingRecord:
    """One run of one job, as accounting has it. A job that was started again has several."""

    job: JobId
    name: str
    owner: str
    host: str
    submitted: float | None
    started: float | None
    ended: float | None
    failed: int
    exit_status: int
    slots: int = 1
    task: str = "undefined"
    category: str = ""  # what it asked for, as in -l h_rt=60,h_vmem=1G
    maxvmem: float | None = None  # bytes
    deleted_by: str = ""  # told by qacct of newer Grid Engines


# ── the queue ─────────────────────────────────────────────────────────────────


def parse_qstat(text: str) -> list[JobStatus]:
    """The jobs in the queue. Of an array all tasks are one job: running if any runs, waiting if any waits."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise SchedulerUnavailable(f"qstat -xml did not print XML: {error}") from error
    found: dict[JobId, JobStatus] = {}
    for entry in root.iter("job_list"):
        said = {child.tag: (child.text or "").strip() for child in entry}
        status = _queued(said)
        known = found.get(status.id)
        if known is None or (known.state is not JobState.RUNNING and status.state is JobState.RUNNING):
            found[status.id] = status
    return list(found.values())


def _queued(said: dict[str, str]) -> JobStatus:
    letters = said.get("state", "")
    state = parse_state(letters)
    host = said.get("queue_name", "").rpartition("@")[2]
    started = read_moment(said.get("JAT_start_time", ""))
    return JobStatus(
        id=JobId(said.get("JB_job_number", "")),
        name=said.get("JB_name", ""),
        state=state,
        reason=_queue_words(letters),
        paused=state is JobState.RUNNING and any(letter in letters for letter in _SUSPENDED),
        nodes=(host,) if host else (),
        submitted=read_moment(said.get("JB_submission_time", "")) or started,
        started=started if state is JobState.RUNNING else None,
    )


def parse_state(letters: str) -> JobState:
    """Letters combine: E error, h hold, q queued, w waiting, t in transfer, r running, s S T suspended, R started again, d deleting."""
    if "E" in letters:
        return JobState.FAILED
    if "q" in letters or "w" in letters:
        return JobState.HELD if "h" in letters else JobState.QUEUED
    if any(letter in letters for letter in "rtsSTd"):
        return JobState.RUNNING
    return JobState.UNKNOWN


def _queue_words(letters: str) -> str:
    if "E" in letters:
        return f"error state {letters}"
    if "d" in letters:
        return "being deleted"
    return next((words for letter, words in _SUSPENDED.items() if letter in letters), "")


def parse_error_reasons(text: str) -> dict[JobId, str]:
    """Why jobs are in the error state, from the text of `qstat -j`."""
    reasons: dict[JobId, str] = {}
    job = ""
    for line in text.splitlines():
        key, _, rest = line.partition(":")
        if key.strip() == "job_number":
            job = rest.strip()
        elif key.startswith("error reason") and job:
            words = re.sub(r"^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d \[\d+:\d+\]:\s*", "", rest.strip())
            reasons.setdefault(JobId(job), words)
    return reasons


# ── accounting ────────────────────────────────────────────────────────────────


def parse_accounting(lines: Iterable[str]) -> Iterator[AccountingRecord]:
    """Lines of the accounting file; comments and truncated lines are skipped."""
    for line in lines:
        parts = line.rstrip("\n").split(":")
        if line.startswith("#") or len(parts) < _FIELDS or not parts[5].isdigit():
            continue
        extra = len(parts) - _FIELDS
        category = ":".join(parts[_CATEGORY : _CATEGORY + extra + 1])
        maxvmem = parts[42 + extra]
        yield AccountingRecord(
            job=JobId(parts[5]),
            name=parts[4],
            owner=parts[3],
            host=parts[1],
            submitted=_seconds(parts[8]),
            started=_seconds(parts[9]),
            ended=_seconds(parts[10]),
            failed=_leading(parts[11]),
            exit_status=_leading(parts[12]),
            slots=max(1, _leading(parts[34])),
            task=parts[35],
            category=category,
            maxvmem=float(maxvmem) if re.fullmatch(r"[0-9.]+", maxvmem) else None,
        )


def parse_qacct(text: str) -> Iterator[AccountingRecord]:
    """The blocks of `qacct -j`, which says the same in other words."""
    for block in re.split(r"^=+\s*$", text, flags=re.MULTILINE):
        said = {key: rest.strip() for key, _, rest in (line.partition(" ") for line in block.splitlines()) if key}
        if not said.get("jobnumber", "").isdigit():
            continue
        yield AccountingRecord(
            job=JobId(said["jobnumber"]),
            name=said.get("jobname", ""),
            owner=said.get("owner", ""),
            host=said.get("hostname", ""),
            submitted=_date(said.get("qsub_time", "")),
            started=_date(said.get("start_time", "")),
            ended=_date(said.get("end_time", "")),
            failed=_leading(said.get("failed", "")),
            exit_status=_leading(said.get("exit_status", "")),
            slots=max(1, _leading(said.get("slots", ""))),
            task=said.get("taskid", "undefined"),
            category=said.get("category", ""),
            maxvmem=read_size(said.get("maxvmem", "")),
            deleted_by=said.get("deleted_by", "").replace("NONE", ""),
        )


def status_of(records: Sequence[AccountingRecord]) -> JobStatus:
    """How a job ended, from its records in order. One that was started again after its host was lost did not train again: that
    its host was lost is how it ended."""
    last = records[-1]
    lost = next((r for r in records[:-1] if r.failed == _BEFORE_JOB_ENDED or (r.failed == _RESCHEDULED and r.exit_status != 99)), None)
    job_state = lost or last
    state, signal, words = _ending(job_state)
    return JobStatus(
        id=last.job,
        name=last.name,
        state=state,
        reason=words,
        exit_code=None if signal else job_state.exit_status,
        signal=signal,
        nodes=(job_state.host,) if job_state.host not in ("", "UNKNOWN") else (),
        submitted=last.submitted,
        started=job_state.started,
        ended=last.ended or job_state.ended,
        cancelled_by=job_state.deleted_by if job_state.deleted_by != job_state.owner else "",
    )


def _ending(record: AccountingRecord) -> tuple[JobState, int | None, str]:
    signal = record.exit_status - 128 if 128 < record.exit_status < 128 + 65 else None
    words = f"failed {record.failed}: {_WORDS[record.failed]}" if record.failed in _WORDS else ""
    if record.deleted_by:
        return JobState.CANCELLED, signal, f"deleted by {record.deleted_by}"
    match record.failed:
        case 0:
            return (JobState.FAILED if record.exit_status else JobState.FINISHED), None, ""
        case 37:
            return (JobState.OUT_OF_MEMORY if _memory_met(record) else JobState.TIMED_OUT), signal, words
        case 19 | 25:
            return JobState.NODE_FAILED, None, words
        case 100 if record.exit_status in _DELETING:
            return JobState.CANCELLED, signal, "deleted or killed"
        case _:
            return JobState.FAILED, signal, words or f"failed {record.failed}"


def _memory_met(record: AccountingRecord) -> bool:
    """Grid Engine tells a limit of time and one of memory apart by nothing but the figures."""
    limits = dict(part.split("=", 1) for part in re.findall(r"[\w.]+=[^,\s]+", record.category))
    ran = record.ended - record.started if record.ended and record.started else None
    time_limit = read_duration(limits.get("h_rt", ""))
    if time_limit and ran is not None and ran >= time_limit - 1:
        return False
    allowed = read_size(limits.get("h_vmem", ""))
    if allowed and record.maxvmem and record.maxvmem >= 0.9 * allowed * record.slots:
        return True
    return bool(allowed and time_limit and ran is not None)  # well before its time, and nothing else was limited


# ── values ────────────────────────────────────────────────────────────────────


def _leading(text: str) -> int:
    match = re.match(r"\s*(\d+)", text)
    return int(match[1]) if match else 0


def _seconds(text: str) -> float | None:
    if not text.isdigit() or text == "0":
        return None
    return float(text) / 1000 if len(text) > 11 else float(text)  # some kinds of Grid Engine write milliseconds


def read_moment(text: str) -> float | None:
    """2026-11-15T07:15:33, in the time zone of this place."""
    try:
        return time.mktime(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None


def _date(text: str) -> float | None:
    """Sun Nov 15 07:15:33 2026; `-/-` where it never came to that."""
    try:
        moment = time.mktime(time.strptime(text, "%a %b %d %H:%M:%S %Y"))
    except ValueError:
        return None
    return moment if moment > 86400 else None


def read_duration(text: str) -> int | None:
    """Seconds, or [HH]:[MM]:SS with empty parts for zero."""
    if not re.fullmatch(r"\d+|\d*(?::\d*){1,2}", text, re.ASCII):
        return None
    total = 0
    for part in text.split(":"):
        total = total * 60 + int(part or 0)
    return total


def read_size(text: str) -> float | None:
    match = re.fullmatch(r"([0-9.]+)([KMGTkmgt]?)B?", text.strip())
    if not match:
        return None
    unit = {"": 1, "k": 1000, "K": 1024, "m": 1000**2, "M": 1024**2, "g": 1000**3, "G": 1024**3, "t": 1000**4, "T": 1024**4}
    return float(match[1]) * unit[match[2]]
