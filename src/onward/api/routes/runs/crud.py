"""Runs: list, search, make, change, archive. What may be asked of one that Onward executes is in `acts`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Response
from pydantic import Discriminator, Field, Tag

from onward.api.dependencies import Svc, Who
from onward.api.routes.path_params import RunId, experiment_of, must_be_storable, run_of
from onward.api.routes.runs.actions import PREVIEW, SubmitIn, submitted
from onward.api.schemas.base import In, Key, ParamValue, RunOut, State, TagValue, Text, finite, json_response, run_record
from onward.api.schemas.run_details import run_details
from onward.api.schemas.runs import RunDetails, RunPage, row_record
from onward.api.services import Services
from onward.errors import Conflict, InvalidInput
from onward.tracker.runs.experiments import must_take_runs
from onward.tracker.runs.registry import NewRun, RunQuery
from onward.tracker.search.filter import filter_condition

router = APIRouter(prefix="/api/v1/runs", tags=["runs"])

_FILTER = """Such as `metrics.loss < 0.5 and params.lr = 0.001`, `tags."my key" like 'a%' or not state in (failed, cancelled)`,
`created > '2026-01-31'`, `min(metrics.loss) < 0.1`, `metrics.loss is nan`. A comparison needs a value, `!=`, `not in` and `not like`
too; `not` before it negates it; `is null` and `is not null` test whether there is one."""
LIST_FILTER = (
    f"{_FILTER} Text that is not a filter and has no comparison is searched for as words in names, ids, experiments, users and tags."
)
_METRICS = "Whether to return metrics: `true`, `false`, or comma-separated names of those to return."
_FOLD = "One row for each pipeline: the newest of its runs that match, with their number in each state."
_ORDER = "Such as `metrics.loss asc` or `state, created desc`: by the first, ties by the next; comma-separated or repeated."


class RunIn(In):
    experiment: Annotated[Text, Field(min_length=1, max_length=500)] = Field(
        default="Default", description="Its name; created if it does not exist."
    )
    name: Annotated[Text, Field(max_length=500)] = ""
    identity: Annotated[Text, Field(min_length=1, max_length=400)] | None = Field(
        default=None, description="Identifies a restart: it gets the same run."
    )
    state: State = "running"
    params: dict[Key, ParamValue] = Field(default_factory=dict, max_length=2000)
    tags: dict[Key, TagValue] = Field(default_factory=dict, max_length=100)


class RunChange(In):
    name: Annotated[Text, Field(min_length=1, max_length=500)] | None = None
    state: State | None = Field(default=None, description="Not for a run that Onward executes: its journals say.")
    reason: Annotated[Text, Field(max_length=8000)] | None = None
    archived: bool | None = None


class RunSearch(In):
    text: Annotated[Text, Field(max_length=2000)] = Field(default="", description="Words that a run must mention, all of them.")
    filter: Annotated[Text, Field(max_length=20_000)] = Field(default="", description=_FILTER)
    order: list[Annotated[Text, Field(max_length=500)]] = Field(default_factory=list, description=_ORDER, max_length=10)
    experiments: list[Annotated[Text, Field(max_length=500)]] | None = Field(default=None, description="Numbers or names.", max_length=1000)
    archived: bool | None = Field(default=False, description="Archived ones, the others, or (null) both.")
    limit: int = Field(default=100, ge=1, le=5000)
    offset: int = Field(default=0, ge=0, le=1 << 53)
    metrics: bool | list[Key] = Field(default=True, description="Whether to return metrics, or the names of those to return.")
    params: bool = Field(default=True, description="Whether to return params and tags.")
    count: bool = Field(default=False, description="Whether to count all that match.")
    fold: bool = Field(default=False, description=_FOLD)


class RunParamsIn(In):
    params: dict[Key, ParamValue] = Field(max_length=2000)
    leg: int | None = Field(default=None, ge=1, le=1_000_000, description="None: the newest.")


class TagsIn(In):
    tags: dict[Key, TagValue] = Field(max_length=100)


@router.get("", summary="List runs", response_model=RunPage)
def listed(
    svc: Svc,
    filter: Annotated[str, Query(description=LIST_FILTER, max_length=20_000)] = "",
    order: Annotated[list[str] | None, Query(description=_ORDER, max_length=10)] = None,
    experiment: Annotated[list[str] | None, Query(description="Only of these, by number or name.", max_length=200)] = None,
    archived: Annotated[bool, Query(description="The archived ones instead.")] = False,
    limit: Annotated[int, Query(ge=1, le=5000, description="The most to return.")] = 100,
    offset: Annotated[int, Query(ge=0, le=1 << 53, description="How many to skip: the `next` of the previous answer.")] = 0,
    metrics: Annotated[str, Query(description=_METRICS, max_length=5000)] = "true",
    params: Annotated[bool, Query(description="Whether to return params and tags.")] = True,
    count: Annotated[bool, Query(description="Whether to count all that match.")] = False,
    fold: Annotated[bool, Query(description=_FOLD)] = False,
) -> Response:
    """Newest first, unless another order is given. Filtered, ordered and paged by the database."""
    for text in (filter, metrics, *(order or ())):
        _must_be_text(text)
    words, note = as_text(filter, svc.clock.now())
    shown, keys = _metrics(metrics)
    query = RunQuery(
        filter="" if words else filter,
        text=words,
        order=order or (),
        archived=archived,
        limit=limit,
        offset=offset,
        metrics=shown,
        keys=keys,
        params=params,
        count=count,
        fold=fold,
    )
    return _found(svc, experiment, query, note)


@router.post("/search", summary="Search runs", response_model=RunPage)
def search(svc: Svc, asked: RunSearch) -> Response:
    """Like the list, for requests that are too long for an address. Changes nothing."""
    given = asked.model_dump(exclude={"experiments", "metrics"})
    keys = None if isinstance(asked.metrics, bool) else asked.metrics
    return _found(svc, asked.experiments, RunQuery(**given, metrics=bool(asked.metrics), keys=keys))


def _kind(asked: Any) -> str:
    """Something to execute, or only something to record."""
    submit = {"file", "draft", "folder", "dry_run"}
    return "submit" if isinstance(asked, SubmitIn) or (isinstance(asked, dict) and submit & asked.keys()) else "record"


Asked = Annotated[Annotated[SubmitIn, Tag("submit")] | Annotated[RunIn, Tag("record")], Discriminator(_kind), Body()]


@router.post("", summary="Submit or record a run", status_code=201, response_model=RunDetails, responses=PREVIEW)
def create(svc: Svc, who: Who, asked: Asked) -> Response:
    """With `file` or `draft` and `folder`: queue a run for Onward to execute, or with `dry_run` say what would be queued.

    Otherwise: record a training that Onward does not execute; repeated with the same `identity`, it returns the same run."""
    if isinstance(asked, SubmitIn):
        return submitted(svc, who, asked)
    identity = f"api:{asked.identity}" if asked.identity else None
    if identity is None or svc.tracker.runs.by_identity(identity) is None:
        with svc.tracker.reading() as connection:
            must_take_runs(connection, asked.experiment)
    made = svc.tracker.runs.create(
        NewRun(
            experiment=asked.experiment,
            name=asked.name,
            identity=identity,
            state=asked.state,
            params=asked.params,
            tags=asked.tags,
            source="by-hand",
            user=who.name,
            started=svc.clock.now() if asked.state == "running" else None,
            leg=1,
        )
    )
    answer = _details(svc, made.run_id)
    answer.status_code = 201
    return answer


@router.get("/{run_id}", summary="Show a run", response_model=RunDetails)
def show(svc: Svc, run_id: RunId) -> Response:
    """With params, tags, metrics and legs."""
    return _details(svc, run_of(svc, run_id).run_id)


@router.patch("/{run_id}", summary="Rename, close or archive a run", response_model=RunDetails)
def change(svc: Svc, run_id: RunId, asked: RunChange) -> Response:
    """Only the given fields change. An archived run is not listed; nothing is lost."""
    run = run_of(svc, run_id)
    changes: dict[str, Any] = {key: value for key, value in asked.model_dump(exclude={"archived"}).items() if value is not None}
    if asked.state is not None:
        _must_not_be_executed(run.source, run.run_id)
        over = asked.state in ("finished", "failed", "cancelled")
        changes["ended"] = (run.ended or svc.clock.now()) if over else None
    if changes:
        svc.tracker.runs.update(run.run_id, **changes)
    if asked.archived is not None:
        svc.tracker.runs.archive(run.run_id, archived=asked.archived)
    return _details(svc, run.run_id)


@router.post("/{run_id}/params", summary="Set params", response_model=RunOut)
def set_params(svc: Svc, run_id: RunId, asked: RunParamsIn) -> Response:
    """Kept by leg: a value that a resumed training changes is added to the old one."""
    run = run_of(svc, run_id)
    svc.tracker.runs.set_params(run.run_id, finite(asked.params), leg=asked.leg)
    return json_response(run_record(svc.tracker.runs.view(run.run_id)))


@router.post("/{run_id}/tags", summary="Set tags", response_model=RunOut)
def set_tags(svc: Svc, run_id: RunId, asked: TagsIn) -> Response:
    """Only those given; others stay unchanged."""
    run = run_of(svc, run_id)
    svc.tracker.runs.set_tags(run.run_id, asked.tags)
    return json_response(run_record(svc.tracker.runs.view(run.run_id)))


@router.delete("/{run_id}/tags/{key:path}", summary="Delete a tag", status_code=204)
def delete_tag(svc: Svc, run_id: RunId, key: Annotated[str, Path(max_length=250, description="The tag's key.")]) -> None:
    """404 if there is no such tag."""
    must_be_storable(key)
    svc.tracker.runs.delete_tag(run_of(svc, run_id).run_id, key)


def _found(svc: Services, experiments: list[str] | None, query: RunQuery, note: str = "") -> Response:
    ids = None if experiments is None else [experiment_of(svc, one).id for one in experiments]
    page = svc.tracker.runs.search(replace(query, experiments=ids, standings=True))
    now = svc.clock.now()
    read_as = "text" if query.text and not query.filter else "filter"
    rows = [row_record(view, now, page.folded) for view in page.runs]
    return json_response({"runs": rows, "next": page.next, "total": page.total, "read_as": read_as, "note": note})


def as_text(filter: str, now: float) -> tuple[str, str]:
    """The words of a text that is not a filter, and why. A text with a comparison is meant as a filter: an error in it is reported."""
    try:
        filter_condition(filter, now=now)
    except InvalidInput as error:
        if re.search(r"[<>=]", filter):
            raise
        return filter, f"searched for as words: {error.message}"
    return "", ""


def _metrics(asked: str) -> tuple[bool, list[str] | None]:
    if asked.lower() in ("true", "1", "false", "0", ""):
        return asked.lower() in ("true", "1"), None
    return True, [key for key in asked.split(",") if key]


def _details(svc: Services, run_id: str) -> Response:
    return json_response(run_details(svc, run_id))


def _must_not_be_executed(source: str, run: str) -> None:
    if source == "onward":
        raise Conflict(f"run {run} is executed by Onward: its journals determine its state", hint="cancel or stop it instead")


def _must_be_text(text: str) -> None:
    if "\x00" in text:
        raise InvalidInput("a filter must not contain NUL characters")
