"""From a cluster's profile to its scheduler. Modules are loaded only when they are asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from onward.errors import InvalidInput
from onward.model.spec import Cluster
from onward.schedulers.base import Scheduler

_BUILT_IN: Mapping[str, tuple[str, str]] = {
    "local": ("onward.schedulers.local", "LocalScheduler"),
    "slurm": ("onward.schedulers.slurm", "SlurmScheduler"),
}


def scheduler_for(cluster: Cluster) -> Scheduler:
    try:
        module, name = _BUILT_IN[cluster.scheduler]
    except KeyError:
        raise InvalidInput(
            f"cluster {cluster.name}: there is no scheduler {cluster.scheduler!r}", hint=f"known: {', '.join(_BUILT_IN)}"
        ) from None
    make = getattr(importlib.import_module(module), name)
    slots = {"cpus": cluster.cpus, "mem": cluster.mem, "gpus": None if cluster.gpus is None else tuple(map(str, range(cluster.gpus)))}
    made: Scheduler = make(**slots) if cluster.scheduler == "local" else make()
    return made
