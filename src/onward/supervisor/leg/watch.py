"""While it trains: one loop that watches the child, the clock, the signals and the folder, and only ever asks, then ends."""

from __future__ import annotations

import logging
import math
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from onward.checkpoints.disk_space import free_bytes
from onward.checkpoints.publishing.publisher import PublishReport
from onward.clock import Clock
from onward.model import events as ev
from onward.model.spec import RunSpec
from onward.model.stop_reason import StopReason
from onward.rundir.journal import Journal
from onward.rundir.layout import LegLocal
from onward.rundir.progress import SpoolReader
from onward.sdk.contract import EXIT_AGAIN
from onward.supervisor.disk.skipped_saves import SkippedSaves
from onward.supervisor.leg.publisher_process import PublisherProcess
from onward.supervisor.leg.rank_watch import RankWatch
from onward.supervisor.leg.saves import LegSaves
from onward.supervisor.preparation.batch_script import send_stop_signal
from onward.supervisor.processes.child import Child
from onward.supervisor.ranks.rank_group import RankGroup
from onward.supervisor.stop.plan import StopPlan, StopPlanner
from onward.supervisor.stop.run_folder_watch import FolderWatch
from onward.supervisor.stop.signals import Signals
from onward.supervisor.stop.store_probe import StoreProbe
from onward.supervisor.stop.suspension import SuspensionClock
from onward.supervisor.stop.time_limit import TimeLimit

log = logging.getLogger(__name__)

_TICK = 0.2
_TERM_TO_KILL = 3.0
_KILLED_TO_GONE = 5.0  # seconds: what hangs in the kernel is not waited for any longer
_STACK_DUMP = 5.0
_OWN_SIGNAL = 0.5
_AFTER_LAST_SAVE = 10.0  # once it has saved as requested, a training that does not leave by itself is ended
_SAME_MOMENT = 0.05  # seconds by which a file's time may lie before the clock's
_NEAR_THE_LIMIT = 120.0  # seconds: a warning signal this close to it announces the limit, any other that the job is wanted back
_SIGNAL_GRACE = 25.0  # seconds after the scheduler's own TERM, where the site does not say how long it waits before it kills
_GRACE_MARGIN = 0.15  # of the grace time, kept for what must be written at the end
_WITHOUT_A_LIMIT = 600.0  # seconds to stop, where there is no deadline; a save that is under way may take longer


@dataclass(kw_only=True)
class TrainingWatch:
    spec: RunSpec
    leg: int
    child: Child
    rank_group: RankGroup
    local: LegLocal
    journal: Journal
    publisher: PublisherProcess
    spool: SpoolReader
    signals: Signals
    folder: FolderWatch
    planner: StopPlanner
    limit: TimeLimit
    clock: Clock
    woken: threading.Event
    probe: StoreProbe | None = None
    state_bytes: Callable[[], int | None] = lambda: None  # what the training holds in memory: a guess at its checkpoint
    shaped: Callable[[StopPlan], StopPlan] = lambda plan: plan  # a batch script is stopped in its own way
    asked: StopReason | None = None
    asked_at: float | None = None
    stalled: bool = False
    fenced: bool = False
    deleted: bool = False  # the run's folder
    ended_at: float | None = None  # by us, since it did not leave by itself
    stop_seconds: float | None = None
    saves: LegSaves = field(init=False)
    ranks: RankWatch = field(init=False)
    _kill_at: float | None = None
    _leave_by: float | None = None  # it has saved as requested; a save that is under way then is let finish
    _sign_of_life: float = 0.0
    _seen: tuple[int, int] = (0, 0)
    lost_nodes: tuple[str, ...] = ()  # fell silent when the training failed
    _skips: SkippedSaves = field(default_factory=SkippedSaves)
    _standstill: SuspensionClock = field(default_factory=SuspensionClock)

    def __post_init__(self) -> None:
        self.saves = LegSaves(leg=self.leg, local=self.local, journal=self.journal, planner=self.planner, clock=self.clock)
        self.ranks = RankWatch(self.rank_group, self.clock)

    def watch(self) -> int:
        """Until the training has gone. Returns its exit code, or minus the signal that ended it."""
        self._sign_of_life = self.clock.now()
        while self.child.running:
            self.woken.wait(_TICK)
            self.woken.clear()
            self.take_reports()
            now = self.clock.now()
            self.rank_group.look(now)
            if self.ranks.launcher_is_late(now) and self.child.running:
                log.warning("the launcher does not end the other ranks; ending them")
                self._kill()
            if words := self.ranks.left_alone(now):
                log.warning("%s", words)
                self.warn(words)
            self._look_for_a_standstill()
            if self.limit.news and self.deadline is not None:
                news, self.limit.news = self.limit.news, ""
                self.journal.write(ev.LimitMoved(leg=self.leg, at=now, deadline=self.deadline, text=news))
            if self.rank_group.remark:
                remark, self.rank_group.remark = self.rank_group.remark, ""
                log.warning("%s", remark)
                self.warn(remark)
            self._measure_store(now)
            self._look_for_reasons(now)
            self._look_for_life(now)
            if self._time_is_up(now) and self.child.running:
                self._end_now()
        assert self.child.code is not None
        self.ranks.wait_for_last_notes()
        if self.rank_group.ranks.code(self.child.code) not in (0, EXIT_AGAIN) and not self.asked:
            self.lost_nodes = self.ranks.lost_nodes(in_a_hurry=lambda: self.signals.ending)
        self._kill()  # whatever it left behind
        self.child.gone.wait(_KILLED_TO_GONE)
        if self.child.code == -signal.SIGKILL and not self.asked:
            self._look_for_a_later_leg()
        if self.child.code in (-signal.SIGTERM, -signal.SIGKILL) and not self.asked:
            self.clock.sleep(_OWN_SIGNAL)  # a scheduler that ends a job signals the training and us, one after the other
        if not self.asked:
            self.signals.settle()
        if self.signals.ending and not self.asked:
            self.asked, self.asked_at = StopReason.SIGNAL, self.clock.now()
        elif not self.asked and self._was_deleted(self.clock.now()):
            self.asked, self.asked_at = StopReason.DELETED, self.clock.now()
        elif not self.asked and self.signals.given_up:
            self.asked, self.asked_at = StopReason.GIVEN_UP, self.clock.now()
        return self.rank_group.ranks.code(self.child.code)

    def take_reports(self, more: list[PublishReport] | None = None) -> None:
        for report in more if more is not None else self.publisher.reports():
            self.saves.take(report)
            if report.kind == "published":
                if self.asked is StopReason.REQUEST and report.began >= (self.asked_at or 0) - _SAME_MOMENT:  # not one under way before
                    self._leave_by = self._leave_by or self.clock.now() + _AFTER_LAST_SAVE
                self._sign_of_life = self.clock.now()
        for step, reason in self.rank_group.missed():
            self.saves.take(PublishReport(kind="missed", step=step, reason=reason))
        for step, reason in self.rank_group.refused():
            self.saves.take(PublishReport(kind="refused", step=step, reason=reason))

    @property
    def deadline(self) -> float | None:
        return self.limit.deadline

    def plan(self, now: float) -> StopPlan:
        """As of now: every save and publish of this leg has changed it."""
        return self.shaped(self.planner.plan(now))

    @property
    def ended(self) -> bool:
        return self.ended_at is not None

    def warn(self, text: str) -> None:
        """For whoever looks at the run."""
        self.journal.write(ev.Warned(leg=self.leg, at=self.clock.now(), text=text))

    # ── reasons to stop ───────────────────────────────────────────────────────

    def _look_for_reasons(self, now: float) -> None:
        if self.folder.fenced_by:
            log.warning("leg %d has taken over; this leg writes no end record", self.folder.fenced_by)
            self.fenced = True
            self._kill()
            return
        if self.asked:
            if self.signals.ending and self.asked is not StopReason.SIGNAL:
                self._ask(StopReason.SIGNAL, now)
            elif self._was_deleted(now) and self.asked not in (StopReason.SIGNAL, StopReason.DELETED):
                self._ask(StopReason.DELETED, now)
            return
        if self.signals.ending:
            self._ask(StopReason.SIGNAL, now)
        elif self._was_deleted(now):
            self._ask(StopReason.DELETED, now)
        elif self.signals.given_up:
            self._ask(StopReason.GIVEN_UP, now)
        elif self.folder.deleted:
            self._ask(StopReason.FOLDER_GONE, now)
        elif self._limit_is_near(now):
            self._ask(StopReason.DEADLINE, now)
        elif self.signals.warned or self.ranks.were_told_to_end(now):
            self._ask(StopReason.DEADLINE if self.deadline and self.deadline - now <= _NEAR_THE_LIMIT else StopReason.WARNING, now)
        elif self.folder.stop_requested:
            self._ask(StopReason.REQUEST, now)

    def _look_for_a_later_leg(self) -> None:
        """One that begins on this machine ends what runs of earlier legs before it trains itself."""
        try:
            self.fenced = self.folder.taken_over()
        except OSError as error:
            log.warning("cannot check whether another leg has taken over: %s", error)

    def _was_deleted(self, now: float) -> bool:
        """At the limit the same notice says that the limit has come."""
        return self.signals.deleted and (self.deadline is None or now < self.deadline - 1)

    def _ask(self, why: StopReason, now: float) -> None:
        self.asked, self.asked_at, self._leave_by = why, now, None
        log.info("asking the training to stop: %s", why)
        self.rank_group.ask()
        if self.spec.stop_signal and not self.rank_group.signal(getattr(signal, f"SIG{self.spec.stop_signal}")):
            send_stop_signal(self.spec, self.child)
        self.journal.write(ev.AskedToStop(leg=self.leg, at=now, why=why))
        if why is StopReason.SIGNAL and self.signals.ending:
            self._kill_at = now + (_SIGNAL_GRACE if self.limit.grace is None else (1 - _GRACE_MARGIN) * self.limit.grace)
        elif why is StopReason.FOLDER_GONE:  # nobody waits for what it still trains
            at_deadline = self.plan(now).kill_at(self.deadline, asked_at=now)
            self._kill_at = min(now + _WITHOUT_A_LIMIT, math.inf if at_deadline is None else at_deadline)
        else:
            self._kill_at = None if why is StopReason.REQUEST or self.deadline else now + _WITHOUT_A_LIMIT

    def _time_is_up(self, now: float) -> bool:
        """Nothing that it saves moves the end that the deadline sets."""
        if self.ended or not self.asked:
            return False
        at_deadline = self.plan(now).kill_at(self.deadline, asked_at=self.asked_at) if self._kill_at is None else None
        if at_deadline is not None and now >= at_deadline:
            return True
        if self._kill_at is not None and now >= self._kill_at:
            if self.deadline or self.asked is StopReason.SIGNAL or not self.rank_group.saving(now):
                return True
            self._kill_at = now + _AFTER_LAST_SAVE
        if self._leave_by is None or now < self._leave_by:
            return False
        if self.rank_group.saving(now):
            self._leave_by = now + _AFTER_LAST_SAVE
            return False
        return True

    def _end_now(self) -> None:
        log.warning("the training did not stop in time; ending it")
        self.ended_at = self.ended_at or self.clock.now()
        self._kill(signal.SIGTERM)
        self._wait_for_child(min(_TERM_TO_KILL, self.plan(self.clock.now()).kill / 2))  # what is left is for carrying over what it saved
        self._kill()
        self._kill_at = self._leave_by = None

    def _kill(self, number: int = signal.SIGKILL) -> None:
        """To the launcher and all ranks, with everything they started, on all nodes."""
        self.rank_group.kill(number)
        self.child.kill(number)

    def _wait_for_child(self, seconds: float) -> None:
        until = self.clock.now() + seconds
        while self.child.running and self.clock.now() < until:
            self.woken.wait(0.05)
            self.woken.clear()

    def _measure_store(self, now: float) -> None:
        """Only where it would change when the training is asked."""
        if self.probe and not self.asked:
            for found in self.probe.take():
                self.planner.probed(at=found.at, seconds=found.seconds, size=found.bytes)
            self.planner.state_bytes = self.state_bytes()
            self.probe.want(self.planner.probe_size(now, self.deadline))

    # ── signs of life ─────────────────────────────────────────────────────────

    def _limit_is_near(self, now: float) -> bool:
        ask_at = self.plan(now).ask_at(self.deadline)
        if ask_at is None or not self.limit.is_current(now, needed_at=ask_at) or now < ask_at:
            return False
        ask_at = self.plan(now).ask_at(self.deadline)  # as the limit stands now: it may have been moved in this moment
        return ask_at is not None and now >= ask_at

    def _look_for_a_standstill(self) -> None:
        """A suspended job makes no progress, and is not to blame for it."""
        seconds = self._standstill.seconds()
        if seconds:
            self._sign_of_life += seconds
            self.warn(f"nothing ran here for {seconds / 60:.0f} min: the job was suspended, or its node hung")

    def _look_for_life(self, now: float) -> None:
        """Progress is a record, a line of output or a checkpoint. None for the stated time: dump the stacks, end it."""
        progress = self.spool.read()
        records = progress.records
        if progress.skipped:
            size = self.planner.newest_bytes
            for words in self._skips.new(progress.skipped, free=free_bytes(self.local.checkpoints), size=size):
                self.warn(words)
        limit = self.spec.limits.stall_time
        if limit is None or self.asked:
            return
        seen = (records, _size(self.local.log(self.leg, "out")) + _size(self.local.log(self.leg, "err")))
        if seen != self._seen:
            self._seen, self._sign_of_life = seen, now
        elif now - self._sign_of_life >= limit and self.child.running:
            log.warning("no progress for %d s: dumping stacks and ending the training", limit)
            self.stalled = True
            self._kill(signal.SIGABRT)  # Python's faulthandler writes the stacks of all threads to stderr
            self._kill(signal.SIGCONT)
            self._wait_for_child(_STACK_DUMP)
            self._kill()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
