"""Serving is killed at one of its strokes, another goes on: run as a process, since it makes others that die.

    python -m tests.serve_kills FOLDER [EVERY [takeover]]

A stroke is anything that others could see: a commit, a file or folder that is made, renamed or removed, a job that is asked for. For each
(or every nth) of them a request is served from its acceptance to its answer, and whoever serves dies just before that stroke. With
`takeover` it is gone on with by a gateway that has a store of its own, to which the request is sent again; the dead one is started again
when that has answered. Prints, a line of JSON each: which stroke it was, the runs, the jobs, the answers that leave.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import event

from onward.clock import ManualClock
from onward.model.job import JobId, JobState, JobStatus
from onward.model.requests.request import OutgoingKind
from onward.model.run import LegEnd
from onward.operations.context import OperationsContext
from onward.rundir.layout import runs_under
from tests.fakes import FakeJob, FakeScheduler
from tests.sandbox import NOON, PlayedRun, Sandbox
from tests.serving import Gateway

STEPS = 3  # of one life
SECONDS = 31.0  # between two steps: whoever acted before is no longer at it


class KeptScheduler(FakeScheduler):
    """The fake, in a file: it knows its jobs whoever of its users dies."""

    def __init__(self, clock: ManualClock, file: Path) -> None:
        super().__init__(clock)
        self._file = file
        for line in file.read_text().splitlines() if file.exists() else ():
            id, name, after, state, script = json.loads(line)
            status = JobStatus(id=JobId(id), name=name, state=JobState(state), submitted=clock.now())
            self.jobs[JobId(id)] = FakeJob(script=Path(script), after=after, status=status)
            self._last = max(self._last, int(id))

    def submit(self, script: Path, *, name: str, after: JobId | None = None) -> JobId:
        job = super().submit(script, name=name, after=after)
        self._keep(job)
        return job

    def _change(self, job: JobId, **how: Any) -> None:
        super()._change(job, **how)
        self._keep(job)

    def _keep(self, job: JobId) -> None:
        fake = self.jobs[job]
        with self._file.open("a") as file:
            file.write(json.dumps([job, fake.status.name, fake.after, fake.status.state, str(fake.script)]) + "\n")


class KeptSandbox(Sandbox):
    """A place that was made by somebody who is dead."""

    def __init__(self, folder: Path, now: float) -> None:  # of a folder that a Sandbox has made
        self.folder, self.root, self.project = folder, folder / "runs", folder / "project"
        self.clock = ManualClock(now)
        kept = KeptScheduler(self.clock, folder / "jobs")
        self.scheduler = kept  # type: ignore[assignment]
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "USER": "ada",
            "ONWARD_ROOT": str(self.root),
            "ONWARD_STATE_DIR": str(folder),
        }
        self.context = OperationsContext(env=env, clock=self.clock, make_scheduler=lambda _: kept)


class Course:
    """One request, from its acceptance on, in as many lives as it takes."""

    def __init__(self, folder: Path) -> None:
        self._folder = self._store = folder
        self._now = NOON
        Sandbox(folder)
        self._alone(lambda gateway: gateway.ask())

    def switch(self) -> None:
        """From here on another gateway serves, with its own store: the one that has served, or one to which the request is sent again."""
        other = self._folder / "other"
        self._store = other if self._store == self._folder else self._folder
        if not other.exists():
            other.mkdir()
            self._alone(lambda gateway: gateway.ask(received=NOON))

    def life(self, kill_at: int | None) -> int:
        """A process that serves for a while; how many strokes it did. It dies before stroke `kill_at`."""

        def serve(gateway: Gateway) -> None:
            count = Strokes(self._folder, kill_at, gateway)
            gateway.step(SECONDS, times=STEPS)
            (self._folder / "strokes").write_text(str(count.done))

        (self._folder / "strokes").write_text("-1")
        self._alone(serve)
        return int((self._folder / "strokes").read_text())

    def train(self) -> None:
        """Whatever is queued and may begin trains to its end."""

        def play(gateway: Gateway) -> None:
            for dir in runs_under(gateway.sandbox.root):
                run = PlayedRun(gateway.sandbox, dir)
                leg = run.run.legs.get(1)
                if leg and leg.job and not leg.claimed and not run.run.closed:
                    run.begin(1, successor=False).end(1, LegEnd.DONE)

        self._alone(play)

    def is_over(self) -> bool:
        return bool(self._ask(lambda gateway: gateway.of().outcome is not None))

    def told(self) -> dict[str, Any]:
        def tell(gateway: Gateway) -> Any:
            return {
                "runs": len(runs_under(gateway.sandbox.root)),
                "jobs": len({job.status.name for job in gateway.sandbox.scheduler.jobs.values()}),
                "answers": self.answers(gateway),
                "state": str(gateway.of().state),
            }

        return dict(self._ask(tell))

    def answers(self, gateway: Gateway) -> list[str]:
        """Those that are sent, or still to be, by this gateway."""
        due = gateway.requests.outbox.due(now=self._now)
        return [message.payload["state"] for message in due if message.kind is OutgoingKind.REPLY]

    def _ask(self, question: Callable[[Gateway], Any]) -> Any:
        gateway = Gateway(self._store, KeptSandbox(self._folder, self._now))
        try:
            return question(gateway)
        finally:
            gateway.close()

    def _alone(self, act: Callable[[Gateway], object]) -> None:
        """In a process of its own."""
        child = os.fork()
        if child == 0:
            try:
                self._ask(act)
                os._exit(0)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL), "a life ended in a fault"
        self._now += SECONDS * STEPS


class Strokes:
    """Counts what this process does that others could see, and kills it before one of them."""

    _SEEN = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod")

    def __init__(self, folder: Path, kill_at: int | None, gateway: Gateway) -> None:
        self.done = 0
        self._folder, self._kill_at = str(folder), kill_at
        sys.addaudithook(self._audit)
        event.listen(gateway.requests.database.engine, "commit", lambda _: self._stroke())

    def _audit(self, what: str, values: tuple[Any, ...]) -> None:
        written = what == "open" and isinstance(values[2], int) and values[2] & (os.O_WRONLY | os.O_RDWR)
        if (written or what in self._SEEN) and self._folder in str(values[0]) and "requests.db" not in str(values[0]):
            self._stroke()

    def _stroke(self) -> None:
        if self.done == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.done += 1


def courses(folder: Path, every: int, *, takeover: bool) -> Iterator[dict[str, Any]]:
    stroke, killed = 0, True
    while killed:
        course, left, killed = Course(folder / str(stroke)), stroke, False
        for _ in range(12):
            if course.is_over():
                break
            done = course.life(None if killed else left)
            if takeover and done < 0:
                course.switch()
            killed = killed or done < 0
            left -= max(done, 0)
            course.train()
        answer = course.told()
        if takeover and killed:
            course.switch()
            course.life(None)
            first = course.told()
            answer = {**first, "answers": first["answers"] + answer["answers"]}
        yield {"stroke": stroke, "killed": killed, **answer}
        stroke += every


def main(folder: str, every: str = "1", how: str = "") -> None:
    Sandbox(Path(folder, "warm")).submit()  # what is compiled once is compiled before any process is made
    for one in courses(Path(folder), int(every), takeover=how == "takeover"):
        print(json.dumps(one), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
