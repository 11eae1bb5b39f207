"""Putting a gateway together: from the settings, the environment and the place of the store."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from onward.errors import InvalidInput, NotFound
from onward.gateway.intake import allowed_hosts
from onward.gateway.main import Gateway, GatewayParts
from onward.gateway.messages.protocols import V1, ProtocolLogin, load_protocol, secret_variables
from onward.gateway.rabbitmq.connection import Broker, forget_secrets
from onward.inputs.recipes.catalog import read_recipes
from onward.model.requests.gateway_settings import GatewaySettings
from onward.operations.context import OperationsContext
from onward.operations.requests.context import RequestSettings, no_login
from onward.operations.requests.result_files import collect
from onward.operations.requests.service import RequestService
from onward.operations.tracker_access.location import TrackerLocation
from onward.tracker.requests.store import Requests

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class GatewayLogins:
    """Who the gateway is, at the broker and where inputs are."""

    settings: GatewaySettings
    broker: Broker
    inputs: ProtocolLogin | None = None

    @classmethod
    def taken(cls, env: MutableMapping[str, str], settings: GatewaySettings, *, v1: bool = False) -> GatewayLogins:
        """Read from the environment, and out of it: nothing that this process starts gets to see them."""
        old = replace(settings.v1, enabled=settings.v1.enabled or v1)
        broker = Broker.of(env, settings)
        inputs = _checked_login(env, replace(settings, v1=old)) if old.enabled else None
        forget_secrets(env)
        for name in secret_variables():
            env.pop(name, None)
        if inputs is not None:
            old = replace(old, rodan=inputs.url)
        return cls(settings=replace(settings, v1=old), broker=broker, inputs=inputs)


def _checked_login(env: MutableMapping[str, str], settings: GatewaySettings) -> ProtocolLogin | None:
    """Without its recipe or its login, every request of the first protocol would fail: better not to start."""
    try:
        read_recipes(settings.recipes).get(settings.v1.recipe)
    except (InvalidInput, NotFound) as error:
        hint = "gateway.v1.recipe names it, gateway.recipes is the folder of this site's own"
        raise InvalidInput(f"v1 messages cannot be served: {error.message}", hint=hint) from error
    login = load_protocol(V1).login(env, settings.v1)
    if login is None:
        log.warning("v1 has no application: inputs need full addresses that open without a login; gateway.v1.rodan names one")
    return login


@contextmanager
def open_gateway(
    logins: GatewayLogins,
    context: OperationsContext,
    location: TrackerLocation,
    *,
    tends: Callable[[], bool] | None = None,
    ready: Callable[[], None] = lambda: None,
) -> Iterator[Gateway]:
    """`tends`: whether to repair runs from here. Default: unless a server of the same database does."""
    settings = logins.settings
    before = os.umask(0o077)
    try:
        requests = Requests.open(location.requests)
    finally:
        os.umask(before)
    recipes = read_recipes(settings.recipes)
    serve = RequestService(
        context=context,
        requests=requests,
        recipes=recipes,
        settings=RequestSettings(
            collect=collect,
            hosts=allowed_hosts(settings),
            login=logins.inputs or no_login,
            tends=tends or (lambda: location.served_at() is None),
        ),
    )
    parts = GatewayParts(
        broker=logins.broker,
        settings=settings,
        requests=requests,
        recipes=recipes,
        serve=serve,
        clock=context.clock,
        server=lambda: settings.server or location.served_at(),
    )
    try:
        yield Gateway(parts, ready=ready)
    finally:
        requests.close()
