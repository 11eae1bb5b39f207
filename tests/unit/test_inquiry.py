from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from onward.clock import ManualClock
from onward.model.job import JobId, JobState, JobStatus
from onward.model.run import Leg, LegEnd
from onward.schedulers.base import Capabilities
from onward.supervisor.leg.earlier_legs import StillRunning, ask_for_ends, ask_once_about_ends, legs_with_unknown_end, legs_without_end
from tests.fakes import FakeScheduler
from tests.histories import History


class Slow(FakeScheduler):
    """Says for a while that it is down, or that a job is still running, before it answers."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.down_until = 0.0
        self.ends: list[tuple[float, JobId, JobState]] = []

    def _answer(self) -> None:
        self.down = self.clock.now() < self.down_until
        for at, job, state in self.ends:
            if self.clock.now() >= at:
                self.end(job, state, exit_code=None)
        super()._answer()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def scheduler(clock: ManualClock) -> Slow:
    return Slow(clock)


def silent_leg(scheduler: FakeScheduler) -> Leg:
    """A leg that began, in a job of the scheduler's, and said nothing any more."""
    history = History().leg(None)
    leg = history.run.legs[1]
    [name] = leg.submissions
    fake = scheduler.jobs.pop(scheduler.submit(Path("script"), name=name))
    assert leg.claimed is not None
    job = JobId(leg.claimed.job)
    scheduler.jobs[job] = replace(fake, status=replace(fake.status, id=job))
    scheduler.start(job)
    return leg


def test_who_cancelled_a_leg_is_written_down_with_its_end(scheduler: Slow, clock: ManualClock) -> None:
    leg = silent_leg(scheduler)
    assert leg.claimed is not None
    scheduler.end(JobId(leg.claimed.job), JobState.CANCELLED, exit_code=None, by="root")
    [found] = ask_for_ends([leg], scheduler, clock)
    assert (found.end, found.by) == (LegEnd.CANCELLED, "root")
    assert found.reason.endswith("was cancelled by root")


def test_only_legs_that_began_and_have_no_end_are_asked_after() -> None:
    history = History().leg(LegEnd.TIME_LIMIT).leg(LegEnd.LOST, silent=True).leg(None).submitted(4)
    assert [leg.number for leg in legs_without_end(history.run)] == [3]
    assert ask_for_ends([], FakeScheduler(), ManualClock()) == []


@pytest.mark.parametrize(
    ("state", "end"), [(JobState.PREEMPTED, LegEnd.PREEMPTED), (JobState.NODE_FAILED, LegEnd.NODE_LOST), (JobState.FINISHED, LegEnd.LOST)]
)
def test_the_scheduler_tells_the_end_of_a_silent_leg_and_when_it_was(
    scheduler: Slow, clock: ManualClock, state: JobState, end: LegEnd
) -> None:
    leg = silent_leg(scheduler)
    scheduler.end(JobId("101"), state)
    ended = clock.now()
    clock.sleep(500)
    [found] = ask_for_ends([leg], scheduler, clock)
    assert (found.leg, found.end, found.at) == (1, end, ended)


def test_a_job_that_is_just_ending_is_given_a_moment(scheduler: Slow, clock: ManualClock) -> None:
    leg = silent_leg(scheduler)
    scheduler.ends = [(clock.now() + 4, JobId("101"), JobState.PREEMPTED)]
    [found] = ask_for_ends([leg], scheduler, clock)
    assert found.end == LegEnd.PREEMPTED


def test_the_moment_counts_from_the_first_answer(scheduler: Slow, clock: ManualClock) -> None:
    leg = silent_leg(scheduler)
    scheduler.down_until = clock.now() + 100
    scheduler.ends = [(clock.now() + 104, JobId("101"), JobState.PREEMPTED)]
    [found] = ask_for_ends([leg], scheduler, clock)
    assert found.end == LegEnd.PREEMPTED


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.UNKNOWN])
def test_a_leg_that_is_still_at_work_is_not_given_an_end(scheduler: Slow, clock: ManualClock, state: JobState) -> None:
    leg = silent_leg(scheduler)
    scheduler.end(JobId("101"), state)
    began = clock.now()
    with pytest.raises(StillRunning, match="job 101"):
        ask_for_ends([leg], scheduler, clock)
    assert clock.now() - began < 30


def test_a_job_the_scheduler_does_not_know_is_lost(scheduler: Slow, clock: ManualClock) -> None:
    leg = silent_leg(scheduler)
    scheduler.forget(JobId("101"))
    [found] = ask_for_ends([leg], scheduler, clock)
    assert found.end == LegEnd.LOST and "no longer knows job 101" in found.reason


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.FINISHED, JobState.CANCELLED])
def test_a_stranger_with_our_jobs_id_is_not_taken_for_it(scheduler: Slow, clock: ManualClock, state: JobState) -> None:
    leg = silent_leg(scheduler)
    other = FakeScheduler(clock)
    scheduler.jobs[JobId("101")] = other.jobs[other.submit(Path("script"), name="somebody-elses")]
    scheduler.end(JobId("101"), state)
    [found] = ask_for_ends([leg], scheduler, clock)
    assert found.end == LegEnd.LOST and "no longer knows" in found.reason


def test_no_answer_is_waited_out_and_never_taken_for_an_end(scheduler: Slow, clock: ManualClock) -> None:
    leg = silent_leg(scheduler)
    scheduler.end(JobId("101"), JobState.TIMED_OUT)
    scheduler.down_until = clock.now() + 150
    [found] = ask_for_ends([leg], scheduler, clock)
    assert found.end == LegEnd.TIME_LIMIT


def test_where_no_answer_ever_comes_the_end_is_unknown_and_no_failure_of_the_run(scheduler: Slow, clock: ManualClock) -> None:
    legs = [silent_leg(scheduler)]
    scheduler.down_until = clock.now() + 10_000
    began = clock.now()
    [found] = ask_for_ends(legs, scheduler, clock, patience=60)
    assert found.end == LegEnd.LOST and "does not answer" in found.reason and not found.counts
    assert 60 <= clock.now() - began < 70


def test_what_the_scheduler_did_not_say_is_asked_again_and_corrected(scheduler: Slow, clock: ManualClock) -> None:
    leg = silent_leg(scheduler)
    scheduler.down_until = clock.now() + 10_000
    history = History().leg(None)
    history.events += ask_for_ends([leg], scheduler, clock)
    assert [leg.number for leg in legs_with_unknown_end(history.run)] == [1]
    assert ask_once_about_ends(legs_with_unknown_end(history.run), scheduler, clock) == [], "it is still silent, and nobody waits"
    clock.sleep(10_000)
    scheduler.end(JobId("101"), JobState.PREEMPTED)
    [found] = ask_once_about_ends(legs_with_unknown_end(history.run), scheduler, clock)
    history.events.append(found)
    assert (history.run.legs[1].end, history.run.legs[1].counts) == (LegEnd.PREEMPTED, True)
    assert legs_with_unknown_end(history.run) == []


def test_a_job_that_the_scheduler_has_forgotten_by_then_stays_unknown(scheduler: Slow, clock: ManualClock) -> None:
    leg = silent_leg(scheduler)
    scheduler.forget(JobId("101"))
    assert ask_once_about_ends([leg], scheduler, clock) == []


def test_a_scheduler_in_trouble_is_asked_less_and_less_often_for_ten_minutes(scheduler: Slow, clock: ManualClock) -> None:
    leg = silent_leg(scheduler)
    scheduler.end(JobId("101"), JobState.PREEMPTED)
    scheduler.down_until = clock.now() + 580
    asked: list[float] = []
    answer = scheduler.status
    scheduler.status = lambda jobs: asked.append(clock.now()) or answer(jobs)  # type: ignore[method-assign, func-returns-value]
    [found] = ask_for_ends([leg], scheduler, clock)
    assert found.end == LegEnd.PREEMPTED
    assert len(asked) < 50


class Forgetful(Slow):
    """Knows nothing of a job for a while after it has left the queue, as Grid Engine does."""

    capabilities = Capabilities(finishing_seconds=30.0)

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.known_from = 0.0

    def status(self, jobs: Collection[JobId]) -> Mapping[JobId, JobStatus]:
        return super().status(jobs) if self.clock.now() >= self.known_from else {}


def test_a_job_that_is_finishing_is_asked_after_until_its_end_is_told(clock: ManualClock) -> None:
    scheduler = Forgetful(clock)
    leg = silent_leg(scheduler)
    scheduler.end(JobId(leg.claimed.job if leg.claimed else ""), JobState.TIMED_OUT, exit_code=None)
    scheduler.known_from = clock.now() + 14
    [found] = ask_for_ends([leg], scheduler, clock)
    assert found.end == LegEnd.TIME_LIMIT


def test_a_job_that_stays_unknown_is_lost_after_the_time_that_finishing_may_take(clock: ManualClock) -> None:
    scheduler = Forgetful(clock)
    leg = silent_leg(scheduler)
    began, scheduler.known_from = clock.now(), clock.now() + 1e9
    [found] = ask_for_ends([leg], scheduler, clock)
    assert found.end == LegEnd.LOST
    assert 30 <= clock.now() - began < 40
