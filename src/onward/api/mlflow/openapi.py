"""What MLflow's calls take, for the OpenAPI: the routes read their bodies by hand, as lenient as MLflow's server, so it is told here."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_ROOT = "/api/2.0/mlflow/"

_TEXT: Schema = {"type": "string"}
_RUN: Schema = {"type": "string", "description": "The run's id."}
_EXPERIMENT: Schema = {"type": "string", "description": "The experiment's id."}
_MODEL: Schema = {"type": "string", "description": "The logged model's id."}
_KEY: Schema = {"type": "string", "maxLength": 250}
_MILLISECONDS: Schema = {"type": "integer", "description": "Milliseconds since 1970."}
_NUMBER: Schema = {"anyOf": [{"type": "number"}, {"type": "string", "enum": ["NaN", "Infinity", "-Infinity"]}]}
_STATUS: Schema = {"type": "string", "enum": ["RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"]}
_VIEW: Schema = {"type": "string", "enum": ["ACTIVE_ONLY", "DELETED_ONLY", "ALL"]}
_SIZE: Schema = {"type": "integer", "minimum": 1, "maximum": 50_000, "description": "The most to return."}
_PAGE: Schema = {"type": "string", "description": "The `next_page_token` of the previous answer."}
_FILTER: Schema = {"type": "string", "description": "MLflow's filter, such as `metrics.loss < 0.5 and params.lr = '0.1'`."}


def _object(*needed: str, **properties: Schema) -> Schema:
    return (
        {"type": "object", "properties": properties, "required": list(needed)} if needed else {"type": "object", "properties": properties}
    )


def _list(items: Schema, most: int | None = None) -> Schema:
    return {"type": "array", "items": items, **({"maxItems": most} if most else {})}


_PAIR = _object("key", key=_KEY, value=_TEXT)
_PAIRS = _list(_PAIR, 100)
_POINT = {"key": _KEY, "value": _NUMBER, "timestamp": _MILLISECONDS, "step": {"type": "integer"}, "model_id": _MODEL}
_DATASET = _object("name", "digest", name=_TEXT, digest=_TEXT, source_type=_TEXT, source=_TEXT, schema=_TEXT, profile=_TEXT)
_PAGED = {"max_results": _SIZE, "page_token": _PAGE}

_BODIES: dict[tuple[str, str], Schema] = {
    ("post", "experiments/create"): _object("name", name=_TEXT, artifact_location=_TEXT, tags=_PAIRS),
    ("post", "experiments/update"): _object("experiment_id", experiment_id=_EXPERIMENT, new_name=_TEXT),
    ("post", "experiments/delete"): _object("experiment_id", experiment_id=_EXPERIMENT),
    ("post", "experiments/restore"): _object("experiment_id", experiment_id=_EXPERIMENT),
    ("post", "experiments/set-experiment-tag"): _object("experiment_id", "key", experiment_id=_EXPERIMENT, key=_KEY, value=_TEXT),
    ("post", "experiments/delete-experiment-tag"): _object("experiment_id", "key", experiment_id=_EXPERIMENT, key=_KEY),
    ("post", "experiments/search"): _object(filter=_FILTER, order_by=_list(_TEXT), view_type=_VIEW, **_PAGED),
    ("post", "runs/create"): _object(experiment_id=_EXPERIMENT, user_id=_TEXT, run_name=_TEXT, start_time=_MILLISECONDS, tags=_PAIRS),
    ("post", "runs/update"): _object("run_id", run_id=_RUN, status=_STATUS, end_time=_MILLISECONDS, run_name=_TEXT),
    ("post", "runs/delete"): _object("run_id", run_id=_RUN),
    ("post", "runs/restore"): _object("run_id", run_id=_RUN),
    ("post", "runs/set-tag"): _object("run_id", "key", run_id=_RUN, key=_KEY, value=_TEXT),
    ("post", "runs/delete-tag"): _object("run_id", "key", run_id=_RUN, key=_KEY),
    ("post", "runs/search"): _object(
        experiment_ids=_list(_EXPERIMENT), filter=_FILTER, run_view_type=_VIEW, order_by=_list(_TEXT), **_PAGED
    ),
    ("post", "runs/log-metric"): _object("run_id", "key", "value", "timestamp", run_id=_RUN, **_POINT),
    ("post", "runs/log-parameter"): _object("run_id", "key", "value", run_id=_RUN, key=_KEY, value=_TEXT),
    ("post", "runs/log-batch"): _object(
        "run_id", run_id=_RUN, metrics=_list(_object("key", "value", "timestamp", **_POINT), 1000), params=_PAIRS, tags=_PAIRS
    ),
    ("post", "runs/log-inputs"): _object(
        "run_id",
        run_id=_RUN,
        datasets=_list(_object("dataset", dataset=_DATASET, tags=_PAIRS)),
        models=_list(_object("model_id", model_id=_MODEL)),
    ),
    ("post", "runs/outputs"): _object("run_id", run_id=_RUN, models=_list(_object("model_id", model_id=_MODEL, step={"type": "integer"}))),
    ("post", "runs/log-model"): _object("run_id", "model_json", run_id=_RUN, model_json=_TEXT),
    ("post", "logged-models"): _object(
        "experiment_id",
        experiment_id=_EXPERIMENT,
        name=_TEXT,
        model_type=_TEXT,
        source_run_id=_RUN,
        params=_PAIRS,
        tags=_PAIRS,
    ),
    ("post", "logged-models/search"): _object(
        experiment_ids=_list(_EXPERIMENT),
        filter=_FILTER,
        order_by=_list(_object("field_name", field_name=_TEXT, ascending={"type": "boolean"})),
        **_PAGED,
    ),
    ("patch", "logged-models/{model_id}"): _object(
        "status", status={"type": "string", "enum": ["LOGGED_MODEL_READY", "LOGGED_MODEL_UPLOAD_FAILED", "LOGGED_MODEL_PENDING"]}
    ),
    ("patch", "logged-models/{model_id}/tags"): _object("tags", tags=_PAIRS),
    ("post", "logged-models/{model_id}/params"): _object("params", params=_PAIRS),
}

_PARAMETERS = {
    "experiment_id": "The experiment's id.",
    "experiment_name": "The experiment's name.",
    "run_id": "The run's id.",
    "run_uuid": "The run's id, under the name that older clients use.",
    "model_id": "The logged model's id.",
    "metric_key": "The metric.",
    "tag_key": "The tag's key.",
    "max_results": "The most to return.",
    "page_token": "The `next_page_token` of the previous answer.",
    "filter": "MLflow's filter.",
    "path": "A folder; by default the top one.",
    "artifact_directory_path": "A folder; by default the top one.",
}


def body_of(method: str, path: str) -> Schema | None:
    """What a call takes; unknown fields are ignored."""
    return _BODIES.get((method, path.removeprefix(_ROOT))) if path.startswith(_ROOT) else None


def words_for(parameter: str) -> str | None:
    return _PARAMETERS.get(parameter)
