"""How requests get on, for their senders and for the page: by the run's folder, and by the last picture of its cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from onward.errors import OnwardError
from onward.model.analysis.why import never_taken, why
from onward.model.cluster import ClusterJob
from onward.model.requests.request import RequestRecord, RequestState
from onward.model.run import Run, RunState
from onward.model.spec import Cluster
from onward.operations.clusters.saved_snapshot import save_snapshot, saved_snapshot
from onward.operations.requests.context import RequestContext
from onward.operations.runs.record import InspectedRun, current_pace, progress, read_folder
from onward.rundir.layout import RunDir
from onward.schedulers.base import snapshot_of

EVERY = 5.0  # seconds between two words about one request
_AT_ONCE = 10  # requests that are looked at in one step
_PICTURE = 60.0  # seconds that a picture of a cluster is good for
_SPOKEN = ("v2",)  # protocols that have words for it


class ProgressReporter:
    def __init__(self, parts: RequestContext) -> None:
        self._parts = parts
        self._looked: dict[str, float] = {}  # when each request was last looked at
        self._asked: dict[str, float] = {}  # when each cluster was
        self._jobs: dict[str, Mapping[str, ClusterJob]] = {}

    def tell(self, records: Sequence[RequestRecord]) -> list[tuple[RequestRecord, str]]:
        """Of those whose turn it is: who was looked at longest ago comes first. Those that the scheduler does not take, and its words."""
        refused = []
        now = self._parts.now()
        self._looked = {record.id: self._looked.get(record.id, 0.0) for record in records}
        due = sorted((record for record in records if now - self._looked[record.id] >= EVERY), key=lambda one: self._looked[one.id])
        for record in due[:_AT_ONCE]:
            self._looked[record.id] = now
            with suppress(OnwardError, OSError):  # a folder that cannot be read now can be later
                refused.append((record, self._tell(record, now)))
        return [(record, words) for record, words in refused if words]

    def _tell(self, record: RequestRecord, now: float) -> str:
        assert record.folder is not None
        dir = RunDir(Path(record.folder))
        run = read_folder(dir)
        if run.closed:
            return ""
        if refused := never_taken(run):
            return refused
        if record.state is RequestState.SUBMITTED and run.last_leg:
            self._parts.requests.running(record.id)
        text = progress_text(InspectedRun(dir=dir, run=run, answers=None, at=now), self._queued(record, run, now))
        if text != record.progress:
            self._parts.requests.tell(record, text, at=now, send=record.request.protocol in _SPOKEN)
        return ""

    def _queued(self, record: RequestRecord, run: Run, now: float) -> ClusterJob | None:
        """Its next leg's job, as its cluster's last picture shows it."""
        if run.state is RunState.RUNNING or record.request.protocol not in _SPOKEN:
            return None
        jobs = self._picture(run.spec.cluster, now)
        return next((jobs[leg.job] for leg in run.legs.values() if not leg.claimed and leg.job and leg.job in jobs), None)

    def _picture(self, cluster: Cluster, now: float) -> Mapping[str, ClusterJob]:
        """One that a server keeps, else a new one: a scheduler is seldom asked for this."""
        if now - self._asked.get(cluster.name, 0.0) < _PICTURE:
            return self._jobs.get(cluster.name, {})
        self._asked[cluster.name] = now
        picture = saved_snapshot(self._parts.context.env, cluster.name)
        if picture is None or now - picture.taken_at > _PICTURE:
            picture = snapshot_of(self._parts.context.scheduler(cluster))
            save_snapshot(self._parts.context.env, cluster.name, picture)
        self._jobs[cluster.name] = {job.id: job for job in picture.jobs if job.mine}
        return self._jobs[cluster.name]


def progress_text(seen: InspectedRun, queued: ClusterJob | None = None) -> dict[str, Any]:
    """What a progress message says. The same for the same course, so that nothing is told twice."""
    payload: Mapping[str, Any] = progress(seen)
    fraction = current_pace(payload).fraction
    last = seen.run.last_leg
    return {
        "state": str(seen.run.state),
        "words": queued.reason if queued and queued.reason else why(seen.run, None, unheard=""),
        "run": seen.run.spec.id,
        "leg": last.number if last else None,
        "expected_start": queued.expected_start if queued else None,
        "step": payload["step"],
        "total": payload["total"],
        "percent": None if fraction is None else round(100 * fraction, 1),
        "metrics": payload["metrics"],
    }
