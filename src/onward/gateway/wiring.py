"""Putting a gateway together: from the settings, the environment and the place of the store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from onward.gateway.broker import Broker, forget_secrets
from onward.gateway.intake import allowed_hosts
from onward.gateway.main import Gateway, GatewayParts
from onward.model.gateway import GatewaySettings
from onward.operations.results import collect
from onward.operations.rodan import RodanLogin
from onward.operations.serve import Serve
from onward.operations.serve_parts import ServeSettings
from onward.operations.tracking import Place
from onward.operations.wiring import Desk
from onward.pipelines.recipes import read_recipes
from onward.tracker.requests import Requests

_RODAN_SECRETS = ("RODAN_PASSWORD",)


@dataclass(frozen=True, kw_only=True)
class Logins:
    """Who the gateway is, at the broker and at Rodan."""

    settings: GatewaySettings
    broker: Broker
    rodan: RodanLogin | None = None

    @classmethod
    def taken(cls, env: MutableMapping[str, str], settings: GatewaySettings, *, v1: bool = False) -> Logins:
        """Read from the environment, and out of it: nothing that this process starts gets to see them."""
        old = replace(settings.v1, enabled=settings.v1.enabled or v1)
        broker = Broker.of(env, settings)
        rodan = RodanLogin.of(env, old.rodan) if old.enabled else None
        forget_secrets(env)
        for name in _RODAN_SECRETS:
            env.pop(name, None)
        if rodan is not None:
            old = replace(old, rodan=rodan.url)
        return cls(settings=replace(settings, v1=old), broker=broker, rodan=rodan)


@contextmanager
def open_gateway(
    logins: Logins, desk: Desk, place: Place, *, tends: Callable[[], bool] | None = None, ready: Callable[[], None] = lambda: None
) -> Iterator[Gateway]:
    """`tends`: whether runs are to be looked after from here; where none is given, unless a server of the same place does."""
    settings = logins.settings
    before = os.umask(0o077)
    try:
        requests = Requests.open(place.requests)
    finally:
        os.umask(before)
    recipes = read_recipes(settings.recipes)
    serve = Serve(
        desk=desk,
        requests=requests,
        recipes=recipes,
        settings=ServeSettings(
            collect=collect,
            hosts=allowed_hosts(settings),
            login=logins.rodan or (lambda request: None),
            tends=tends or (lambda: place.served_at() is None),
        ),
    )
    parts = GatewayParts(
        broker=logins.broker,
        settings=settings,
        requests=requests,
        recipes=recipes,
        serve=serve,
        clock=desk.clock,
        server=lambda: settings.server or place.served_at(),
    )
    try:
        yield Gateway(parts, ready=ready)
    finally:
        requests.close()
