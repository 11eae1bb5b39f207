"""`onward token`: who may come in. Works on the database itself, so no token is needed to make the first one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from onward.cli.context import JsonOption
from onward.cli.output import age_text, json_to_stdout, table, time_text, to_stderr, to_stdout

if TYPE_CHECKING:
    from onward.tracker.access.token_store import TokenStore
    from onward.tracker.access.tokens import Token

app = typer.Typer(name="token", help="Create, list and revoke tokens of the server.", no_args_is_help=True)

DbOption = Annotated[
    str | None,
    typer.Option("--db", metavar="PLACE", help="The server's database: a path or a PostgreSQL URL. Default: $ONWARD_DB, or your own."),
]
_LOGIN_MINUTES = 15


@contextmanager
def _store(db: str | None) -> Iterator[TokenStore]:
    from onward.operations.tracker_access.location import open_tracker, tracker_location

    with open_tracker(tracker_location(os.environ, db)) as opened:
        yield opened.tokens


@app.command("create")
def create(
    name: Annotated[str, typer.Option("--name", help="Whose it is, or what it is for.")] = "",
    scope: Annotated[str, typer.Option("--scope", help="user, run, agent or webhook.")] = "user",
    rights: Annotated[str, typer.Option("--rights", help="For a user's token: read, write or admin.")] = "write",
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="The run that a run token may write to.")] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", metavar="NAME", help="The cluster that an agent speaks for.")] = None,
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="TIME", help="When it expires, from now: 90d for 90 days, or 12:00:00.")
    ] = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Create a token and print it, once."""
    import getpass
    import time

    from onward.errors import InvalidInput
    from onward.operations.tracker_access.location import open_tracker, tracker_location
    from onward.tracker.access.tokens import Rights, Scope

    if scope not in ("user", "run", "agent", "webhook"):
        raise InvalidInput(f"unknown --scope {scope!r}", hint="use user, run, agent or webhook")
    if rights not in list(Rights):
        raise InvalidInput(f"unknown --rights {rights!r}", hint="use read, write or admin")
    now = time.time()
    until = now + _lifetime(expires) if expires else None
    with open_tracker(tracker_location(os.environ, db)) as opened:
        run = opened.tracker.runs.find(run).run_id if run else None
        token, secret = opened.tokens.create(
            Scope(scope), name=name or getpass.getuser(), rights=Rights(rights), run=run, cluster=cluster, expires=until, now=now
        )
    if json:
        json_to_stdout({"schema": 1, **_record(token), "secret": secret.text})
    else:
        to_stdout(secret.text)
        to_stderr(f"token {token.id} ({scope}); it is shown only now. `onward token revoke {token.id}` revokes it.")


@app.command("list")
def listed(
    everything: Annotated[bool, typer.Option("--all", help="Also revoked and expired ones.")] = False,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """List tokens by id. The secrets are not stored and cannot be shown."""
    import time

    now = time.time()
    with _store(db) as store:
        found = [token for token in store.all() if everything or token.stands(now)]
    if json:
        json_to_stdout({"schema": 1, "tokens": [_record(token) for token in found]})
        return
    rows = [
        [
            token.id,
            token.scope,
            token.rights if token.scope in ("user", "session") else token.run or token.cluster or "",
            _ends(token, now),
            age_text(token.last_used),
            token.name,
        ]
        for token in found
    ]
    table(["ID", "SCOPE", "FOR", "EXPIRES", "USED", "NAME"], rows)
    soon = sum(token.ends_soon(now) for token in found)
    if soon:
        to_stderr(f"{soon} of them expire{'s' if soon == 1 else ''} within 14 days; `onward token create` creates a new one")


@app.command("revoke")
def revoke(id: Annotated[str, typer.Argument(metavar="ID", help="A token's id, or its first characters.")], db: DbOption = None) -> None:
    """Revoke a token. A running server refuses it within two seconds."""
    import time

    with _store(db) as store:
        token = store.revoke(id, now=time.time())
    to_stderr(f"token {token.id} ({token.scope}, {token.name}) is revoked")


@app.command("login")
def login(
    rights: Annotated[str, typer.Option("--rights", help="What the browser may do: read, write or admin.")] = "admin",
    name: Annotated[str, typer.Option("--name", help="Whose browser.")] = "",
    db: DbOption = None,
) -> None:
    """Print a link that logs a browser in, once, within 15 minutes.

    Without options the link is for your own browser: it may also start runs from your project folders. Give `--name` for anybody else's."""
    import getpass

    from onward.errors import InvalidInput, NotFound
    from onward.operations.tracker_access.location import login_link, open_tracker, tracker_location
    from onward.operations.tracker_access.owner_logins import OwnerLogins
    from onward.tracker.access.tokens import Rights

    if rights not in list(Rights):
        raise InvalidInput(f"unknown --rights {rights!r}", hint="use read, write or admin")
    location = tracker_location(os.environ, db)
    url = location.served_at()
    if url is None:
        raise NotFound(f"no server on this machine serves {location.words}", hint="start it: onward up")
    with open_tracker(location) as opened:
        owners = None if name or rights != Rights.ADMIN else OwnerLogins(os.environ)
        link = login_link(opened.tokens, url, name=name or getpass.getuser(), rights=Rights(rights), minutes=_LOGIN_MINUTES, owners=owners)
        to_stdout(link)


def _lifetime(text: str) -> int:
    """Seconds of `90d`, or of a time as Slurm writes it."""
    from onward.errors import InvalidInput
    from onward.model.quantity import parse_duration

    days = re.fullmatch(r"([0-9]{1,5})d", text.strip())
    if days and int(days[1]) == 0:
        raise InvalidInput(f"--expires {text!r} is zero", hint="leave it out for a token that never expires")
    return int(days[1]) * 86400 if days else parse_duration(text)


def _ends(token: Token, now: float) -> str:
    if token.revoked:
        return "revoked"
    if not token.stands(now):
        return "its run ended" if token.run_until is not None and now >= token.run_until else "expired"
    return f"{time_text(token.ends)}{' (soon)' if token.ends_soon(now) else ''}" if token.ends else "with its run" if token.run else "never"


def _record(token: Token) -> dict[str, object]:
    return {**{name: value for name, value in vars(token).items() if name != "digest"}, "ends": token.ends}
