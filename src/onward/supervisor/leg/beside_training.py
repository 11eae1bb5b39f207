"""Who the companions of a training are: what samples, carries, pushes and looks while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onward.model.job import JobId
from onward.rundir.layout import LegLocal
from onward.rundir.mirror import Mirror
from onward.schedulers.base import end_time_of, grace_of
from onward.supervisor.background import MIRROR_SECONDS, Repeating, SystemSampler, never_hurts_training, sample_seconds
from onward.supervisor.companions import Companions, Turn
from onward.supervisor.leg.context import LegContext
from onward.supervisor.own_files.watch import OwnFilesWatch
from onward.supervisor.pipeline_hooks import companions as pipeline_companions
from onward.supervisor.preparation.batch_output import output_files
from onward.supervisor.preparation.environment import working_folder
from onward.supervisor.processes.child import Child
from onward.supervisor.ranks.rank_states import rank_pids
from onward.supervisor.stop.run_folder_watch import FolderWatch
from onward.supervisor.stop.time_limit import TimeLimit
from onward.supervisor.telemetry.found_event_files import LOOK_SECONDS, FoundEventFiles
from onward.supervisor.telemetry.gpu import GpuSampler
from onward.supervisor.telemetry.host import HostSampler, session_processes
from onward.supervisor.telemetry.push import PUSH_SECONDS, push_of

_LAST_LOOK = 5.0  # seconds


class TrainingCompanions(Companions):
    def __init__(self, context: LegContext, local: LegLocal) -> None:
        super().__init__(context.clock)
        self._context = context
        self._local = local
        self._folder = working_folder(context.spec, context.dir)

    def start(self, child: Child, sampler: SystemSampler, env: Mapping[str, str], *, began: float) -> None:
        """Those that need nothing but a training. `env`: its variables. `began`: when the leg did, in unix seconds."""
        self._mirror_files()
        self._copy_output()
        self.add(Turn.SAMPLES, Repeating("sampling", sampler.sample, every=sample_seconds(env)).stop)
        self._push_to_tracker()
        self._find_event_files(child, began=began)

    def serve_pipeline(self) -> None:
        for thread in pipeline_companions(self._context):
            self.add(Turn.PIPELINE, thread.stop)

    def _mirror_files(self) -> None:
        mirroring = Repeating("mirroring", Mirror(self._local, self._context.dir).carry, every=MIRROR_SECONDS)
        self.add(Turn.MIRROR, mirroring.stop, seconds=5.0)

    def _copy_output(self) -> None:
        outputs = output_files(self._context, self._local)
        copying = Repeating("copying the output", outputs.carry, every=MIRROR_SECONDS)

        def copy_the_last() -> None:
            with never_hurts_training("copying the last output"):
                outputs.carry(within=_LAST_LOOK)

        self.add(Turn.OUTPUT, copying.stop, last=copy_the_last)

    def _push_to_tracker(self) -> None:
        push = push_of(self._context.spec.tracker, self._context.spec.id, self._context.dir, self._local)
        if push:
            self.add(Turn.PUSH, Repeating("pushing", push.work, every=PUSH_SECONDS).stop)

    def _find_event_files(self, child: Child, *, began: float) -> None:
        finding = FoundEventFiles(
            run=self._context.dir,
            local=self._local,
            folder=self._folder,
            submitted=self._context.spec.created,
            began=began,
            processes=lambda: session_processes(child.pid, *rank_pids(self._local.ranks)),
        )
        looking = Repeating("looking for event files", finding.look, every=LOOK_SECONDS)
        self.add(Turn.EVENT_FILES, looking.stop, last=lambda: finding.finish(within=_LAST_LOOK))

    def own_files_watch(self, children: Sequence[Child], *, length: float | None) -> OwnFilesWatch:
        """Made before the training starts; it joins `children` then. `length`: seconds that the leg has."""
        return OwnFilesWatch(
            self._folder,
            leg=self._context.leg,
            limit=length,
            processes=lambda: session_processes(*(child.pid for child in children), *rank_pids(self._local.ranks)),
            ours=(self._context.dir.path, self._local.path),
            write=self._context.journal.write,
            clock=self._context.clock,
        )

    def look_for_own_checkpoints(self, own_files: OwnFilesWatch) -> Repeating:
        looking = Repeating("looking for the training's own checkpoints", own_files.look, every=own_files.pause)
        self.add(Turn.OWN_CHECKPOINTS, looking.stop)
        return looking

    def watch_time_limit(self) -> TimeLimit:
        scheduler, job = self._context.scheduler, JobId(self._context.allocation.job)
        limit = TimeLimit(
            self._context.allocation.deadline,
            self._context.clock,
            end_time=lambda: end_time_of(scheduler, job),
            grace=lambda: grace_of(scheduler),
            latest=self._context.latest,
        )
        limit.watch()
        self.add(Turn.TIME_LIMIT, limit.end)
        return limit

    def watch_run_folder(self) -> FolderWatch:
        folder = FolderWatch(self._context.dir, self._context.leg)
        self.add(Turn.RUN_FOLDER, folder.end)
        return folder


def system_sampler(context: LegContext, local: LegLocal, child: Child) -> SystemSampler:
    hosts = context.allocation.hosts
    host = HostSampler(sessions=lambda: (child.pid, *rank_pids(local.ranks)), disk=local.path)
    return SystemSampler(local, context.leg, host, GpuSampler(context.allocation.gpus), node=hosts[0] if len(hosts) > 1 else "")
