"""Export as Parquet: kinds kept, NaN and infinities too; where pyarrow is missing, that is said."""

from __future__ import annotations

import io
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from onward.api.routes.search import export
from tests.api import Answer
from tests.unit.test_api_routes import Harness, harness  # noqa: F401

parquet = pytest.importorskip("pyarrow.parquet")


def table(answer: Answer) -> Any:
    assert answer.status == 200, answer.text
    assert answer.headers["content-type"] == "application/vnd.apache.parquet"
    assert answer.headers["content-disposition"].endswith('.parquet"')
    return parquet.read_table(io.BytesIO(answer.body))


def test_points_keep_their_kinds(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(export, "_AT_ONCE", 2)
    run = harness.run()
    harness.log(run, "loss", [1.0, "NaN", "-Infinity", 2.5, 3.0])
    read = table(harness.client.get(f"/api/v1/runs/{run}/export?format=parquet")).to_pydict()
    assert list(read) == ["metric", "step", "time", "value", "leg", "superseded"]
    assert read["step"] == [0, 1, 2, 3, 4]
    assert math.isnan(read["value"][1])
    assert read["value"][2:] == [-math.inf, 2.5, 3.0]
    assert read["superseded"] == [False] * 5
    assert table(harness.client.get(f"/api/v1/runs/{harness.run()}/export?format=parquet")).num_rows == 0


def test_a_table_of_runs_has_a_column_for_all_that_any_of_them_has(harness: Harness) -> None:  # noqa: F811
    a, b = harness.run(name="a", params={"lr": 0.1}), harness.run(name="b", tags={"gpu": "h200"})
    harness.log(a, "loss", ["Infinity"])
    harness.log(b, "loss", [2.0])
    read = table(harness.client.get("/api/v1/export/runs?format=parquet")).to_pydict()
    assert read["name"] == ["a", "b"]
    assert read["metrics.loss"] == [math.inf, 2.0]
    assert read["params.lr"] == ["0.1", None]
    assert read["tags.gpu"] == [None, "h200"]


def test_without_pyarrow_it_is_said_what_to_install(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    run = harness.run()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for path in (f"/api/v1/runs/{run}/export", "/api/v1/export/runs"):
        answer = harness.client.get(f"{path}?format=parquet")
        assert answer.status == 400
        assert "onward[parquet]" in answer.json["hint"]
        assert harness.client.get(path).status == 200


def test_a_format_that_is_none_is_a_400(harness: Harness, tmp_path: Path) -> None:  # noqa: F811
    assert harness.client.get("/api/v1/export/runs?format=xls").status == 400
