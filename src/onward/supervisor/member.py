"""A leg of a pipeline's run: it lets the pipeline go on when a checkpoint is there for others, and when its run is over."""

from __future__ import annotations

from pathlib import Path

from onward.checkpoints.find import names
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir
from onward.rundir.pipeline_layout import PipelineDir
from onward.schedulers.registry import scheduler_for
from onward.supervisor.scene import Scene
from onward.supervisor.watchers import Repeating, never_hurts_training
from onward.supervisor.watching.folder import LOOK_SECONDS, ChangedFolder


def following(scene: Scene) -> Repeating | None:
    """Beside a training of a pipeline: have the pipeline go on with each checkpoint that is published. None where it is no such thing."""
    if scene.spec.member is None or scene.spec.member.worker is not None:
        return None
    known: list[int] = []
    folder = ChangedFolder(scene.dir.checkpoints)

    behind = True

    def look() -> None:
        nonlocal behind
        behind = folder.changed() or behind  # tried again where it failed
        if not behind:
            return
        count = newest(scene.dir)
        if count not in known:
            advance(scene)
            known[:] = [count]
        behind = False

    return Repeating("going on with the pipeline", look, every=LOOK_SECONDS)


def beside(scene: Scene) -> list[Repeating]:
    """All that is done for the pipeline while a leg of it lives."""
    if scene.spec.member is None:
        return []
    from onward.supervisor.uploading import uploading  # of no use to a run that is alone

    return [thread for thread in (following(scene), uploading(scene)) if thread]


def newest(dir: RunDir) -> int:
    """The step of the newest checkpoint; -1 where there is none."""
    found = names(dir.checkpoints)
    return found[-1].step if found else -1


def over(scene: Scene) -> None:
    """When a leg leaves: if its run is over, the pipeline goes on. A successor that finds the run over sees to it as well."""
    if scene.spec.member is None or not read_run(scene.dir).closed:
        return
    with never_hurts_training("going on with the pipeline"):
        advance(scene)


def leave(scene: Scene) -> None:
    """The last that a leg does: if the pipeline is over, what is still to be uploaded."""
    if scene.spec.member is None:
        return
    from onward.supervisor.uploading import upload_last

    upload_last(scene)


def advance(scene: Scene) -> None:
    from onward.supervisor.advance import Advance  # of no use to a run that is alone

    assert scene.spec.member is not None
    pipeline = PipelineDir(Path(scene.spec.member.pipeline))
    if not scene.spec.cluster.legs_ahead:  # where jobs may not submit, `onward tend` does it
        Advance(dir=pipeline, clock=scene.clock, make_scheduler=scheduler_for, own=scene.allocation.job).work()
