"""All that the page asks for, of demo data, on both databases: answered, and alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.servers import Running

API = "/api/v1"
_ORDERS = (
    "created desc",
    "metrics.loss asc",
    "min(metrics.loss) desc",
    "params.lr asc",
    "tags.demo asc",
    "gpu_use desc",
    "queue_wait desc",
)
_FILTERS = (
    "metrics.loss < 1 and not state = failed",
    "checkpoint is null or progress > 0.5",
    "params.lr in (0.1, 0.01) and created > '7d'",
    "why ilike '%queue%' or queue_wait > 60",
    "digits",  # no filter: words
)
_BYS = ("state", "experiment", "user", "cluster", "source", "params.lr", "tags.demo")
_OF_A_RUN = ("", "/overview", "/timeline", "/system", "/metrics", "/params", "/notes", "/checkpoints", "/logs", "/artifacts", "/export")
_ALONE = (
    *("/experiments", "/clusters", "/views?page=runs", "/tokens", "/bests", "/bests?metric=loss&mode=max", "/drafts/folders"),
    *("/alerts/rules", "/alerts/channels", "/alerts/history", "/export/runs?format=csv", "/params-schema"),
    *("/filter-words?prefix=metrics.lo", "/filter-words?of=params.lr", "/filter-words?of=state", "/filter-words?prefix=tags."),
)


def questions(runs: list[str], experiment: str) -> Iterator[tuple[str, str, Any]]:
    yield from (("GET", address, None) for address in _ALONE)
    yield from (("GET", f"/runs/{run}{what}", None) for run in runs for what in _OF_A_RUN)
    yield from (("GET", f"/runs?count=true&standings=true&order={quote(order)}", None) for order in _ORDERS)
    yield from (("GET", f"/runs?count=true&filter={quote(filter)}", None) for filter in _FILTERS)
    yield "POST", "/runs/search", {"filter": _FILTERS[0], "order": ["metrics.loss asc", "name desc"], "count": True}
    yield from (("GET", f"/run-groups?by={by}&filter={quote('created > 0')}", None) for by in _BYS)
    yield "GET", f"/experiments/{quote(experiment)}", None
    yield "GET", f"/sparklines?runs={','.join(runs)}&metric=loss", None
    yield "GET", f"/params/diff?{'&'.join(f'run={run}' for run in runs)}", None
    yield "POST", "/metrics/search", {"runs": runs, "text": "lo", "values": True}
    yield "POST", "/series/search", {"runs": runs, "metrics": ["loss"], "spans": {runs[0]: [5, 500]}, "buckets": 50}
    for x in ("step", "wall", "relative", "metric:lr"):
        group = {"name": "all", "runs": runs}
        yield "POST", "/series/aggregates/search", {"groups": [group], "metric": "loss", "x": x}


def visit(server: Running, token: str) -> list[tuple[str, int, Any]]:
    """Every question with its status and the shape of its answer. Runs by name: ids differ from store to store."""
    listed = server.json("GET", f"{API}/runs?limit=500&order={quote('name asc')}", token)["runs"]
    named = {run["id"]: run["name"] for run in listed}
    saved = {"page": "runs", "name": "mine", "query": "q=state+%3D+running", "shared": True}
    entries: list[tuple[str, int, Any]] = [("views", server.ask("PUT", f"{API}/views", token=token, json=saved)[0], None)]
    for method, address, asked in questions(list(named), str(listed[0]["experiment"])):
        status, _, body = server.ask(method, API + address, token=token, json=asked)
        assert status == 200, (address, asked, body[:500])
        words = f"{address} {asked}"
        for id, name in named.items():
            words = words.replace(id, name)
        entries.append((words, status, shape(json.loads(body), named) if body.startswith(b"{") else None))
    return entries


def shape(data: Any, named: dict[str, str]) -> Any:
    """What it holds and which runs, in which order; but for numbers, which hang on the clock."""
    if isinstance(data, dict):
        return {named.get(key, key): shape(value, named) for key, value in data.items()}
    if isinstance(data, list):
        return [len(data), *(shape(value, named) for value in data[:20])]
    return named.get(data, "text") if isinstance(data, str) else type(data).__name__


def test_the_pages_of_demo_data_are_told_alike_by_both_databases(address: str, tmp_path: Path) -> None:
    entries = []
    for name, db in (("sqlite", None), ("postgresql", address)):
        with Running(tmp_path / name, "--demo-data", "--no-tend", db=db, settings="[server]\nrequests = 0\n") as server:
            entries.append(visit(server, server.token("--rights", "admin", "--name", "ada")))
            assert '"fault"' not in server.log
    assert (len(entries[0]) > 100, entries[0][0][1]) == (True, 200)
    for ours, theirs in zip(*entries, strict=True):
        assert ours == theirs
