"""Runs to try things out: two experiments with curves and every state; one went on through several legs, one diverged, one waits."""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onward.tracker import schema
from onward.tracker.runs.legs import upsert
from onward.tracker.runs.registry import NewRun, RunQuery

if TYPE_CHECKING:
    from onward.tracker.db.writer import Batch
    from onward.tracker.store import Tracker

_STEPS = 2000
_RATES = (0.1, 0.03, 0.01, 0.003, 0.001)


@dataclass(frozen=True, kw_only=True)
class Story:
    """How one of them went, where it is not simply finished."""

    state: str = "finished"
    reason: str = ""
    why: str = ""
    next: str = ""
    legs: int = 1
    done: float = 1.0  # of all steps
    gpu: float | None = None
    queued: float | None = None  # seconds
    tags: tuple[str, ...] = ()


_STORIES = {
    2: Story(legs=3, tags=("baseline",)),
    5: Story(
        state="failed",
        reason="the loss became NaN",
        why="the loss became NaN at step 1,201, and again after a restart from step 1,000",
        next="resume it with a lower learning rate",
        done=0.7,
    ),
    6: Story(state="cancelled", reason="cancelled by demo", done=0.3),
    7: Story(
        state="waiting",
        why="leg 3 waits in the queue: 12 jobs with higher priority are ahead of it",
        legs=2,
        done=0.62,
        gpu=0.0,
        queued=2520,
    ),
    8: Story(state="running", why="leg 1 trains on node07; 3 h 10 min until its limit", done=0.45, gpu=0.91, queued=240),
    9: Story(
        state="running",
        why="leg 2 trains on node03; one of its 4 GPUs has been idle for 20 minutes",
        next="see its system charts",
        legs=2,
        done=0.8,
        gpu=0.68,
        queued=95,
        tags=("sweep",),
    ),
}


def fill(tracker: Tracker) -> int:
    """How many runs were made; none where the store has some already."""
    if tracker.runs.search(RunQuery(limit=1, archived=None)).runs:
        return 0
    chance = random.Random(7)
    now = time.time()
    for index, rate in enumerate((*_RATES, *_RATES)):
        _make(tracker, index, rate, chance, now)
    return 2 * len(_RATES)


def _make(tracker: Tracker, index: int, rate: float, chance: random.Random, now: float) -> None:
    story = _STORIES.get(index, Story())
    last = int(_STEPS * story.done)
    over = story.state in ("finished", "failed", "cancelled")
    began = now - (3600 * (12 - index) if over else last)
    run = tracker.runs.create(
        NewRun(
            experiment="demo: digits" if index < len(_RATES) else "demo: language",
            name=f"lr-{rate}",
            identity=f"demo:{index}",
            source="by-hand",
            user="demo",
            started=began,
            leg=1,
            params={"lr": rate, "batch_size": 2 ** (5 + index % 3), "seed": index},
            tags={"demo": "yes", **dict.fromkeys(story.tags, "yes")},
        )
    ).run_id
    for leg in range(1, story.legs + 1):
        first, until = (leg - 1) * last // story.legs - (50 if leg > 1 else 0), leg * last // story.legs
        if leg > 1:
            tracker.runs.set_leg(run, leg, resumed_step=first - 1, started=began + first, job=str(4711 + leg))
        tracker.ingest.points(run, _points(range(first, until), rate, began, chance, nan=story.state == "failed"), leg=leg)
    ended = {"ended": began + last} if over else {}
    tracker.runs.update(run, state=story.state, reason=story.reason, total_steps=_STEPS, **ended)
    _stand(tracker, run, story, last, began)


def _points(steps: range, rate: float, began: float, chance: random.Random, *, nan: bool) -> list[tuple[str, int, float, float]]:
    points = []
    for step in steps:
        loss = math.nan if nan and step > 1200 else 2.3 * math.exp(-step * rate / 20) + 0.1 + chance.gauss(0, 0.02)
        points.append(("loss", step, began + step, loss))
        if step % 20 == 0:
            points.append(("val_accuracy", step, began + step, 1 - math.exp(-step * rate / 25) * 0.9 + chance.gauss(0, 0.004)))
    return points


def _stand(tracker: Tracker, run: str, story: Story, last: int, began: float) -> None:
    """What the journals of a run of Onward's own would say of it."""
    saved = last - last % 100
    waits = story.state == "waiting"
    queued = (began + last if waits else began) - (story.queued or 0.0)
    row: dict[str, Any] = {
        "why": story.why,
        "next": story.next,
        "gpu_use": story.gpu,
        "gpu_at": began + last if story.gpu is not None else None,
        "saved_step": saved,
        "saved_at": began + saved,
        "legs_done": story.legs - 1,
        "legs_max": None,
        "queued_at": queued if story.queued else None,
        "begun_at": began if story.queued and not waits else None,
    }

    def job(batch: Batch) -> None:
        id = batch.connection.execute(schema.runs.select().where(schema.runs.c.run_id == run)).mappings().one()["id"]
        upsert(batch, schema.standings, [{"run": id, **row}], keys=("run",), change=tuple(row))

    tracker.write(job)
