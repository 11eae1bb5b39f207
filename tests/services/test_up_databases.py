"""The same calls to a server on SQLite and to one on PostgreSQL get the same answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.servers import Running

_TIMES = {
    "created",
    "updated",
    "started",
    "ended",
    "archived",
    "at",
    "last_used",
    "start_time",
    "end_time",
    "creation_time",
    "last_update_time",
}


def story(server: Running, token: str) -> list[Any]:
    """What was answered, without what differs by nature: times, ids, addresses."""
    ids: dict[str, str] = {}
    entries: list[Any] = []

    def ask(method: str, path: str, body: Any = None, *, raw: bytes | None = None) -> Any:
        status, _, answer = server.ask(method, path, token=token, json=body, body=raw)
        try:
            data = json.loads(answer) if answer else None
        except ValueError:
            data = answer.decode()
        text = json.dumps(_settled(data), sort_keys=True)
        for id, name in ids.items():
            text = text.replace(id, name)
        entries.append([method, re.sub("|".join(ids) or "^$", lambda m: ids.get(m[0], ""), path), status, json.loads(text)])
        return data

    def run(name: str, **others: Any) -> str:
        made = server.json("POST", "/api/v1/runs", token, {"name": name, "experiment": "digits", **others})
        ids[made["id"]], ids[made["hex_id"]] = f"<{name}>", f"<hex of {name}>"
        return str(made["id"])

    a, b = run("a", params={"lr": 0.1, "net": "résnet", "deep": [1, {"x": 2}]}, tags={"gpu": "h200"}), run("b", params={"lr": 0.25})
    for one, values in ((a, [3.0, 1.5, "NaN", "Infinity", 1e308, -2.5e-300]), (b, [1.0, 2.0])):
        points = [{"name": "loss", "value": value, "step": step, "timestamp": 1.7e9 + step} for step, value in enumerate(values)]
        ask("POST", f"/api/v1/runs/{one}/metrics", {"points": points})
        ask("POST", f"/api/v1/runs/{one}/metrics", {"points": points})  # again is once
    ask("POST", f"/runs/{a}/metrics/batch", {"step": 9, "metrics": {"acc": 0.5, "x/y z": 1}, "timestamp": 1.7e9})
    ask("POST", "/api/v1/records", {"run": a, "leg": 2, "writer": "w", "records": [{"n": 0, "t": 1.7e9, "s": 4, "m": {"loss": 7.0}}]})
    for filter in (
        "metrics.loss < 2",
        "params.lr = 0.25",
        "tags.gpu like 'h%'",
        "not state = running",
        "params.net = 'résnet'",
        "name in ('a', 'z')",
    ):
        ask("POST", "/api/v1/runs/search", {"filter": filter, "order": ["metrics.loss asc", "name desc"], "count": True})
    for path in (
        "",
        "/metrics",
        "/params",
        "/points?metric=loss&superseded=true",
        "/export?format=csv",
        "/export?format=json",
        "/artifacts",
    ):
        ask("GET", f"/api/v1/runs/{a}{path}")
    ask("GET", f"/api/v1/series?run={a}&run={b}&metric=loss&metric=acc&buckets=3&means=true&times=true")
    ask("GET", f"/api/v1/params/diff?run={a}&run={b}")
    ask("GET", "/api/v1/export/runs?format=json")
    ask("PUT", f"/api/v1/runs/{a}/artifacts/plots/1.txt", raw=b"content")
    ask("GET", f"/api/v1/runs/{a}/artifacts?path=plots")
    ask("POST", f"/api/v1/runs/{a}/notes", {"text": "Größe ✓ \U0001f600"})
    ask("POST", f"/api/v1/runs/{a}/tags", {"tags": {"k" * 250: "v" * 8000}})
    ask("DELETE", f"/api/v1/runs/{a}/tags/gpu")
    ask("PATCH", f"/api/v1/runs/{b}", {"state": "finished", "archived": True})
    ask("GET", "/api/v1/runs?archived=true")
    ask("POST", "/api/v1/experiments", {"name": "digits"})
    ask("PATCH", "/api/v1/experiments/digits", {"name": "figures", "tags": {"a": "b"}})
    ask("GET", "/api/v1/experiments")
    for name in ("a\u0000b", "\ud800", "x" * 501):
        ask("POST", "/api/v1/experiments", {"name": name})
    ask("GET", "/api/v1/runs?offset=9007199254740992&limit=5000")
    for path, body in (
        ("experiments/search", {"filter": "name like 'fig%'", "order_by": ["name DESC"]}),
        ("runs/search", {"experiment_ids": ["1"], "filter": "metrics.loss > 0 and params.lr = '0.1'", "order_by": ["metrics.loss ASC"]}),
        (
            "runs/log-batch",
            {"run_id": a, "metrics": [{"key": "m", "value": 1, "timestamp": 1, "step": 0}], "params": [{"key": "p", "value": "1"}]},
        ),
        ("runs/set-tag", {"run_id": a, "key": "mlflow.runName", "value": "renamed"}),
        ("runs/update", {"run_id": a, "status": "FAILED", "end_time": 1700000009000}),
        ("runs/delete", {"run_id": a}),
    ):
        ask("POST", f"/api/2.0/mlflow/{path}", body)
    ask("GET", f"/api/2.0/mlflow/metrics/get-history?run_id={a}&metric_key=loss")
    ask("GET", f"/api/2.0/mlflow/runs/get?run_id={a}")
    ask("GET", f"/runs/{a}")
    return entries


def _settled(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: ("<time>" if key in _TIMES and item else _settled(item)) for key, item in data.items()}
    if isinstance(data, list):
        return [_settled(item) for item in data]
    if isinstance(data, float) and data > 1.75e9:  # in a table: of now
        return "<time>"
    return data


def test_both_databases_tell_the_same_story(address: str, tmp_path: Path) -> None:
    entries = []
    for name, db in (("sqlite", None), ("postgresql", address)):
        with Running(tmp_path / name, "--no-tend", db=db) as server:
            entries.append(story(server, server.token("--rights", "admin", "--name", "ada")))
            assert '"fault"' not in server.log
    assert len(entries[0]) > 40
    for ours, theirs in zip(*entries, strict=True):
        assert ours == theirs
    assert {status for _, _, status, _ in entries[0]} <= {200, 201, 204, 400, 409}
