"""Requests that last (live streams, followed logs, long uploads and downloads) end soon after their token does.

An ordinary request is over before the first check and costs one timer. Later ones ask every few seconds, from memory where the token was
seen a moment ago.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from onward.api.server_log import log

EVERY = 3.0  # seconds


class TokenEnded(Exception):
    """The token of a request that goes on was revoked, has expired, or may no longer do this."""


class TokenWatch:
    def __init__(self, still_may: Callable[[], Awaitable[bool]]) -> None:
        self._still_may = still_may
        self._ended = False
        self._watching: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._timer = asyncio.get_running_loop().call_later(EVERY, self._begin)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._timer.cancel()
        if self._watching is not None:
            self._watching.cancel()
        if self._ended and kind is asyncio.CancelledError and self._task.uncancel() == 0:
            raise TokenEnded from error

    def _begin(self) -> None:
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        try:
            while await self._still_may():
                await asyncio.sleep(EVERY)
        except Exception:
            log.exception("cannot check a token again; ending its request", extra={"action": "fault"})
        self._ended = True
        self._task.cancel()
