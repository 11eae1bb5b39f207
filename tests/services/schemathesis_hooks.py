"""For schemathesis: most requests name runs, experiments and models that are there, so that they get past the first 404."""

from __future__ import annotations

import os
import random
from typing import Any

import schemathesis

_IDS = {
    name: os.environ[f"THERE_{name.upper()}"].split()
    for name in ("run", "experiment", "model", "metric")
    if os.environ.get(f"THERE_{name.upper()}")
}
_NAMES = {
    **dict.fromkeys(("run_id", "run_uuid", "run", "runs", "source_run_id"), "run"),
    **dict.fromkeys(("experiment_id", "experiment", "experiment_ids"), "experiment"),
    "model_id": "model",
    **dict.fromkeys(("metric", "metrics", "metric_key"), "metric"),
}
_chance = random.Random(4)


def _known(key: str, value: Any) -> Any:
    ids = _IDS.get(_NAMES.get(key, ""))
    if ids and _chance.random() < 0.8:
        if isinstance(value, str):
            return _chance.choice(ids)
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return [_chance.choice(ids) for _ in value]
    return _filled(value)


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _known(str(key), item) for key, item in value.items()}
    return [_filled(item) for item in value] if isinstance(value, list) else value


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: Any) -> Any:
    return _filled(path_parameters)


@schemathesis.hook
def map_query(context: Any, query: Any) -> Any:
    return _filled(query)


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    return _filled(body)


@schemathesis.serializer("application/x-ndjson")
def lines(context: Any, value: Any) -> Any:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
