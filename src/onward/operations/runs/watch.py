"""Watch a run: its folder again and again, the scheduler now and then. What is seen is plain data, so that it can travel."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from onward.errors import OnwardError
from onward.model.analysis.why import no_job_since
from onward.model.run import Leg
from onward.operations.context import OperationsContext
from onward.operations.repair.one_run import GRACE, RunRepair
from onward.operations.runs.home import ensure_home
from onward.operations.runs.record import InspectedRun, inspect_run, is_ours, progress, read_folder, reason
from onward.rundir.layout import RunDir

TICK = 0.5
_ASK_EVERY = 10.0  # seconds between questions to the scheduler: there are others who ask it
_ASK_AGAIN = 2.0  # about a job that it has not been asked about yet
_REPAIR_EVERY = 30.0  # seconds between attempts to queue a job for a run that has none


class RunWatch:
    """Whoever waits for a run also repairs it: a run whose jobs all vanished would be waited for without an end."""

    def __init__(self, context: OperationsContext, dir: RunDir) -> None:
        self._context = context
        self._dir = dir
        self._last: InspectedRun | None = None
        self._asked = 0.0
        self._asked_about: set[str] = set()  # jobs
        self._repaired: float | None = None

    def look(self) -> InspectedRun:
        run = read_folder(self._dir)
        known = self._last.answers if self._last else None
        jobs = {leg.job for leg in run.legs.values() if leg.job and not leg.end}
        wait = _ASK_EVERY if known is not None and jobs <= self._asked_about else _ASK_AGAIN
        if self._last is None or time.monotonic() - self._asked > wait:
            self._last = seen = inspect_run(self._context, self._dir)
            self._asked, self._asked_about = time.monotonic(), _live_jobs(seen)
            self._repair(seen)
            return seen
        answers = known if jobs <= self._asked_about else None
        return replace(self._last, run=run, answers=answers, at=self._context.clock.now())

    def _repair(self, seen: InspectedRun) -> None:
        """Queue a job for a run that has none, as `onward tend` does; what is in the way is said by the run's reason, not here."""
        now = self._context.clock.now()
        early = self._repaired is not None and now - self._repaired < _REPAIR_EVERY
        if early or seen.answers is None or no_job_since(seen.run, seen.answers) is None:
            return
        if not is_ours(self._dir) or self._dir.held.exists():
            return
        self._repaired = now
        with suppress(OnwardError, OSError):
            ensure_home(self._context, self._dir)
            RunRepair(context=self._context, dir=self._dir, run=seen.run, answers=seen.answers, grace=GRACE).repair()


def _live_jobs(seen: InspectedRun) -> set[str]:
    return {leg.job for leg in seen.run.legs.values() if leg.job and not leg.end}


def watch_run(context: OperationsContext, dir: RunDir) -> Iterator[dict[str, Any]]:
    """How the run stands, every half second, until it is over."""
    watch = RunWatch(context, dir)
    while True:
        seen = watch.look()
        yield watch_record(seen)
        if seen.run.closed:
            return
        time.sleep(TICK)


def watch_record(seen: InspectedRun) -> dict[str, Any]:
    run, closed = seen.run, seen.run.closed
    return {
        "id": run.spec.id,
        "name": run.spec.name,
        "folder": str(seen.dir.path),
        "state": str(run.state),
        "reason": reason(seen),
        "closed": {"state": closed.state, "cause": closed.cause, "evidence": closed.evidence, "next": closed.next} if closed else None,
        "legs": [_leg(leg) for _, leg in sorted(run.legs.items()) if leg.claimed],
        "progress": progress(seen),
    }


def _leg(leg: Leg) -> dict[str, Any]:
    assert leg.claimed is not None
    return {
        "number": leg.number,
        "job": leg.claimed.job,
        "hosts": list(leg.claimed.hosts),
        "deadline": leg.claimed.deadline,
        "training": leg.started is not None,
        "from_step": leg.restored.step if leg.restored else None,
        "fell_back": list(leg.restored.fell_back) if leg.restored else [],
        "ended": leg.end is not None,
        "reason": leg.reason,
        "last_published": leg.last_published,
    }
