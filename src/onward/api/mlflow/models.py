"""MLflow's logged models, and what goes into a run and comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter

from onward.api.access.caller import ApiCaller
from onward.api.dependencies import Svc, Who
from onward.api.mlflow.experiments import find as find_experiment
from onward.api.mlflow.experiments import must_be_own
from onward.api.mlflow.request_body import Body
from onward.api.mlflow.runs import live, own_models
from onward.api.services import Services
from onward.errors import InvalidInput
from onward.model.mlflow import wire
from onward.model.mlflow.records import LoggedModelRecord
from onward.tracker.search.mlflow_filter import MODELS, Clause, Order, clauses, holds, orders

router = APIRouter(prefix="/api/2.0/mlflow", tags=["MLflow: models"])
Measured = tuple[str, str]  # a dataset's name and digest
_NOT_IN_NAMES = set("/:.%\"'")
_RANKS = {"PENDING": 1, "READY": 2, "UPLOAD_FAILED": 3}
_STATUSES = {"PENDING": "PENDING", "READY": "READY", "FAILED": "UPLOAD_FAILED", "UPLOAD_FAILED": "UPLOAD_FAILED"}


@router.post("/logged-models")
def create(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Create a logged model; its files are its own artifacts."""
    experiment = find_experiment(svc, wire.text(body, "experiment_id"))
    must_be_own(svc, who, experiment.id)
    name = wire.text(body, "name", needed=False)
    if _NOT_IN_NAMES & set(name):
        raise InvalidInput(f"Invalid model name {name[:60]!r}", hint=f"It must not contain any of {' '.join(sorted(_NOT_IN_NAMES))}")
    run = wire.text(body, "source_run_id", needed=False) or who.run
    if run:
        info = svc.tracker.runs.get(run)
        who.must_write(info.run_id)
        run = info.run_id
    made = svc.tracker.models.create(
        experiment.id,
        name=name[:500],
        run=run or None,
        kind=wire.text(body, "model_type", needed=False)[:250],
        tags=wire.pairs(wire.rows(body, "tags"), "tag", any_key=True),
        params=wire.pairs(wire.rows(body, "params"), "param", any_key=True),
    )
    return {"model": wire.model_json(made)}


@router.post("/logged-models/search")
def search(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Logged models by MLflow's filter and order, in pages; with a run's token, only those of its run."""
    experiments = [wire.experiment_number(id) for id in wire.words(body, "experiment_ids")]
    if not experiments:
        raise InvalidInput("Missing value for required parameter 'experiment_ids'.", hint="name at least one experiment")
    size = wire.page_size({"max_results": body.get("max_results") or None}, 100, 50_000)
    start = wire.offset_of(body.get("page_token"))
    asked = clauses(wire.text(body, "filter", needed=False), MODELS)
    among = [(wire.text(row, "dataset_name"), wire.text(row, "dataset_digest", needed=False)) for row in wire.rows(body, "datasets")]
    found = [m for m in svc.tracker.models.of(experiments) if all(_passes(m, clause, among) for clause in asked)]
    if not who.person:
        found = [m for m in found if m.run is not None and who.is_mine(m.run)]
    for row in reversed(wire.rows(body, "order_by")):
        order = orders([wire.text(row, "field_name")], MODELS)[0]
        of = (wire.text(row, "dataset_name", needed=False), wire.text(row, "dataset_digest", needed=False))
        found = _sorted(found, order, [of] if of[0] else [], down=row.get("ascending") is False)
    answer: dict[str, Any] = {"models": [wire.model_json(m) for m in found[start : start + size]]}
    return {**answer, "next_page_token": wire.page_token(start + size)} if len(found) > start + size else answer


@router.get("/logged-models/{model_id}")
def get(model_id: str, svc: Svc, who: Who) -> dict[str, Any]:
    """A logged model with its params, tags and metrics."""
    return {"model": wire.model_json(_own(svc, who, model_id))}


@router.patch("/logged-models/{model_id}")
def finalize(model_id: str, body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Say whether the model is ready."""
    _own(svc, who, model_id)
    status = wire.text(body, "status").removeprefix("LOGGED_MODEL_")
    if status not in _STATUSES:
        raise InvalidInput(f"Invalid model status {status[:40]!r}", hint="LOGGED_MODEL_READY or LOGGED_MODEL_UPLOAD_FAILED")
    return {"model": wire.model_json(svc.tracker.models.finish(model_id, _STATUSES[status]))}


@router.delete("/logged-models/{model_id}")
def delete(model_id: str, svc: Svc, who: Who) -> dict[str, Any]:
    """Delete a logged model; one that is already deleted stays deleted."""
    if not svc.tracker.models.is_deleted(model_id):
        _own(svc, who, model_id)
        svc.tracker.models.delete(model_id)
    return {}


@router.patch("/logged-models/{model_id}/tags")
def set_tags(model_id: str, body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Set tags of a logged model."""
    _own(svc, who, model_id)
    svc.tracker.models.set_tags(model_id, wire.pairs(wire.rows(body, "tags"), "tag", any_key=True))
    return {"model": wire.model_json(svc.tracker.models.get(model_id))}


@router.delete("/logged-models/{model_id}/tags/{tag_key:path}")
def delete_tag(model_id: str, tag_key: str, svc: Svc, who: Who) -> dict[str, Any]:
    """Delete a tag of a logged model."""
    _own(svc, who, model_id)
    svc.tracker.models.delete_tag(model_id, tag_key)
    return {}


@router.post("/logged-models/{model_id}/params")
def set_params(model_id: str, body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Set params of a logged model."""
    _own(svc, who, model_id)
    svc.tracker.models.set_params(model_id, wire.pairs(wire.rows(body, "params"), "param", any_key=True))
    return {}


@router.post("/runs/log-inputs")
def log_inputs(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Record which datasets and models a run used."""
    info = live(svc, who, body)
    datasets = [wire.dataset_of(item) for item in wire.rows(body, "datasets")]
    models = [wire.text(item, "model_id") for item in wire.rows(body, "models")]
    own_models(svc, who, models)
    svc.tracker.models.add_inputs(info.run_id, datasets, models)
    return {}


@router.post("/runs/outputs")
def log_outputs(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Record which models a run produced."""
    info = live(svc, who, body)
    models = [(wire.text(item, "model_id"), wire.whole(item, "step", 0)) for item in wire.rows(body, "models")]
    own_models(svc, who, [model for model, _ in models])
    svc.tracker.models.add_outputs(info.run_id, models)
    return {}


@router.post("/runs/log-model")
def log_model(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """How older clients report that a model was logged: kept in the run's history tag."""
    info = live(svc, who, body)
    model_json = wire.text(body, "model_json")
    before = svc.tracker.runs.view(info.run_id).tags.get(wire.MODEL_HISTORY, "[]")
    svc.tracker.runs.set_tags(info.run_id, {wire.MODEL_HISTORY: f"{before[:-1]}{',' if before != '[]' else ''}{model_json}]"})
    return {}


def _own(svc: Services, who: ApiCaller, id: str) -> LoggedModelRecord:
    model = svc.tracker.models.get(id)
    who.must_own(model.run, f"model {id}")
    return model


def _passes(model: LoggedModelRecord, clause: Clause, among: Sequence[Measured]) -> bool:
    match clause.room:
        case "tag":
            return holds(clause, model.tags.get(clause.key))
        case "param":
            return holds(clause, model.params.get(clause.key))
        case "metric":
            return any(holds(clause, value) for value in _values(model, clause.key, among))
        case _:
            return holds(clause, _attribute(model, clause.key))


def _values(model: LoggedModelRecord, key: str, among: Sequence[Measured]) -> list[float]:
    """What was measured of a model; `among`: on these datasets alone."""
    mine = [metric for metric in model.metrics if metric.key == key]
    return [m.value for m in mine if not among or any(m.dataset == name and digest in ("", m.digest) for name, digest in among)]


def _attribute(model: LoggedModelRecord, key: str) -> str | float:
    match key:
        case "creation_time":
            return float(wire.milliseconds(model.created))
        case "last_update_time":
            return float(wire.milliseconds(model.updated))
        case "model_id":
            return model.id
        case "model_type":
            return model.kind
        case "source_run_id":
            return model.run or ""
        case "experiment_id":
            return str(model.experiment)
        case "status":
            return model.status
        case "artifact_location":
            return wire.model_uri(model.experiment, model.id)
        case _:
            return model.name


def _sorted(found: list[LoggedModelRecord], order: Order, among: Sequence[Measured], *, down: bool) -> list[LoggedModelRecord]:
    """What has no value comes last, whichever way, in the order that it has."""
    if order.room == "metric":
        valued = [(m, _values(m, order.key, among)) for m in found]
        having = sorted(((m, values[-1]) for m, values in valued if values), key=lambda pair: pair[1], reverse=down)
        return [*(m for m, _ in having), *(m for m, values in valued if not values)]
    if order.key == "status":
        return sorted(found, key=lambda m: _RANKS.get(m.status, 0), reverse=down)
    return sorted(found, key=lambda m: _attribute(m, order.key), reverse=down)
