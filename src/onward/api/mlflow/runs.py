"""MLflow's runs: made, read, changed, searched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from fastapi import APIRouter

from onward.api.access.caller import ApiCaller
from onward.api.dependencies import Svc, Who
from onward.api.mlflow.experiments import find as find_experiment
from onward.api.mlflow.random_names import new_name
from onward.api.mlflow.request_body import Body
from onward.api.services import Services
from onward.errors import InvalidInput
from onward.model.mlflow import wire
from onward.model.mlflow.records import Dataset, MlflowRun
from onward.tracker.ingest.receive import put_away
from onward.tracker.runs.experiments import DEFAULT
from onward.tracker.runs.registry import NewRun
from onward.tracker.runs.rows import RunInfo, RunView
from onward.tracker.search.mlflow_search import Search, search_runs, view_run

router = APIRouter(prefix="/api/2.0/mlflow/runs", tags=["MLflow: runs"])
_BEFORE = "ended_before"
_NONE: Final[tuple[Sequence[Dataset], Sequence[str]]] = ((), ())
OURS = "onward"  # the source of runs that we execute: their state is the journal's to tell, not a client's


@router.post("/create")
def create(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Create a run. With a run's own token the answer is that run: a restarted job finds it again."""
    if who.run is not None:
        return {"run": whole_run(svc, view_run(svc.tracker.database, who.run))}
    given = wire.text(body, "experiment_id", needed=False)
    experiment = find_experiment(svc, given) if given else svc.tracker.experiments.get(DEFAULT)
    if experiment.archived is not None:
        raise InvalidInput(f"The experiment {experiment.id} must be in the 'active' state.", hint="restore it first")
    tags = wire.pairs(wire.rows(body, "tags"), "tag", any_key=True)
    named = wire.text(body, "run_name", needed=False)
    if named and tags.get(wire.RUN_NAME) not in (None, named):
        raise InvalidInput(f"Both 'run_name' and the tag {wire.RUN_NAME} were given, and they differ: {named!r}, {tags[wire.RUN_NAME]!r}")
    name = named or tags.get(wire.RUN_NAME) or new_name()
    made = svc.tracker.runs.create(
        NewRun(
            experiment=experiment.id,
            name=name,
            source="mlflow",
            user=(tags.get(wire.USER) or wire.text(body, "user_id", needed=False))[:250],
            started=wire.seconds(body, "start_time") or svc.clock.now(),
            tags={**tags, wire.RUN_NAME: name},
        )
    )
    return {"run": whole_run(svc, view_run(svc.tracker.database, made.run_id))}


@router.get("/get")
def get(svc: Svc, who: Who, run_id: str = "", run_uuid: str = "") -> dict[str, Any]:
    """A run with its params, tags and last metrics."""
    view = view_run(svc.tracker.database, wire.text({"run_id": run_id, "run_uuid": run_uuid}, "run_id", "run_uuid"))
    who.must_read(view.info.run_id)
    return {"run": whole_run(svc, view)}


@router.post("/update")
def update(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Status, end and name. The state of a run that Onward executes comes from its journal: of it, only the name can change."""
    info = live(svc, who, body)
    changes: dict[str, Any] = {}
    name = wire.text(body, "run_name", needed=False)
    if name:
        changes["name"] = name
    status = body.get("status")
    if status is not None:
        state = wire.state(status)
        if info.source != OURS:
            changes["state"] = state
            if state in ("finished", "failed", "cancelled"):
                end = wire.seconds(body, "end_time")
                changes["ended"] = end if end is not None else info.ended or info.details.get(_BEFORE)
            elif info.ended is not None:  # a resumed run sends its old end along; it stands again if no other follows
                changes |= {"ended": None, "details": {**info.details, _BEFORE: info.ended}}
    elif body.get("end_time") is not None and info.source != OURS:
        changes["ended"] = wire.seconds(body, "end_time")
    if changes:
        svc.tracker.runs.update(info.run_id, **changes)
    if name:
        svc.tracker.runs.set_tags(info.run_id, {wire.RUN_NAME: name})
    return {"run_info": wire.info_json(run_record(RunView(info=svc.tracker.runs.get(info.run_id))))}


@router.post("/delete")
def delete(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Delete a run; `restore` brings it back. Nothing is lost."""
    svc.tracker.runs.archive(known(svc, who, body).run_id)
    return {}


@router.post("/restore")
def restore(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Restore a deleted run."""
    svc.tracker.runs.archive(known(svc, who, body).run_id, archived=False)
    return {}


@router.post("/set-tag")
def set_tag(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Set a tag. `mlflow.runName` renames the run."""
    set_tags(svc, live(svc, who, body), wire.pairs([body], "tag"))
    return {}


@router.post("/delete-tag")
def delete_tag(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Delete a tag."""
    svc.tracker.runs.delete_tag(live(svc, who, body).run_id, wire.text(body, "key"))
    return {}


@router.post("/search")
def search(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Runs of experiments by MLflow's filter and order, in pages."""
    size = wire.page_size(body, 1000, 50_000)
    start = wire.offset_of(body.get("page_token"))
    experiments = [wire.experiment_number(id) for id in wire.words(body, "experiment_ids")]
    found, more = search_runs(
        svc.tracker.database,
        Search(
            experiments=experiments,
            filter=wire.text(body, "filter", needed=False),
            orders=wire.words(body, "order_by"),
            archived=wire.archived(body, "run_view_type"),
            limit=size,
            offset=start,
        ),
    )
    if not who.person:
        found = [view for view in found if who.is_mine(view.info.run_id)]
    ids = [view.info.inner for view in found]
    inputs, outputs = svc.tracker.models.inputs(ids), svc.tracker.models.outputs(ids)
    runs = [wire.run_json(run_record(v, inputs.get(v.info.inner, _NONE), outputs.get(v.info.inner, ()))) for v in found]
    answer: dict[str, Any] = {"runs": runs} if runs else {}
    return {**answer, "next_page_token": wire.page_token(start + size)} if more else answer


# ── what other routes need ────────────────────────────────────────────────────


def known(svc: Services, who: ApiCaller, body: Body) -> RunInfo:
    """The run a body names, where the caller may write to it."""
    info = svc.tracker.runs.get(wire.text(body, "run_id", "run_uuid"))
    who.must_write(info.run_id)
    return info


def live(svc: Services, who: ApiCaller, body: Body) -> RunInfo:
    """The same, unless it was deleted."""
    info = known(svc, who, body)
    if info.archived is not None:
        raise put_away(info.hex_id)
    return info


def own_models(svc: Services, who: ApiCaller, models: Iterable[str]) -> None:
    """A run's token may name models that its run created."""
    if not who.person:
        for id in dict.fromkeys(models):
            who.must_own(svc.tracker.models.get(id).run, f"model {id}")


def set_tags(svc: Services, info: RunInfo, tags: dict[str, str]) -> None:
    svc.tracker.runs.set_tags(info.run_id, tags)
    name = tags.get(wire.RUN_NAME)
    if name:
        svc.tracker.runs.update(info.run_id, name=name)


def whole_run(svc: Services, view: RunView) -> dict[str, Any]:
    inner, models = view.info.inner, svc.tracker.models
    return wire.run_json(run_record(view, models.inputs([inner]).get(inner, _NONE), models.outputs([inner]).get(inner, ())))


def run_record(
    view: RunView, inputs: tuple[Sequence[Dataset], Sequence[str]] = _NONE, outputs: Sequence[tuple[str, int]] = ()
) -> MlflowRun:
    info = view.info
    named = info.source != "mlflow" or wire.RUN_NAME in view.tags  # a client may have taken the tag away
    return MlflowRun(
        id=info.hex_id,
        experiment=info.experiment,
        name=info.name,
        user=info.user,
        status=wire.STATUSES.get(info.state, "RUNNING"),
        started=info.created if info.started is None else info.started,
        ended=info.ended,
        deleted=info.archived is not None,
        artifact_uri=run_artifact_uri(info),
        params=view.params,
        tags={**view.tags, wire.RUN_NAME: info.name} if named else view.tags,
        metrics=[(m.key, m.step, m.time, m.value) for m in view.metrics.values()],
        datasets=inputs[0],
        input_models=inputs[1],
        output_models=outputs,
    )


def run_artifact_uri(info: RunInfo) -> str:
    return wire.artifact_uri(info.experiment, info.hex_id, info.artifact_location)
