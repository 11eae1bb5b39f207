"""The life of one leg, top to bottom: look, hand over, claim, train, end, decide.

This is the batch process of a job. It is frozen with the run as `supervisor.pyz`, needs nothing but the standard
library, and can be killed at any line: the next leg finds out what happened and goes on.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from onward.clock import Clock, SystemClock
from onward.errors import AlreadyClaimed, CopiedFolder, InputRefused, OnwardError
from onward.model import events as ev
from onward.model.job import DONE_UNTOLD
from onward.model.policy.leg_history import time_left
from onward.model.policy.storage_patience import storage_patience
from onward.model.run import LegEnd, Run
from onward.rundir.claim import claim
from onward.rundir.home import refuse_copy
from onward.rundir.journal import Journal, read_history, read_run, read_spec
from onward.rundir.layout import LegLocal, RunDir, own_run
from onward.schedulers.base import capabilities_of
from onward.schedulers.job_script import STORAGE_PATIENCE, STORAGE_WAITED
from onward.schedulers.registry import scheduler_for
from onward.supervisor import pipeline_hooks
from onward.supervisor.leg.begin import Successor, abandon_start, is_free, leg_of_job, may_begin
from onward.supervisor.leg.context import LegContext
from onward.supervisor.leg.end import continue_or_close, keep_untold, leave_job, write_end
from onward.supervisor.leg.storage_wait import wait_for_storage
from onward.supervisor.own_log import log_to_stderr
from onward.supervisor.preparation.environment import local_folder
from onward.supervisor.stop.kill_notice import KillNotice
from onward.supervisor.stop.signals import Signals

if TYPE_CHECKING:
    from onward.supervisor.leg.watch import TrainingWatch

log = logging.getLogger(__name__)

_MOST_TO_START = 600.0  # seconds from the job's start to ours: more is no measurement
_PUSH_PATIENCE = 10.0  # seconds for the last records to reach the tracker's server
_HANDOVER_PATIENCE = 10.0  # seconds training waits for its successor to be queued


def live_leg(path: Path, leg: int) -> int:
    """Returns the job's exit code: 0, or 1 where the training failed, so that the scheduler's own lists say so too."""
    signals = Signals()
    clock = SystemClock()
    patience, waited = _patience()
    began = _job_began(clock.now())
    ending: Callable[[], bool] = lambda: signals.ending  # noqa: E731
    context, run = wait_for_storage(
        "reading the run's folder",
        lambda: _leg_context(own_run(path), leg, clock=clock, began=began),
        clock=clock,
        until=clock.now() + patience,
        ending=ending,
    )
    context.patience, context.waited, context.ending = patience, waited, ending
    context.wait_for_storage_anew()
    signals.expect_delete_notice(capabilities_of(context.scheduler).delete_notice, KillNotice(context))
    log.info("job %s on %s", context.allocation.job, ", ".join(context.allocation.hosts))

    # ── queue the successor before anything that can fail ─────────────────────
    successor = Successor(context, run) if is_free(run, context.leg) else None

    # ── is there anything to do, and is it ours? ──────────────────────────────
    try:
        if not context.patiently("finding out how earlier legs ended", lambda: may_begin(context)):
            if successor:
                successor.take_back("its predecessor did not begin")
            _for_its_pipeline(context, pipeline_hooks.when_run_is_over, pipeline_hooks.when_leg_leaves)
            return leave_job(context, 0)
        _load(context)
        local = _claim(context)
    except AlreadyClaimed as error:
        log.info("%s; this job exits", error)
        if successor:
            successor.take_back("its predecessor did not begin")
        return 0
    except OSError as error:
        return abandon_start(context, run, successor, error)

    # ── what is done while the scheduler answers ──────────────────────────────
    from onward.supervisor.background import never_hurts_training
    from onward.supervisor.disk.deleted_run_folder import rescue
    from onward.supervisor.disk.salvage import salvage
    from onward.supervisor.disk.salvage_share import SalvageShare
    from onward.supervisor.leg.train import train  # loaded by now
    from onward.supervisor.telemetry.push import push_last

    context.wait_for_storage_anew()
    with never_hurts_training("queueing what the next leg needs"):
        run = read_run(context.dir)
        successor = successor.fitting(run) if successor else Successor(context, run)
    with never_hurts_training("salvage of an earlier leg"):
        share = SalvageShare.of_leg(context.allocation.deadline, clock)
        salvage(context.dir, read_run(context.dir), leg=context.leg, journal=context.journal, clock=clock, share=share)
    with never_hurts_training("keeping the run's history in mind"):
        context.history = read_history(context.dir)
    if successor:
        successor.done.wait(_HANDOVER_PATIENCE)

    # ── train ─────────────────────────────────────────────────────────────────
    training: TrainingWatch | None = None
    try:
        outcome, training = train(context, local, signals)
        if training.fenced:
            return 0
        if training.deleted:
            write_end(context, outcome, training)
            if successor:
                successor.take_back("the run's folder was deleted")
            rescue(context, local)
            return 1
        if not write_end(context, outcome, training):
            _remove_node_folder(context, local, training)
            context.journal.close()
            return 1
    except OnwardError as error:
        log.error("%s", error)
        final = isinstance(error, InputRefused)
        context.journal.write(
            ev.Ended(leg=context.leg, at=clock.now(), end=LegEnd.CRASHED, reason=error.message, evidence=error.hint, final=final)
        )
    except OSError as error:
        log.exception("the leg cannot continue")
        words = f"its storage failed before the training began: {error}" if training is None else f"its storage failed: {error}"
        context.journal.write(ev.Ended(leg=context.leg, at=clock.now(), end=LegEnd.CRASHED, reason=words, counts=False))

    # ── end and decide ────────────────────────────────────────────────────────
    context.wait_for_storage_anew()
    try:
        context.patiently("recording how the leg ended", context.journal.flush)
        if successor:
            successor.give_up()
        _remove_node_folder(context, local, training)
        context.patiently("deciding what the run does next", lambda: continue_or_close(context))
    except OSError as error:
        log.error("the run's folder can no longer be used; the next leg finds out how this one ended: %s", error)
        keep_untold(context, local)
    context.journal.close()
    _for_its_pipeline(context, pipeline_hooks.when_run_is_over)
    if context.spec.tracker:
        with never_hurts_training("the last push"):
            age = clock.now() - context.spec.created
            push_last(context.spec.tracker, context.spec.id, context.dir, within=_PUSH_PATIENCE, age=age)
    _for_its_pipeline(context, pipeline_hooks.when_leg_leaves)
    return leave_job(context, _exit_code(context))


def _load(context: LegContext) -> None:
    """Half of what there is to load, while the scheduler answers."""
    from onward.supervisor.disk import deleted_run_folder, salvage  # noqa: F401
    from onward.supervisor.leg import train  # noqa: F401
    from onward.supervisor.telemetry import push  # noqa: F401

    pipeline_hooks.load(context)


def _claim(context: LegContext) -> LegLocal:
    """Take the leg, for ever, and say so. An attempt that failed may have succeeded on the storage's side: then the leg is ours."""
    attempts = 0

    def attempt() -> None:
        nonlocal attempts
        attempts += 1
        if attempts > 1 and (closed := read_run(context.dir).closed):
            raise AlreadyClaimed(f"the run is over ({closed.state}) since this job waited for its storage")
        claim(context.dir, context.leg, job=context.allocation.job, repeated=attempts > 1)

    context.patiently("claiming the leg", attempt)
    left = context.patiently("reading how much time the run has left", lambda: time_left(read_run(context.dir)))
    if left is not None:
        context.end_by(context.clock.now() + left)
    local = context.patiently("making the leg's folder on the node", lambda: local_folder(context.spec, context.leg, run=context.dir))
    context.journal.write(
        ev.Claimed(
            leg=context.leg,
            at=context.clock.now(),
            job=context.allocation.job,
            hosts=list(context.allocation.hosts),
            deadline=context.allocation.deadline,
            gpus=list(context.allocation.gpus),
            local=str(local.path),
        )
    )
    return local


def _for_its_pipeline(context: LegContext, *acts: Callable[[LegContext], None]) -> None:
    """What a leg does for the pipeline that it is part of, if it is part of one."""
    try:
        for act in acts:
            act(context)
    except OSError as error:
        log.error("the pipeline's folder cannot be used; its next leg, or `onward tend`, continues the pipeline: %s", error)


def _exit_code(context: LegContext) -> int:
    try:
        ended = read_run(context.dir).legs[context.leg].end
    except OSError:
        return DONE_UNTOLD if context.finished else 1
    if ended is None and context.finished:
        return DONE_UNTOLD
    return 1 if ended in (LegEnd.CRASHED, LegEnd.STALLED, LegEnd.OUT_OF_MEMORY) else 0


def _remove_node_folder(context: LegContext, local: LegLocal, training: TrainingWatch | None) -> None:
    """Remove the node's folder, unless it holds what must not be lost: the next leg on this node publishes it."""
    from onward.checkpoints.unpublished import unpublished
    from onward.supervisor.relay.artifacts import has_pending_artifacts

    left_behind = training is not None and training.saves.left_behind
    if left_behind or has_pending_artifacts(local) or unpublished(local.checkpoints, context.dir.checkpoints, leg=context.leg):
        return
    shutil.rmtree(local.path, ignore_errors=True)
    with contextlib.suppress(OSError):
        local.path.parent.rmdir()  # unless another leg of this run is on this node


def _leg_context(dir: RunDir, leg: int, *, clock: Clock, began: float) -> tuple[LegContext, Run]:
    refuse_copy(dir)
    spec = read_spec(dir)
    scheduler = scheduler_for(spec.cluster)
    allocation = scheduler.allocation()
    run = read_run(dir)
    leg = leg_of_job(run, leg, allocation)
    words = f"%(asctime)s leg {leg} %(levelname)s %(message)s"
    log_to_stderr(words, dates="%Y-%m-%d %H:%M:%S")
    limit = run.resources.time
    if allocation.deadline is None and limit:
        allocation = replace(allocation, deadline=(allocation.started or began) + limit)
    journal = Journal(dir.leg_journal(leg), patient=True)
    context = LegContext(dir=dir, spec=spec, leg=leg, scheduler=scheduler, allocation=allocation, clock=clock, journal=journal)
    return context, run


def _patience() -> tuple[float, float]:
    """What the job script says: seconds to wait for the run's folder, and how many jobs before this one have waited for it."""
    waits = [os.environ.pop(name, "") for name in (STORAGE_PATIENCE, STORAGE_WAITED)]  # not for the training
    patience, waited = (float(text) if text.isdecimal() else None for text in waits)
    return storage_patience(None) if patience is None else patience, waited or 0.0


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
    try:
        return live_leg(Path(argv[0]), int(argv[1]))
    except CopiedFolder as error:
        sys.stderr.write(f"this job exits: {error.message}\n  → {error.hint}\n")
        return 1
