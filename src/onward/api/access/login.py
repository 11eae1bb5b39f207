"""Logging in from a browser: a one-time link, or a token pasted into a form, becomes a cookie that scripts cannot read.

The answer to a good link is a page that moves on by itself rather than a redirect: a browser that came from elsewhere would not send a
SameSite=Strict cookie with the redirect, and would have to log in twice.

Failures are bounded by address; a valid token or link is let in all the same. Behind a proxy or a tunnel everybody has one address, and
whoever fails there must not lock the others out. Guessing gains nothing by that: a secret has 256 random bits.
"""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import parse_qs

from onward.api.access.rate_limits import RateLimit, seconds
from onward.api.plain_pages import HTML, STYLED, page_of
from onward.api.transport.problems import Problem
from onward.api.transport.responses import BodyTooLarge, Receive, Send, read_body, send_problem, send_whole
from onward.clock import Clock
from onward.operations.tracker_access.owner_logins import OwnerLogins
from onward.tracker.access.token_store import TokenStore
from onward.tracker.access.tokens import Scope, Secret, Token

SESSION_DAYS = 30
_TO = re.compile(r"/(?![/\\])[\x21-\x7e]{0,4000}")  # a place on this server, and nothing that a browser would take for another


class LoginPage:
    def __init__(
        self, store: TokenStore, clock: Clock, *, cookie: str, secure: bool = False, failures: int = 5, owners: OwnerLogins | None = None
    ) -> None:
        """`cookie`: its name. `failures`: how many a minute from one address. `owners`: who is the server's own user."""
        self._owners = owners
        self.cookie = cookie
        self._store = store
        self._clock = clock
        self._secure = secure
        self._failures = RateLimit(failures / 60, room=failures, clock=clock)

    async def __call__(self, scope: MutableMapping[str, Any], headers: dict[bytes, bytes], receive: Receive, send: Send, root: str) -> int:
        """Answer `/login`; the status that was sent."""
        query = scope.get("query_string", b"")
        code = _first(query.decode("latin-1") if isinstance(query, bytes) else "", "code")
        trying = scope["method"] == "POST" or bool(code)
        if scope["method"] == "GET":
            session = await asyncio.to_thread(self._redeem, code) if code else None
            note = "This link was already used, or is too old: ask for a new one." if code else ""
            to = "/"
        elif scope["method"] == "POST":
            token, to = await _form(receive)
            session = await asyncio.to_thread(self._exchange, token)
            note = "This token is unknown, expired or revoked."
        else:
            session, note, to = None, "", "/"
        if session is None:
            client = (scope.get("client") or ("",))[0]
            if trying and (wait := self._failures.take(client)):
                await send_problem(send, _too_often(wait), "/login")
                return 429
            return await self.page(send, root, note=note, to=to)
        await self._welcome(send, session, root, to)
        return 200

    async def page(self, send: Send, root: str, *, note: str, to: str = "/") -> int:
        """401 with the way in: what a browser without a token gets, wherever it went. It gets there (`to`) once it is known."""
        said = f'<p class="note" role="alert">{html.escape(note)}</p>' if note else ""
        body = page_of(
            "Log in", _PAGE.format(action=html.escape(f"{root}/login", quote=True), note=said, to=html.escape(_place(to), quote=True))
        )
        await send_whole(send, 401, body, [*STYLED, (b"www-authenticate", b"Bearer")])
        return 401

    async def _welcome(self, send: Send, session: Secret, root: str, to: str) -> None:
        flags = f"Path={root or '/'}; HttpOnly; SameSite=Strict; Max-Age={SESSION_DAYS * 86400}" + ("; Secure" if self._secure else "")
        home = html.escape(f"{root}{_place(to)}", quote=True)
        await send_whole(
            send, 200, _MOVE_ON.format(home=home).encode(), [HTML, (b"set-cookie", f"{self.cookie}={session.text}; {flags}".encode())]
        )

    def _redeem(self, code: str) -> Secret | None:
        token = self._store.redeem(code, now=self._clock.now())
        return self._session(token) if token else None

    def _exchange(self, text: str) -> Secret | None:
        token = self._store.check(text, now=self._clock.now())
        return self._session(token) if token and token.scope is Scope.USER else None

    def _session(self, token: Token) -> Secret:
        now = self._clock.now()
        until = now + SESSION_DAYS * 86400
        expires = min(until, token.expires) if token.expires is not None and token.scope is Scope.USER else until
        parent = token.id if token.scope is Scope.USER else None  # a login code is used up by now
        made, secret = self._store.create(Scope.SESSION, name=token.name, rights=token.rights, expires=expires, parent=parent, now=now)
        if self._owners and token.scope is Scope.LOGIN and self._owners.has(token.id):
            self._owners.add(made.id)
        return secret


def _too_often(wait: float) -> Problem:
    return Problem(
        status=429,
        detail="too many logins have failed from this address",
        hint="wait a minute, then try again",
        headers={"retry-after": seconds(wait)},
    )


async def _form(receive: Receive) -> tuple[str, str]:
    """The token, and where to go then."""
    try:
        body = (await read_body(receive, 16384)).decode("latin-1")
    except BodyTooLarge:
        return "", "/"
    return _first(body, "token").strip(), _first(body, "to")


def _place(to: str) -> str:
    return to if _TO.fullmatch(to) else "/"


def _first(query: str, key: str) -> str:
    try:
        return parse_qs(query, max_num_fields=8).get(key, [""])[0]
    except ValueError:
        return ""


_PAGE = """{note}
<p>Open the link that <code>onward up</code> printed, or get a new one where the server runs:</p>
<pre>onward token login</pre>
<form method="post" action="{action}"><input type="hidden" name="to" value="{to}">
<label for="token">Or paste a token</label>
<div><input id="token" name="token" type="password" autocomplete="off" required autofocus><button>Log in</button></div></form>
"""

_MOVE_ON = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Onward</title><meta http-equiv="refresh" content="0; url={home}"></head>
<body><p>You are logged in. <a href="{home}">Continue</a>.</p></body></html>
"""
