"""Onward on task-spooler (`tsp`), the queue of one machine: a scheduler as a plugin, complete, in one file."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onward.errors import InvalidInput, SchedulerUnavailable, SubmitRefused, SubmitUnclear
from onward.model.job import NAME_PATTERN, Allocation, JobId, JobState, JobStatus
from onward.model.spec import Cluster, Resources
from onward.schedulers.command import Answer, run_command

# tsp has no time limits and forgets how jobs ended, so every job runs inside this wrapper, which writes notes.
WRAPPER = """\
token=$1 after=$2 limit=$3 output=$4 script=$5 notes=${0%/*}
[ "$after" = - ] || tsp -w "$after" >/dev/null 2>&1
date +%s.%N >"$notes/$token.began"
export ONWARD_TSP_TOKEN=$token ONWARD_TSP_DEADLINE=$([ "$limit" = 0 ] || echo $(($(date +%s) + limit)))
timeout --kill-after=30 "$limit" bash "$script" >>"$output" 2>&1 </dev/null &
trap 'kill -TERM $!' TERM
wait $!
code=$?
while kill -0 $! 2>/dev/null; do wait $!; code=$?; done
echo "$code $(date +%s.%N)" >"$notes/$token.ended"
"""
LINE = re.compile(r"(\d+) +(\w+) .*?\]bash .*?/wrapper\.sh ([0-9a-f]{16}) (\d+|-) (\d+) ")


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of `tsp -l` that is ours."""

    number: str  # tsp counts from 0 again after a restart, so a job's id is our token
    state: str  # queued, running, finished
    token: JobId
    after: str  # the number it waits for
    limit: int  # seconds; 0: none


class TaskSpooler:
    settle_seconds = 0.0  # what `tsp` has accepted is in its list at once

    def __init__(self, cluster: Cluster) -> None:
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        self._notes = Path(cluster.options.get("notes") or state / "onward-tsp")
        self._socket = cluster.options.get("socket")

    # ── submitting a job ──────────────────────────────────────────────────────

    def directives(self, resources: Resources, *, output: Path) -> Sequence[str]:
        if (resources.nodes or 1) > 1:
            raise InvalidInput(f"tsp runs on one machine, but {resources.nodes} nodes were requested", hint="leave nodes out")
        return [f"#TSP --output={shlex.quote(str(output))}", *([f"#TSP --time={resources.time}"] if resources.time else [])]

    def submit_command(self, script: Path, *, name: str, after: JobId | None = None) -> Sequence[str]:
        lines = [line[5:] for line in script.read_text().splitlines() if line.startswith("#TSP ")] if script.exists() else []
        asked = dict(word.removeprefix("--").split("=", 1) for line in lines for word in shlex.split(line))
        number = next((line.number for line in self._listed() if line.token == after), "-")
        what = (secrets.token_hex(8), number, asked.get("time", "0"), asked.get("output", "/dev/null"), str(script))
        return ("tsp", "-n", "-L", name, "bash", str(self._notes / "wrapper.sh"), *what)

    def submit(self, script: Path, *, name: str, after: JobId | None = None) -> JobId:
        if not NAME_PATTERN.match(name):
            raise SubmitRefused(f"{name!r} is not a valid job name", hint="begin with a letter, then letters, digits, dots, dashes")
        command = self.submit_command(script, name=name, after=after)
        token = JobId(command[6])
        self._notes.mkdir(parents=True, exist_ok=True)
        (self._notes / "wrapper.sh").write_text(WRAPPER)
        self._note(token, "submitted").write_text(f"{time.time()} {name}")
        try:
            answer = self._tsp(*command[1:])
        except SchedulerUnavailable as error:
            raise SubmitUnclear(f"tsp may have accepted {name}: {error.message}", hint=error.hint) from error
        if answer.code:
            raise SubmitRefused(f"tsp refused {name}: {answer.err or answer.out}")
        return token

    # ── looking up jobs ──────────────────────────────────────────────────────

    def find(self, name: str) -> Sequence[JobId]:
        ours = {JobId(path.stem): path.read_text().split() for path in self._notes.glob("*.submitted")}
        known = self.status([token for token, note in ours.items() if note[1:] == [name]])
        return sorted(known, key=lambda token: float(ours[token][0]))

    def live(self) -> Mapping[JobId, JobStatus]:
        return self.status([line.token for line in self._listed() if line.state != "finished"])

    def status(self, jobs: Collection[JobId]) -> Mapping[JobId, JobStatus]:
        if not jobs:
            return {}
        listed = {line.token: line for line in self._listed()}
        live = {line.number for line in listed.values() if line.state != "finished"}
        answers = {job: self._status(job, listed.get(job), live) for job in jobs}
        return {job: answer for job, answer in answers.items() if answer is not None}

    def _status(self, job: JobId, line: Line | None, live: set[str]) -> JobStatus | None:
        submitted, began, ended = (self._read(job, what).split() for what in ("submitted", "began", "ended"))
        cancelled = self._note(job, "cancelled").exists()
        if not submitted or not (line or ended or cancelled):
            return None
        if not ended and line and line.state != "finished":
            state = JobState.RUNNING if began else JobState.HELD if line.after in live else JobState.QUEUED
        elif cancelled:
            state = JobState.CANCELLED
        elif ended[:1] == ["0"]:
            state = JobState.FINISHED
        else:
            limit = line.limit if line else 0
            late = ended and limit and ended[0] in ("124", "137") and float(ended[1]) - float(began[0]) >= limit
            state = JobState.TIMED_OUT if late else JobState.FAILED
        return JobStatus(
            id=job,
            name=submitted[1],
            state=state,
            exit_code=int(ended[0]) if ended else None,
            nodes=(socket.gethostname(),) if began else (),
            submitted=float(submitted[0]),
            started=float(began[0]) if began else None,
            ended=float(ended[1]) if ended else None,
        )

    # ── ending jobs ───────────────────────────────────────────────────────────

    def cancel(self, jobs: Collection[JobId]) -> None:
        for line in self._listed():
            if line.token in jobs and line.state != "finished":
                self._note(line.token, "cancelled").touch()
                if self._tsp("-r", line.number).code:  # it is already running
                    self._tsp("-k", line.number)

    # ── inside a job, and in general ──────────────────────────────────────────

    def allocation(self) -> Allocation:
        token = os.environ.get("ONWARD_TSP_TOKEN")
        if not token:
            raise InvalidInput("this process is not inside a task-spooler job", hint="submit it as a job")
        deadline = os.environ.get("ONWARD_TSP_DEADLINE")
        return Allocation(job=JobId(token), hosts=(socket.gethostname(),), deadline=float(deadline) if deadline else None)

    def check(self) -> str:
        waiting = sum(line.state != "finished" for line in self._listed())
        return f"{self._tsp('-V').out.splitlines()[0]} {waiting} Onward jobs are running or queued."

    def _tsp(self, *arguments: str) -> Answer:
        return run_command(("tsp", *arguments), timeout=30, extra={"TS_SOCKET": self._socket} if self._socket else None)

    def _listed(self) -> list[Line]:
        answer = self._tsp("-l")
        if answer.code:
            raise SchedulerUnavailable(f"tsp -l failed: {answer.err or answer.out}")
        rows = [match.groups() for match in map(LINE.match, answer.out.splitlines()) if match]
        return [Line(number=row[0], state=row[1], token=JobId(row[2]), after=row[3], limit=int(row[4])) for row in rows]

    def _note(self, job: JobId, what: str) -> Path:
        return self._notes / f"{job}.{what}"

    def _read(self, job: JobId, what: str) -> str:
        note = self._note(job, what)
        return note.read_text() if note.exists() else ""
