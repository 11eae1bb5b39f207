"""Answers that go on: server-sent events, each holding one of its user's streams until it ends, however that comes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from fastapi.responses import StreamingResponse

from onward.api.access.caller import ApiCaller
from onward.api.access.rate_limits import StreamLimit


class Events(StreamingResponse):
    media_type = "text/event-stream"

    def __init__(self, content: AsyncIterator[str], streams: StreamLimit, who: ApiCaller) -> None:
        """TooMany where the user has as many as are allowed."""
        self._streams = streams
        self._key = streams.begin(who)
        super().__init__(content, media_type=self.media_type, headers={"cache-control": "no-store", "x-accel-buffering": "no"})

    async def __call__(self, *asgi: Any) -> None:
        try:
            await super().__call__(*asgi)
        finally:
            self._streams.end(self._key)
