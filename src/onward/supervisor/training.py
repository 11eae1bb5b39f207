"""While it trains: one loop that watches the child, the clock, the signals and the folder, and only ever asks, then ends."""

from __future__ import annotations

import logging
import signal
import threading
from dataclasses import dataclass, field
from pathlib import Path

from onward.checkpoints.stager import Report
from onward.clock import Clock
from onward.model import event as ev
from onward.model.lifecycle import DELETED, GIVEN_UP
from onward.model.spec import RunSpec
from onward.rundir.claim import newest_claim
from onward.rundir.journal import Journal
from onward.rundir.layout import LegLocal, RunDir
from onward.rundir.spool import SpoolReader
from onward.sdk.contract import EXIT_AGAIN
from onward.supervisor.batch_script import send_stop_signal
from onward.supervisor.child import Child
from onward.supervisor.deadline import StopPlan
from onward.supervisor.signals import Signals
from onward.supervisor.staging import StagerProcess
from onward.supervisor.stopping import Crew
from onward.supervisor.watchers import Repeating

log = logging.getLogger(__name__)

_TICK = 0.2
_LOOK_SECONDS = 1.0
_MISSES_BEFORE_STOP = 5  # checkpoints, one after another
_LEFT_ALONE = 60.0  # seconds for which other ranks go on after one has ended well, before it is said
_REFUSALS_TOLD = 3  # checkpoints, in a leg
_TERM_TO_KILL = 3.0
_LAUNCHER_REACTS = 10.0  # seconds: a launcher ends the others when one rank has failed; one that does not is ended
_SILENCE = 4.0  # seconds: a node whose agent says nothing for so long, after the training failed, is lost
_LAST_NOTES = 3.0  # seconds for the exit codes of ranks on other nodes to arrive
_HEARD_LATER = 2.0  # seconds: ranks are told to end; that another failed before is heard from its node within this
_STACK_DUMP = 5.0
_OWN_SIGNAL = 0.5
_AFTER_LAST_SAVE = 10.0  # once it has saved as requested, a training that does not leave by itself is ended
_SAME_MOMENT = 0.05  # seconds by which a file's time may lie before the clock's
_NEAR_THE_LIMIT = 120.0  # seconds: a warning signal this close to it announces the limit, any other that the job is wanted back
_SIGNAL_GRACE = 25.0  # after the scheduler's own TERM: what most sites leave before they kill


class FolderWatch:
    """Looks at the run's folder for what others want of this leg: in a thread, since shared storage may hang."""

    def __init__(self, run: RunDir, leg: int) -> None:
        self._run = run
        self._leg = leg
        self.stop_requested = False
        self.fenced_by = 0
        self._thread = Repeating("looking at the run's folder", self._look, every=_LOOK_SECONDS)

    def _look(self) -> None:
        self.stop_requested = self._run.stop_request.exists()
        newest = newest_claim(self._run)
        self.fenced_by = newest if newest > self._leg else 0

    def end(self) -> None:
        self._thread.stop()


@dataclass(kw_only=True)
class Training:
    spec: RunSpec
    leg: int
    child: Child
    crew: Crew
    local: LegLocal
    journal: Journal
    stager: StagerProcess
    spool: SpoolReader
    signals: Signals
    folder: FolderWatch
    plan: StopPlan
    deadline: float | None
    clock: Clock
    woken: threading.Event
    asked: str | None = None
    asked_at: float | None = None
    stalled: bool = False
    fenced: bool = False
    ended_at: float | None = None  # by us, since it did not leave by itself
    stop_seconds: float | None = None
    _missed: set[int] = field(default_factory=set)  # steps that could not be stored since the last that could
    _told_of_leaving: bool = False
    _refused: int = 0  # checkpoints, for what the ranks wrote of them
    _kill_at: float | None = None
    _leave_by: float | None = None  # it has saved as requested; a save that is under way then is let finish
    _sign_of_life: float = 0.0
    _seen: tuple[int, int] = (0, 0)
    lost_nodes: tuple[str, ...] = ()  # fell silent when the training failed
    _failed_since: float | None = None
    _termed_at: float | None = None

    def watch(self) -> int:
        """Until the training has gone. Returns its exit code, or minus the signal that ended it."""
        self._sign_of_life = self.clock.now()
        while self.child.running:
            self.woken.wait(_TICK)
            self.woken.clear()
            self.take_reports()
            now = self.clock.now()
            self.crew.look(now)
            self._look_for_failed_ranks(now)
            self._look_for_ranks_that_left(now)
            if self.crew.remark:
                remark, self.crew.remark = self.crew.remark, ""
                log.warning("%s", remark)
                self.warn(remark)
            self._look_for_reasons(now)
            self._look_for_life(now)
            if self._time_is_up(now) and self.child.running:
                self._end_now()
        assert self.child.code is not None
        self._wait_for_last_notes()
        if self.crew.ranks.code(self.child.code) not in (0, EXIT_AGAIN) and not self.asked:
            self.lost_nodes = self._look_for_lost_nodes()
        self._kill()  # whatever it left behind in its session
        if self.child.code in (-signal.SIGTERM, -signal.SIGKILL) and not self.asked:
            self.clock.sleep(_OWN_SIGNAL)  # a scheduler that ends a job signals the training and us, one after the other
        if not self.asked:
            self.signals.settle()
        if self.signals.ending and not self.asked:
            self.asked, self.asked_at = "signal", self.clock.now()
        elif not self.asked and self._was_deleted(self.clock.now()):
            self.asked, self.asked_at = DELETED, self.clock.now()
        elif not self.asked and self.signals.given_up:
            self.asked, self.asked_at = GIVEN_UP, self.clock.now()
        return self.crew.ranks.code(self.child.code)

    def take_reports(self, more: list[Report] | None = None) -> None:
        for report in more if more is not None else self.stager.reports():
            if report.kind == "published":
                self._missed.clear()
                if self.asked == "request" and report.began >= (self.asked_at or 0) - _SAME_MOMENT:  # not one under way before
                    self._leave_by = self._leave_by or self.clock.now() + _AFTER_LAST_SAVE
                self._sign_of_life = self.clock.now()
                self.journal.write(
                    ev.Published(
                        leg=self.leg,
                        at=self.clock.now(),
                        step=report.step,
                        bytes=report.bytes,
                        save_seconds=report.save_seconds,
                        stage_seconds=report.stage_seconds,
                    )
                )
            else:
                self._miss(report)
        for step, reason in self.crew.missed():
            self._miss(Report(kind="missed", step=step, reason=reason))

    @property
    def ended(self) -> bool:
        return self.ended_at is not None

    @property
    def left_behind(self) -> bool:
        """Something it saved could not be stored, and lies on the node."""
        return bool(self._missed)

    def _miss(self, report: Report) -> None:
        """Tried again and again while the store is full: told once for each step."""
        if report.step in self._missed:
            return
        log.warning("checkpoint of step %d %s: %s", report.step, report.kind, report.reason)
        if report.kind == "refused":
            self._refused += 1
            if self._refused <= _REFUSALS_TOLD:
                more = "; more like it are in the supervisor's log alone" if self._refused == _REFUSALS_TOLD else ""
                self.warn(report.reason + more)
        if report.kind == "missed":
            self._missed.add(report.step)
            self.journal.write(ev.Missed(leg=self.leg, at=self.clock.now(), step=report.step, reason=report.reason))

    def warn(self, text: str) -> None:
        """For whoever looks at the run."""
        self.journal.write(ev.Warned(leg=self.leg, at=self.clock.now(), text=text))

    # ── reasons to stop ───────────────────────────────────────────────────────

    def _look_for_reasons(self, now: float) -> None:
        if self.folder.fenced_by:
            log.warning("leg %d has taken over; this leg ends without a word", self.folder.fenced_by)
            self.fenced = True
            self._kill()
            return
        if self.asked:
            if self.signals.ending and self.asked != "signal":
                self._ask("signal", now)
            elif self._was_deleted(now) and self.asked not in ("signal", DELETED):
                self._ask(DELETED, now)
            return
        ask_at = self.plan.ask_at(self.deadline)
        if self.signals.ending:
            self._ask("signal", now)
        elif self._was_deleted(now):
            self._ask(DELETED, now)
        elif self.signals.given_up:
            self._ask(GIVEN_UP, now)
        elif ask_at is not None and now >= ask_at:
            self._ask("deadline", now)
        elif self.signals.warned or self._ranks_were_warned(now):
            self._ask("deadline" if self.deadline and self.deadline - now <= _NEAR_THE_LIMIT else "warning", now)
        elif self.folder.stop_requested:
            self._ask("request", now)
        elif len(self._missed) >= _MISSES_BEFORE_STOP:
            self._ask("storage", now)

    def _ranks_were_warned(self, now: float) -> bool:
        """Told to end, and not by their launcher because one of them failed: word of that may come from another node a moment later."""
        if not self.crew.ranks.termed or self.crew.ranks.first_failure():
            return False
        self._termed_at = self._termed_at or now
        return now - self._termed_at >= _HEARD_LATER

    def _was_deleted(self, now: float) -> bool:
        """At the limit the same notice says that the limit has come."""
        return self.signals.deleted and (self.deadline is None or now < self.deadline - 1)

    def _ask(self, why: str, now: float) -> None:
        self.asked, self.asked_at, self._leave_by = why, now, None
        log.info("asking the training to stop: %s", why)
        self.crew.ask()
        if self.spec.stop_signal and not self.crew.signal(getattr(signal, f"SIG{self.spec.stop_signal}")):
            send_stop_signal(self.spec, self.child)
        self.journal.write(ev.AskedToStop(leg=self.leg, at=now, why=why))
        at_deadline = self.plan.kill_at(self.deadline)
        if why == "signal" and self.signals.ending:
            self._kill_at = now + _SIGNAL_GRACE
        elif at_deadline is not None:
            self._kill_at = at_deadline
        elif why != "request":
            self._kill_at = now + 600

    def _time_is_up(self, now: float) -> bool:
        """Nothing that it saves moves the end that the deadline sets."""
        if self._kill_at is not None and now >= self._kill_at:
            return True
        if self._leave_by is None or now < self._leave_by:
            return False
        if self.crew.saving(now):
            self._leave_by = now + _AFTER_LAST_SAVE
            return False
        return True

    def _end_now(self) -> None:
        log.warning("the training did not stop in time; ending it")
        self.ended_at = self.ended_at or self.clock.now()
        self._kill(signal.SIGTERM)
        self._wait_for_child(min(_TERM_TO_KILL, self.plan.kill / 2))  # what is left is for carrying over what it saved
        self._kill()
        self._kill_at = self._leave_by = None

    def _kill(self, number: int = signal.SIGKILL) -> None:
        """To the launcher and all ranks, with everything they started, on all nodes."""
        self.crew.kill(number)
        self.child.kill(number)

    def _look_for_failed_ranks(self, now: float) -> None:
        failed = self.crew.ranks.first_failure()
        if failed is None:
            return
        if self._failed_since is None:
            self._failed_since = now
            log.warning("rank %d has failed with code %d", failed.rank, failed.code)
        elif now - self._failed_since >= _LAUNCHER_REACTS and self.child.running:
            log.warning("the launcher does not end the other ranks; ending them")
            self._kill()

    def _look_for_ranks_that_left(self, now: float) -> None:
        """Others may wait for them for ever, in a collective operation."""
        words = "" if self._told_of_leaving else self.crew.ranks.left_alone(before=now - _LEFT_ALONE)
        if words:
            self._told_of_leaving = True
            log.warning("%s", words)
            self.warn(words)

    def _look_for_lost_nodes(self) -> tuple[str, ...]:
        """A node that dies takes the training with it at once; the scheduler notices half a minute later."""
        since = self.clock.now()
        while self.crew.silent_nodes(since=since) and self.clock.now() < since + _SILENCE and not self.signals.ending:
            self.clock.sleep(0.05)
        lost = self.crew.silent_nodes(since=since)
        if lost:
            log.warning("nothing is heard any more from %s", ", ".join(lost))
        return tuple(lost)

    def _wait_for_last_notes(self) -> None:
        until = self.clock.now() + _LAST_NOTES
        self.crew.look(self.clock.now())
        ranks = self.crew.ranks
        while ranks.exits and len(ranks.exits) < ranks.world and self.crew.hears_all and self.clock.now() < until:
            self.clock.sleep(0.05)
            self.crew.look(self.clock.now())

    def _wait_for_child(self, seconds: float) -> None:
        until = self.clock.now() + seconds
        while self.child.running and self.clock.now() < until:
            self.woken.wait(0.05)
            self.woken.clear()

    # ── signs of life ─────────────────────────────────────────────────────────

    def _look_for_life(self, now: float) -> None:
        """Progress is a record, a line of output or a checkpoint. None for the stated time: dump the stacks, end it."""
        records = self.spool.read().records
        limit = self.spec.limits.stall_time
        if limit is None or self.asked:
            return
        seen = (records, _size(self.local.log(self.leg, "out")) + _size(self.local.log(self.leg, "err")))
        if seen != self._seen:
            self._seen, self._sign_of_life = seen, now
        elif now - self._sign_of_life >= limit and self.child.running:
            log.warning("no sign of progress for %d s: dumping stacks and ending the training", limit)
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
