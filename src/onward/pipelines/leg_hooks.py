"""A leg of a pipeline's run: it lets the pipeline go on when a checkpoint is there for others, and when its run is over."""

from __future__ import annotations

from pathlib import Path

from onward.checkpoints.restoring.newest import published_names_of
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir
from onward.rundir.pipeline.layout import PipelineDir
from onward.schedulers.registry import scheduler_for
from onward.supervisor.background import Repeating, never_hurts_training
from onward.supervisor.leg.context import LegContext
from onward.supervisor.stop.run_folder_watch import LOOK_SECONDS, ChangedFolder


def advance_on_checkpoints(context: LegContext) -> Repeating | None:
    """Beside a training of a pipeline: have the pipeline go on with each checkpoint that is published. None where it is no such thing."""
    if context.spec.member is None or context.spec.member.worker is not None:
        return None
    known: list[int] = []
    folder = ChangedFolder(context.dir.checkpoints)

    behind = True

    def look() -> None:
        nonlocal behind
        behind = folder.changed() or behind  # tried again where it failed
        if not behind:
            return
        count = newest_step(context.dir)
        if count not in known:
            advance(context)
            known[:] = [count]
        behind = False

    return Repeating("continuing the pipeline", look, every=LOOK_SECONDS)


def companions(context: LegContext) -> list[Repeating]:
    """All that is done for the pipeline while a leg of it lives."""
    if context.spec.member is None:
        return []
    from onward.pipelines.upload.beside_jobs import upload_in_background  # of no use to a run that is alone

    return [thread for thread in (advance_on_checkpoints(context), upload_in_background(context)) if thread]


def newest_step(dir: RunDir) -> int:
    """The step of the newest checkpoint; -1 where there is none."""
    found = published_names_of(dir.checkpoints)
    return found[-1].step if found else -1


def when_run_is_over(context: LegContext) -> None:
    """When a leg leaves: if its run is over, the pipeline goes on. A successor that finds the run over sees to it as well."""
    if context.spec.member is None or not read_run(context.dir).closed:
        return
    with never_hurts_training("continuing the pipeline"):
        advance(context)


def when_leg_leaves(context: LegContext) -> None:
    """The last that a leg does: if the pipeline is over, what is still to be uploaded."""
    if context.spec.member is None:
        return
    from onward.pipelines.upload.beside_jobs import upload_last

    upload_last(context)


def advance(context: LegContext) -> None:
    from onward.pipelines.advance import PipelineAdvance  # of no use to a run that is alone

    assert context.spec.member is not None
    pipeline = PipelineDir(Path(context.spec.member.pipeline))
    if not context.spec.cluster.legs_ahead:  # where jobs may not submit, `onward tend` does it
        PipelineAdvance(dir=pipeline, clock=context.clock, make_scheduler=scheduler_for, own=context.allocation.job).work()
