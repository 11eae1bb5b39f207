"""Put the parts together: from settings and environment to clusters, roots and schedulers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onward.clock import Clock, SystemClock
from onward.model.spec import Cluster
from onward.schedulers.base import Scheduler
from onward.schedulers.registry import scheduler_for
from onward.settings import Settings, load_settings


@dataclass(kw_only=True)
class Desk:
    """Where the verbs work from: one process outside jobs, with one scheduler object a cluster."""

    env: Mapping[str, str]
    clock: Clock = field(default_factory=SystemClock)
    make_scheduler: Callable[[Cluster], Scheduler] = scheduler_for
    _settings: Settings | None = None
    _schedulers: dict[str, Scheduler] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        if self._settings is None:
            self._settings = load_settings(self.env)
        return self._settings

    @property
    def root(self) -> Path:
        """Where this user's runs are looked for."""
        return self.settings.root(self.env, None).absolute()

    def scheduler(self, cluster: Cluster) -> Scheduler:
        if cluster.name not in self._schedulers:
            self._schedulers[cluster.name] = self.make_scheduler(cluster)
        return self._schedulers[cluster.name]
