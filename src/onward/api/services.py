"""What the routes work with, put together once."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from onward.api.access.rate_limits import StreamLimit
from onward.api.access.token_cache import TokenCache
from onward.api.background.live_events import LiveEvents
from onward.api.server_log import note
from onward.clock import Clock
from onward.operations.context import OperationsContext
from onward.tracker.access.token_store import TokenStore
from onward.tracker.ingest.pushed_files import PushedFiles

if TYPE_CHECKING:
    from onward.operations.alerts.service import AlertService
    from onward.operations.clusters.snapshot_cache import SnapshotCache
    from onward.operations.pipelines.listing import PipelineList
    from onward.operations.tracker_access.owner_logins import OwnerLogins
    from onward.tracker.requests.store import Requests
    from onward.tracker.store import Tracker


@dataclass(kw_only=True)
class Services:
    tracker: Tracker
    tokens: TokenStore
    book: TokenCache
    live: LiveEvents
    context: OperationsContext
    clock: Clock
    files: Path  # what was uploaded, a folder a run
    pushed: PushedFiles  # what jobs sent of folders that are not seen here
    streams: StreamLimit
    secrets: Path  # of the channels of alerts: a file
    requests_at: str  # the gateway's store: a file, or a PostgreSQL address
    url: str = ""  # how people reach this server
    owners: OwnerLogins | None = None  # which logins are the user's who runs this server; None: nobody's
    counts: Callable[[], dict[tuple[str, int], int]] = field(default=dict)  # answers by method and status
    stopping: bool = False
    last_tended: float | None = None
    tend_problems: list[str] = field(default_factory=list)
    _requests: Requests | None = None
    hinted: Callable[[], None] = lambda: None  # a scheduler said that something happened: look soon

    @cached_property
    def alerting(self) -> AlertService:
        """Loaded by the first who asks, for the same reason as below."""
        from onward.operations.alerts.channel_secrets import ChannelSecrets
        from onward.operations.alerts.service import AlertService

        return AlertService(
            tracker=self.tracker, secrets=ChannelSecrets(self.secrets), clock=self.clock, roots=lambda: self.context.roots, url=self.url
        )

    def requests(self) -> Requests | None:
        """The gateway's store, or None while no gateway has made one."""
        if self._requests is None:
            from onward.errors import NotFound
            from onward.tracker.requests.store import Requests

            with contextlib.suppress(NotFound):
                self._requests = Requests.open(self.requests_at, create=False)
        return self._requests

    @cached_property
    def clusters(self) -> SnapshotCache:
        """Asked through the desk, and kept for all who look. Loaded by the first of them: a server should be ready soon."""
        from onward.operations.clusters.snapshot_cache import SnapshotCache, ask_cluster
        from onward.operations.hosts.all_hosts import Hosts

        hosts = Hosts(self.context, lambda words: note(logging.INFO, "cluster", words))
        return SnapshotCache(self.context.settings, lambda name: ask_cluster(hosts, name), self.clock)

    @cached_property
    def pipelines(self) -> PipelineList:
        from onward.operations.pipelines.listing import PipelineList

        return PipelineList(self.context)
