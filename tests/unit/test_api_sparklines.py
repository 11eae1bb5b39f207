"""Sparklines: small, of many runs at once, and lenient about runs that are gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def test_each_run_has_at_most_sixty_values_and_says_how_many_points_there_are(harness: Harness) -> None:
    long, short, none = harness.run(), harness.run(), harness.run()
    harness.log(long, "loss", [float(n) for n in range(1000)])
    harness.log(short, "loss", [1.0, "NaN", 3.123456])
    answer = good(harness.client.get(f"/api/v1/sparklines?runs={long},{short},{none},nobody,{long}&metric=loss"))
    assert answer["metric"] == "loss"
    assert list(answer["sparklines"]) == [long, short]
    assert answer["sparklines"][short] == {"values": [1.0, None, 3.123], "first": 0, "last": 2, "points": 3}
    line = answer["sparklines"][long]
    assert 30 <= len(line["values"]) <= 60
    assert line["values"] == sorted(line["values"])
    assert line["points"] == 1000


def test_no_runs_have_no_lines_and_too_many_are_refused(harness: Harness) -> None:
    assert good(harness.client.get("/api/v1/sparklines?runs=&metric=loss"))["sparklines"] == {}
    many = ",".join(f"r{n}" for n in range(201))
    assert "too many" in good(harness.client.get(f"/api/v1/sparklines?runs={many}&metric=loss"), 400)["detail"]
