"""Runs to try things out: two experiments, ten runs with curves, one that went on through several legs, one that diverged."""

from __future__ import annotations

import math
import random
import time
from typing import TYPE_CHECKING

from onward.tracker.runs import NewRun, RunQuery

if TYPE_CHECKING:
    from onward.tracker.store import Tracker

_STEPS = 2000
_RATES = (0.1, 0.03, 0.01, 0.003, 0.001)


def fill(tracker: Tracker) -> int:
    """How many runs were made; none where the store has some already."""
    if tracker.runs.search(RunQuery(limit=1, archived=None)).runs:
        return 0
    chance = random.Random(7)
    now = time.time()
    made = 0
    for index, rate in enumerate((*_RATES, *_RATES)):
        experiment = "demo: digits" if index < len(_RATES) else "demo: language"
        made += 1
        began = now - 3600 * (12 - index)
        state = "failed" if rate == 0.1 and index else "running" if index == 9 else "finished"
        run = tracker.runs.create(
            NewRun(
                experiment=experiment,
                name=f"lr-{rate}",
                identity=f"demo:{index}",
                source="by-hand",
                user="demo",
                started=began,
                leg=1,
                params={"lr": rate, "batch_size": 2 ** (5 + index % 3), "seed": index},
                tags={"demo": "yes"},
            )
        ).run_id
        diverges = rate == 0.1 and index > 0
        legs = 3 if index == 2 else 1
        for leg in range(1, legs + 1):
            first, last = (leg - 1) * _STEPS // legs - (50 if leg > 1 else 0), leg * _STEPS // legs
            if leg > 1:
                tracker.runs.set_leg(run, leg, resumed_step=first - 1, started=began + first, job=str(4711 + leg))
            points = []
            for step in range(first, last):
                loss = math.nan if diverges and step > 1200 else 2.3 * math.exp(-step * rate / 20) + 0.1 + chance.gauss(0, 0.02)
                points.append(("loss", step, began + step, loss))
                if step % 20 == 0:
                    points.append(("val_accuracy", step, began + step, 1 - math.exp(-step * rate / 25) * 0.9 + chance.gauss(0, 0.004)))
            tracker.ingest.points(run, points, leg=leg)
        if state != "running":
            tracker.runs.update(run, state=state, ended=began + _STEPS, reason="the loss became NaN" if diverges else "")
    return made
