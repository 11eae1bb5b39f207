"""A cluster as it is now: nodes, queues, jobs, and what could start. Asked here, or through ssh; kept a while for all who look.

A scheduler serves many, so it is asked at most once in 30 s whatever the number of readers (a queue of one's own: 5 s), and by one of
them at a time. Who comes meanwhile, or finds it silent, gets the last picture with its age.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from onward.clock import Clock
from onward.errors import NotOffered, OnwardError, SchedulerUnavailable
from onward.model.cluster import ClusterJob, ClusterSnapshot
from onward.model.plain_data import value_to_json
from onward.operations.hosts.all_hosts import Hosts
from onward.planning.capacity import totals, what_could_start
from onward.schedulers.cluster_settings import Settings

SCHEMA = 1
MIN_INTERVAL = 30.0  # seconds between two questions to one scheduler
MIN_INTERVAL_PRIVATE = 5.0
_PATIENCE = 2.0  # seconds to wait for a new picture where there is an old one
_LONGEST = 90.0  # where there is none
_NONE = {"running": 0, "waiting": 0}
_PROGRAMS = {"slurm": "sbatch", "gridengine": "qconf"}  # built in, and listed where their programs are


@dataclass(frozen=True, kw_only=True)
class KnownCluster:
    """A cluster that can be looked at."""

    name: str
    scheduler: str
    host: str | None  # through ssh
    auto: bool


@dataclass(frozen=True, kw_only=True)
class CachedSnapshot:
    cluster: KnownCluster
    snapshot: ClusterSnapshot
    age: float  # seconds
    trouble: str = ""  # why it is not newer
    heard: bool = True  # the scheduler has told something; else the picture is empty


@dataclass(kw_only=True)
class _Flight:
    """One question to a scheduler, under way or answered."""

    done: threading.Event = field(default_factory=threading.Event)
    answer: ClusterSnapshot | None = None
    error: OnwardError | None = None


@dataclass(kw_only=True)
class _Slot:
    lock: threading.Lock = field(default_factory=threading.Lock)
    flight: _Flight | None = None
    asked: float = 0.0  # when the last question was put
    last: ClusterSnapshot | None = None
    at: float = 0.0  # when `last` came


class SnapshotCache:
    """What the server keeps between questions. Time is the clock's; waiting for an answer is real."""

    def __init__(self, settings: Settings, ask: Callable[[str], ClusterSnapshot], clock: Clock, *, patience: float = _PATIENCE) -> None:
        self._settings = settings
        self._ask = ask
        self._clock = clock
        self._patience = patience
        self._slots: dict[str, _Slot] = {}
        self._lock = threading.Lock()

    def known(self) -> list[KnownCluster]:
        return known_clusters(self._settings)

    def look(self, name: str) -> CachedSnapshot:
        cluster = describe_cluster(self._settings, name)
        with self._lock:
            slot = self._slots.setdefault(cluster.name, _Slot())
        with slot.lock:
            flight = slot.flight
            due = self._clock.now() - slot.asked >= min_interval(cluster)
            if flight is None or (flight.done.is_set() and due):
                flight = slot.flight = _Flight()
                slot.asked = self._clock.now()
                threading.Thread(target=self._fly, args=(cluster, slot, flight), name=f"cluster {cluster.name}", daemon=True).start()
            old = slot.last
        flight.done.wait(self._patience if old else _LONGEST)
        with slot.lock:
            if slot.last is None:
                return _unheard(
                    cluster, flight.error or SchedulerUnavailable(f"{cluster.name} has not answered yet", hint="ask again in a moment")
                )
            waits = "" if flight.done.is_set() else f"{cluster.name} has not answered yet"
            trouble = flight.error.message if flight.error else waits
            return CachedSnapshot(cluster=cluster, snapshot=slot.last, age=max(self._clock.now() - slot.at, 0.0), trouble=trouble)

    def _fly(self, cluster: KnownCluster, slot: _Slot, flight: _Flight) -> None:
        try:
            answer = self._ask(cluster.name)
            with slot.lock:
                slot.last, slot.at = answer, self._clock.now()
        except OnwardError as error:
            flight.error = error
        except Exception as error:  # a thread has nobody to tell
            flight.error = OnwardError(f"internal error: {type(error).__name__}: {error}")
        finally:
            flight.done.set()


def _unheard(cluster: KnownCluster, error: OnwardError) -> CachedSnapshot:
    """That a scheduler is silent, or tells nothing of this, is an answer too; a fault of our own is not."""
    if not isinstance(error, SchedulerUnavailable | NotOffered):
        raise error
    nothing = ClusterSnapshot(scheduler=cluster.scheduler, taken_at=0.0, user="", nodes=(), queues=(), jobs=())
    return CachedSnapshot(cluster=cluster, snapshot=nothing, age=0.0, trouble=error.message, heard=False)


def min_interval(cluster: KnownCluster) -> float:
    """A local queue is its user's own, and asks nobody."""
    return MIN_INTERVAL_PRIVATE if cluster.scheduler == "local" else MIN_INTERVAL


def ask_cluster(hosts: Hosts, name: str) -> ClusterSnapshot:
    """Where the cluster is."""
    host, there = hosts.host_of(name)
    return host.snapshot(cluster=there)


def snapshot_once(hosts: Hosts, name: str) -> CachedSnapshot:
    return CachedSnapshot(cluster=describe_cluster(hosts.context.settings, name), snapshot=ask_cluster(hosts, name), age=0.0)


def known_clusters(settings: Settings) -> list[KnownCluster]:
    """Those of the settings, this machine, and the schedulers whose programs are here."""
    names = [name for name in settings.names() if name != "auto"]
    here = [name for name in names if name in settings.clusters or name not in _PROGRAMS or shutil.which(_PROGRAMS[name])]
    return [describe_cluster(settings, name) for name in here]


def describe_cluster(settings: Settings, name: str) -> KnownCluster:
    cluster = settings.cluster(name)[0]
    chosen = settings.cluster("auto")[0].name
    return KnownCluster(name=cluster.name, scheduler=cluster.scheduler, host=cluster.ssh, auto=cluster.name == chosen)


def snapshot_record(seen: CachedSnapshot, *, jobs: str = "all", limit: int | None = None) -> dict[str, Any]:
    """For `--json` and the API. `jobs`: all, or those of the asking user; `limit`: no more of them than so many."""
    snapshot = seen.snapshot
    shown = [job for job in snapshot.jobs if jobs == "all" or job.mine]
    counts = _counts(snapshot.jobs)
    return {
        "schema": SCHEMA,
        **value_to_json(seen.cluster),
        "taken_at": snapshot.taken_at if seen.heard else None,
        "age": round(seen.age, 1),
        "trouble": seen.trouble,
        "user": snapshot.user,
        "totals": [{"what": what, "used": used, "total": total} for what, (used, total) in totals(snapshot.nodes).items()],
        "nodes": value_to_json(snapshot.nodes),
        "queues": [{**value_to_json(queue), **counts.get(queue.name, _NONE)} for queue in snapshot.queues],
        "jobs": value_to_json(shown[:limit]),
        "jobs_total": len(shown),
        "openings": value_to_json(what_could_start(snapshot)),
        "notes": list(snapshot.notes),
    }


def _counts(jobs: Iterable[ClusterJob]) -> dict[str, dict[str, int]]:
    """Queue → its jobs that run and that wait, in one pass. Of a job that may go to several queues, each counts it."""
    found: dict[str, dict[str, int]] = {}
    for job in jobs:
        what = "running" if job.nodes else "waiting" if job.waiting else ""
        for name in job.queue.split(",") if what else ():
            counted = found.setdefault(name, {"running": 0, "waiting": 0})
            counted[what] += job.tasks
    return found
