"""The clusters of a place by name, as its settings say: plain values, which travel to wherever the verbs run."""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from onward.errors import InvalidInput, NotFound
from onward.model.requests.gateway_settings import GatewaySettings
from onward.model.spec import Cluster, Resources
from onward.schedulers.registry import is_known_scheduler

SchedulerChooser = Callable[[str], str | None]

SCHEDULERS = ("local", "slurm", "gridengine")  # built in: each is a cluster by itself, without a profile


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """What this place says about one cluster. `cpus`, `mem` (MiB) and `gpus` are the slots of a local one; None: all there are."""

    name: str
    scheduler: str
    ssh: str | None = None  # the host through which it is reached; None: from here
    root: Path | None = None  # on an ssh host: as it is written, to be expanded there
    local_disk: str | None = None
    python: str | None = None
    other_pythons: tuple[str, ...] = ()
    legs_ahead: int = 0
    notify: bool = True
    names: Mapping[str, str] = field(default_factory=dict)  # Grid Engine: what this site calls our resources
    options: Mapping[str, str] = field(default_factory=dict)  # a plugin's own
    defaults: Resources = field(default_factory=Resources)
    cpus: int | None = None
    mem: int | None = None
    gpus: int | None = None
    trouble: str = ""  # why its runs folder is unknown on this machine: reported where it is needed

    def with_defaults(self, asked: Resources) -> Resources:
        """The request with this cluster's defaults where it asks nothing. GPUs asked in either spelling settle both.

        Options in the scheduler's own words are all there, the cluster's first: whoever can read them drops those that speak against it.
        """
        missing: dict[str, Any] = {key: value for key, value in vars(self.defaults).items() if vars(asked)[key] is None}
        missing["extra"] = tuple(dict.fromkeys((*self.defaults.extra, *asked.extra)))
        if asked.asks_gpus():
            missing.pop("gpus", None)
            if replace(self.defaults, gpus=None).asks_gpus():
                missing.pop("gres", None)
        return replace(asked, **missing)


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """What `onward up` allows."""

    code: tuple[Path, ...] = ()  # folders whose code may be submitted over HTTP; none: nobody submits code there
    requests: int = 500  # a second and token, points aside; 0: no bound
    logins: int = 5  # that fail, a minute and address
    streams: int = 20  # live streams and followed logs, a user
    artifacts: int = 1 << 20  # MiB of uploaded files, a run; 0: no bound


@dataclass(frozen=True, kw_only=True)
class TrackerSettings:
    """A server that cannot see the runs folder, so that jobs send their records to it."""

    url: str
    token_file: Path | None  # None: whoever submits from afar speaks to the server, and brings the run its token


@dataclass(frozen=True, kw_only=True)
class Settings:
    source: Path | None = None  # None: no file
    default_root: Path | None = None
    default_cluster: str | None = None
    clusters: Mapping[str, ClusterSettings] = field(default_factory=dict)
    tracker: TrackerSettings | None = None
    server: ServerSettings = field(default_factory=ServerSettings)
    gateway: GatewaySettings = field(default_factory=GatewaySettings)

    def cluster(self, name: str = "auto", which: SchedulerChooser = shutil.which) -> tuple[Cluster, ClusterSettings]:
        """The cluster of this name; for `auto` the settings' own, else what is on the PATH here, else this machine."""
        if name == "auto":
            name = self.default_cluster or detected_scheduler(which)
        if name not in self.names() and not is_known_scheduler(name):  # a plugin is a cluster by itself too
            near = difflib.get_close_matches(name, self.names(), n=1)
            guess = f"did you mean {near[0]}? " if near else ""
            raise NotFound(f"no cluster named {name!r}", hint=f"{guess}known are {', '.join(self.names())}")
        found = self.clusters.get(name) or ClusterSettings(name=name, scheduler=name)
        same = (
            *("name", "scheduler", "ssh", "local_disk", "python", "other_pythons", "legs_ahead"),
            *("notify", "names", "options", "cpus", "mem", "gpus"),
        )
        return Cluster(**{key: getattr(found, key) for key in same}), found

    def names(self) -> list[str]:
        """What `--cluster` may be given."""
        return ["auto", *SCHEDULERS, *sorted(name for name in self.clusters if name not in SCHEDULERS)]

    def root(self, env: Mapping[str, str], cluster: ClusterSettings | None = None) -> Path:
        """The runs folder: ONWARD_ROOT, else the cluster's, else the settings', else ./runs."""
        if env.get("ONWARD_ROOT"):
            return Path(env["ONWARD_ROOT"]).absolute()
        if cluster and cluster.trouble:
            raise InvalidInput(cluster.trouble, hint="write the full path")
        return (cluster and cluster.root) or self.default_root or Path("runs").absolute()


def detected_scheduler(which: SchedulerChooser = shutil.which) -> str:
    """Slurm where sbatch is on the PATH, Grid Engine where its qsub is, else this machine. Torque and PBS have a qsub too, but no qconf."""
    if which("sbatch"):
        return "slurm"
    return "gridengine" if which("qsub") and which("qconf") else "local"
