"""Where the screen's data comes from: the server that is named, the one of this machine, else the run folders."""

from __future__ import annotations

import getpass
import time

from onward.errors import InvalidInput, NotFound
from onward.operations.announce import tracker_of
from onward.operations.tracking import open_tracker, place_of
from onward.operations.wiring import Desk
from onward.supervisor.upstream import read_token
from onward.tui.api import Api
from onward.tui.folders import Folders
from onward.tui.server import Server
from onward.tui.source import Source

_HOURS = 24 * 7  # that a token of this machine's server lasts, should nobody give it back


def open_source(desk: Desk, *, folders: bool) -> Source:
    if folders:
        return Folders(desk)
    named = tracker_of(desk)
    if named is not None:
        if named.token_file is None:
            raise InvalidInput(f"there is no token for the tracker at {named.url} here", hint="name its file by `tracker.token-file`")
        try:
            return Server(Api(named.url, read_token(named.token_file, folder=False)), desk.clock)
        except OSError as error:
            hint = "--folders reads the run folders instead"
            raise NotFound(f"the tracker's token cannot be read from {named.token_file}: {error.strerror}", hint=hint) from error
    return _of_this_machine(desk) or Folders(desk)


def _of_this_machine(desk: Desk) -> Server | None:
    """The server that this user started here, with a token that ends with the screen."""
    place = place_of(desk.env)
    url = place.served_at()
    if url is None:
        return None
    from onward.tracker.tokens import Rights, Scope

    now = time.time()
    with open_tracker(place) as opened:
        name = f"{getpass.getuser()}: onward top"
        token, secret = opened.tokens.create(Scope.USER, name=name, rights=Rights.WRITE, expires=now + 3600 * _HOURS, now=now)

    def give_back() -> None:
        with open_tracker(place) as again:
            again.tokens.revoke(token.id, now=time.time())

    return Server(Api(url, secret.text), desk.clock, close=give_back)
