"""Schedulers that others bring: packages with an entry point in the group `onward.schedulers`, a name and a function of the cluster.

A run takes its plugin along: the modules and the entry point are frozen into its archive, where the same lookup finds them inside a job.
So a plugin needs nothing but the standard library and Onward itself.
"""

from __future__ import annotations

import contextlib
import pkgutil
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any

from onward.errors import InvalidInput
from onward.model.spec import Cluster
from onward.schedulers.base import Scheduler

GROUP = "onward.schedulers"
Factory = Callable[[Cluster], Scheduler]


def plugin_names() -> tuple[str, ...]:
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def load_plugin(name: str) -> Factory:
    point = _point(name)
    try:
        made: Factory = point.load()
    except Exception as error:  # importing third-party code may raise anything
        raise InvalidInput(
            f"the scheduler {name} cannot be loaded from {point.value}: {type(error).__name__}: {error}",
            hint=f"reinstall {_package(point)}",
        ) from error
    return made


def plugin_files(name: str) -> dict[str, bytes]:
    """What goes into a run's archive, by its name there: the plugin's modules, and the entry point by which they are found again."""
    point = _point(name)
    top = point.module.partition(".")[0]
    found = find_spec(top)
    if found is None:
        raise InvalidInput(f"the scheduler {name} cannot be loaded from {point.value}: no module {top}")
    files = {path: text.encode() for path, text in _modules(found, name)}
    files[f"{top}-0.dist-info/METADATA"] = f"Metadata-Version: 2.1\nName: {top}\nVersion: 0\n".encode()
    files[f"{top}-0.dist-info/entry_points.txt"] = f"[{GROUP}]\n{point.name} = {point.value}\n".encode()
    return files


def all_plugin_files() -> dict[str, bytes]:
    """Those of every plugin that can be copied to a host where commands run and nothing is installed."""
    files: dict[str, bytes] = {}
    for name in plugin_names():
        with contextlib.suppress(InvalidInput):  # told where that scheduler is asked for
            files |= plugin_files(name)
    return files


def _point(name: str) -> EntryPoint:
    points = {point.value: point for point in entry_points(group=GROUP, name=name)}
    if not points:
        raise InvalidInput(f"no scheduler named {name!r}", hint=f"no installed package has it as an entry point of {GROUP}")
    if len(points) > 1:
        raise InvalidInput(f"there are several schedulers named {name!r}: {', '.join(sorted(points))}", hint="uninstall all but one")
    return next(iter(points.values()))


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.module


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
