"""Is it alive, is it ready, and how is it doing: for probes and for Prometheus. Behind the gate like everything; any token opens them."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from sqlalchemy import func, select

from onward import __version__
from onward.api.dependencies import Svc
from onward.api.services import Services
from onward.errors import StorageUnavailable
from onward.tracker import schema

router = APIRouter(tags=["health"])


class Health(BaseModel):
    status: str
    version: str


@router.get("/healthz", summary="Check whether the process is alive")
def healthz() -> Health:
    """Answers as long as the process is alive; does not use the database."""
    return Health(status="ok", version=__version__)


@router.get("/readyz", summary="Check whether the server is ready")
def readyz(svc: Svc) -> Health:
    """503, with the reason, if the database does not answer or is full, or the server is stopping."""
    if svc.stopping:
        raise StorageUnavailable("the server is stopping")
    svc.tracker.must_store()
    return Health(status="ready", version=__version__)


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}, "application/openmetrics-text": {}}}},
)
def metrics(svc: Svc, request: Request) -> Response:
    """Runs by state, answers by status, the writer's queue, listeners, time since runs were last tended."""
    text = exposition(svc)
    if "application/openmetrics-text" in request.headers.get("accept", ""):
        return Response(text + "# EOF\n", media_type="application/openmetrics-text; version=1.0.0; charset=utf-8")
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def exposition(svc: Services) -> str:
    with svc.tracker.reading() as connection:
        states = connection.execute(
            select(schema.runs.c.state, func.count()).where(schema.runs.c.archived.is_(None)).group_by(schema.runs.c.state)
        ).all()
        columns = (schema.series.c.points, schema.tails.c.points)
        points = sum(connection.execute(select(func.coalesce(func.sum(column), 0))).scalar_one() for column in columns)
    answered = [(f'method="{_label(method)}",status="{status}"', count) for (method, status), count in sorted(svc.counts().items())]
    lines = [
        *_family("onward_runs", "gauge", "Runs by state.", [(f'state="{state}"', count) for state, count in states]),
        *_family("onward_points", "gauge", "Points stored.", [("", points)]),
        *_family("onward_http_answers", "counter", "Answers by method and status.", answered),
        *_family("onward_writer_waiting", "gauge", "Jobs that wait for the writer.", [("", svc.tracker.waiting())]),
        *_family("onward_live_listeners", "gauge", "Open live streams.", [("", svc.live.listeners)]),
        *_family("onward_tend_problems", "gauge", "Problems of the last round of tending.", [("", len(svc.tend_problems))]),
    ]
    if svc.last_tended is not None:
        age = max(svc.clock.now() - svc.last_tended, 0.0)
        lines += _family("onward_tended_age_seconds", "gauge", "Since runs were last tended.", [("", round(age, 3))])
    return "\n".join(lines) + "\n"


def _family(name: str, kind: str, words: str, samples: Sequence[tuple[str, float]]) -> list[str]:
    metric = f"{name}_total" if kind == "counter" else name
    shown = [f"{metric}{{{labels}}} {value}" if labels else f"{metric} {value}" for labels, value in samples]
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}", *shown]


def _label(text: str) -> str:
    """A method is whatever a client sends."""
    return text if text.isascii() and text.isalpha() and len(text) <= 16 else "other"
