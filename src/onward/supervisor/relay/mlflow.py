"""MLflow's REST calls, answered by the relay from what it knows. There is one run, this one, whatever a client asks for.

What a client sets is taken and kept; what it would delete or rename of experiments and runs is answered, and let be. Shapes, names and
limits are MLflow's (docs: REST API 2.0), as the server's own `api/mlflow` speaks them.
"""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from onward.supervisor.relay.run_values import Point, RelayLoggedModel, RunValues, history

Body = Mapping[str, Any]

_LONGEST_KEY, _LONGEST_PARAM, _LONGEST_TAG = 250, 6000, 8000
_STEP = 1 << 63
_PARENT, _NAME = "mlflow.parentRunId", "mlflow.runName"


@dataclass(frozen=True, kw_only=True)
class RelayRun:
    """The run as MLflow's clients know it."""

    run: str  # 32 hex digits
    name: str
    experiment: str  # a number
    experiment_name: str
    user: str
    started: float

    @property
    def artifact_uri(self) -> str:
        return f"mlflow-artifacts:/{self.experiment}/{self.run}/artifacts"


class MlflowCalls:
    def __init__(self, me: RelayRun, facts: RunValues, spools: Callable[[], list[Any]]) -> None:
        """`spools`: files of the relay's records, of earlier legs and this one."""
        self._me = me
        self._facts = facts
        self._spools = spools
        self._status = "RUNNING"
        self._ended: int | None = None
        self._calls: dict[str, Callable[[Body], Any]] = {
            "POST experiments/create": lambda _: {"experiment_id": me.experiment},
            "GET experiments/get": lambda _: {"experiment": self._experiment()},
            "GET experiments/get-by-name": lambda _: {"experiment": self._experiment()},
            "POST experiments/search": lambda _: {"experiments": [self._experiment()]},
            "GET experiments/search": lambda _: {"experiments": [self._experiment()]},
            "POST runs/create": self._create,
            "GET runs/get": lambda _: {"run": self.run_json()},
            "POST runs/update": self._update,
            "POST runs/search": lambda _: {"runs": [self.run_json()]},
            "POST runs/set-tag": lambda body: self._batch({"tags": [body]}),
            "POST runs/delete-tag": self._delete_tag,
            "POST runs/log-parameter": lambda body: self._batch({"params": [body]}),
            "POST runs/log-metric": lambda body: self._batch({"metrics": [body]}),
            "POST runs/log-batch": self._batch,
            "POST runs/log-inputs": self._inputs,
            "POST runs/outputs": self._outputs,
            "POST runs/log-model": self._log_model,
            "GET metrics/get-history": self._history,
            "POST logged-models": self._create_model,
            "POST logged-models/search": lambda _: {"models": [self._model_json(model) for model in facts.models.values()]},
            **dict.fromkeys(
                (
                    *("POST experiments/update", "POST experiments/delete", "POST experiments/restore", "POST runs/delete"),
                    *("POST runs/restore", "POST experiments/set-experiment-tag", "POST experiments/delete-experiment-tag"),
                ),
                lambda _: {},
            ),
        }

    def answer(self, method: str, path: str, body: Body) -> Any | None:
        """`path` after `/api/2.0/mlflow/`. None: not a call that is known here, or not a thing."""
        call = self._calls.get(f"{method} {path}")
        if call:
            return call(body)
        match path.split("/", 3):
            case ["logged-models", id, *rest]:
                return self._on_model(method, id, rest, body)
            case _:
                return None

    # ── runs ──────────────────────────────────────────────────────────────────

    def _create(self, body: Body) -> Any:
        """This run, with the tags that the client begins its run with; it was not asked whether it is the first.

        A nested run is this one too: it is not its own parent, and does not take its child's name.
        """
        tags = _rows(body.get("tags"))
        nested = any(tag.get("key") == _PARENT and tag.get("value") == self._me.run for tag in tags)
        self._batch({"tags": [tag for tag in tags if not (nested and tag.get("key") == _NAME)]})
        self._status, self._ended = "RUNNING", None
        return {"run": self.run_json()}

    def _update(self, body: Body) -> Any:
        """How the run is, the journal says; a client is told what it said itself."""
        status = str(body.get("status") or self._status)
        self._status = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}.get(status, status)
        over = self._status in ("FINISHED", "FAILED", "KILLED")
        self._ended = _whole(body.get("end_time")) or round(time.time() * 1000) if over else None
        if body.get("run_name"):
            self._facts.set_tags({_NAME: str(body["run_name"])[:_LONGEST_TAG]})
        return {"run_info": self._info()}

    def _batch(self, body: Body) -> Any:
        params = _pairs(body.get("params"), _LONGEST_PARAM)
        tags = _pairs(body.get("tags"), _LONGEST_TAG)
        if tags.get(_PARENT) == self._me.run:  # who nests by hand tags a child that is this run as well
            del tags[_PARENT]
        if params:
            self._facts.set_params(params)
        if tags:
            self._facts.set_tags(tags)
        rows = [(row, point) for row in _rows(body.get("metrics")) if (point := _point(row))]
        self._facts.add_points([point for _, point in rows])
        of_models = [_model_metric(row, point) for row, point in rows if row.get("model_id")]
        if of_models:
            self._facts.model_metrics(of_models)
        return {}

    def _delete_tag(self, body: Body) -> Any:
        self._facts.delete_tags([str(body.get("key", ""))])
        return {}

    def _history(self, body: Body) -> Any:
        key = str(body.get("metric_key", ""))
        points = history(self._spools(), key)
        start, size = _whole(body.get("page_token")) or 0, _whole(body.get("max_results"))
        page = points[start : start + size] if size else points[start:]
        shown = [
            {"key": key, "value": _value(value), "timestamp": round(at * 1000), "step": step, "run_id": self._me.run}
            for _, step, at, value in page
        ]
        answer: dict[str, Any] = {"metrics": shown} if shown else {}
        return {**answer, "next_page_token": str(start + len(page))} if start + len(page) < len(points) else answer

    # ── inputs, outputs, models ───────────────────────────────────────────────

    def _inputs(self, body: Body) -> Any:
        datasets = []
        for row in _rows(body.get("datasets")):
            told = row.get("dataset")
            if isinstance(told, dict) and told.get("name"):
                names = ("name", "digest", "source_type", "source", "schema", "profile")
                tags = {str(tag.get("key", ""))[:255]: str(tag.get("value", ""))[:500] for tag in _rows(row.get("tags"))}
                datasets.append({**{name: str(told.get(name) or "") for name in names}, "tags": tags})
        self._facts.add_inputs(datasets, [str(row["model_id"]) for row in _rows(body.get("models")) if row.get("model_id")])
        return {}

    def _outputs(self, body: Body) -> Any:
        self._facts.add_outputs(
            [(str(row["model_id"]), _whole(row.get("step")) or 0) for row in _rows(body.get("models")) if row.get("model_id")]
        )
        return {}

    def _log_model(self, body: Body) -> Any:
        """Older clients: kept in the run's history tag."""
        self._facts.look_back()
        before = self._facts.tags.get("mlflow.log-model.history", "[]")
        told = f"{before[:-1]}{',' if before != '[]' else ''}{body.get('model_json', '{}')}]"
        self._facts.set_tags({"mlflow.log-model.history": told})
        return {}

    def _create_model(self, body: Body) -> Any:
        id = f"m-{secrets.token_hex(16)}"
        self._facts.model(
            id,
            name=str(body.get("name") or f"model-{id[2:10]}")[:500],
            kind=str(body.get("model_type") or "")[:250],
            status="PENDING",
            created=time.time(),
            tags=_pairs(body.get("tags"), _LONGEST_TAG),
            params=_pairs(body.get("params"), _LONGEST_PARAM),
        )
        return {"model": self._model_json(self._facts.models[id])}

    def _on_model(self, method: str, id: str, rest: list[str], body: Body) -> Any | None:
        self._facts.look_back()
        model = self._facts.models.get(id)
        if model is None:
            return None
        match method, rest:
            case "GET", []:
                pass
            case "PATCH", []:
                self._facts.model(id, status=str(body.get("status", "READY")).removeprefix("LOGGED_MODEL_"))
            case "DELETE", []:
                self._facts.model(id, deleted=True)
                return {}
            case "PATCH", ["tags"]:
                self._facts.model(id, tags=_pairs(body.get("tags"), _LONGEST_TAG))
            case "DELETE", ["tags", key]:
                self._facts.model(id, untag=[key])
                return {}
            case "POST", ["params"]:
                self._facts.model(id, params=_pairs(body.get("params"), _LONGEST_PARAM))
                return {}
            case _:
                return None
        return {"model": self._model_json(model)}

    # ── shapes ────────────────────────────────────────────────────────────────

    def _experiment(self) -> dict[str, Any]:
        at = round(self._me.started * 1000)
        return {
            "experiment_id": self._me.experiment,
            "name": self._me.experiment_name,
            "artifact_location": f"mlflow-artifacts:/{self._me.experiment}",
            "lifecycle_stage": "active",
            "last_update_time": at,
            "creation_time": at,
        }

    def _info(self) -> dict[str, Any]:
        shown = {
            "run_uuid": self._me.run,
            "run_id": self._me.run,
            "experiment_id": self._me.experiment,
            "run_name": self._facts.tags.get(_NAME) or self._me.name,
            "user_id": self._me.user,
            "status": self._status,
            "start_time": round(self._me.started * 1000),
            "artifact_uri": self._me.artifact_uri,
            "lifecycle_stage": "active",
        }
        return {**shown, "end_time": self._ended} if self._ended is not None else shown

    def run_json(self) -> dict[str, Any]:
        facts = self._facts
        facts.look_back()
        metrics = [
            {"key": key, "value": _value(value), "timestamp": round(at * 1000), "step": step}
            for key, step, at, value in facts.last.values()
        ]
        data = {"metrics": metrics, "params": _entries(facts.params), "tags": _entries({_NAME: self._me.name, **facts.tags})}
        datasets = [
            {
                "tags": _entries(one.get("tags", {})),
                "dataset": {name: value for name, value in one.items() if name != "tags" and (value or name not in ("schema", "profile"))},
            }
            for one in facts.datasets.values()
        ]
        inputs = {"dataset_inputs": datasets, "model_inputs": [{"model_id": id} for id in facts.model_inputs]}
        outputs = [{"model_id": id, "step": step} for id, step in facts.outputs.items()]
        return {
            "info": self._info(),
            "data": {name: found for name, found in data.items() if found},
            "inputs": {name: found for name, found in inputs.items() if found},
            "outputs": {"model_outputs": outputs} if outputs else {},
        }

    def _model_json(self, model: RelayLoggedModel) -> dict[str, Any]:
        at = round(model.created * 1000)
        info = {
            "model_id": model.id,
            "experiment_id": self._me.experiment,
            "name": model.name,
            "creation_timestamp_ms": at,
            "last_updated_timestamp_ms": at,
            "artifact_uri": f"mlflow-artifacts:/{self._me.experiment}/models/{model.id}/artifacts",
            "status": f"LOGGED_MODEL_{model.status}",
            "status_message": "",
            "model_type": model.kind,
            "source_run_id": self._me.run,
            "tags": _entries(model.tags),
        }
        metrics = [
            {
                "key": one["key"],
                "value": _value(one["value"]),
                "timestamp": round(one["time"] * 1000),
                "step": one["step"],
                "model_id": model.id,
                "run_id": self._me.run,
            }
            for one in model.metrics
        ]
        data = {"params": _entries(model.params), "metrics": metrics}
        return {"info": info, "data": {name: found for name, found in data.items() if found}}


def _rows(told: Any) -> list[Mapping[str, Any]]:
    return [row for row in told if isinstance(row, dict)] if isinstance(told, list) else []


def _pairs(told: Any, longest: int) -> dict[str, str]:
    found = {}
    for row in _rows(told):
        key, value = str(row.get("key") or "")[:_LONGEST_KEY], row.get("value")
        if key:
            found[key] = ("" if value is None else value if isinstance(value, str) else json.dumps(value))[:longest]
    return found


def _point(row: Mapping[str, Any]) -> Point | None:
    """None: no point, and nothing that a training should end for."""
    try:
        key, step, value = str(row["key"]), int(row.get("step") or 0), float(row["value"])
        at = float(row.get("timestamp") or time.time() * 1000) / 1000
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return (key, step, at, value) if 0 < len(key) <= _LONGEST_KEY and -_STEP <= step < _STEP else None


def _model_metric(row: Mapping[str, Any], point: Point) -> dict[str, Any]:
    key, step, at, value = point
    told = {"model": str(row["model_id"]), "key": key, "value": value, "step": step, "time": at}
    return {**told, "dataset": row.get("dataset_name") or None, "digest": row.get("dataset_digest") or None}


def _entries(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in list(values.items())]


def _value(value: float) -> float | str:
    """As protobuf's JSON writes it."""
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def _whole(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None
