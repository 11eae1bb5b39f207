"""The gate: every request passes it first, and without a token that stands nothing behind it is reached. Loopback is no exception.

In order: the Host must be ours, the path honest, the Origin ours; then the token, then the route and its right (`rights`). Only then
does the route see the request, with the `Caller` and the `Route` in its state and an address without the token. Each refusal, and each
address that is no route, is answered here; nothing has been touched by then. A request that lasts is checked again every few seconds:
when its token ends, it ends.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol
from urllib.parse import quote

from onward.api.access.allowed_hosts import HostRules
from onward.api.access.caller import SAFE, ApiCaller
from onward.api.access.credentials import PresentedCredential, presented_credential, split_address
from onward.api.access.login import LoginPage
from onward.api.access.path_check import path_problem
from onward.api.access.rate_limits import RateLimit, seconds
from onward.api.access.result_links import ResultLinks
from onward.api.access.rights.access_rules import refusal
from onward.api.access.rights.rights_of_routes import LOGIN
from onward.api.access.rights.route_lookup import NoRoute, Route, Routes, page_route
from onward.api.access.rights.token_watch import TokenEnded, TokenWatch
from onward.api.access.signed_hints import SignedHints
from onward.api.access.token_cache import TokenCache
from onward.api.mlflow.server_info import ENDPOINT_NOT_FOUND, lacking
from onward.api.server_log import log, note
from onward.api.transport.http_protocol import ADMITTED
from onward.api.transport.problems import Problem, problem_of
from onward.api.transport.responses import guarded, limited, send_problem
from onward.errors import OnwardError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class FastRoutes(Protocol):
    """The small door for routes that are asked thousands of times a second. Its status, or 0 where it has not answered."""

    async def __call__(self, caller: ApiCaller, route: Route, path: str, receive: Receive, send: Send) -> int: ...


class AccessGate:
    def __init__(
        self,
        inner: App,
        *,
        routes: Routes,
        book: TokenCache,
        hosts: HostRules,
        login: LoginPage,
        hot: FastRoutes | None = None,
        root: str = "",
        signed: SignedHints | None = None,
        links: ResultLinks | None = None,
        rate: RateLimit | None = None,
    ) -> None:
        self._inner = inner
        self._routes = routes
        self._book = book
        self._hosts = hosts
        self._login = login
        self._hot = hot
        self._signed = signed
        self._links = links
        self._rate = rate
        self._root = root.rstrip("/")
        self.answered: Counter[tuple[str, int]] = Counter()  # by method and status

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._http(scope, receive, send)
            case "lifespan":
                await self._inner(scope, receive, send)
            case _:  # no web sockets here: refuse the handshake
                await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        method, path = scope["method"], self._own_path(scope["path"])
        address, path = split_address(path)
        headers = dict(scope["headers"])
        problem = self._manners(scope, headers, method, path)
        if problem is not None:
            await self._refuse(scope, send, problem, path, began)
            return
        shown = presented_credential(headers, address, self._login.cookie)
        try:
            if path == LOGIN:
                await self._log_in(scope, headers, receive, send, began)
                return
            if shown is None and self._signed is not None and self._signed.wanted(method, path, headers):
                shown = PresentedCredential("", "signature")
                caller, receive = await self._signed.check(headers, receive)
            elif shown is None and self._links is not None and self._links.wanted(method, path, scope["query_string"]):
                shown = PresentedCredential("", "signature")
                caller = await asyncio.to_thread(self._links.check, path, scope["query_string"])
            else:
                caller = await self._caller(shown)
        except OnwardError as error:  # the database does not answer: nobody is let in, and nobody is told that a token is wrong
            await self._refuse(scope, send, problem_of(error), path, began)
            return
        route = page_route(method, path, headers.get(b"accept", b"")) or self._routes.find(method, path)
        problem = self._admit(caller, shown, route, headers, method, path)
        if caller is None or shown is None or problem is not None or isinstance(route, NoRoute):
            if caller is None and _wants_page(method, headers):
                await self._login.page(send, self._root, note="", to=_target(path, scope))
                self._tell(scope, path, 401, began)
            else:
                await self._refuse(scope, send, problem or _UNKNOWN, path, began, caller)
            return
        scope[ADMITTED] = True
        if self._hot is not None and method == "POST":
            status = await self._hot(caller, route, path, receive, send)
            if status:
                self.answered[method, status] += 1
                return
        wait = self._rate.take(caller.token) if self._rate is not None else 0.0
        if wait:
            await self._refuse(scope, send, _too_fast(wait), path, began, caller)
            return
        scope.setdefault("state", {}).update(caller=caller, route=route)
        scope["root_path"] = self._root
        scope["path"] = self._root + path
        scope["raw_path"] = quote(self._root + path).encode()  # without the token
        await self._pass_on(caller, shown, scope, headers, receive, send, path, began)

    async def _pass_on(
        self,
        caller: ApiCaller,
        shown: PresentedCredential,
        scope: Scope,
        headers: dict[bytes, bytes],
        receive: Receive,
        send: Send,
        path: str,
        began: float,
    ) -> None:
        receive_some, problem = limited(receive, headers, path)
        if problem is not None:
            await self._refuse(scope, send, problem, path, began, caller)
            return
        guard = guarded(send)
        route: Route = scope["state"]["route"]
        watch = TokenWatch(lambda: self._still_may(shown, route))
        try:
            with watch:
                await self._inner(scope, receive_some, guard)
        except TokenEnded:
            await guard.cut_off(_UNKNOWN, path)
        except Exception:
            log.exception("a request failed", extra={"action": "fault", "said": {"method": scope["method"], "path": path}})
            if not guard.status:
                await send_problem(guard, Problem(status=500, detail="internal error", hint="see the server's log"), path)
        self._tell(scope, path, guard.status or 500, began, caller)

    def _own_path(self, path: str) -> str:
        """Without the prefix of a proxy that leaves it on."""
        if self._root and (path == self._root or path.startswith(f"{self._root}/")):
            return path[len(self._root) :] or "/"
        return path

    def _manners(self, scope: Scope, headers: dict[bytes, bytes], method: str, path: str) -> Problem | None:
        host = headers.get(b"host", b"").decode("latin-1")
        server = scope.get("server")
        if not self._hosts.host_is_ours(host, server[0] if server else None) or sum(name == b"host" for name, _ in scope["headers"]) != 1:
            return Problem(
                status=421,
                detail="this server does not answer to the Host of this request",
                hint="`onward up --name HOST` adds a name it answers to",
            )
        why = path_problem(path)
        if why is not None:
            hint = "an address must not contain '.', '..', '\\', '#' or anything encoded twice; give the file another name"
            return Problem(status=400, detail=f"{why}; such a path is refused", hint=hint)
        origin = headers.get(b"origin")
        if origin is not None and not self._hosts.origin_is_ours(origin.decode("latin-1"), host):
            return Problem(status=403, detail="the request comes from a page of another origin; only this server's own pages are allowed")
        return None

    async def _caller(self, shown: PresentedCredential | None) -> ApiCaller | None:
        if shown is None:
            return None
        caller = self._book.known(shown.text)
        if caller is not None:
            return caller
        return await asyncio.to_thread(self._book.check, shown.text)

    async def _still_may(self, shown: PresentedCredential, route: Route) -> bool:
        """Asked of a request that goes on: whether its token would be let in now. A signature is good for its one request."""
        if shown.by == "signature":
            return True
        try:
            caller = await self._caller(shown)
        except OnwardError:  # as long as nobody is let in for want of a database, nobody stays in either
            return False
        return caller is not None and refusal(caller, route.right, route.run) is None

    def _admit(
        self,
        caller: ApiCaller | None,
        shown: PresentedCredential | None,
        route: Route | NoRoute,
        headers: dict[bytes, bytes],
        method: str,
        path: str,
    ) -> Problem | None:
        if caller is None or shown is None:
            return _UNKNOWN if shown else _NONE
        if shown.by == "cookie" and method not in SAFE and b"origin" not in headers:
            return Problem(status=403, detail="a browser must send Origin with a request that writes")
        if isinstance(route, NoRoute):
            return _nothing_there(route, path)
        why = refusal(caller, route.right, route.run)
        return Problem(status=403, detail=why) if why else None

    async def _log_in(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send, began: float) -> None:
        status = await self._login(scope, headers, receive, send, self._root)
        self._tell(scope, LOGIN, status, began)

    async def _refuse(self, scope: Scope, send: Send, problem: Problem, path: str, began: float, caller: ApiCaller | None = None) -> None:
        await send_problem(send, problem, path)
        self._tell(scope, path, problem.status, began, caller)

    def _tell(self, scope: Scope, path: str, status: int, began: float, caller: ApiCaller | None = None) -> None:
        self.answered[scope["method"], status] += 1
        client = scope.get("client")
        note(
            logging.INFO,
            "request",
            f"{scope['method']} {path} {status}",
            ms=round((time.perf_counter() - began) * 1000, 1),
            token=caller.token if caller else None,
            client=client[0] if client else None,
        )


_NONE = Problem(
    status=401,
    detail="no token was sent",
    hint="send `Authorization: Bearer TOKEN` or `X-API-Key: TOKEN`, or begin the address with /t/TOKEN; `onward token create` creates one",
    headers={"www-authenticate": "Bearer"},
)
_UNKNOWN = Problem(
    status=401,
    detail="this token is unknown, expired or revoked",
    hint="`onward token list` shows the valid ones, `onward token create` creates a new one",
    headers={"www-authenticate": 'Bearer error="invalid_token"'},
)


def _nothing_there(found: NoRoute, path: str) -> Problem:
    if found.allow:
        return Problem(status=405, detail="this address does not accept this method", headers={"allow": ", ".join(found.allow)})
    hint, code = (lacking(path), ENDPOINT_NOT_FOUND) if "/mlflow/" in path else ("", "")
    return Problem(status=404, detail="there is nothing at this address", hint=hint, code=code)


def _too_fast(wait: float) -> Problem:
    return Problem(
        status=429,
        detail="this token sends more requests than are allowed",
        hint="wait as long as Retry-After says; `server.requests` in the server's settings is the limit",
        headers={"retry-after": seconds(wait)},
    )


def _target(path: str, scope: Scope) -> str:
    """Where a browser wanted to go, for after its login."""
    query = scope.get("query_string", b"").decode("latin-1")
    return quote(path, safe="/:@!$&'()*+,=~") + (f"?{query}" if query else "")


def _wants_page(method: str, headers: dict[bytes, bytes]) -> bool:
    return method == "GET" and b"text/html" in headers.get(b"accept", b"")
