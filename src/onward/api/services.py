"""What the routes work with, put together once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from onward.api.book import TokenBook
from onward.api.limits import Streams
from onward.api.live import Live
from onward.clock import Clock
from onward.operations.wiring import Desk
from onward.tracker.token_store import TokenStore

if TYPE_CHECKING:
    from onward.tracker.store import Tracker


@dataclass(kw_only=True)
class Services:
    tracker: Tracker
    tokens: TokenStore
    book: TokenBook
    live: Live
    desk: Desk
    clock: Clock
    files: Path  # what was uploaded, a folder a run
    streams: Streams
    counts: Callable[[], dict[tuple[str, int], int]] = field(default=dict)  # answers by method and status
    stopping: bool = False
    last_tended: float | None = None
    tend_problems: list[str] = field(default_factory=list)
    hinted: Callable[[], None] = lambda: None  # a scheduler said that something happened: look soon
