"""The life of one leg, top to bottom: look, claim, hand over, train, end, decide.

This is the batch process of a job. It is frozen with the run as `supervisor.pyz`, needs nothing but the standard
library, and can be killed at any line: the next leg finds out what happened and goes on.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from onward.clock import SystemClock
from onward.errors import AlreadyClaimed, InputRefused, OnwardError
from onward.model import event as ev
from onward.model.run import LegEnd
from onward.rundir.claim import claim
from onward.rundir.journal import Journal, read_run, read_spec
from onward.rundir.layout import LegLocal, RunDir, own_run
from onward.schedulers.base import habits_of
from onward.schedulers.registry import scheduler_for
from onward.supervisor.beginning import Successor, leg_of_job, may_begin
from onward.supervisor.ending import go_on_or_close, leave_job, write_end
from onward.supervisor.member import leave, over
from onward.supervisor.notice import Notice
from onward.supervisor.scene import Scene
from onward.supervisor.signals import Signals
from onward.supervisor.surroundings import local_folder

if TYPE_CHECKING:
    from onward.supervisor.training import Training

log = logging.getLogger(__name__)

_MOST_TO_START = 600.0  # seconds from the job's start to ours: more is no measurement
_PUSH_PATIENCE = 10.0  # seconds for the last records to reach the tracker's server
_HANDOVER_PATIENCE = 10.0  # seconds training waits for its successor to be queued


def live_leg(path: Path, leg: int) -> int:
    """Returns the job's exit code: 0, or 1 where the training failed, so that the scheduler's own lists say so too."""
    signals = Signals()
    scene = _set_scene(own_run(path), leg)
    leg = scene.leg
    allocation, journal, clock = scene.allocation, scene.journal, scene.clock
    signals.expect_delete_notice(habits_of(scene.scheduler).delete_notice, Notice(scene))
    log.info("job %s on %s", allocation.job, ", ".join(allocation.hosts))

    # ── is there anything to do, and is it ours? ──────────────────────────────
    if not may_begin(scene):
        over(scene)
        leave(scene)
        return leave_job(scene, 0)
    try:
        claim(scene.dir, leg, job=allocation.job)
    except AlreadyClaimed as error:
        log.info("%s; this job leaves", error)
        return 0
    local = local_folder(scene.spec, leg, run=scene.dir)
    journal.write(
        ev.Claimed(
            leg=leg,
            at=clock.now(),
            job=allocation.job,
            hosts=list(allocation.hosts),
            deadline=allocation.deadline,
            gpus=list(allocation.gpus),
            local=str(local.path),
        )
    )

    # ── queue the successor before training starts ────────────────────────────
    successor = Successor(scene)
    from onward.supervisor.course import train  # loaded while the scheduler answers: half of what there is to load
    from onward.supervisor.push import push_last
    from onward.supervisor.salvage import salvage
    from onward.supervisor.watchers import never_hurts_training

    with never_hurts_training("salvage of an earlier leg"):
        salvage(scene.dir, read_run(scene.dir), leg=leg, journal=journal, clock=clock)
    successor.done.wait(_HANDOVER_PATIENCE)

    # ── train ─────────────────────────────────────────────────────────────────
    training: Training | None = None
    try:
        outcome, training = train(scene, local, signals)
        if training.fenced:
            return 0
        if not write_end(scene, outcome, training):
            _leave(scene, local, training)
            return 1
    except OnwardError as error:
        log.error("%s", error)
        final = isinstance(error, InputRefused)
        journal.write(ev.Ended(leg=leg, at=clock.now(), end=LegEnd.CRASHED, reason=error.message, evidence=error.hint, final=final))

    # ── end and decide ────────────────────────────────────────────────────────
    successor.give_up()
    _leave(scene, local, training)
    go_on_or_close(scene)
    journal.close()
    over(scene)
    if scene.spec.tracker:
        with never_hurts_training("the last push"):
            age = clock.now() - scene.spec.created
            push_last(scene.spec.tracker, scene.spec.id, scene.dir, within=_PUSH_PATIENCE, age=age)
    leave(scene)
    ended = read_run(scene.dir).legs[leg].end
    return leave_job(scene, 1 if ended in (LegEnd.CRASHED, LegEnd.STALLED, LegEnd.OUT_OF_MEMORY) else 0)


def _leave(scene: Scene, local: LegLocal, training: Training | None) -> None:
    """Remove the node's folder, unless it holds what must not be lost: the next leg on this node publishes it."""
    from onward.checkpoints.left import unpublished
    from onward.supervisor.relay_files import files_left

    left_behind = training is not None and training.left_behind
    if left_behind or files_left(local) or unpublished(local.checkpoints, scene.dir.checkpoints, leg=scene.leg):
        return
    shutil.rmtree(local.path, ignore_errors=True)
    with contextlib.suppress(OSError):
        local.path.parent.rmdir()  # unless another leg of this run is on this node


def _set_scene(dir: RunDir, leg: int) -> Scene:
    clock = SystemClock()
    began = _job_began(clock.now())
    spec = read_spec(dir)
    scheduler = scheduler_for(spec.cluster)
    allocation = scheduler.allocation()
    run = read_run(dir)
    leg = leg_of_job(run, leg, allocation)
    words = f"%(asctime)s leg {leg} %(levelname)s %(message)s"
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=words, datefmt="%Y-%m-%d %H:%M:%S", force=True)
    limit = run.resources.time
    if allocation.deadline is None and limit:
        allocation = replace(allocation, deadline=(allocation.started or began) + limit)
    journal = Journal(dir.leg_journal(leg), patient=True)
    return Scene(dir=dir, spec=spec, leg=leg, scheduler=scheduler, allocation=allocation, clock=clock, journal=journal)


def _job_began(now: float) -> float:
    """When the scheduler started this process: the job script became us by exec, so it is the job's start, however slow Python was."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        since_boot = float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return now
    return now - min(max(0.0, since_boot - ticks / os.sysconf("SC_CLK_TCK")), _MOST_TO_START)


def main(argv: Sequence[str]) -> int:
    """`supervisor.pyz leg RUN N`: what a job script starts."""
    if len(argv) != 2 or not argv[1].isdigit():
        sys.stderr.write("usage: supervisor.pyz leg RUN_FOLDER LEG_NUMBER\n")
        return 2
    return live_leg(Path(argv[0]), int(argv[1]))
