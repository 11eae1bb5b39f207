"""Records of thousands of metrics: whatever is asked, the answer is the one that narrow records would have had."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onward.errors import StorageFull
from onward.tracker.db.raw_sql import fetch
from onward.tracker.ingest import receive
from onward.tracker.runs.registry import NewRun, RunQuery
from onward.tracker.search.mlflow_search import view_run
from onward.tracker.series.charts import Chart
from onward.tracker.series.chunks import ChunkSummary, Columns, pack, read_summary
from onward.tracker.series.wide.tails import MOST_RECORDS, WIDE
from onward.tracker.store import Tracker
from tests.contract.tracker import NOW, run, tracker  # noqa: F401

NAMES = [f"layer/{n:04d}" for n in range(WIDE)]


@pytest.fixture
def address(tmp_path: Path) -> str | Path:
    return tmp_path / "onward.db"


def wide(n: int, step: int, of: Callable[[int], Any] = float, names: list[str] = NAMES) -> dict[str, Any]:
    return {"n": n, "t": NOW + n, "s": step, "m": {name: of(step * 1000 + i) for i, name in enumerate(names)}}


def count(tracker: Tracker, table: str) -> int:  # noqa: F811
    with tracker.reading() as connection:
        return int(fetch(connection, f"SELECT COUNT(*) FROM {table}")[0][0])


def answers(tracker: Tracker, run: str) -> Any:  # noqa: F811
    """All that can be asked about the points of a run, in whatever order."""
    some = (NAMES[0], NAMES[7], NAMES[-1])
    mine = [tracker.runs.get(run).experiment]
    asked = RunQuery(experiments=mine, filter=f"metrics.`{NAMES[3]}` > 5", order=[f"metrics.`{NAMES[3]}` desc"])
    found = {
        "points": [sorted(map(repr, tracker.series.points(run, key, superseded=True))) for key in some],
        "shown": [sorted(map(repr, tracker.series.points(run, key, first=2, last=9))) for key in some],
        "exact": [sorted(zip(c.steps, c.times, map(repr, c.means), strict=True)) for c in tracker.series.charts([run], some)],
        "coarse": [_outline(c) for c in tracker.series.charts([run], some, buckets=3)],
        "part": [_outline(c) for c in tracker.series.charts([run], some, buckets=4, first=3, last=8)],
        "search": [view.metrics for view in tracker.runs.search(asked).runs],
        "metrics": tracker.series.metrics(run),
        "view": tracker.runs.view(run).metrics,
        "mlflow": view_run(tracker.database, run).metrics,
        "last step": tracker.runs.get(run).last_step,
    }
    return repr(found)  # NaN is not equal to itself


def _outline(chart: Chart) -> Any:
    """What does not depend on where one bucket ends and the next begins."""
    lows, highs = [v for v in chart.lows if v is not None], [v for v in chart.highs if v is not None]
    facts = (chart.points, chart.superseded, chart.total, chart.legs, sum(chart.bads))
    return *facts, min(lows, default=None), max(highs, default=None)


def test_answers_are_those_of_narrow_records(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Legs that supersede each other, values of all kinds, records that come twice, points of other writers; asked at any moment."""
    for seed in range(6):
        entries = []
        for threshold in (WIDE, 1 << 30):
            monkeypatch.setattr(receive, "WIDE", threshold)
            made = tracker.runs.create(NewRun(run_id=f"run{seed}{threshold}", experiment=f"{seed} {threshold}", source="onward")).run_id
            entries.append(_story(tracker, made, random.Random(seed)))
        assert entries[0] == [text.replace(f"run{seed}{1 << 30}", f"run{seed}{WIDE}") for text in entries[1]]


def _story(tracker: Tracker, run: str, luck: random.Random) -> list[str]:  # noqa: F811
    entries, n, step, leg = [], 0, 0, 1
    for _ in range(12):
        act = luck.random()
        if act < 0.5:
            records = []
            for _ in range(luck.choice((1, 1, 3))):
                odd = luck.choice((float, float, int, lambda v: "NaN", lambda v: math.inf))
                records.append(wide(n, step, odd))
                n, step = n + 1, step + luck.choice((1, 1, 2, -1))
            tracker.ingest.records(run, leg, "train-1", records)
            tracker.ingest.records(run, leg, "train-1", records)
        elif act < 0.65:
            tracker.ingest.points(run, [(NAMES[7], step + i % 2, NOW + step, 2.5) for i in range(3)])
        elif act < 0.8:
            leg, n, step = leg + 1, 0, max(step - luck.choice((0, 2, 4)), 0)
            if luck.random() < 0.5:
                tracker.runs.set_leg(run, leg, resumed_step=step - 1)
        elif act < 0.9:
            tracker.upkeep.tidy(resting=0)
        if luck.random() < 0.6:
            entries.append(answers(tracker, run))
    return [*entries, answers(tracker, run)]


def test_a_wide_record_is_one_row_until_somebody_asks_what_the_run_has(tracker: Tracker, run: str) -> None:  # noqa: F811
    tracker.ingest.records(run, 1, "train-1", [wide(0, 0)])
    tracker.ingest.records(run, 1, "train-1", [wide(1, 1)])
    assert (count(tracker, "tails"), count(tracker, "chunks")) == (2, 0)
    assert [point.step for point in tracker.series.points(run, NAMES[5])] == [0, 1]
    assert tracker.series.chart(run, NAMES[5]).points == 2
    assert (count(tracker, "tails"), count(tracker, "chunks")) in ((2, 0), (0, WIDE))  # a file is read as it is, PostgreSQL settles
    assert tracker.series.metrics(run)[NAMES[5]].value == 1005.0
    assert (count(tracker, "tails"), count(tracker, "chunks")) == (0, WIDE)


def test_a_tail_is_settled_when_it_is_long_and_when_its_run_rests(tracker: Tracker, run: str) -> None:  # noqa: F811
    for n in range(MOST_RECORDS):
        tracker.ingest.records(run, 1, "train-1", [wide(n, n)])
    assert (count(tracker, "tails"), count(tracker, "chunks")) == (0, WIDE)
    tracker.ingest.records(run, 1, "train-1", [wide(MOST_RECORDS, MOST_RECORDS)])
    tracker.upkeep.tidy()
    assert count(tracker, "tails") == 1
    tracker.upkeep.tidy(resting=0)
    assert (count(tracker, "tails"), count(tracker, "chunks")) == (0, WIDE)
    assert [point.step for point in tracker.series.points(run, NAMES[5])] == list(range(MOST_RECORDS + 1))


def test_a_tail_is_there_after_a_restart(tracker: Tracker, run: str, address: str | Path) -> None:  # noqa: F811
    tracker.ingest.records(run, 1, "train-1", [wide(0, 0), wide(1, 1)])
    with Tracker.open(address) as other:
        assert [point.value for point in other.series.points(run, NAMES[5])] == [5.0, 1005.0]
        assert other.runs.view(run).metrics[NAMES[5]].points == 2
    assert tracker.runs.view(run).metrics[NAMES[5]].points == 2


def test_a_store_that_takes_nothing_is_read_all_the_same(tracker: Tracker, run: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    tracker.ingest.records(run, 1, "train-1", [wide(0, 0)])
    assert tracker.series.metrics(run)[NAMES[5]].points == 1
    tracker.ingest.records(run, 1, "train-1", [wide(1, 1)])

    def full(*_: object) -> None:
        raise StorageFull("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(tracker._writer, "do", full)
        assert tracker.series.metrics(run)[NAMES[5]].points == 1
    assert tracker.series.metrics(run)[NAMES[5]].points == 2


def test_a_deleted_run_takes_its_tail_along(tracker: Tracker, run: str) -> None:  # noqa: F811
    tracker.ingest.records(run, 1, "train-1", [wide(0, 0)])
    tracker.runs.delete(run)
    assert (count(tracker, "tails"), count(tracker, "tail_keys")) == (0, 0)


def test_a_training_that_logs_other_metrics_each_time_keeps_few_sets_of_names(tracker: Tracker, run: str) -> None:  # noqa: F811
    for n in range(30):
        names = [f"sample/{n}/{i}" for i in range(WIDE)]
        assert tracker.ingest.records(run, 1, "train-1", [wide(n, n, names=names)]).points == WIDE
    assert count(tracker, "tail_keys") <= 8
    assert len(tracker.series.metrics(run)) == 30 * WIDE
    assert count(tracker, "tail_keys") <= 4


def test_summaries_as_they_were_written_before_are_read() -> None:
    values = [math.sin(n) for n in range(100)]
    columns = Columns(list(range(100)), [n * 7 + n % 3 for n in range(100)], values)
    old = b"".join(part.tobytes() for part in _old_summary(columns)) + bytes(4)
    assert _plain(read_summary(old)) == _plain(read_summary(pack(columns).summary))
    bad = Columns(columns.steps, columns.times, [math.nan, *values[1:]])
    assert list(read_summary(pack(bad).summary).bads) == [1, 0, 0, 0]


def _plain(summary: ChunkSummary) -> list[list[float]]:
    return [list(column) for column in (summary.steps, summary.times, summary.lows, summary.highs, summary.sums, summary.bads)]


def _old_summary(columns: Columns) -> list[Any]:
    from array import array

    parts = [columns.values[i : i + 32] for i in range(0, len(columns), 32)]
    rows = (array("d", map(min, parts)), array("d", map(max, parts)), array("d", map(sum, parts)))
    return [array("q", columns.steps[::32]), array("q", columns.times[::32]), *rows]
