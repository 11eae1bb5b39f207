"""Saves that cannot be stored, at a user's scale: legs of 24 hours, a save every 30 minutes, a disk that is full for a while."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from onward.checkpoints.publishing.publisher import PublishReport
from onward.model import events as ev
from onward.model.analysis.why import why
from onward.model.policy.lifecycle import Close, Continue, RunAction, decide
from onward.model.run import LegEnd, Run, RunState, fold
from onward.model.spec import Limits, Resources
from tests.histories import make_spec
from tests.unit.test_training import Bench, leave

HOUR, DAY = 3600.0, 86400.0
EVERY = HOUR / 2
FULL = "/store is full: the checkpoint needs 100.0 GB, 3.0 GB are free"


@dataclass
class Life:
    """A run of 24-hour legs. A save that falls into an outage is missed; the newest is stored once the outage is over."""

    outages: list[tuple[float, float]]  # hours from the beginning of the run
    time: int | None = int(DAY)
    limits: Limits = field(default_factory=Limits)
    events: list[ev.Event] = field(default_factory=list)
    now: float = 0.0
    step: int = 0
    stored: int | None = None

    def leg(self, end: LegEnd | None = LegEnd.TIME_LIMIT, *, hours: float = 24.0, kept: str = "") -> Life:
        number = 1 + sum(isinstance(event, ev.Claimed) for event in self.events)
        self._add(ev.Claimed(leg=number, at=self.now, job=f"{number}", hosts=["node1"], deadline=None, local="/node"))
        if self.stored is not None:
            self._add(ev.Restored(leg=number, at=self.now, step=self.stored, checkpoint=""))
        self.step = self.stored or 0
        until = self.now + hours * HOUR
        while self.now + EVERY <= until:
            self.now, self.step = self.now + EVERY, self.step + 100
            if self._is_full():
                self._add(ev.Missed(leg=number, at=self.now, step=self.step, reason=FULL, kept=kept))
            else:
                self.stored = self.step
                self._add(ev.Published(leg=number, at=self.now, step=self.step, bytes=1, save_seconds=60, stage_seconds=60))
        self.now = until
        if end:
            self._add(ev.Ended(leg=number, at=self.now, end=end, reason=str(end)))
        return self

    @property
    def run(self) -> Run:
        return fold(make_spec(resources=Resources(time=self.time), limits=self.limits), self.events)

    @property
    def action(self) -> RunAction:
        return decide(self.run)

    def _is_full(self) -> bool:
        return any(begin * HOUR <= self.now < end * HOUR for begin, end in self.outages)

    def _add(self, event: ev.Event) -> None:
        self.events.append(event)


@pytest.mark.parametrize("seconds", [13.0, 2 * HOUR, 20 * HOUR])
def test_a_disk_that_was_full_for_a_part_of_the_leg_costs_the_run_nothing(seconds: float) -> None:
    life = Life([(2.0, 2.0 + seconds / HOUR)]).leg()
    assert life.action == Continue(leg=2, mem=None)
    assert life.stored == life.step == 4800, "the newest was stored when there was room again"


def test_a_disk_that_was_full_for_a_whole_leg_is_given_one_more_leg() -> None:
    life = Life([(24.0, 48.1)]).leg().leg()
    assert not life.run.legs[2].published
    assert life.action == Continue(leg=3, mem=None)
    assert life.leg().action == Continue(leg=4, mem=None), "there was room again"


def test_a_disk_that_stays_full_does_not_burn_leg_after_leg() -> None:
    closing = Life([(24.0, 1000.0)]).leg().leg().leg().action
    assert isinstance(closing, Close) and closing.state is RunState.FAILED
    assert closing.cause == "legs 2 and 3 saved checkpoints, and none could be stored"
    assert FULL in closing.evidence and "/node on node1" in closing.evidence
    assert closing.next.startswith("make room, then onward resume")


def test_legs_that_are_preempted_while_the_disk_is_full_are_judged_by_their_time_and_not_by_their_number() -> None:
    life = Life([(24.0, 1000.0)]).leg()
    for _ in range(4):
        life.leg(LegEnd.PREEMPTED, hours=5)
        assert isinstance(life.action, Continue)
    closing = life.leg(LegEnd.PREEMPTED, hours=5).action
    assert isinstance(closing, Close) and "legs 2 to 6 saved checkpoints, and none could be stored" in closing.cause


def test_a_training_that_finished_while_the_disk_was_full_has_its_last_checkpoint_published_by_one_more_leg() -> None:
    life = Life([(20.0, 25.0)]).leg(LegEnd.DONE, kept="/node/checkpoints/step-00004800")
    assert life.action == Continue(leg=2, mem=None)
    assert isinstance(Life([(20.0, 25.0)]).leg(LegEnd.DONE).action, Close), "but not where nothing of it is left"


def test_a_running_leg_says_what_could_not_be_stored_and_stops_saying_so() -> None:
    life = Life([(2.0, 1000.0)]).leg(None, hours=10)
    said = why(life.run, None)
    assert "no checkpoint since step 300 could be stored; the newest, of step 2000, is retried" in said and FULL in said
    well = replace(life, outages=[(2.0, 4.0)], events=[], now=0.0, step=0, stored=None).leg(None, hours=10)
    assert why(well.run, None) == "leg 1 runs on node1"


def miss(step: int) -> PublishReport:
    return PublishReport(kind="missed", step=step, reason=FULL)


def test_a_training_is_not_asked_to_stop_however_many_saves_could_not_be_stored(tmp_path: Path) -> None:
    def fail(bench: Bench) -> None:
        bench.reports += [miss(step) for step in range(100, 4900, 100)]

    def room(bench: Bench) -> None:
        bench.reports.append(PublishReport(kind="published", step=4900))

    bench = Bench(tmp_path, {5: fail, 138: room, 150: leave})
    _, at = bench.watch()
    assert (at, bench.training.asked, bench.training.saves.last_missed) == (150, None, None)
    texts = [event.text for event in bench.written if isinstance(event, ev.Warned)]
    assert texts == ["checkpoints are stored again, from step 4900 on, after a gap of 00:02:13"]
