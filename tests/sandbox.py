"""A context on a fake scheduler with its folders, and runs whose legs are played by hand: what the verbs are tested with."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onward.checkpoints.manifest import FileEntry, Manifest
from onward.clock import ManualClock
from onward.model import events as ev
from onward.model.job import JobId, JobState
from onward.model.policy.lifecycle import Close, Continue, decide
from onward.model.policy.next_resources import wanted_mem
from onward.model.run import Leg, LegEnd, Run
from onward.model.spec import RunDraft, RunSpec, spec_to_json
from onward.operations.context import OperationsContext
from onward.operations.submit.new_run import submit
from onward.rundir.claim import claim
from onward.rundir.journal import Journal, desk_journal, read_run
from onward.rundir.layout import RunDir, folder_name, letter
from onward.rundir.run_end import close_run
from onward.supervisor.leg.handover import Handover
from tests.fakes import FakeScheduler
from tests.histories import make_spec

NOON = 1_794_744_000.0  # 2026-11-15, in every zone that day or its neighbour


class CountingScheduler(FakeScheduler):
    """The fake, and how often it was asked anything."""

    asked = 0

    def _answer(self) -> None:
        self.asked += 1
        super()._answer()


class Sandbox:
    """A context, its root for runs, and a project to submit from."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.root = folder / "runs"
        self.project = folder / "project"
        self.project.mkdir(parents=True)
        self.write("train.py", "print('trained')\n")
        self.clock = ManualClock(NOON)
        self.scheduler = CountingScheduler(self.clock)
        given = {"PATH": os.environ["PATH"], "HOME": str(folder), "USER": "ada", "ONWARD_ROOT": str(self.root), **(env or {})}
        self.context = OperationsContext(env=given, clock=self.clock, make_scheduler=lambda _: self.scheduler)

    def write(self, name: str, text: str | bytes = "") -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def draft(self, **others: Any) -> RunDraft:
        usual = {"name": "digits", "experiment": "digits", "cluster": "local", "command": ("python3", "train.py")}
        return RunDraft(**{**usual, **others})

    def submit(self, cwd: Path | None = None, **others: Any) -> RunDir:
        return submit(self.context, self.draft(**others), cwd=cwd or self.project)

    def folders(self) -> list[str]:
        """All that lies in the root, hidden or not, but what Onward keeps there for itself."""
        return sorted(name for name in os.listdir(self.root) if name != ".onward") if self.root.exists() else []

    def play(self, name: str = "digits", **others: Any) -> PlayedRun:
        """A run with its first leg queued. Nothing of it is frozen: no real job will start it."""
        count = len(self.folders())
        spec = make_spec(name=name, id=f"k{count:02d}{name[:5]:0<5}", created=self.clock.now(), **others)
        dir = RunDir(self.root / folder_name("2026-11-15", letter(count), name))
        dir.make()
        dir.spec.write_text(json.dumps(spec_to_json(spec)))
        run = PlayedRun(self, dir)
        run.queue(1)
        return run


class PlayedRun:
    """Lives the legs of a run as a supervisor would, a stroke at a time."""

    def __init__(self, sandbox: Sandbox, dir: RunDir) -> None:
        self.sandbox = sandbox
        self.dir = dir

    @property
    def run(self) -> Run:
        return read_run(self.dir)

    @property
    def spec(self) -> RunSpec:
        return self.run.spec

    def leg(self, number: int) -> Leg:
        return self.run.legs[number]

    def job(self, number: int) -> JobId:
        job = self.leg(number).job
        assert job is not None
        return JobId(job)

    def queue(self, number: int, *, after: str | None = None) -> JobId:
        return JobId(self._handover().ensure(self.run, Continue(leg=number, mem=wanted_mem(self.run)), after=after))

    def begin(self, number: int, *, successor: bool = True) -> PlayedRun:
        job = self.job(number)
        self.sandbox.scheduler.start(job)
        claim(self.dir, number, job=job)
        self.write(ev.Claimed(leg=number, at=self.now(), job=job, hosts=["node1"], deadline=self.now() + 3600, gpus=["0"]))
        self.write(ev.Started(leg=number, at=self.now(), pid=1))
        if successor:
            self.queue(number + 1, after=job)
        return self

    def publish(self, number: int, step: int) -> PlayedRun:
        self.write(ev.Published(leg=number, at=self.now(), step=step, bytes=8, save_seconds=0.1, stage_seconds=0.1))
        return self

    def end(self, number: int, end: LegEnd, *, reason: str = "as the test says") -> PlayedRun:
        """With the leg's own last word; and with the run closed, where that follows."""
        self.write(ev.Ended(leg=number, at=self.now(), end=end, reason=reason, first_step=0, last_step=9))
        self.sandbox.scheduler.end(self.job(number))
        action = decide(self.run)
        if isinstance(action, Close):
            if not self.sandbox.scheduler.down:
                self._handover().withdraw(self.run, from_leg=number + 1, reason="the run is over")
            close_run(self.dir, Journal(self.dir.leg_journal(number)), action, leg=number, at=self.now())
        return self

    def die(self, number: int, state: JobState = JobState.FAILED, **how: Any) -> PlayedRun:
        """Without a word: only the scheduler knows."""
        self.sandbox.scheduler.end(self.job(number), state, **{"exit_code": None, **how})
        return self

    def _handover(self) -> Handover:
        return Handover(dir=self.dir, scheduler=self.sandbox.scheduler, journal=desk_journal(self.dir), clock=self.sandbox.clock)

    def log(self, number: int, *records: dict[str, Any]) -> None:
        """What the training logged, as its spool holds it."""
        text = "".join(json.dumps({"n": n, **line}) + "\n" for n, line in enumerate(records))
        (self.dir.spool / f"leg-{number:04d}.train-7.jsonl").write_text(text)

    def save(self, number: int, step: int) -> Path:
        """A checkpoint as it lies in the run's folder."""
        data = b"weights" * step
        files = {"w.bin": FileEntry(size=len(data), hash=hashlib.sha256(data).hexdigest())}
        manifest = Manifest(leg=number, step=step, created=5.0, metrics={"loss": 0.5}, files=files, algorithm="sha256")
        folder = self.dir.checkpoints / str(manifest.name)
        folder.mkdir()
        (folder / "w.bin").write_bytes(data)
        (folder / "manifest.json").write_text(manifest.to_json())
        return folder

    def write(self, event: ev.Event) -> None:
        journal = Journal(self.dir.leg_journal(event.leg))
        journal.write(event)
        journal.close()
        self.later(1)

    def later(self, seconds: float = 60) -> PlayedRun:
        self.sandbox.clock.sleep(seconds)
        return self

    def now(self) -> float:
        return self.sandbox.clock.now()

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.dir.path)) for path in self.dir.path.rglob("*"))


def strict_json(text: str) -> Any:
    """As parsers read it that know no NaN: JavaScript's, for one."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)
