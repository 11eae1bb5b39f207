"""The hot door: points, one call at a time, thousands of calls a second. Behind the gate, beside FastAPI: no models, no threads, one await.

It knows a few routes and nothing else, MLflow's two for metrics among them; whatever it does not know goes on to the routes, which
describe the same calls and share their reading (`points`, MLflow's `wire`). The answer comes after the commit.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import repeat
from operator import contains
from typing import Any

from starlette.concurrency import run_in_threadpool

from onward.api.access.caller import ApiCaller
from onward.api.access.rights.route_lookup import Route
from onward.api.ingest.columns import ByKey, in_columns
from onward.api.ingest.point_parser import MOST, checked_name, decode_body, many_points, one_point, step_of_points
from onward.api.mlflow import metrics
from onward.api.server_log import log, note
from onward.api.services import Services
from onward.api.transport.problems import Problem, problem_of
from onward.api.transport.responses import BodyTooLarge, Receive, Send, body_limit, read_body, send_problem
from onward.errors import OnwardError
from onward.model.metric import Point
from onward.model.mlflow import wire

Reader = Callable[[dict[str, Any], float], list[Point]]
Endpoint = Callable[[dict[str, Any], Services, ApiCaller], object]


def _one_or_many(data: dict[str, Any], now: float) -> list[Point]:
    return many_points(data, now) if "points" in data else [one_point(data, now)]


_READERS: dict[str, Reader] = {  # by row of the table of rights
    "POST /runs/{run_id}/metrics": _one_or_many,
    "POST /runs/{run_id}/metrics/batch": step_of_points,
    "POST /api/v1/runs/{run_id}/metrics": _one_or_many,
    "POST /api/v1/runs/{run_id}/metrics/batch": step_of_points,
}
_MLFLOW: dict[str, Endpoint] = {
    "POST /api/2.0/mlflow/runs/log-metric": metrics.log_metric,
    "POST /api/2.0/mlflow/runs/log-batch": metrics.log_batch,
}
_OK = [(b"content-type", b"application/json"), (b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]


class FastPath:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._bridge = FutureBridge(services.tracker.ingest.work_here)

    async def __call__(self, caller: ApiCaller, route: Route, path: str, receive: Receive, send: Send) -> int:
        endpoint, reader, run = _MLFLOW.get(route.name), _READERS.get(route.name), route.run or ""
        if reader is None and endpoint is None:
            return 0
        try:
            body = await read_body(receive, body_limit(path) or 1 << 20)
            answer = await (self._take_mlflow(endpoint, caller, body) if endpoint else self._take(reader or _never, run, body))
        except OnwardError as error:
            problem = problem_of(error)
        except BodyTooLarge:
            problem = Problem(status=413, detail="the body is too long", hint="send it in parts")
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("points could not be stored", extra={"action": "fault", "said": {"path": path}})
            problem = Problem(status=500, detail="internal error", hint="see the server's log")
        else:
            await send({"type": "http.response.start", "status": 200, "headers": [*_OK, (b"content-length", b"%d" % len(answer))]})
            await send({"type": "http.response.body", "body": answer})
            return 200
        note(logging.INFO, "request", f"POST {path} {problem.status}", token=caller.token, why=problem.detail)
        await send_problem(send, problem, path)
        return problem.status

    async def _take(self, reader: Reader, run: str, body: bytes) -> bytes:
        data, now = decode_body(body), self._services.clock.now()
        many = data.get("points")
        columns = in_columns(many, "name", checked_name, now) if isinstance(many, list) and 0 < len(many) <= MOST else None
        ingest = self._services.tracker.ingest
        if columns is not None:
            count = len(many or ())
            await self._bridge.wait(ingest.submit_columns(run, columns, count, ring=False))
        else:
            points = reader(data, now)
            count = len(points)
            if points:
                await self._bridge.wait(ingest.submit(run, points, ring=False))
        return b'{"stored":%d}' % count

    async def _take_mlflow(self, endpoint: Endpoint, caller: ApiCaller, body: bytes) -> bytes:
        """Metrics alone, of a run that is named as MLflow's clients name it. Anything else, or anything wrong, is the route's."""
        data = decode_body(body)
        plain = _plain_metrics(data if endpoint is metrics.log_batch else {"run_id": data.get("run_id"), "metrics": [data]})
        if plain is None:
            await run_in_threadpool(endpoint, data, self._services, caller)
        else:
            run, columns, count = plain
            caller.must_write(run)
            await self._bridge.wait(self._services.tracker.ingest.submit_columns(run, columns, count, live=True, ring=False))
        return b"{}"


def _plain_metrics(data: dict[str, Any]) -> tuple[str, ByKey, int] | None:
    run, many = data.get("run_id"), data.get("metrics")
    if not isinstance(run, str) or not run.isalnum() or not run.isascii():
        return None
    if not isinstance(many, list) or not 0 < len(many) <= wire.MOST_METRICS:
        return None
    if data.get("params") or data.get("tags"):
        return None
    columns = in_columns(many, "key", _mlflow_key, None)
    if columns is None or any(map(contains, many, repeat("model_id"))):
        return None
    return run, columns, len(many)


def _mlflow_key(name: str) -> str:
    return wire.key(name, "metric")


def _never(data: dict[str, Any], now: float) -> list[Point]:
    raise AssertionError("no reader for this address")


class FutureBridge:
    """Futures of the tracker, awaited. What was asked for in one round of the loop is worked off together when the round is over; what the
    writer's thread does of it, and has done together, wakes the loop once."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._working = False
        self._thread = 0  # the loop's
        self._lock = threading.Lock()
        self._done: list[tuple[asyncio.Future[Any], Future[Any]]] = []

    async def wait(self, future: Future[Any]) -> Any:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Any] = loop.create_future()
        future.add_done_callback(lambda done: self._report(loop, waiter, done))
        if not self._working:
            self._working, self._thread = True, threading.get_ident()
            loop.call_soon(self._begin)
        return await waiter

    def _begin(self) -> None:
        self._working = False
        self._work()

    def _report(self, loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[Any], done: Future[Any]) -> None:
        if threading.get_ident() == self._thread:
            _settle(waiter, done)
            return
        with self._lock:
            first = not self._done
            self._done.append((waiter, done))
        if first:
            loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        with self._lock:
            ready, self._done = self._done, []
        for waiter, done in ready:
            _settle(waiter, done)


def _settle(waiter: asyncio.Future[Any], done: Future[Any]) -> None:
    if waiter.cancelled():
        return
    error = done.exception()
    if error is not None:
        waiter.set_exception(error)
    else:
        waiter.set_result(done.result())
