"""Routes and chores of the server that other packages bring: entry points of the group `onward.server_extensions`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Protocol

from fastapi import APIRouter

from onward.api.access.rights.access_rules import Right
from onward.api.access.rights.rights_of_routes import TABLE
from onward.api.services import Services
from onward.plugins import PluginGroup, load_plugin, plugin_names


class ServerExtension(Protocol):
    """A module, or any object."""

    @property
    def router(self) -> APIRouter: ...

    @property
    def rights(self) -> Mapping[str, Right]:
        """Of each of its routes, as in the table of our own."""
        ...

    def tend(self, svc: Services) -> list[str]:
        """Done in each round of repairs; returns what could not be done."""
        ...


@cache
def server_extensions() -> tuple[ServerExtension, ...]:
    return tuple(load_plugin(PluginGroup.SERVER, name) for name in plugin_names(PluginGroup.SERVER))


def rights_table() -> Mapping[str, Right]:
    """Of all routes; a row of ours is never replaced."""
    return {**{name: right for one in server_extensions() for name, right in one.rights.items()}, **TABLE}
