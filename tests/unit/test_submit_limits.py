"""A site that takes no more jobs for now: the next leg is tried again, then the job itself goes back into the queue, then tend submits."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from onward.clock import ManualClock
from onward.errors import SubmitLimitReached
from onward.model import events as ev
from onward.model.analysis.why import why
from onward.model.job import Allocation, JobId, JobState
from onward.model.policy.lifecycle import Continue
from onward.model.run import LegEnd
from onward.operations.repair.one_run import GRACE
from onward.operations.repair.tend import TendReport, tend
from onward.rundir.journal import Journal, desk_journal, read_events
from onward.schedulers.base import requeues
from onward.supervisor.leg.begin import Successor, leg_of_job, may_begin
from onward.supervisor.leg.context import LegContext
from onward.supervisor.leg.end import continue_or_close, leave_job
from onward.supervisor.leg.handover import Handover
from tests.benches import until
from tests.fakes import FakeScheduler
from tests.sandbox import CountingScheduler, PlayedRun, Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


@pytest.fixture
def run(sandbox: Sandbox) -> PlayedRun:
    """Leg 1 runs, and the site allows no other job beside it."""
    played = sandbox.play()
    sandbox.scheduler.limit = 1
    return played.begin(1, successor=False)


def leg_context_of(run: PlayedRun, leg: int, *, restarted: bool = False) -> LegContext:
    allocation = Allocation(job=run.job(leg), hosts=("node1",), deadline=None, restarted=restarted)
    return LegContext(
        dir=run.dir,
        spec=run.spec,
        leg=leg,
        scheduler=run.sandbox.scheduler,
        allocation=allocation,
        clock=run.sandbox.clock,
        journal=Journal(run.dir.leg_journal(leg)),
    )


def ended(run: PlayedRun, leg: int, end: LegEnd = LegEnd.TIME_LIMIT) -> None:
    """The leg has said its last word; its job still runs."""
    run.publish(leg, leg)
    run.write(ev.Ended(leg=leg, at=run.now(), end=end, reason="as the test says"))


def kinds(run: PlayedRun, leg: int) -> list[str]:
    return [event.kind for event in sorted(read_events(run.dir), key=lambda event: event.at) if event.leg == leg]


# ── while the leg runs ────────────────────────────────────────────────────────


class Crowded(CountingScheduler):
    """Has room for another job from a certain time on, and notes when it was asked for one."""

    def __init__(self, clock: ManualClock, room_from: float) -> None:
        super().__init__(clock)
        self.room_from = room_from
        self.tries: list[float] = []

    def submit(self, script: Path, *, name: str, after: JobId | None = None) -> JobId:
        self.tries.append(self.clock.now())
        self.limit = None if self.clock.now() >= self.room_from else 0
        return super().submit(script, name=name, after=after)


def test_a_submit_is_tried_again_with_growing_pauses_until_there_is_room(run: PlayedRun) -> None:
    began = run.now()
    scheduler = Crowded(run.sandbox.clock, room_from=began + 24 * 3600)
    handover = Handover(dir=run.dir, scheduler=scheduler, journal=desk_journal(run.dir), clock=run.sandbox.clock, limit_patience=math.inf)
    job = handover.ensure(run.run, Continue(leg=2, mem=None), after="1")
    assert scheduler.status([JobId(job)])[JobId(job)].state is JobState.HELD
    pauses = [round(later - earlier) for earlier, later in zip(scheduler.tries, scheduler.tries[1:], strict=False)]
    assert pauses[:6] == [60, 120, 240, 480, 600, 600]
    assert len(pauses) < 160, "not more than one every ten minutes, over a day"
    assert kinds(run, 2) == ["submitting", "limited", "submitted"], "a day of waiting is three lines in the journal"
    assert run.leg(2).job == job


def test_a_leg_goes_on_trying_while_it_trains_and_its_end_ends_that(run: PlayedRun) -> None:
    scheduler = Crowded(run.sandbox.clock, room_from=math.inf)
    successor = Successor(replace(leg_context_of(run, 1), scheduler=scheduler), run.run)
    until(lambda: len(scheduler.tries) > 3, what="a fourth try")
    assert successor.done.is_set(), "training does not wait for a place in the queue"
    successor.give_up()
    assert successor._thread is not None and not successor._thread.is_alive()
    assert kinds(run, 2) == ["submitting", "limited"]
    assert [words for leg in run.run.legs.values() for words in leg.warnings] == []


def test_a_running_leg_shows_that_the_next_one_has_no_place_yet(run: PlayedRun) -> None:
    with pytest.raises(SubmitLimitReached):
        run.queue(2, after=run.job(1))
    said = why(run.run, run.sandbox.scheduler.status([run.job(1)]))
    assert said.startswith("leg 1 runs on node1; leg 2 waits for a place in the queue")


# ── at its end ────────────────────────────────────────────────────────────────


def test_at_the_end_of_a_leg_its_job_goes_back_into_the_queue_as_the_next_leg(run: PlayedRun) -> None:
    scheduler, job = run.sandbox.scheduler, run.job(1)
    ended(run, 1)
    context = leg_context_of(run, 1)
    continue_or_close(context)
    assert scheduler.status([job])[job].state is JobState.RUNNING, "not before all else is done"
    assert leave_job(context, 0) == 0
    assert scheduler.status([job])[job].state is JobState.QUEUED
    assert run.leg(2).job == job

    scheduler.start(job)
    again = leg_context_of(run, 2, restarted=True)
    assert leg_of_job(run.run, 1, again.allocation) == 2, "its script still says leg 1"
    assert may_begin(again)


def test_a_scheduler_that_requeues_by_an_exit_code_gets_it(run: PlayedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeScheduler, "requeue", lambda self, job: 99)
    ended(run, 1, LegEnd.CRASHED)
    context = leg_context_of(run, 1)
    continue_or_close(context)
    assert leave_job(context, 1) == 99


def test_a_job_without_a_plan_to_come_back_leaves_with_its_own_exit_code(run: PlayedRun) -> None:
    assert leave_job(leg_context_of(run, 1), 1) == 1


def test_a_job_that_lacks_the_memory_of_the_next_leg_does_not_come_back_and_the_run_says_who_goes_on(
    sandbox: Sandbox, run: PlayedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(run, 1)
    monkeypatch.setattr("onward.supervisor.leg.end.suits_next_leg", lambda standing, wanted: False)
    context = leg_context_of(run, 1)
    continue_or_close(context)
    assert context.requeue is None
    sandbox.scheduler.end(run.job(1))
    said = why(run.run, {})
    assert "leg 2 waits for a place in the queue" in said and "only 1 jobs are allowed" in said and "onward tend" in said


def test_a_requeue_that_is_not_allowed_leaves_the_leg_waiting_for_a_place(run: PlayedRun) -> None:
    ended(run, 1)
    context = leg_context_of(run, 1)
    continue_or_close(context)
    run.sandbox.scheduler.down = True
    assert leave_job(context, 0) == 0
    assert run.leg(2).job is None
    assert "waits for a place in the queue" in why(run.run, {})


def test_a_scheduler_that_cannot_requeue_is_not_asked_to() -> None:
    assert requeues(object()) is None


def test_a_job_killed_between_its_plan_to_come_back_and_doing_so_is_replaced_by_tend(sandbox: Sandbox, run: PlayedRun) -> None:
    ended(run, 1)
    continue_or_close(leg_context_of(run, 1))
    first = run.job(1)
    sandbox.scheduler.end(first, JobState.TIMED_OUT)
    assert tended(sandbox).acted
    assert run.job(2) != first
    assert sandbox.scheduler.status([run.job(2)])[run.job(2)].state is JobState.QUEUED


def test_a_job_that_slurm_itself_restarts_ends_its_leg_and_becomes_the_next(run: PlayedRun) -> None:
    """As after a lost node: the leg had no last word, and no other job may be submitted."""
    scheduler, job = run.sandbox.scheduler, run.job(1)
    context = leg_context_of(
        run, leg_of_job(run.run, 1, Allocation(job=job, hosts=("node2",), deadline=None, restarted=True)), restarted=True
    )
    assert not may_begin(context)
    leave_job(context, 0)
    assert run.leg(1).end is LegEnd.NODE_LOST
    scheduler.start(job)
    again = leg_context_of(run, 2, restarted=True)
    assert leg_of_job(run.run, 1, again.allocation) == 2
    assert may_begin(again)


def test_a_run_that_is_over_does_not_show_a_leg_that_never_found_a_place(run: PlayedRun) -> None:
    with pytest.raises(SubmitLimitReached):
        run.queue(2, after=run.job(1))
    ended(run, 1, LegEnd.DONE)
    continue_or_close(leg_context_of(run, 1))
    assert run.run.closed
    assert run.leg(2).submission is None


# ── by whoever looks after the runs ───────────────────────────────────────────


def tended(sandbox: Sandbox) -> TendReport:
    sandbox.clock.sleep(GRACE + 1)
    return tend(sandbox.context)


def test_tend_submits_the_waiting_leg_when_there_is_room_and_writes_nothing_until_then(sandbox: Sandbox, run: PlayedRun) -> None:
    with pytest.raises(SubmitLimitReached):
        run.queue(2, after=run.job(1))
    run.end(1, LegEnd.TIME_LIMIT)
    sandbox.scheduler.limit = 0
    before = run.files()
    for _ in range(3):
        done = tended(sandbox)
        assert (done.acted, done.problems, done.unanswered) == ([], [], False)
        assert "waits for a place in the queue" in done.said[run.spec.id]
    assert run.files() == before, "a pass that changes nothing leaves no file"
    sandbox.scheduler.limit = None
    assert "queued leg 2" in tended(sandbox).acted[0]
    assert sandbox.scheduler.status([run.job(2)])[run.job(2)].state is JobState.QUEUED


def test_tend_says_once_that_a_leg_found_no_place(sandbox: Sandbox, run: PlayedRun) -> None:
    run.end(1, LegEnd.TIME_LIMIT)
    sandbox.scheduler.limit = 0
    assert "leg 2 waits for a place in the queue" in tended(sandbox).acted[0]
    assert tended(sandbox).acted == []


def test_a_submit_that_was_accepted_unheard_while_there_was_no_room_is_found_by_its_name(sandbox: Sandbox, run: PlayedRun) -> None:
    """The process that tried again was killed before it could write the job down."""
    with pytest.raises(SubmitLimitReached):
        run.queue(2, after=run.job(1))
    standing = run.leg(2).submission
    assert standing
    sandbox.scheduler.limit = None
    job = sandbox.scheduler.submit(run.dir.script(2), name=standing.name)
    run.end(1, LegEnd.TIME_LIMIT)
    assert run.queue(2) == job
    assert len(sandbox.scheduler.jobs) == 2
