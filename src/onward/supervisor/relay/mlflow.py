"""MLflow's REST calls, answered by the relay from what it knows. There is one run, this one, whatever a client asks for.

What a client sets is taken and kept; what it would delete or rename of experiments and runs is answered, and let be. Shapes, names and
limits are MLflow's (docs: REST API 2.0), as the server's own `api/mlflow` speaks them.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from onward.model.experiment import Experiment
from onward.model.identity import hex_id
from onward.model.metric import Point
from onward.model.mlflow import wire
from onward.model.mlflow.records import Dataset, LoggedModelMetric, LoggedModelRecord, MlflowRun
from onward.model.spec import RunSpec
from onward.model.storable_text import LONGEST_KEY
from onward.supervisor.relay.run_values import RelayLoggedModel, RunValues, history

Body = Mapping[str, Any]

_STEP = 1 << 63


def run_as_mlflow(spec: RunSpec) -> MlflowRun:
    """The run as MLflow's clients know it, before they told anything of it."""
    run, experiment = hex_id(spec.id), number_for_experiment(spec.experiment or "Default")
    return MlflowRun(
        id=run,
        experiment=experiment,
        name=spec.name,
        user=spec.user,
        status="RUNNING",
        started=spec.created,
        artifact_uri=wire.artifact_uri(experiment, run),
    )


def number_for_experiment(name: str) -> int:
    """MLflow's clients want a number; a node cannot ask which one the server has given. The same on every node and in every leg."""
    return 10**15 + int(hashlib.sha256(name.encode()).hexdigest()[:12], 16)


class MlflowCalls:
    def __init__(self, me: MlflowRun, experiment: str, facts: RunValues, spools: Callable[[], list[Any]]) -> None:
        """`experiment`: its name. `spools`: files of the relay's records, of earlier legs and this one."""
        self._me = me
        self._experiment = {
            "experiment": wire.experiment_json(Experiment(id=me.experiment, name=experiment, created=me.started, updated=me.started))
        }
        self._facts = facts
        self._spools = spools
        self._status, self._ended = me.status, me.ended
        self._calls: dict[str, Callable[[Body], Any]] = {
            "POST experiments/create": lambda _: {"experiment_id": str(me.experiment)},
            "GET experiments/get": lambda _: self._experiment,
            "GET experiments/get-by-name": lambda _: self._experiment,
            "POST experiments/search": lambda _: {"experiments": list(self._experiment.values())},
            "GET experiments/search": lambda _: {"experiments": list(self._experiment.values())},
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
            "POST logged-models/search": lambda _: {"models": [self._model(model) for model in facts.models.values()]},
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
        nested = any(tag.get("key") == wire.PARENT and tag.get("value") == self._me.id for tag in tags)
        self._batch({"tags": [tag for tag in tags if not (nested and tag.get("key") == wire.RUN_NAME)]})
        self._status, self._ended = "RUNNING", None
        return {"run": self.run_json()}

    def _update(self, body: Body) -> Any:
        """How the run is, the journal says; a client is told what it said itself."""
        status = str(body.get("status") or self._status)
        self._status = wire.NUMBERED.get(_whole(status) or 0, status)
        over = self._status in ("FINISHED", "FAILED", "KILLED")
        end = _whole(body.get("end_time"))
        self._ended = (end / 1000 if end else time.time()) if over else None
        if body.get("run_name"):
            self._facts.set_tags({wire.RUN_NAME: str(body["run_name"])[: wire.LONGEST["tag"]]})
        return {"run_info": wire.info_json(self._run())}

    def _batch(self, body: Body) -> Any:
        params, tags = _pairs(body, "params"), _pairs(body, "tags")
        if tags.get(wire.PARENT) == self._me.id:  # who nests by hand tags a child that is this run as well
            del tags[wire.PARENT]
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
        start, size = wire.offset_of(body.get("page_token")), _whole(body.get("max_results"))
        page = points[start : start + size] if size else points[start:]
        end = start + len(page)
        answer: dict[str, Any] = {"metrics": [wire.point_json(point, run_id=self._me.id) for point in page]} if page else {}
        return {**answer, "next_page_token": wire.page_token(end)} if end < len(points) else answer

    # ── inputs, outputs, models ───────────────────────────────────────────────

    def _inputs(self, body: Body) -> Any:
        datasets = []
        for row in _rows(body.get("datasets")):
            dataset = row.get("dataset")
            if isinstance(dataset, dict) and dataset.get("name"):
                names = ("name", "digest", "source_type", "source", "schema", "profile")
                tags = {str(tag.get("key", ""))[:255]: str(tag.get("value", ""))[:500] for tag in _rows(row.get("tags"))}
                datasets.append({**{name: str(dataset.get(name) or "") for name in names}, "tags": tags})
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
        before = self._facts.tags.get(wire.MODEL_HISTORY, "[]")
        history = f"{before[:-1]}{',' if before != '[]' else ''}{body.get('model_json', '{}')}]"
        self._facts.set_tags({wire.MODEL_HISTORY: history})
        return {}

    def _create_model(self, body: Body) -> Any:
        id = f"m-{secrets.token_hex(16)}"
        self._facts.model(
            id,
            name=str(body.get("name") or f"model-{id[2:10]}")[:500],
            kind=str(body.get("model_type") or "")[:250],
            status="PENDING",
            created=time.time(),
            tags=_pairs(body, "tags"),
            params=_pairs(body, "params"),
        )
        return {"model": self._model(self._facts.models[id])}

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
                self._facts.model(id, tags=_pairs(body, "tags"))
            case "DELETE", ["tags", key]:
                self._facts.model(id, untag=[key])
                return {}
            case "POST", ["params"]:
                self._facts.model(id, params=_pairs(body, "params"))
                return {}
            case _:
                return None
        return {"model": self._model(model)}

    # ── as they are now ───────────────────────────────────────────────────────

    def run_json(self) -> dict[str, Any]:
        self._facts.look_back()
        return wire.run_json(self._run())

    def _run(self) -> MlflowRun:
        facts = self._facts
        tags = {wire.RUN_NAME: self._me.name, **facts.tags}
        return replace(
            self._me,
            name=tags[wire.RUN_NAME] or self._me.name,
            status=self._status,
            ended=self._ended,
            params=dict(facts.params),
            tags=tags,
            metrics=list(facts.last.values()),
            datasets=[_dataset(one) for one in facts.datasets.values()],
            input_models=facts.model_inputs,
            output_models=list(facts.outputs.items()),
        )

    def _model(self, model: RelayLoggedModel) -> dict[str, Any]:
        metrics = [
            LoggedModelMetric(**{name: value for name, value in one.items() if name != "model"}, run=self._me.id) for one in model.metrics
        ]
        found = {**vars(model), "metrics": metrics}
        return wire.model_json(LoggedModelRecord(**found, experiment=self._me.experiment, run=self._me.id, updated=model.created))


def _rows(value: Any) -> list[Mapping[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _pairs(body: Body, what: Literal["params", "tags"]) -> dict[str, str]:
    """Cut to what can be kept: it must not end a training that a value is too long."""
    pairs = [(str(row.get("key") or "")[:LONGEST_KEY], wire.value_text(row.get("value"))) for row in _rows(body.get(what))]
    return {key: value[: wire.LONGEST[what[:-1]]] for key, value in pairs if key}


def _point(row: Mapping[str, Any]) -> Point | None:
    """None: no point, and nothing that a training should end for."""
    try:
        key, step, value = str(row["key"]), int(row.get("step") or 0), float(row["value"])
        at = float(row.get("timestamp") or time.time() * 1000) / 1000
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return (key, step, at, value) if 0 < len(key) <= LONGEST_KEY and -_STEP <= step < _STEP else None


def _model_metric(row: Mapping[str, Any], point: Point) -> dict[str, Any]:
    key, step, at, value = point
    metric = {"model": str(row["model_id"]), "key": key, "value": value, "step": step, "time": at}
    return {**metric, "dataset": row.get("dataset_name") or None, "digest": row.get("dataset_digest") or None}


def _dataset(dataset: Mapping[str, Any]) -> Dataset:
    return Dataset(
        name=dataset["name"],
        digest=dataset["digest"],
        source_type=dataset.get("source_type", ""),
        source=dataset.get("source", ""),
        schema=dataset.get("schema") or None,
        profile=dataset.get("profile") or None,
        tags=dataset.get("tags", {}),
    )


def _whole(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None
