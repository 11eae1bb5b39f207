"""From a cluster's profile to its scheduler. Modules are loaded only when they are asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from onward.errors import InvalidInput
from onward.model.spec import Cluster
from onward.schedulers.base import Scheduler

_BUILT_IN: Mapping[str, tuple[str, str]] = {
    "local": ("onward.schedulers.local", "LocalScheduler"),
    "slurm": ("onward.schedulers.slurm", "SlurmScheduler"),
    "gridengine": ("onward.schedulers.gridengine", "GridEngineScheduler"),
}


def known_names() -> tuple[str, ...]:
    """Every scheduler that a profile may name."""
    return tuple(_BUILT_IN)


def scheduler_for(cluster: Cluster) -> Scheduler:
    try:
        module, name = _BUILT_IN[cluster.scheduler]
    except KeyError:
        raise InvalidInput(
            f"cluster {cluster.name}: there is no scheduler {cluster.scheduler!r}", hint=f"known: {', '.join(_BUILT_IN)}"
        ) from None
    make = getattr(importlib.import_module(module), name)
    made: Scheduler = make(**_settings_of(cluster))
    return made


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
