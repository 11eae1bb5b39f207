"""Clients that log one point after another over HTTP, each again until it is acknowledged: what a server is killed under."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable
from types import TracebackType
from urllib.parse import urlsplit

from tests.servers import PATIENCE, Running


class Load:
    """`with Load(server, token, runs) as load:` one thread a run; `acknowledged` are the steps that were answered 200, by run."""

    def __init__(self, server: Running, token: str, runs: list[str]) -> None:
        self._server = server
        self._token = token
        self.acknowledged: dict[str, set[int]] = {run: set() for run in runs}
        self.refused = 0  # told to try again
        self.wrong: list[str] = []  # what no client should ever see
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._log, args=(run,), daemon=True) for run in runs]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    @property
    def count(self) -> int:
        return sum(len(steps) for steps in self.acknowledged.values())

    def wait_for(self, more: int) -> None:
        before = self.count
        wait_until(lambda: self.count >= before + more or bool(self.wrong))
        assert self.wrong == []

    def check(self) -> int:
        """Every acknowledged point is there, exactly once; how many points there are."""
        assert self.wrong == []
        total = 0
        for run, steps in self.acknowledged.items():
            asked = f"/api/v1/runs/{run}/points?metric=loss&limit=100000"
            points = self._server.json("GET", asked, self._token)["points"]
            stored = [point["step"] for point in points]
            assert all(point["value"] == point["step"] / 2 for point in points)
            assert len(stored) == len(set(stored))
            assert steps <= set(stored)
            assert len(set(stored) - steps) <= 1  # one under way when it ended
            total += len(stored)
        return total

    def _log(self, run: str) -> None:
        step = 0
        while not self._over.is_set():
            parts = urlsplit(self._server.url)
            with contextlib.closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)) as connection:
                try:
                    while not self._over.is_set():
                        fields = {"name": "loss", "value": step / 2, "step": step, "timestamp": 1.7e9 + step}  # a retry sends the same
                        connection.request("POST", f"/t/{self._token}/runs/{run}/metrics", body=json.dumps(fields))
                        answer = connection.getresponse()
                        body = answer.read()
                        if answer.status == 200:
                            self.acknowledged[run].add(step)
                            step += 1
                        elif answer.status == 503:
                            self.refused += 1
                            self._over.wait(0.02)
                        else:
                            self.wrong.append(f"{answer.status} {body[:300]!r}")
                            return
                except (OSError, http.client.HTTPException):
                    self._over.wait(0.02)


def wait_until(check: Callable[[], bool], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.02)
