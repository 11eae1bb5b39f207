"""Protocols beside ours, which other packages bring: entry points of the group `onward.gateway_protocols`, by the protocol's name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Protocol

from onward.gateway.messages.incoming import Incoming, Refusal
from onward.gateway.messages.message_body import MessageBody
from onward.gateway.messages.packed_results import PackedResult
from onward.model.requests.gateway_settings import V1Settings
from onward.model.requests.request import Outgoing, Request
from onward.operations.requests.context import InputLogin
from onward.plugins import PluginGroup, load_plugin, plugin_names

V1 = "v1"  # the one that the settings can enable


class ProtocolLogin(Protocol):
    """How jobs may fetch the inputs of requests, where these have no addresses that open by themselves."""

    @property
    def url(self) -> str:
        """Where paths without a host are."""
        ...

    def __call__(self, request: Request, *, refused: str = "") -> InputLogin | None: ...


class GatewayProtocol(Protocol):
    """A module, or any object."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Environment variables that no process of ours may inherit."""
        ...

    @property
    def sends_addresses(self) -> bool:
        """Whether its senders can fetch a result that is too large for a message."""
        ...

    def login(self, env: Mapping[str, str], settings: V1Settings) -> ProtocolLogin | None:
        """None where the environment names no login."""
        ...

    def request_of(self, incoming: Incoming, settings: V1Settings, *, most: int, now: float) -> Request | Refusal: ...

    def body_of(self, message: Outgoing, parcels: Mapping[str, PackedResult] | None = None) -> MessageBody | None:
        """As it goes over the wire, with its results packed; None: this protocol has no such message."""
        ...


@cache
def load_protocol(name: str) -> GatewayProtocol:
    made: GatewayProtocol = load_plugin(PluginGroup.PROTOCOLS, name)
    return made


def secret_variables() -> list[str]:
    """Of all protocols that are installed, enabled or not."""
    return [variable for name in plugin_names(PluginGroup.PROTOCOLS) for variable in load_protocol(name).secrets]
