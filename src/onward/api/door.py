"""The hot door: points, one call at a time, thousands of calls a second. Behind the gate, beside FastAPI: no models, no threads, one await.

It knows a few addresses and nothing else; whatever it does not know goes on to the routes, which describe the same calls and share
their reading (`points`). The answer comes after the commit.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from onward.api.admission import Caller
from onward.api.logs import log, note
from onward.api.points import Point, decoded, many_points, one_point, step_of_points
from onward.api.problems import Problem, problem_of
from onward.api.sending import Receive, Send, TooMuch, body_limit, read_body, send_problem
from onward.api.services import Services
from onward.errors import OnwardError

Reader = Callable[[dict[str, Any], float], list[Point]]

_SEED, _NATIVE = "/runs/", "/api/v1/runs/"
_READERS: dict[str, Reader] = {
    "metrics": lambda data, now: many_points(data, now) if "points" in data else [one_point(data, now)],
    "metrics/batch": step_of_points,
}
_OK = [(b"content-type", b"application/json"), (b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]


class Door:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._bridge = Bridge()

    async def __call__(self, caller: Caller, method: str, path: str, receive: Receive, send: Send) -> int:
        start = _SEED if path.startswith(_SEED) else _NATIVE if path.startswith(_NATIVE) else ""
        run, _, what = path[len(start) :].partition("/")
        reader = _READERS.get(what)
        if not start or method != "POST" or reader is None or not run:
            return 0
        try:
            count = await self._take(reader, run, await read_body(receive, body_limit(path) or 1 << 20))
        except OnwardError as error:
            problem = problem_of(error)
        except TooMuch:
            problem = Problem(status=413, detail="the body is too long", hint="send it in parts")
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("points could not be taken", extra={"action": "fault", "said": {"path": path}})
            problem = Problem(status=500, detail="this is a fault of Onward's", hint="the server's log says more")
        else:
            body = b'{"stored":%d}' % count
            await send({"type": "http.response.start", "status": 200, "headers": [*_OK, (b"content-length", b"%d" % len(body))]})
            await send({"type": "http.response.body", "body": body})
            return 200
        note(logging.INFO, "request", f"POST {path} {problem.status}", token=caller.token, why=problem.detail)
        await send_problem(send, problem, path)
        return problem.status

    async def _take(self, reader: Reader, run: str, body: bytes) -> int:
        points = reader(decoded(body), self._services.clock.now())
        if not points:
            return 0
        await self._bridge.wait(self._services.tracker.ingest.submit(run, points))
        return len(points)


class Bridge:
    """Futures of the writer's thread, awaited. Those that are done together wake the loop once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done: list[tuple[asyncio.Future[Any], Future[Any]]] = []

    async def wait(self, future: Future[Any]) -> Any:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Any] = loop.create_future()
        future.add_done_callback(lambda done: self._report(loop, waiter, done))
        return await waiter

    def _report(self, loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[Any], done: Future[Any]) -> None:
        with self._lock:
            first = not self._done
            self._done.append((waiter, done))
        if first:
            loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        with self._lock:
            ready, self._done = self._done, []
        for waiter, done in ready:
            if waiter.cancelled():
                continue
            error = done.exception()
            if error is not None:
                waiter.set_exception(error)
            else:
                waiter.set_result(done.result())
