"""Parts that other packages bring: entry points, by group. Onward's own `contrib` registers through the same groups."""

from __future__ import annotations

from enum import StrEnum
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from onward.errors import InvalidInput


class PluginGroup(StrEnum):
    """The groups, and what an entry point of each has as its value."""

    SCHEDULERS = "onward.schedulers"  # a class, or a function: Cluster → Scheduler
    RECIPES = "onward.recipes"  # a package with a recipe.yaml and the code it runs
    CONVERTERS = "onward.pipeline_converters"  # a function: Path → ConvertedPipeline
    PROTOCOLS = "onward.gateway_protocols"  # a GatewayProtocol
    SERVER = "onward.server_extensions"  # a ServerExtension

    @property
    def kind(self) -> str:
        """One of them, as errors call it."""
        return _KINDS[self]


_KINDS = {
    PluginGroup.SCHEDULERS: "scheduler",
    PluginGroup.RECIPES: "recipe",
    PluginGroup.CONVERTERS: "pipeline converter",
    PluginGroup.PROTOCOLS: "gateway protocol",
    PluginGroup.SERVER: "server extension",
}


def plugin_names(group: PluginGroup) -> tuple[str, ...]:
    return tuple(sorted({point.name for point in entry_points(group=group)}))


def find_plugin(group: PluginGroup, name: str) -> EntryPoint:
    points = {point.value: point for point in entry_points(group=group, name=name)}
    if not points:
        raise InvalidInput(f"no {group.kind} named {name!r}", hint=f"no installed package has it as an entry point of {group}")
    if len(points) > 1:
        raise InvalidInput(f"there are several {group.kind}s named {name!r}: {', '.join(sorted(points))}", hint="uninstall all but one")
    return next(iter(points.values()))


def load_plugin(group: PluginGroup, name: str) -> Any:
    point = find_plugin(group, name)
    try:
        return point.load()
    except Exception as error:  # importing third-party code may raise anything
        raise InvalidInput(
            f"the {group.kind} {name} cannot be loaded from {point.value}: {type(error).__name__}: {error}",
            hint=f"reinstall {point.dist.name if point.dist else point.module}",
        ) from error
