"""onward.Client: runs and series of a real server as tables, in whichever library is there."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import onward
from onward.client import Client, as_table
from onward.errors import InvalidInput, NotAllowed, NotFound
from tests.servers import Running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("up"), "--demo-data") as running:
        yield running


@pytest.fixture
def client(server: Running, monkeypatch: pytest.MonkeyPatch) -> Client:
    for name, value in server.env.items():
        if name.startswith("ONWARD_"):
            monkeypatch.setenv(name, value)
    return onward.Client(frame="dicts")


def test_runs_are_rows_with_params_and_metrics_as_columns(client: Client) -> None:
    rows = client.runs("experiment = 'demo: digits'", order=["params.lr desc"])
    assert len(rows) == 5
    assert (rows[0]["name"], rows[0]["experiment"], rows[0]["state"], rows[0]["params.lr"]) == ("lr-0.1", "demo: digits", "finished", 0.1)
    assert rows[0]["metrics.loss"] > 0
    few = client.runs(experiment="demo: digits", metrics=["loss"], limit=2)
    assert len(few) == 2
    assert [column for column in few[0] if column.startswith("metrics.")] == ["metrics.loss"]
    assert {row["name"] for row in client.experiments()} >= {"demo: digits", "demo: language"}


def test_more_runs_than_an_answer_holds_are_read_page_by_page(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.client._PAGE", 3)
    assert len({row["id"] for row in client.runs()}) == 10


def test_a_series_comes_whole_or_at_a_resolution_with_its_lows_and_highs(client: Client) -> None:
    [run] = [row["id"] for row in client.runs("name = 'lr-0.1' and experiment = 'demo: digits'")]
    whole = client.series(run, "loss")
    assert len(whole) > 100
    assert whole[0].keys() == {"run", "metric", "step", "time", "value", "leg"}
    rough = client.series([run], ["loss", "no such"], resolution=10)
    assert len(rough) <= 10
    assert rough[0]["low"] <= rough[0]["value"] <= rough[0]["high"]
    assert min(row["low"] for row in rough) == pytest.approx(min(row["value"] for row in whole))
    assert client.run(run)["name"] == "lr-0.1"


def test_what_is_wrong_is_told_in_words(client: Client, server: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert repr(client) == f"onward.Client({server.url!r})"
    with pytest.raises(NotFound, match="the server says: there is no run"):
        client.run("nosuchrun")
    with pytest.raises(NotAllowed, match="the server says"):
        Client(server.url, token="owu_00000000_" + "a" * 43).runs()
    with pytest.raises(InvalidInput, match="needs both url and token"):
        Client(server.url)
    monkeypatch.setenv("ONWARD_DB", str(tmp_path / "none.db"))
    with pytest.raises(NotFound, match="no server is set, and none runs here"):
        Client()


def test_a_client_of_the_settings_reads_its_token_from_their_file(server: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = server.onward("token", "create", "--name", "notebook", "--rights", "read").stdout.split()[-1]
    file = tmp_path / "token"
    file.write_text(made)
    file.chmod(0o600)
    monkeypatch.delenv("ONWARD_RUN_ID", raising=False)
    monkeypatch.setenv("ONWARD_TRACKER_URL", server.url)
    monkeypatch.setenv("ONWARD_TOKEN_FILE", str(file))
    assert len(Client(frame="dicts").runs(limit=1)) == 1
    monkeypatch.setenv("ONWARD_TOKEN_FILE", str(tmp_path / "none"))
    with pytest.raises(NotFound, match="token cannot be read"):
        Client()


def test_where_only_the_archive_of_jobs_is_there_the_name_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onward.client", None)
    assert not hasattr(onward, "Client")
    with pytest.raises(AttributeError, match=r"onward\.Client needs Onward installed"):
        onward.Client  # noqa: B018


class Table:
    def __init__(self, rows: list[dict[str, Any]], **_: Any) -> None:
        self.rows = rows


def test_a_table_is_of_the_library_that_is_in_use_or_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"a": 1, "b": math.nan}]
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(DataFrame=type(name, (Table,), {})))
    assert type(as_table(rows, "auto")).__name__ == "pandas"
    assert type(as_table(rows, "polars")).__name__ == "polars"
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.delitem(sys.modules, "pandas")
    assert type(as_table(rows, "auto")).__name__ == "polars"
    assert as_table(rows, "dicts") is rows
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(NotFound, match="polars is not installed"):
        as_table(rows, "polars")
    with pytest.raises(InvalidInput, match="unknown frame 'excel'"):
        as_table(rows, "excel")  # type: ignore[arg-type]


def test_without_any_library_a_table_is_a_list_of_dicts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert as_table([{"a": 1}], "auto") == [{"a": 1}]
