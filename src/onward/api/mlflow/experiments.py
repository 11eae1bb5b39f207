"""MLflow's experiments."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from onward.api.access.caller import ApiCaller
from onward.api.dependencies import Svc, Who
from onward.api.mlflow.request_body import Body
from onward.api.services import Services
from onward.errors import Conflict, InvalidInput, NotAllowed, NotFound
from onward.model.experiment import Experiment
from onward.model.mlflow import wire
from onward.tracker.search.mlflow_filter import EXPERIMENTS, Clause, clauses, holds, orders

router = APIRouter(prefix="/api/2.0/mlflow/experiments", tags=["MLflow: experiments"])
_LONGEST = 250  # characters of a place for artifacts


@router.post("/create")
def create(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Create an experiment; RESOURCE_ALREADY_EXISTS if the name is taken. A run's token cannot create one: its own exists."""
    mine = own(svc, who)
    if mine is not None:
        _must_be_mine(mine, wire.text(body, "name") == mine.name)
        raise Conflict(f"Experiment {mine.name!r} already exists.")
    tags = {wire.key(k, "experiment tag"): v for k, v in wire.pairs(wire.rows(body, "tags"), "experiment tag").items()}
    location = wire.text(body, "artifact_location", needed=False)
    if len(location) > _LONGEST or not location.isprintable():
        raise InvalidInput(f"Invalid artifact location: it is at most {_LONGEST} characters long", hint="leave artifact_location out")
    elsewhere = "" if location.startswith("mlflow-artifacts:") else location  # clients go there by themselves
    made = svc.tracker.experiments.create(wire.text(body, "name"), artifact_location=elsewhere, tags=tags)
    return {"experiment_id": str(made.id)}


@router.get("/get")
def get(svc: Svc, who: Who, experiment_id: str = "") -> dict[str, Any]:
    """An experiment by its id."""
    id = wire.text({"experiment_id": experiment_id}, "experiment_id")
    must_be_own(svc, who, wire.experiment_number(id))
    return {"experiment": wire.experiment_json(find(svc, id))}


@router.get("/get-by-name")
def get_by_name(svc: Svc, who: Who, experiment_name: str = "") -> dict[str, Any]:
    """An experiment by its name; RESOURCE_DOES_NOT_EXIST if there is none."""
    name = wire.text({"experiment_name": experiment_name}, "experiment_name")
    mine = own(svc, who)
    if mine is not None:
        _must_be_mine(mine, name == mine.name)
    return {"experiment": wire.experiment_json(svc.tracker.experiments.by_name(name))}


@router.post("/update")
def update(body: Body, svc: Svc) -> dict[str, Any]:
    """Rename an experiment."""
    found = find(svc, wire.text(body, "experiment_id"))
    if found.archived is not None:
        raise InvalidInput("Cannot rename experiment in non-active lifecycle stage.")
    svc.tracker.experiments.update(found.id, name=wire.text(body, "new_name"))
    return {}


@router.post("/delete")
def delete(body: Body, svc: Svc) -> dict[str, Any]:
    """Delete an experiment and its runs; `restore` brings them back."""
    svc.tracker.experiments.update(_find(svc, body, archived=False).id, archived=True)
    return {}


@router.post("/restore")
def restore(body: Body, svc: Svc) -> dict[str, Any]:
    """Restore a deleted experiment and its runs."""
    svc.tracker.experiments.update(_find(svc, body, archived=True).id, archived=False)
    return {}


@router.post("/set-experiment-tag")
def set_tag(body: Body, svc: Svc) -> dict[str, Any]:
    """Set a tag of an experiment."""
    svc.tracker.experiments.update(_active(svc, body).id, tags=wire.pairs([body], "experiment tag"))
    return {}


@router.post("/delete-experiment-tag")
def delete_tag(body: Body, svc: Svc) -> dict[str, Any]:
    """Delete a tag of an experiment."""
    svc.tracker.experiments.delete_tag(_active(svc, body).id, wire.text(body, "key"))
    return {}


@router.post("/search")
def search(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Experiments by MLflow's filter and order, in pages; with a run's token, only its own."""
    return _search(body, svc, who)


@router.get("/search")
def search_by_address(
    svc: Svc,
    who: Who,
    filter: str = "",
    max_results: int = 1000,
    page_token: str = "",
    view_type: Annotated[str, Query(description="ACTIVE_ONLY (default), DELETED_ONLY or ALL.")] = "",
    order_by: Annotated[list[str] | None, Query(description="Like `name ASC`; the first one has precedence.")] = None,
) -> dict[str, Any]:
    """The same, with all arguments in the address."""
    asked = {"filter": filter, "max_results": max_results, "page_token": page_token, "view_type": view_type, "order_by": order_by}
    return _search(asked, svc, who)


def _search(body: Body, svc: Services, who: ApiCaller) -> dict[str, Any]:
    size = wire.page_size(body, 1000, 50_000)
    start = wire.offset_of(body.get("page_token"))
    asked = clauses(wire.text(body, "filter", needed=False), EXPERIMENTS)
    found = [e for e in svc.tracker.experiments.all(archived=wire.archived(body, "view_type")) if all(_passes(e, c) for c in asked)]
    mine = own(svc, who)
    if mine is not None:
        found = [e for e in found if e.id == mine.id]
    for order in reversed(orders(wire.words(body, "order_by"), EXPERIMENTS)):
        found.sort(key=lambda e, order=order: _sortable(e, order.key), reverse=order.down)  # type: ignore[misc]
    page = found[start : start + size]
    answer: dict[str, Any] = {"experiments": [wire.experiment_json(e) for e in page]}
    return {**answer, "next_page_token": wire.page_token(start + size)} if len(found) > start + size else answer


def own(svc: Services, who: ApiCaller) -> Experiment | None:
    """The one that a run's token is held to; None: held to none."""
    return None if who.person else svc.tracker.experiments.get(svc.tracker.runs.get(who.run or "").experiment)


def must_be_own(svc: Services, who: ApiCaller, experiment: int) -> None:
    mine = own(svc, who)
    if mine is not None:
        _must_be_mine(mine, experiment == mine.id)


def _must_be_mine(mine: Experiment, asked: bool) -> None:
    if not asked:
        raise NotAllowed(
            f"this token is only for a run of experiment {mine.name!r}", hint="`onward token create` creates one for all experiments"
        )


def find(svc: Services, id: str) -> Experiment:
    return svc.tracker.experiments.get(wire.experiment_number(id))


def _find(svc: Services, body: Body, *, archived: bool) -> Experiment:
    """One that is deleted, or one that is not: the others are not there for this call."""
    found = find(svc, wire.text(body, "experiment_id"))
    if (found.archived is not None) is not archived:
        raise NotFound(f"No {'deleted' if archived else 'active'} experiment with id={found.id} exists")
    return found


def _active(svc: Services, body: Body) -> Experiment:
    found = find(svc, wire.text(body, "experiment_id"))
    if found.archived is not None:
        raise InvalidInput(f"The experiment {found.id} must be in the 'active' state.", hint="restore it first")
    return found


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
        case "creation_time":
            return float(wire.milliseconds(e.created) or 0)
        case _:
            return float(wire.milliseconds(e.updated) or 0)


def _sortable(e: Experiment, key: str) -> Any:
    return e.id if key == "experiment_id" else _attribute(e, key)
