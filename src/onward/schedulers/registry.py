"""From a cluster's profile to its scheduler: one of those built in, or a plugin. Modules are loaded only when they are asked for."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

from onward.errors import InvalidInput
from onward.model.spec import Cluster
from onward.schedulers.base import Scheduler

_BUILT_IN: Mapping[str, tuple[str, str]] = {
    "local": ("onward.schedulers.local.scheduler", "LocalScheduler"),
    "slurm": ("onward.schedulers.slurm.scheduler", "SlurmScheduler"),
    "gridengine": ("onward.schedulers.gridengine.scheduler", "GridEngineScheduler"),
}


def known_names() -> tuple[str, ...]:
    """Every scheduler that a profile may name: those built in, then plugins."""
    from onward.schedulers.plugins import scheduler_plugins

    return (*_BUILT_IN, *(name for name in scheduler_plugins() if name not in _BUILT_IN))


def is_known_scheduler(name: str) -> bool:
    """As `name in known_names()`, without a look at the installed packages where it is built in."""
    return name in _BUILT_IN or name in known_names()


def files_to_freeze(name: str) -> Mapping[str, bytes]:
    """What a run must take along for its scheduler, beside Onward itself: a plugin's modules."""
    if name in _BUILT_IN:
        return {}
    from onward.schedulers.plugins import plugin_files

    return plugin_files(name)


def scheduler_for(cluster: Cluster) -> Scheduler:
    if cluster.scheduler not in _BUILT_IN:
        return _plugin(cluster)
    module, name = _BUILT_IN[cluster.scheduler]
    make = getattr(importlib.import_module(module), name)
    made: Scheduler = make(**_settings_of(cluster))
    return made


def _plugin(cluster: Cluster) -> Scheduler:
    from onward.schedulers.plugins import load_scheduler, scheduler_plugins

    if cluster.scheduler not in scheduler_plugins():
        near = difflib.get_close_matches(cluster.scheduler, known_names(), n=1)
        raise InvalidInput(
            f"clusters.{cluster.name}.scheduler: no scheduler named {cluster.scheduler!r} in this environment; "
            f"known are {', '.join(known_names())}" + (f" (did you mean {near[0]}?)" if near else ""),
            hint="a plugin is a package with an entry point of that name in the group onward.schedulers: "
            "install it in the environment that has Onward",
        )
    return load_scheduler(cluster.scheduler)(cluster)


def _settings_of(cluster: Cluster) -> dict[str, Any]:
    """What each of the schedulers built in wants to know of a profile."""
    match cluster.scheduler:
        case "local":
            gpus = None if cluster.gpus is None else tuple(map(str, range(cluster.gpus)))
            return {"cpus": cluster.cpus, "mem": cluster.mem, "gpus": gpus}
        case "gridengine":
            return {"names": cluster.names, "notify": cluster.notify}
        case _:
            return {}
