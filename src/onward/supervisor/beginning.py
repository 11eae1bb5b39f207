"""Before a leg trains: may it begin, in this job? And its successor, queued before the training starts."""

from __future__ import annotations

import logging
import math
import threading
from contextlib import suppress

from onward.errors import SchedulerError, SubmitLimitReached
from onward.model import event as ev
from onward.model.job import Allocation
from onward.model.lifecycle import Close, Continue, Rest, decide, excluded_nodes, wanted_mem
from onward.model.run import LegEnd, Run
from onward.rundir.closing import close_run
from onward.rundir.journal import Journal, desk_journal, read_run
from onward.schedulers.base import requeues
from onward.supervisor.ending import queue_or_close
from onward.supervisor.handover import QueuedLegCancelled
from onward.supervisor.inquiry import StillRunning, ask_after, unsettled
from onward.supervisor.scene import Scene

log = logging.getLogger(__name__)


def leg_of_job(run: Run, told: int, allocation: Allocation) -> int:
    """The leg that this job stands for. A job that was put back into the queue still has the script of its first leg (`told`)."""
    if not allocation.restarted:
        return told
    job = allocation.job
    mine = [leg.number for leg in run.legs.values() if any(s.job == job and s.stands for s in leg.submissions.values())]
    return max([told, *mine])


def may_begin(scene: Scene) -> bool:
    """Settle what became of earlier legs, and let policy say whether this leg may run, in this job."""
    run = read_run(scene.dir)
    if run.closed:
        log.info("the run is over (%s); this job leaves", run.closed.state)
        return False
    journal = desk_journal(scene.dir)
    try:
        _note_second_life(scene, run, journal)
        earlier = [leg for leg in unsettled(run) if leg.number < scene.leg]
        for found in ask_after(earlier, scene.scheduler, scene.clock, run=run):
            log.info("leg %d ended %s: %s", found.leg, found.end, found.reason)
            journal.write(found)
    except StillRunning as error:
        log.info("%s; this job came too early and leaves", error)
        return False
    run = read_run(scene.dir)
    action = decide(run)
    match action:
        case Close():
            log.info("the run is over: %s", action.cause)
            close_run(scene.dir, journal, action, leg=run.last_leg.number if run.last_leg else scene.leg, at=scene.clock.now())
            return False
        case Continue() if action.leg != scene.leg:
            log.info("leg %d is wanted, not this one; this job leaves", action.leg)
            if scene.allocation.restarted and action.leg == scene.leg + 1:
                queue_or_close(scene, run, action, journal=journal)
            return False
        case Continue() if not _suits(scene, run, action):
            log.info("this job does not have what leg %d needs (memory %s MiB, without %s)", action.leg, action.mem, action.exclude)
            queue_or_close(scene, run, action, journal=journal)
            return False
        case Continue():
            return True
        case Rest():
            log.info("leg %d has been claimed; this job leaves", scene.leg)
            return False


def _note_second_life(scene: Scene, run: Run, journal: Journal) -> None:
    """The scheduler started this job again: its host was lost, or somebody requeued it. The leg it had begun is over."""
    leg = run.legs.get(scene.leg)
    if scene.allocation.restarted and leg and leg.claimed and leg.end is None and leg.claimed.job == scene.allocation.job:
        hosts = ", ".join(leg.claimed.hosts)
        words = f"job {scene.allocation.job} was started again: {hosts} was lost, or somebody put the job back into the queue"
        log.info("leg %d ended %s: %s", leg.number, LegEnd.NODE_LOST, words)
        journal.write(ev.Found(leg=leg.number, at=scene.clock.now(), end=LegEnd.NODE_LOST, reason=words))


def _suits(scene: Scene, run: Run, wanted: Continue) -> bool:
    """Whether this job has the memory, and is not on a node, that the policy asks for and warns of by now."""
    leg = run.legs.get(scene.leg)
    mine = [s for s in leg.submissions.values() if s.job == scene.allocation.job] if leg else []
    enough = all((s.mem or 0) >= (wanted.mem or 0) for s in mine)
    return enough and not any(host in wanted.exclude for host in scene.allocation.hosts)


class Successor:
    """Queues the next leg's job, held on this one, in a thread: a scheduler that does not answer must not hold up training."""

    def __init__(self, scene: Scene) -> None:
        self.done = threading.Event()
        self._given_up = False
        self._thread: threading.Thread | None = None
        self._scene = scene
        if scene.spec.cluster.legs_ahead:  # jobs may not submit here: the next legs are queued already
            self.done.set()
            return
        self._thread = threading.Thread(target=self._work, name="handover", daemon=True)
        self._thread.start()

    def give_up(self) -> None:
        """The leg is ending: what is not queued by now is decided anew."""
        self._given_up = True
        if self._thread:
            self._thread.join(timeout=30)

    def _work(self) -> None:
        scene = self._scene
        able = requeues(scene.scheduler)
        if scene.allocation.restarted and able:
            with suppress(SchedulerError):
                able.requeued(scene.allocation.job)
        try:
            run = read_run(scene.dir)
            handover = scene.handover(patience=86400.0)
            handover.abandoned = lambda: self._given_up
            handover.limit_patience = math.inf  # a place in the queue may become free at any time of the leg
            handover.on_limit = self.done.set  # and training does not wait for it
            wanted = Continue(leg=scene.leg + 1, mem=wanted_mem(run), exclude=excluded_nodes(run))
            job = handover.ensure(run, wanted, after=scene.allocation.job)
            log.info("leg %d is queued as job %s", scene.leg + 1, job)
        except SubmitLimitReached as error:
            log.info("leg %d found no place in the queue while this leg ran: %s", scene.leg + 1, error)
        except (SchedulerError, QueuedLegCancelled) as error:
            log.warning("leg %d could not be queued now, and is tried again when this leg ends: %s", scene.leg + 1, error)
            scene.journal.write(ev.Warned(leg=scene.leg, at=scene.clock.now(), text=f"leg {scene.leg + 1} could not be queued: {error}"))
        finally:
            self.done.set()
