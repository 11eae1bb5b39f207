"""Watch a run: its folder again and again, the scheduler now and then. What is seen is plain data, so that it can travel."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from onward.model.run import Leg
from onward.operations.inspect import Seen, look, progress, read_folder, reason
from onward.operations.wiring import Desk
from onward.rundir.layout import RunDir

TICK = 0.5
_ASK_EVERY = 10.0  # seconds between questions to the scheduler: there are others who ask it
_ASK_AGAIN = 2.0  # about a job that it has not been asked about yet


class Watch:
    def __init__(self, desk: Desk, dir: RunDir) -> None:
        self._desk = desk
        self._dir = dir
        self._last: Seen | None = None
        self._asked = 0.0

    def look(self) -> Seen:
        run = read_folder(self._dir)
        known = self._last.answers if self._last else None
        jobs = {leg.job for leg in run.legs.values() if leg.job and not leg.end}
        wait = _ASK_EVERY if known is not None and jobs <= known.keys() else _ASK_AGAIN
        if self._last is None or time.monotonic() - self._asked > wait:
            self._last = look(self._desk, self._dir)
            self._asked = time.monotonic()
            return self._last
        if jobs <= (known or {}).keys():
            return Seen(dir=self._dir, run=run, answers=known, at=self._desk.clock.now())
        return Seen(dir=self._dir, run=run, answers=None, at=self._desk.clock.now())


def glimpses(desk: Desk, dir: RunDir) -> Iterator[dict[str, Any]]:
    """How the run stands, every half second, until it is over."""
    watch = Watch(desk, dir)
    while True:
        seen = watch.look()
        yield glimpse(seen)
        if seen.run.closed:
            return
        time.sleep(TICK)


def glimpse(seen: Seen) -> dict[str, Any]:
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
