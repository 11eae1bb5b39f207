"""From a request to its route and right, by the routes of the app itself. A request that matches none of them goes no further."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from onward.api.access.caller import SAFE
from onward.api.access.rights.access_rules import Right
from onward.api.access.rights.rights_of_routes import ASSET, BEFORE_ROUTES, VIEW

_KEPT = 4096  # requests whose route is remembered
_LONGEST_KEPT = 512  # characters of such a path
_NOT_VIEWS = ("/api", "/docs", "/login", "/metrics", "/healthz", "/readyz", "/webhooks", "/v1")
ASSETS = "/assets/"
RUN = "run_id"  # what every template calls the run of an address


@dataclass(frozen=True, kw_only=True)
class Route:
    """`name`: its row of the table. `run`: the one that the address names. `endpoint`: what FastAPI calls for it."""

    name: str
    right: Right
    run: str | None = None
    endpoint: Callable[..., object] | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class NoRoute:
    """Nothing is at this address, or only for the methods of `allow`."""

    allow: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _RouteRights:
    path: str
    pattern: re.Pattern[str]
    rights: Mapping[str, Right]  # by method
    endpoint: Callable[..., object]


class Routes:
    def __init__(self, api: FastAPI, table: Mapping[str, Right]) -> None:
        """RuntimeError where the table and the routes of the app are not the same."""
        self._entries = []
        listed = set()
        for route in iter_route_contexts(api.routes):
            path, methods, endpoint = route.path, sorted(route.methods or ()), route.endpoint
            if path is None or not methods or endpoint is None:
                raise RuntimeError(f"{route.original_route} has no methods, so it cannot be in the table of rights")
            names = {method: f"{method} {path}" for method in methods}
            missing = [name for name in names.values() if name not in table]
            if missing:
                raise RuntimeError(f"{', '.join(missing)} has no right; give it a row in onward/api/access/rights/rights_of_routes.py")
            listed |= set(names.values())
            rights = {method: table[name] for method, name in names.items()}
            self._entries.append(_RouteRights(path=path, pattern=route.path_regex, rights=rights, endpoint=endpoint))
        unused = [name for name in table if name not in listed]
        if unused:
            raise RuntimeError(f"the table of rights has {', '.join(unused)}, which is not a route")
        self._remembered = lru_cache(maxsize=_KEPT)(self._look_up)

    def find(self, method: str, path: str) -> Route | NoRoute:
        return self._remembered(method, path) if len(path) <= _LONGEST_KEPT else self._look_up(method, path)

    def _look_up(self, method: str, path: str) -> Route | NoRoute:
        """As Starlette chooses: the first that fits path and method; where only paths fit, the method is not allowed."""
        allow: list[str] = []
        for entry in self._entries:
            match = entry.pattern.match(path)
            if match is None:
                continue
            right = entry.rights.get(method)
            if right is not None:
                return Route(name=f"{method} {entry.path}", right=right, run=match.groupdict().get(RUN), endpoint=entry.endpoint)
            allow += entry.rights
        return NoRoute(allow=tuple(dict.fromkeys(allow)))


_VIEW = Route(name=VIEW, right=BEFORE_ROUTES[VIEW])
_ASSET = Route(name=ASSET, right=BEFORE_ROUTES[ASSET])


def page_route(method: str, path: str, accept: bytes) -> Route | NoRoute | None:
    """The page and its files, which are served before the routes; None for the others."""
    if path.startswith(ASSETS):
        return _ASSET if method in SAFE else NoRoute(allow=tuple(sorted(SAFE)))
    return _VIEW if method in SAFE and is_view(path, accept) else None


def is_view(path: str, accept: bytes) -> bool:
    """Whether a browser that goes there means the page."""
    return b"text/html" in accept and not any(path == other or path.startswith(f"{other}/") for other in _NOT_VIEWS)
