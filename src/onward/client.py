"""Runs and their series in a notebook: `onward.Client()`.

    client = onward.Client()                                   # the server of the settings, or the one that you started on this machine
    client = onward.Client("https://tracker.lab.org", token="owu_…")
    client.runs("state = finished and metrics.loss < 0.1")     # a table: a row a run, columns params.lr, metrics.loss, tags.…
    client.series(["k3x9q2m7"], ["loss"])                      # a table: run, metric, step, time, value

A table is a pandas.DataFrame where pandas is there, else a polars.DataFrame, else a list of dicts; `frame="pandas"`, `"polars"` or
`"dicts"` says which. Needs nothing but Onward itself.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote

from onward.errors import InvalidInput, NotFound
from onward.operations.context import OperationsContext
from onward.operations.tracker_access.api_client import ApiClient
from onward.operations.tracker_access.location import open_tracker, tracker_location
from onward.operations.tracker_access.server import tracker_settings
from onward.supervisor.telemetry.tracker_server import read_token

Frame = Literal["auto", "pandas", "polars", "dicts"]
Rows = list[dict[str, Any]]

_PAGE = 1000  # runs in an answer
_POINTS = 100_000  # points in an answer
_HOURS = 12  # that a token of this machine's server lasts, should nobody give it back
_PLAIN = ("id", "name", "experiment_name", "state", "why", "user", "cluster", "created", "started", "ended", "last_step", "leg")


class Client:
    """`url` and `token` of a server. Default: from the settings or the variables, else the server that you started on this machine."""

    def __init__(self, url: str | None = None, token: str | None = None, *, frame: Frame = "auto") -> None:
        if (url is None) != (token is None):
            raise InvalidInput("onward.Client needs both url and token, or neither", hint="`onward token create` creates a token")
        self._api = ApiClient(url, token, timeout=60.0) if url is not None and token is not None else _nearest()
        self._frame: Frame = frame
        self.url = self._api.url

    def __repr__(self) -> str:
        return f"onward.Client({self.url!r})"

    def runs(
        self,
        filter: str = "",
        *,
        experiment: str | Sequence[str] = (),
        order: Sequence[str] = (),
        metrics: Sequence[str] | None = None,
        limit: int = 10_000,
        frame: Frame | None = None,
    ) -> Any:
        """One row per run; params, tags and last values of metrics are columns. `metrics`: only these. Filters as in the run list."""
        asked: dict[str, Any] = {"filter": filter, "order": list(order), "experiment": _many(experiment)}
        asked["metrics"] = "true" if metrics is None else ",".join(metrics) or "false"
        return self._table([_flat(run) for run in self._pages("/api/v1/runs", asked, "runs", limit)], frame)

    def run(self, run: str) -> dict[str, Any]:
        """Everything about one run, as the server returns it."""
        body: dict[str, Any] = self._api.get(f"/api/v1/runs/{quote(run, safe='')}")
        return body

    def experiments(self, *, frame: Frame | None = None) -> Any:
        return self._table(self._api.get("/api/v1/experiments")["experiments"], frame)

    def series(
        self,
        runs: str | Sequence[str],
        metrics: str | Sequence[str],
        *,
        resolution: int | None = None,
        frame: Frame | None = None,
    ) -> Any:
        """Points, legs stitched: run, metric, step, time, value, leg. `resolution`: at most this many buckets per series instead, each with
        its first step and time, and the mean, lowest and highest of its values."""
        pairs = [(run, metric) for run in _many(runs) for metric in _many(metrics)]
        if resolution is not None:
            return self._table(self._buckets(_many(runs), _many(metrics), resolution), frame)
        return self._table([row for run, metric in pairs for row in self._points(run, metric)], frame)

    def ask(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        """Any other GET call of the API, by its path after /api/v1/: `client.ask(f"runs/{id}/overview")`."""
        return self._api.get(f"/api/v1/{path}", query)

    def _points(self, run: str, metric: str) -> Iterator[dict[str, Any]]:
        path = f"/api/v1/runs/{quote(run, safe='')}/points"
        for point in self._pages(path, {"metric": metric}, "points", None, page=_POINTS):
            named = {name: point[name] for name in ("step", "time", "value", "leg")}
            yield {"run": run, "metric": metric, **named, "value": float(point["value"])}

    def _buckets(self, runs: list[str], metrics: list[str], resolution: int) -> Rows:
        asked: dict[str, Any] = {"run": runs, "metric": metrics, "buckets": resolution, "means": True, "times": True}
        rows: Rows = []
        for chart in self._api.get("/api/v1/series", asked)["series"]:
            exact = chart["exact"]
            columns = [chart["values"]] * 3 if exact else [chart["means"], chart["lows"], chart["highs"]]
            for step, at, *values in zip(chart["steps"], chart["times"], *columns, strict=True):
                value, low, high = (None if one is None else float(one) for one in values)
                rows.append(
                    {"run": chart["run"], "metric": chart["metric"], "step": step, "time": at, "value": value, "low": low, "high": high}
                )
        return rows

    def _pages(self, path: str, asked: Mapping[str, Any], of: str, limit: int | None, *, page: int = _PAGE) -> Iterator[dict[str, Any]]:
        offset: int | None = 0
        while offset is not None and (limit is None or offset < limit):
            most = page if limit is None else min(page, limit - offset)
            body = self._api.get(path, {**asked, "limit": most, "offset": offset})
            yield from body[of]
            offset = body["next"]

    def _table(self, rows: Rows, frame: Frame | None) -> Any:
        return as_table(rows, frame or self._frame)


def as_table(rows: Rows, frame: Frame) -> Any:
    match _which() if frame == "auto" else frame:
        case "pandas":
            return _library("pandas").DataFrame(rows)
        case "polars":
            return _library("polars").DataFrame(rows, infer_schema_length=None)
        case "dicts":
            return rows
        case other:
            raise InvalidInput(f"unknown frame {other!r}", hint="use auto, pandas, polars or dicts")


def _which() -> Frame:
    """The one that is in use already; else pandas, else polars, else none."""
    names: tuple[Frame, Frame] = ("pandas", "polars")
    loaded = [name for name in names if name in sys.modules]
    return (loaded or [name for name in names if importlib.util.find_spec(name)] or ["dicts"])[0]


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NotFound(f"{name} is not installed", hint=f'pip install {name}, or frame="dicts"') from error


def _flat(run: Mapping[str, Any]) -> dict[str, Any]:
    row = {"experiment" if name == "experiment_name" else name: run.get(name) for name in _PLAIN}
    row |= {f"params.{key}": _number(value) for key, value in run.get("params", {}).items()}
    row |= {f"metrics.{key}": float(metric["value"]) for key, metric in run.get("metrics", {}).items()}
    return row | {f"tags.{key}": value for key, value in run.get("tags", {}).items()}


def _number(text: str) -> str | int | float:
    """A param that is a number, as one: params are kept as texts."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _many(given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _nearest() -> ApiClient:
    context = OperationsContext(env=os.environ)
    named = tracker_settings(context)
    if named is not None and named.token_file is not None:
        try:
            return ApiClient(named.url, read_token(named.token_file.expanduser(), folder=False), timeout=60.0)
        except OSError as error:
            raise NotFound(f"the tracker's token cannot be read from {named.token_file}: {error.strerror}") from error
    location = tracker_location(os.environ)
    url = location.served_at()
    if url is None:
        raise NotFound("no server is set, and none runs here", hint='onward.Client("https://…", token="owu_…"), or start one: onward up')
    from onward.tracker.access.tokens import Rights, Scope

    now = time.time()
    with open_tracker(location) as opened:
        token, secret = opened.tokens.create(
            Scope.USER, name=f"{context.user}: onward.Client", rights=Rights.READ, expires=now + 3600 * _HOURS, now=now
        )

    def give_back() -> None:
        with open_tracker(location) as again:
            again.tokens.revoke(token.id, now=time.time())

    atexit.register(give_back)
    return ApiClient(url, secret.text, timeout=60.0)
