"""What the routes work with, put together once."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from onward.api.book import TokenBook
from onward.api.limits import Streams
from onward.api.live import Live
from onward.api.logs import note
from onward.clock import Clock
from onward.operations.wiring import Desk
from onward.tracker.pushed_files import PushedFiles
from onward.tracker.token_store import TokenStore

if TYPE_CHECKING:
    from onward.operations.alerting import Alerting
    from onward.operations.cluster import Clusters
    from onward.operations.pipeline_list import PipelineList
    from onward.tracker.requests import Requests
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
    pushed: PushedFiles  # what jobs sent of folders that are not seen here
    streams: Streams
    secrets: Path  # of the channels of alerts: a file
    requests_at: str  # the gateway's store: a file, or a PostgreSQL address
    url: str = ""  # how people reach this server
    counts: Callable[[], dict[tuple[str, int], int]] = field(default=dict)  # answers by method and status
    stopping: bool = False
    last_tended: float | None = None
    tend_problems: list[str] = field(default_factory=list)
    _requests: Requests | None = None
    hinted: Callable[[], None] = lambda: None  # a scheduler said that something happened: look soon

    @cached_property
    def alerting(self) -> Alerting:
        """Loaded by the first who asks, for the same reason as below."""
        from onward.operations.alerting import Alerting
        from onward.operations.channel_secrets import ChannelSecrets

        return Alerting(
            tracker=self.tracker, secrets=ChannelSecrets(self.secrets), clock=self.clock, roots=lambda: self.desk.roots, url=self.url
        )

    def requests(self) -> Requests | None:
        """The gateway's store, or None while no gateway has made one."""
        if self._requests is None:
            from onward.errors import NotFound
            from onward.tracker.requests import Requests

            with contextlib.suppress(NotFound):
                self._requests = Requests.open(self.requests_at, create=False)
        return self._requests

    @cached_property
    def clusters(self) -> Clusters:
        """Asked through the desk, and kept for all who look. Loaded by the first of them: a server should be ready soon."""
        from onward.operations.cluster import Clusters, ask
        from onward.operations.reach import Reach

        reach = Reach(self.desk, lambda words: note(logging.INFO, "cluster", words))
        return Clusters(self.desk.settings, lambda name: ask(reach, name), self.clock)

    @cached_property
    def pipelines(self) -> PipelineList:
        from onward.operations.pipeline_list import PipelineList

        return PipelineList(self.desk)
