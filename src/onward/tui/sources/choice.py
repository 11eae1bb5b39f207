"""Where the screen's data comes from: the server that is named, the one of this machine, else the run folders."""

from __future__ import annotations

import getpass
import time

from onward.errors import InvalidInput, NotFound
from onward.operations.context import OperationsContext
from onward.operations.tracker_access.api_client import ApiClient
from onward.operations.tracker_access.location import open_tracker, tracker_location
from onward.operations.tracker_access.server import tracker_settings
from onward.supervisor.telemetry.tracker_server import read_token
from onward.tui.sources.interface import DataSource
from onward.tui.sources.run_folders import FolderSource
from onward.tui.sources.server import ServerSource

_HOURS = 24 * 7  # that a token of this machine's server lasts, should nobody give it back


def open_source(context: OperationsContext, *, folders: bool) -> DataSource:
    if folders:
        return FolderSource(context)
    named = tracker_settings(context)
    if named is not None:
        if named.token_file is None:
            raise InvalidInput(f"no token for the tracker at {named.url} on this machine", hint="name its file in `tracker.token-file`")
        try:
            return ServerSource(ApiClient(named.url, read_token(named.token_file, folder=False)), context.clock)
        except OSError as error:
            hint = "--folders reads the run folders instead"
            raise NotFound(f"the tracker's token cannot be read from {named.token_file}: {error.strerror}", hint=hint) from error
    return _of_this_machine(context) or FolderSource(context)


def _of_this_machine(context: OperationsContext) -> ServerSource | None:
    """The server that this user started here, with a token that ends with the screen."""
    location = tracker_location(context.env)
    url = location.served_at()
    if url is None:
        return None
    from onward.tracker.access.tokens import Rights, Scope

    now = time.time()
    with open_tracker(location) as opened:
        name = f"{getpass.getuser()}: onward top"
        token, secret = opened.tokens.create(Scope.USER, name=name, rights=Rights.WRITE, expires=now + 3600 * _HOURS, now=now)

    def give_back() -> None:
        with open_tracker(location) as again:
            again.tokens.revoke(token.id, now=time.time())

    return ServerSource(ApiClient(url, secret.text), context.clock, close=give_back)
