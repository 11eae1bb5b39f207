"""Data nested without end: every door says so, and nothing of it is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward.model.plain_data import is_nested_deeper
from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good

FILE = "name: digits\ncluster: local\ntrain:\n  command: python3 train.py {params.lr}\n  params: {lr: 0.1}\n"


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[server]\ncode = ["{tmp_path}/desk/project"]\n')
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened, ONWARD_SETTINGS=str(settings))


def as_list(depth: int) -> str:
    return "[" * depth + "1" + "]" * depth


def as_mapping(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def keys_of(schema: dict[str, Any], body: dict[str, Any]) -> set[str]:
    """All that a body may hold, of whatever shape it is."""
    found = set(body.get("properties", ()))
    if "$ref" in body:
        found |= keys_of(schema, schema["components"]["schemas"][body["$ref"].rpartition("/")[2]])
    for part in (*body.get("anyOf", ()), *body.get("oneOf", ())):
        found |= keys_of(schema, part)
    return found


def bodies(harness: Harness) -> list[tuple[str, str, list[str]]]:
    """Every call that takes JSON, and the keys it takes."""
    schema = good(harness.client.get("/api/openapi.json"))
    calls = []
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            shape = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if shape is not None:
                calls.append((method.upper(), path, sorted(keys_of(schema, shape))))
    return calls


@pytest.mark.parametrize("text", [as_list(900), as_mapping(900), as_list(100_000)], ids=["list", "mapping", "endless"])
def test_nothing_that_is_nested_without_end_is_a_fault_of_ours(harness: Harness, text: str) -> None:
    run = harness.run()
    calls = bodies(harness)
    assert len(calls) > 40
    for method, path, keys in calls:
        target = path.replace("{run_id}", run).replace("{", "").replace("}", "")
        for body in (text, *(f'{{"{key}": {text}}}' for key in keys)):
            answer = harness.client.ask(method, target, body=body.encode(), headers={"content-type": "application/json"})
            assert answer.status < 500, f"{method} {path} {body[:20]}"


def test_a_params_value_900_deep_is_a_400_that_says_so(harness: Harness) -> None:
    made = good(harness.client.post("/api/v1/runs", {"file": FILE, "folder": str(harness.sandbox.project)}), 201)
    before = good(harness.client.get("/api/v1/runs"))
    deep = json.loads(as_list(900))
    record = {"n": 1, "t": 1.0, "params": {"a": deep}}
    for method, path, body in (
        ("POST", f"/api/v1/runs/{made['id']}/clone", {"params": {"lr": deep}}),
        ("POST", "/api/v1/runs", {"name": "x", "experiment": "y", "params": {"a": deep}}),
        ("POST", "/api/v1/runs", {"draft": {"name": "x", "train": {"command": "true", "params": {"a": deep}}}, "folder": "/x"}),
        ("POST", "/api/v1/records", {"run": made["id"], "leg": 1, "writer": "w", "records": [record]}),
        ("PUT", f"/api/v1/runs/{made['id']}/spec", {"id": made["id"], "params": {"a": deep}}),
    ):
        answer = harness.client.ask(method, path, json=body)
        assert (answer.status, "nested too deeply" in answer.text) == (400, True), (path, answer.text[:300])
    yaml = FILE.replace("0.1", as_list(900))
    answer = harness.client.post("/api/v1/runs", {"file": yaml, "folder": str(harness.sandbox.project)})
    assert (answer.status, "nested too deeply" in answer.text) == (400, True)
    assert good(harness.client.get("/api/v1/runs")) == before


@pytest.mark.parametrize("depth", [0, 1, 63, 64])
def test_what_people_write_is_not_too_deep(depth: int) -> None:
    assert not is_nested_deeper(json.loads(as_list(depth)), 64)
    assert not is_nested_deeper(json.loads(as_mapping(depth)), 64)
    assert is_nested_deeper(json.loads(as_list(65)), 64)
