"""Put the parts together: from settings and environment to clusters, roots and schedulers."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onward.clock import Clock, SystemClock
from onward.errors import InvalidInput
from onward.model.spec import Cluster
from onward.operations.remembered_roots import CODE, RememberedRoot, RootState, forget_removed, notes_mark, remember_root, remembered_roots
from onward.rundir.layout import RunDir, runs_under
from onward.schedulers.base import Scheduler
from onward.schedulers.cluster_settings import Settings
from onward.schedulers.registry import scheduler_for

_LOOK_AGAIN = 30.0  # seconds


@dataclass(frozen=True, kw_only=True)
class _Remembered:
    roots: list[RememberedRoot]
    mark: int
    at: float  # monotonic


@dataclass(kw_only=True)
class OperationsContext:
    """Where the verbs work from: one process outside jobs, with one scheduler object a cluster."""

    env: Mapping[str, str]
    clock: Clock = field(default_factory=SystemClock)
    make_scheduler: Callable[[Cluster], Scheduler] = scheduler_for
    anywhere: bool = True  # whether runs are also looked for in the roots that this user has submitted to before
    unread: list[str] = field(default_factory=list)  # what `runs` could not look into, in words
    _settings: Settings | None = None
    _schedulers: dict[str, Scheduler] = field(default_factory=dict)
    _remembered: _Remembered | None = None

    @property
    def settings(self) -> Settings:
        if self._settings is None:
            from onward.settings import load_settings  # needs pydantic, which a login node may not have

            self._settings = load_settings(self.env)
        return self._settings

    @property
    def roots(self) -> list[Path]:
        """Where runs of this machine are looked for: first the roots of this place, then those that this user has submitted to before."""
        own = self.own_roots
        there = [root.path for root in self._remembered_roots() if root.state is RootState.THERE]
        return [*own, *(root for root in there if root not in own)]

    @property
    def own_roots(self) -> list[Path]:
        """The root for this place, then those of profiles that have their own."""
        here = [profile for profile in self.settings.clusters.values() if not profile.ssh]
        own = [profile.root for profile in here if profile.root and not self.env.get("ONWARD_ROOT")]
        try:
            return list(dict.fromkeys([self.settings.root(self.env, None), *own]))
        except FileNotFoundError as error:
            raise InvalidInput("the current folder no longer exists", hint="cd to another folder, or set ONWARD_ROOT") from error

    @property
    def root(self) -> Path:
        return self.own_roots[0]

    @property
    def user(self) -> str:
        try:
            return getpass.getuser()
        except (KeyError, OSError):  # a container whose passwd file does not know us
            return str(os.getuid())

    def runs(self) -> list[RunDir]:
        """All runs, oldest first; within a day of several roots, root by root. Of several, one that cannot be read hides no other."""
        found: list[RunDir] = []
        self.unread = [profile.trouble for profile in self.settings.clusters.values() if profile.trouble]
        for root in (roots := self.roots):
            try:
                found += runs_under(root)
            except OSError as error:
                if len(roots) == 1:
                    raise
                self.unread.append(f"the runs in {root} cannot be read: {error.strerror or error}")
        return sorted(found, key=lambda run: run.path.name[:10])

    def remember_root(self, root: Path) -> None:
        """That runs are in it, for whoever looks from another folder."""
        remember_root(self.env, root)

    def remember_code(self, folder: Path) -> None:
        """That this user has submitted a run from it."""
        remember_root(self.env, folder, CODE)

    def remembered_code(self) -> list[Path]:
        """Folders that this user has submitted runs from, as far as they are there; those used last first."""
        return [folder.path for folder in remembered_roots(self.env, CODE) if folder.state is RootState.THERE]

    def forget_removed_roots(self) -> list[str]:
        """What is worth telling of the roots that are remembered."""
        return forget_removed(self._remembered_roots())

    def _remembered_roots(self) -> list[RememberedRoot]:
        """Looked at anew when a root was added, and now and then. ONWARD_ROOT says where to look, and nowhere else."""
        if not self.anywhere or self.env.get("ONWARD_ROOT"):
            return []
        mark, now = notes_mark(self.env), time.monotonic()
        if self._remembered is None or self._remembered.mark != mark or now - self._remembered.at > _LOOK_AGAIN:
            self._remembered = _Remembered(roots=remembered_roots(self.env), mark=mark, at=now)
        return self._remembered.roots

    def scheduler(self, cluster: Cluster) -> Scheduler:
        if cluster.name not in self._schedulers:
            self._schedulers[cluster.name] = self.make_scheduler(cluster)
        return self._schedulers[cluster.name]
