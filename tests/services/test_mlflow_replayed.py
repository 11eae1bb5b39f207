"""What real clients said to MLflow's own server, said to ours: every call that succeeded there succeeds here.

The recordings are made by `mlflow/record.py`: Lightning's logger, Hugging Face's Trainer, Keras and PyTorch autolog, plain scripts.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.services.served import Served, served

HERE = Path(__file__).parent / "mlflow"
RECORDED = sorted((HERE / "recorded").glob("*.json"))
_GIVEN = re.compile(r'"(?:experiment_id|run_id|model_id)": ?"([^"]+)"')


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("mlflow")) as one:
        yield one


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_the_calls_of_a_real_client_succeed(recorded: Path, server: Served) -> None:
    ids: dict[str, str] = {}
    calls: list[dict[str, Any]] = json.loads(recorded.read_text())
    assert calls
    for number, call in enumerate(calls):
        path, body = _renamed(call["path"], ids), _body(call, ids)
        if path.startswith(("/api/2.0/mlflow/experiments/create", "/api/2.0/mlflow/experiments/get-by-name")):
            _make_sure_of_the_experiment(server, call, ids)
            continue
        status, answer = server.call(call["method"], path, body, {"Content-Type": call["type"]} if call["type"] else {})
        assert status == call["status"], f"call {number}, {call['method']} {path}: {status} {answer[:400]!r}"
        _learn(call["answer"], answer.decode(errors="replace"), ids)


def test_no_recording_holds_more_than_one_kind_of_failure() -> None:
    """The only refusal that clients met is that of an experiment that is not there yet."""
    refused = {
        (call["path"].split("?")[0], call["status"]) for path in RECORDED for call in json.loads(path.read_text()) if call["status"] >= 400
    }
    assert refused <= {("/api/2.0/mlflow/experiments/get-by-name", 404)}


def _make_sure_of_the_experiment(server: Served, call: dict[str, Any], ids: dict[str, str]) -> None:
    """Recordings share experiments, so one may be there already, or not yet."""
    name = json.loads(call["body"])["name"] if call["body"] else call["path"].partition("experiment_name=")[2]
    server.call("POST", "/api/2.0/mlflow/experiments/create", json.dumps({"name": name}).encode(), {"Content-Type": "application/json"})
    status, found = server.call("GET", f"/api/2.0/mlflow/experiments/get-by-name?experiment_name={name}")
    assert status == 200
    if call["status"] == 200:
        _learn(call["answer"], found.decode(), ids)


def _renamed(text: str, ids: dict[str, str]) -> str:
    """Ids that the recorded server gave, replaced by those that ours gave. Numbers of experiments only where they stand as such."""
    for old, new in ids.items():
        if len(old) > 20:
            text = text.replace(old, new)
        else:
            text = re.sub(
                rf'((?:experiment_id=|"experiment_id": ?"|artifacts/|"experiment_ids": ?\[")){old}(?=["/&]|$)', rf"\g<1>{new}", text
            )
    return text


def _body(call: dict[str, Any], ids: dict[str, str]) -> bytes | None:
    if call["method"] in ("GET", "DELETE"):
        return None
    if call["body"].startswith("base64:"):
        return base64.b64decode(call["body"][7:])
    return _renamed(call["body"], ids).encode()


def _learn(recorded: str, ours: str, ids: dict[str, str]) -> None:
    old, new = _GIVEN.findall(recorded), _GIVEN.findall(ours)
    if old and new:
        for pattern in ("experiment_id", "run_id", "model_id"):
            was, now = (re.search(rf'"{pattern}": ?"([^"]+)"', text) for text in (recorded, ours))
            if was and now:
                ids.setdefault(was[1], now[1])
