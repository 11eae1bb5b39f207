"""A tracker that is killed at any moment: every acknowledged point is there, exactly once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onward.tracker.runs.registry import NewRun
from onward.tracker.store import Tracker
from tests.tracker_load import KEYS, SIZE, batch
from tests.unit.test_tracker_files import Folder

REPO = Path(__file__).resolve().parents[2]
ROUNDS = 12


def load_until_killed(address: str | Path, run: str, first: int, seconds: float, root: Path | None = None) -> set[int]:
    """The batches that were acknowledged."""
    argv = [sys.executable, "-m", "tests.tracker_load", str(address), run, str(first), *([str(root)] if root else [])]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=REPO)
    assert child.stdout is not None
    begun = child.stdout.readline()  # it is at work
    time.sleep(seconds)
    child.kill()
    rest = child.stdout.read()
    child.wait(60)
    child.stdout.close()
    return {int(line) for line in (begun + rest).split(b"\n")[:-1]}


def check_batches(tracker: Tracker, run: str, acknowledged: set[int]) -> set[int]:
    """All that were acknowledged are there, none doubled, none by halves. The batches that are there."""
    steps = [point.step for key in range(KEYS) for point in tracker.series.points(run, f"m{key}")]
    assert len(steps) == len(set(steps))
    there = {step // SIZE for step in steps}
    assert len(steps) == SIZE * len(there)
    assert acknowledged <= there
    assert sum(metric.points for metric in tracker.series.metrics(run).values() if metric.key[0] == "m") == len(steps)
    return there


@pytest.mark.slow
def test_what_was_acknowledged_outlives_any_kill_and_what_is_sent_again_stays_once(tmp_path: Path) -> None:
    address, root = tmp_path / "onward.db", tmp_path / "runs"
    root.mkdir()
    folder = Folder(root)
    folder.begin(1)
    with Tracker.open(address) as tracker:
        run = tracker.runs.create(NewRun()).run_id
        tracker.files.look([root])
    chance = random.Random(4)
    acknowledged: set[int] = set()
    logged = 0
    for _ in range(ROUNDS):
        folder.log(1, *range(logged, logged + 500), start=logged)
        logged += 500
        first = max(acknowledged, default=-1) + 1
        acknowledged |= load_until_killed(address, run, first, chance.uniform(0, 0.4), root)
        with Tracker.open(address) as tracker:
            check_batches(tracker, run, acknowledged)
            last = sorted(acknowledged)[-20:]
            for number in [*last, last[-1] + 1]:  # the client heard no answer and sends again
                tracker.ingest.points(run, batch(number))
            acknowledged.add(last[-1] + 1)
            check_batches(tracker, run, acknowledged)
    with Tracker.open(address) as tracker:
        tracker.files.look([root])
        assert [p.step for p in tracker.series.points("k3x9q2m7", "loss")] == list(range(logged))
        tracker.upkeep.tidy(resting=0)
        check_batches(tracker, run, acknowledged)
        with tracker.reading() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
