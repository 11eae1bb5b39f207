"""MLflow's experiments."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from onward.api.admission import Caller
from onward.api.deps import Svc, Who
from onward.api.mlflow import wire
from onward.api.mlflow.bodies import Body
from onward.api.services import Services
from onward.errors import Conflict, InvalidInput, NotAllowed
from onward.tracker.experiments import Experiment
from onward.tracker.mlflow_filter import EXPERIMENTS, Clause, clauses, holds, orders

router = APIRouter(prefix="/api/2.0/mlflow/experiments", tags=["MLflow: experiments"])


@router.post("/create")
def create(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Make an experiment; RESOURCE_ALREADY_EXISTS where the name is taken. A run's token makes none: its own is there."""
    mine = own(svc, who)
    if mine is not None:
        _must_be_mine(mine, wire.text(body, "name") == mine.name)
        raise Conflict(f"Experiment {mine.name!r} already exists.")
    tags = {wire.key(k, "experiment tag"): v for k, v in wire.pairs(wire.rows(body, "tags"), "experiment tag").items()}
    location = wire.text(body, "artifact_location", needed=False)
    if location and not location.startswith("mlflow-artifacts:"):
        raise InvalidInput("Invalid artifact_location: files are kept by this server", hint="leave artifact_location out")
    made = svc.tracker.experiments.create(wire.text(body, "name"), tags=tags)
    return {"experiment_id": str(made.id)}


@router.get("/get")
def get(svc: Svc, who: Who, experiment_id: str = "") -> dict[str, Any]:
    """An experiment by its id."""
    id = wire.text({"experiment_id": experiment_id}, "experiment_id")
    must_be_own(svc, who, wire.experiment_number(id))
    return {"experiment": wire.experiment_json(find(svc, id))}


@router.get("/get-by-name")
def get_by_name(svc: Svc, who: Who, experiment_name: str = "") -> dict[str, Any]:
    """An experiment by its name; RESOURCE_DOES_NOT_EXIST where there is none."""
    name = wire.text({"experiment_name": experiment_name}, "experiment_name")
    mine = own(svc, who)
    if mine is not None:
        _must_be_mine(mine, name == mine.name)
    return {"experiment": wire.experiment_json(svc.tracker.experiments.by_name(name))}


@router.post("/update")
def update(body: Body, svc: Svc) -> dict[str, Any]:
    """Rename an experiment."""
    found = find(svc, wire.text(body, "experiment_id"))
    name = wire.text(body, "new_name", needed=False)
    if found.archived is not None:
        raise InvalidInput("Cannot rename experiment in non-active lifecycle stage.")
    if name:
        svc.tracker.experiments.update(found.id, name=name)
    return {}


@router.post("/delete")
def delete(body: Body, svc: Svc) -> dict[str, Any]:
    """Put an experiment and its runs away; `restore` brings them back."""
    svc.tracker.experiments.update(find(svc, wire.text(body, "experiment_id")).id, archived=True)
    return {}


@router.post("/restore")
def restore(body: Body, svc: Svc) -> dict[str, Any]:
    """Bring a deleted experiment and its runs back."""
    svc.tracker.experiments.update(find(svc, wire.text(body, "experiment_id")).id, archived=False)
    return {}


@router.post("/set-experiment-tag")
def set_tag(body: Body, svc: Svc) -> dict[str, Any]:
    """Set a tag of an experiment."""
    found = find(svc, wire.text(body, "experiment_id"))
    svc.tracker.experiments.update(found.id, tags=wire.pairs([body], "experiment tag"))
    return {}


@router.post("/delete-experiment-tag")
def delete_tag(body: Body, svc: Svc) -> dict[str, Any]:
    """Take a tag of an experiment away."""
    svc.tracker.experiments.delete_tag(find(svc, wire.text(body, "experiment_id")).id, wire.text(body, "key"))
    return {}


@router.post("/search")
def search(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Experiments by MLflow's filter and order, in pages; for a run's token, of its own alone."""
    return _search(body, svc, who)


@router.get("/search")
def search_by_address(
    svc: Svc,
    who: Who,
    filter: str = "",
    max_results: int = 1000,
    page_token: str = "",
    view_type: Annotated[str, Query(description="ACTIVE_ONLY (as it is without), DELETED_ONLY or ALL.")] = "",
    order_by: Annotated[list[str] | None, Query(description="Like `name ASC`; the first counts most.")] = None,
) -> dict[str, Any]:
    """The same, with all in the address."""
    asked = {"filter": filter, "max_results": max_results, "page_token": page_token, "view_type": view_type, "order_by": order_by}
    return _search(asked, svc, who)


def _search(body: Body, svc: Services, who: Caller) -> dict[str, Any]:
    size = wire.page_size(body, 1000, 50_000)
    start = wire.offset_of(body.get("page_token"))
    asked = clauses(wire.text(body, "filter", needed=False), EXPERIMENTS)
    found = [e for e in svc.tracker.experiments.all(archived=wire.archived(body, "view_type")) if all(_passes(e, c) for c in asked)]
    mine = own(svc, who)
    if mine is not None:
        found = [e for e in found if e.id == mine.id]
    for order in reversed(orders(wire.words(body, "order_by"), EXPERIMENTS)):
        found.sort(key=lambda e, order=order: _sortable(e, order.room, order.key), reverse=order.down)  # type: ignore[misc]
    page = found[start : start + size]
    answer: dict[str, Any] = {"experiments": [wire.experiment_json(e) for e in page]}
    return {**answer, "next_page_token": wire.page_token(start + size)} if len(found) > start + size else answer


def own(svc: Services, who: Caller) -> Experiment | None:
    """The one that a run's token is held to; None: held to none."""
    return svc.tracker.experiments.get(svc.tracker.runs.get(who.run).experiment) if who.run is not None else None


def must_be_own(svc: Services, who: Caller, experiment: int) -> None:
    mine = own(svc, who)
    if mine is not None:
        _must_be_mine(mine, experiment == mine.id)


def _must_be_mine(mine: Experiment, asked: bool) -> None:
    if not asked:
        raise NotAllowed(
            f"this token is for a run of experiment {mine.name!r} alone", hint="`onward token create` makes one for all experiments"
        )


def find(svc: Services, id: str) -> Experiment:
    return svc.tracker.experiments.get(wire.experiment_number(id))


def _passes(e: Experiment, clause: Clause) -> bool:
    if clause.room == "tag":
        return holds(clause, e.tags.get(clause.key))
    return holds(clause, _attribute(e, clause.key))


def _attribute(e: Experiment, key: str) -> str | float:
    match key:
        case "name":
            return e.name
        case "experiment_id":
            return str(e.id)
        case "lifecycle_stage":
            return "active" if e.archived is None else "deleted"
        case "creation_time":
            return float(wire.milliseconds(e.created) or 0)
        case _:
            return float(wire.milliseconds(e.updated) or 0)


def _sortable(e: Experiment, room: str, key: str) -> Any:
    if room == "tag":
        return e.tags.get(key, "")
    return e.id if key == "experiment_id" else _attribute(e, key)
