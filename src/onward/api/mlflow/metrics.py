"""MLflow's metrics, params and batches of both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter

from onward.api.dependencies import Svc, Who
from onward.api.mlflow.request_body import Body
from onward.api.mlflow.runs import live, own_models, set_tags
from onward.api.services import Services
from onward.errors import InvalidInput, NotFound
from onward.model.mlflow import wire
from onward.tracker.runs.rows import RunInfo
from onward.tracker.search.mlflow_search import keeps_all

router = APIRouter(prefix="/api/2.0/mlflow", tags=["MLflow: metrics"])


@router.post("/runs/log-metric")
def log_metric(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """One point. A point that is sent twice is stored once."""
    if body.get("timestamp") is None:
        raise InvalidInput("Missing value for required parameter 'timestamp'.")
    info = live(svc, who, body)
    own_models(svc, who, _named_models([body]))
    take(svc, info, [body])
    return {}


@router.post("/runs/log-parameter")
def log_parameter(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """One param. A changed value is not an error: a resumed training may change it, and each leg's value is kept."""
    svc.tracker.runs.set_params(live(svc, who, body).run_id, wire.pairs([body], "param"))
    return {}


@router.post("/runs/log-batch")
def log_batch(body: Body, svc: Svc, who: Who) -> dict[str, Any]:
    """Points, params and tags at once."""
    info = live(svc, who, body)
    metrics = wire.rows(body, "metrics", most=wire.MOST_METRICS)
    params = wire.pairs(wire.rows(body, "params", most=wire.MOST_PARAMS), "param")
    tags = wire.pairs(wire.rows(body, "tags", most=wire.MOST_PARAMS), "tag")
    if len(metrics) + len(params) + len(tags) > wire.MOST_ENTITIES:
        raise InvalidInput(f"A batch logging request can contain at most {wire.MOST_ENTITIES} metrics, params and tags together.")
    own_models(svc, who, _named_models(metrics))
    if params:
        svc.tracker.runs.set_params(info.run_id, params)
    if tags:
        set_tags(svc, info, tags)
    take(svc, info, metrics)
    return {}


@router.get("/metrics/get-history")
def history(
    svc: Svc, who: Who, run_id: str = "", run_uuid: str = "", metric_key: str = "", max_results: int | None = None, page_token: str = ""
) -> dict[str, Any]:
    """The points of a metric, in pages if `max_results` is given; of a run that Onward executes, without superseded ones.

    By time, step and value, as MLflow orders them; by step and time if Onward executed several legs, whose clocks may differ.
    """
    try:
        info = svc.tracker.runs.get(wire.text({"run_id": run_id, "run_uuid": run_uuid}, "run_id", "run_uuid"))
    except NotFound:
        if who.run is not None:
            raise
        return {}  # MLflow's server has no points of such a run, and says no more
    who.must_read(info.run_id)
    start = wire.offset_of(page_token)
    size = None if max_results is None else wire.page_size({"max_results": max_results}, 25_000, 50_000)
    key = wire.text({"metric_key": metric_key}, "metric_key")
    every = keeps_all(info)
    found = svc.tracker.series.points(info.run_id, key, superseded=every)
    if every or info.leg <= 1:
        found.sort(key=lambda p: (p.time, p.step, 0.0 if math.isnan(p.value) else p.value))
    found = found[start : None if size is None else start + size + 1]
    metrics = [wire.point_json((key, p.step, p.time, p.value), run_id=info.hex_id) for p in (found if size is None else found[:size])]
    answer: dict[str, Any] = {"metrics": metrics} if metrics else {}
    return {**answer, "next_page_token": wire.page_token(start + size)} if size is not None and len(found) > size else answer


def _named_models(items: Sequence[Any]) -> list[str]:
    return [wire.text(item, "model_id") for item in items if item.get("model_id")]


def take(svc: Services, info: RunInfo, items: Sequence[Any]) -> None:
    """Store the points; those that name a model, with the model too."""
    points = wire.points(items)
    if points:
        svc.tracker.ingest.points(info.run_id, points)
    of_models = [
        (wire.text(item, "model_id"), wire.model_metric(item, point))
        for item, point in zip(items, points, strict=True)
        if item.get("model_id")
    ]
    if of_models:
        svc.tracker.models.log(info.run_id, of_models)
