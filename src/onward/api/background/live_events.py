"""What happens, as it happens: one list of events with cursors, any number of listeners, told by server-sent events.

An event has a number; a browser that comes back says the last one it saw (`Last-Event-ID`) and gets what it missed. Where that is too
long ago, or was another server's, it gets `reset` and reads anew. Events are hints to read, never the truth: losing one loses
nothing.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections import deque
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from typing import Any

_KEPT = 10_000
_HEARTBEAT = 15.0
_LIFE = 120.0  # seconds: then a listener comes back, and shows whether it still may listen


@dataclass(frozen=True, kw_only=True)
class LiveEvent:
    number: int
    event: str
    run: str
    data: str

    def wanted(self, runs: Collection[str], events: Collection[str]) -> bool:
        return (not runs or self.run in runs) and (not events or self.event in events)


class LiveEvents:
    def __init__(self, *, life: float = _LIFE) -> None:
        self._life = life
        self._boot = secrets.token_hex(4)  # numbers of another life of the server mean nothing here
        self._lock = threading.Lock()
        self._told: deque[LiveEvent] = deque(maxlen=_KEPT)
        self._number = 0
        self._listeners: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._closing = False

    @property
    def cursor(self) -> str:
        return f"{self._boot}-{self._number}"

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def tell(self, event: str, run: str, **data: Any) -> None:
        """From any thread. Never waits and never fails."""
        with self._lock:
            self._number += 1
            text = json.dumps({"event": event, "run_id": run, **data}, default=str)
            self._told.append(LiveEvent(number=self._number, event=event, run=run, data=text))
        self._wake()

    def status_changed(self, run: str, status: str) -> None:
        self.tell("run_status_changed", run, status=status)

    def close(self) -> None:
        """Listeners are let go, so that the server can stop."""
        self._closing = True
        self._wake()

    async def listen(self, after: str | None, *, runs: Collection[str] = (), events: Collection[str] = ()) -> AsyncIterator[str]:
        """The stream's text, piece by piece, until the listener leaves, has listened for long, or the server stops."""
        waking = asyncio.Event()
        entry = (asyncio.get_running_loop(), waking)
        self._listeners.add(entry)
        until = entry[0].time() + self._life
        try:
            seen, fresh = self._since(after)
            cursor, hello = f"{self._boot}-{seen}", "hello" if fresh else "reset"
            yield f"retry: 2000\nid: {cursor}\nevent: {hello}\ndata: {json.dumps({'event': hello, 'cursor': cursor})}\n\n"
            while not self._closing and entry[0].time() < until:
                waking.clear()
                news = self._news(seen)
                for event in news:
                    if event.wanted(runs, events):
                        yield f"id: {self._boot}-{event.number}\nevent: {event.event}\ndata: {event.data}\n\n"
                seen = news[-1].number if news else seen
                try:
                    await asyncio.wait_for(waking.wait(), min(_HEARTBEAT, max(until - entry[0].time(), 0.0)))
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self._listeners.discard(entry)

    def _since(self, after: str | None) -> tuple[int, bool]:
        """From which number to tell, and whether nothing was missed."""
        boot, _, number = (after or "").rpartition("-")
        with self._lock:
            if not after:
                return self._number, True
            oldest = self._told[0].number if self._told else self._number + 1
            if boot != self._boot or not number.isdigit() or not oldest - 1 <= int(number) <= self._number:
                return self._number, False
            return int(number), True

    def _news(self, seen: int) -> list[LiveEvent]:
        with self._lock:
            behind = self._number - seen
            return list(self._told)[-behind:] if behind > 0 else []

    def _wake(self) -> None:
        for loop, waking in tuple(self._listeners):
            try:
                loop.call_soon_threadsafe(waking.set)
            except RuntimeError:  # its loop is gone, and so is the listener
                self._listeners.discard((loop, waking))
