"""Schedulers that others bring: packages with an entry point in the group `onward.schedulers`, a name and a function of the cluster.

A run takes its plugin along: the modules and the entry point are frozen into its archive, where the same lookup finds them inside a job.
So a plugin needs nothing but the standard library and Onward itself.
"""

from __future__ import annotations

import contextlib
import pkgutil
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any

from onward.errors import InvalidInput
from onward.model.spec import Cluster
from onward.plugins import PluginGroup, find_plugin, load_plugin, plugin_names
from onward.schedulers.base import Scheduler

Factory = Callable[[Cluster], Scheduler]


def scheduler_plugins() -> tuple[str, ...]:
    return plugin_names(PluginGroup.SCHEDULERS)


def load_scheduler(name: str) -> Factory:
    made: Factory = load_plugin(PluginGroup.SCHEDULERS, name)
    return made


def plugin_files(name: str) -> dict[str, bytes]:
    """What goes into a run's archive, by its name there: the plugin's modules, and the entry point by which they are found again."""
    point = find_plugin(PluginGroup.SCHEDULERS, name)
    top = point.module.partition(".")[0]
    found = find_spec(top)
    if found is None:
        raise InvalidInput(f"the scheduler {name} cannot be loaded from {point.value}: no module {top}")
    files = {path: text.encode() for path, text in _modules(found, name)}
    files[f"{top}-0.dist-info/METADATA"] = f"Metadata-Version: 2.1\nName: {top}\nVersion: 0\n".encode()
    files[f"{top}-0.dist-info/entry_points.txt"] = f"[{PluginGroup.SCHEDULERS}]\n{point.name} = {point.value}\n".encode()
    return files


def all_plugin_files() -> dict[str, bytes]:
    """Those of every plugin that can be copied to a host where commands run and nothing is installed."""
    files: dict[str, bytes] = {}
    for name in scheduler_plugins():
        with contextlib.suppress(InvalidInput):  # told where that scheduler is asked for
            files |= plugin_files(name)
    return files


def _modules(spec: ModuleSpec, plugin: str) -> Iterator[tuple[str, str]]:
    """Path and text of a module and, for a package, of all modules in it: from a folder or from an archive alike."""
    path = spec.name.replace(".", "/")
    loader: Any = spec.loader
    text = loader.get_source(spec.name) if hasattr(loader, "get_source") else None
    inside = spec.submodule_search_locations
    if text is None and (inside is None or spec.origin):
        raise InvalidInput(
            f"the scheduler {plugin} cannot be frozen with the run: {spec.name} has no Python source",
            hint="plugins must be plain Python",
        )
    if text is not None:
        yield f"{path}/__init__.py" if inside is not None else f"{path}.py", text
    for module in pkgutil.iter_modules(inside or (), f"{spec.name}."):
        below = module.module_finder.find_spec(module.name, None)
        if below is not None:
            yield from _modules(below, plugin)
