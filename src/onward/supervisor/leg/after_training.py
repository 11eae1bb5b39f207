"""What happens in a leg once its training has gone: the rest is published and carried over, and the outcome is put together."""

from __future__ import annotations

import logging
import math
import signal
from collections.abc import Callable

from onward.model import events as ev
from onward.model.run import Run
from onward.model.stop_reason import StopReason
from onward.rundir.layout import LegLocal
from onward.rundir.mirror import carry
from onward.sdk.contract import EXIT_AGAIN
from onward.supervisor.background import never_hurts_training
from onward.supervisor.leg.context import LegContext
from onward.supervisor.leg.end_marks import reached_its_end
from onward.supervisor.leg.publisher_process import PublisherProcess
from onward.supervisor.leg.verdict import TrainingOutcome, last_words
from onward.supervisor.leg.watch import TrainingWatch
from onward.supervisor.preparation.batch_script import adjusted_exit
from onward.supervisor.stop.stop_file_looks import StopFileLooks, may_go_by_the_clock
from onward.supervisor.telemetry.host import MemoryWatch

log = logging.getLogger(__name__)


def publish_the_rest(
    context: LegContext, training: TrainingWatch, code: int, *, gone: float, until: float, start_publisher: Callable[[], PublisherProcess]
) -> None:
    """Of this node and of all others. `gone`: when the training had. `until`: when the job ends."""
    cut = was_cut_short(code, asked=bool(training.asked), ended=training.ended)
    training.rank_group.drain(until=until - 1.0, cut=cut)
    killed_at = gone if cut else None
    publisher = training.publisher
    training.take_reports(publisher.drain(until=until - 0.5, killed_at=killed_at))
    context.wait_for_storage_anew()
    while training.saves.left_behind and context.clock.now() < context.storage_until and not training.signals.ending:
        publisher = start_publisher()  # each waits a while for room
        training.take_reports(publisher.drain(until=min(until - 0.5, context.storage_until), killed_at=killed_at))
    with never_hurts_training("recording what is left on the node"):
        late = training.asked is StopReason.DEADLINE
        context.patiently(
            "looking at the store",
            lambda: training.saves.note_left_on_node(context.dir.checkpoints, cut_off=publisher.cut, at_deadline=late),
        )


def was_cut_short(code: int, *, asked: bool, ended: bool) -> bool:
    """Whether it may have been in the middle of a save: it was killed, or it failed, perhaps because the node's disk was full.

    One that was asked to stop and exits as shells do after a signal has caught that signal.
    """
    if code in (0, EXIT_AGAIN):
        return False
    return not asked or ended or code <= 128 or code == 128 + signal.SIGKILL


def carry_the_last_files(context: LegContext, local: LegLocal) -> None:
    try:
        context.patiently("copying the last logs and metrics", lambda: carry(local, context.dir))
    except OSError as error:
        log.warning("some of its logs and metrics are not in the run's folder: %s", error)
        words = f"some of its logs and metrics could not be stored: {error}"
        context.journal.write(ev.Warned(leg=context.leg, at=context.clock.now(), text=words))


def remove_launch_plan(context: LegContext) -> None:
    with never_hurts_training("removing the launch plan"):
        context.dir.launch(context.leg).unlink(missing_ok=True)


def _heard_nothing(context: LegContext, training: TrainingWatch, looks: StopFileLooks) -> bool:
    """Neither the stop file nor a signal, and it cannot know when its job ends. Of several ranks or nodes only this process is known."""
    alone = context.spec.launcher == "plain" and len(context.allocation.hosts) == 1
    return alone and looks.never() and not training.signals.came and not may_go_by_the_clock(context.dir)


def outcome_of(
    context: LegContext,
    training: TrainingWatch,
    run: Run,
    code: int,
    *,
    began: float,
    memory: MemoryWatch,
    peak_rss: int,
    looks: StopFileLooks,
) -> TrainingOutcome:
    """`run`: as it was before the training. `peak_rss`: MiB, where the kernel does not tell the memory's peak."""
    local, ranks, leg = training.local, training.rank_group.ranks, context.leg
    peak = memory.peak()
    failed = ranks.first_failure(before=training.ended_at or math.inf)
    if training.ended and failed is None and code not in (0, EXIT_AGAIN):
        code = code if code < 0 else -signal.SIGKILL  # ours, as its launcher puts it
    deaf = training.asked is not None and code == 0 and _heard_nothing(context, training, looks)
    code, asked = adjusted_exit(
        context.spec, code=code, asked=training.asked, ended_by_us=training.ended, local=local, own=run.checkpoints.own, deaf=deaf
    )
    return TrainingOutcome(
        code=code,
        asked=asked,
        finished=reached_its_end(training.spool.read(), saved=training.saves.newest, folders=(local.checkpoints, local.own), began=began),
        stalled=training.stalled,
        lost_nodes=training.lost_nodes,
        memory_killed=memory.killed() or bool(failed and failed.out_of_memory),
        peak_mem=peak if peak is not None else peak_rss or None,
        mem=next((s.mem for s in run.legs[leg].submissions.values() if s.job == context.allocation.job), run.resources.mem),
        evidence=ranks.evidence() or last_words(local.log(leg, "err"), local.log(leg, "out")),
        stall_seconds=run.limits.stall_time,
        who=ranks.name(failed) if failed else "the training",
        said=failed.last_line if failed else "",
        ended_by_us=training.ended and failed is None,
        stayed=ranks.stayed(since=training.ended_at) if training.ended_at else "",
    )
