"""Inputs of a request, looked at before a job is queued for it: whether they can be fetched, and are what they should be.

A few helpers fetch what is small, once, and throw it away; the job fetches it again, on its node. What cannot be reached from here, or is
large, is left to the job, which looks in the same way.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from onward.clock import Clock
from onward.errors import InputRefused, InputsFailed
from onward.model.requests.inputs import RunInputs, too_large
from onward.supervisor.preparation.download import DownloadTerms, download

_HELPERS = 4
_LARGEST = 64 << 20  # bytes of one input
_PATIENCE = 20.0  # seconds for all inputs of a request


class InputChecks:
    def __init__(self, clock: Clock, env: Mapping[str, str]) -> None:
        self._clock = clock
        self._env = env
        self._helpers = ThreadPoolExecutor(_HELPERS, thread_name_prefix="onward-inputs")
        self._running: dict[str, Future[None]] = {}  # by request
        self._over = False

    def close(self) -> None:
        self._over = True
        self._helpers.shutdown(wait=True, cancel_futures=True)

    @property
    def running(self) -> int:
        return len(self._running)

    def is_done(self, order: RunInputs) -> bool:
        """False: not yet. InputRefused says what no job can change; TokenRefused, that another token may."""
        found = self._running.get(order.request)
        if found is None:
            self._running[order.request] = self._helpers.submit(self._look, order)
            return False
        if not found.done():
            return False
        del self._running[order.request]
        with suppress(OSError):  # no room here says nothing about the input
            found.result()
        return True

    def _look(self, order: RunInputs) -> None:
        until = self._clock.now() + _PATIENCE
        terms = DownloadTerms(
            hosts=order.hosts,
            token=order.token,
            token_for=order.token_for,
            env=self._env,
            cut=lambda: self._over or self._clock.now() >= until,
        )
        left = order.most
        for one in order.fetch:
            most = min(one.most, left, _LARGEST)
            with tempfile.TemporaryDirectory(prefix="onward-input-") as folder:
                try:
                    left -= download(one, Path(folder) / "input", terms, most=most).size
                except InputRefused as error:
                    if most < min(one.most, left) and error.message == too_large(one.name, most):
                        continue
                    raise
                except InputsFailed:  # a job may have more luck
                    return
