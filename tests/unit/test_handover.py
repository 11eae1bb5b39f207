from __future__ import annotations

import itertools
import json
import os
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from onward.clock import ManualClock
from onward.errors import SchedulerUnavailable, SubmitRefused, SubmitUnclear
from onward.model import events as ev
from onward.model.job import JobId, JobState
from onward.model.policy.lifecycle import Continue
from onward.model.run import Run, Submission
from onward.model.spec import Cluster, Limits, Resources, spec_to_json
from onward.rundir.journal import Journal, desk_journal, read_events, read_run
from onward.rundir.layout import RunDir
from onward.schedulers.base import Capabilities
from onward.supervisor.leg.handover import Handover, QueuedLegCancelled, render_script, suits_next_leg
from tests.fakes import FakeScheduler
from tests.histories import make_spec


class Scheduler(FakeScheduler):
    """A fake that writes down what it was asked, and when."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.calls: list[tuple[str, float]] = []

    def submit(self, script: Path, *, name: str, after: JobId | None = None) -> JobId:
        self.calls.append(("submit", self.clock.now()))
        return super().submit(script, name=name, after=after)

    def find(self, name: str) -> Sequence[JobId]:
        self.calls.append(("find", self.clock.now()))
        return super().find(name)

    @property
    def asked(self) -> list[str]:
        return [call for call, _ in self.calls]


class Bench:
    def __init__(self, folder: Path) -> None:
        self.dir = RunDir(folder)
        self.dir.make()
        self.clock = ManualClock()
        self.scheduler = Scheduler(self.clock)
        self.dir.spec.write_text(json.dumps(spec_to_json(make_spec(resources=Resources(mem=1024, time=600)))))
        self.wanted = Continue(leg=1, mem=1024)

    @property
    def run(self) -> Run:
        return read_run(self.dir)

    @property
    def submission(self) -> Submission:
        standing = self.run.legs[self.wanted.leg].submission
        assert standing is not None
        return standing

    @property
    def live(self) -> list[JobId]:
        return [job for job in self.scheduler.jobs if self.scheduler.status([job])[job].state.live]

    def handover(self, *, patience: float = 120.0) -> Handover:
        """As another process has it: what it knows is what is written."""
        self.clock.sleep(1)
        return Handover(dir=self.dir, scheduler=self.scheduler, journal=desk_journal(self.dir), clock=self.clock, patience=patience)

    def ensure(self, *, after: str | None = None, patience: float = 120.0) -> str:
        return self.handover(patience=patience).ensure(self.run, self.wanted, after=after)

    def kinds(self) -> list[str]:
        return [event.kind for event in sorted(read_events(self.dir), key=lambda event: event.at)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "2026-11-15_A_digits")


# ── one job ───────────────────────────────────────────────────────────────────


def test_a_leg_without_a_job_gets_one(bench: Bench) -> None:
    job = bench.ensure(after=None)
    assert bench.live == [job]
    assert bench.run.legs[1].job == job
    assert bench.scheduler.jobs[JobId(job)].status.name == bench.submission.name
    assert bench.submission.name.startswith("digits.1.")
    assert (bench.submission.mem, bench.submission.time) == (1024, 600)


def test_the_name_is_written_down_before_the_scheduler_is_asked(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_arguments: object, **_options: object) -> None:
        assert bench.kinds() == ["submitting"]
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeScheduler, "submit", die)
    with pytest.raises(KeyboardInterrupt):
        bench.ensure()


def test_asking_twice_is_asking_once(bench: Bench) -> None:
    assert bench.ensure() == bench.ensure() == bench.ensure()
    assert len(bench.scheduler.jobs) == 1


def test_the_next_leg_is_held_on_this_one(bench: Bench) -> None:
    first = bench.ensure()
    bench.wanted = Continue(leg=2, mem=1024)
    second = bench.ensure(after=first)
    assert bench.scheduler.status([JobId(second)])[JobId(second)].state is JobState.HELD
    assert second != first


def test_the_job_script_asks_for_what_the_leg_needs_and_holds_no_text_of_the_users(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run $(touch pwned) `id` 'quoted'")
    bench.wanted = Continue(leg=3, mem=2048, exclude=("n7",))
    bench.ensure()
    script = bench.dir.script(3)
    text = script.read_text()
    assert text == render_script(bench.dir, bench.run, bench.scheduler, bench.wanted)
    assert "#FAKE --time=600" in text
    assert [line for line in text.splitlines() if line.startswith("run=")] == [f"run={shlex.quote(str(bench.dir.path))}"]
    assert 'exec "$python" -E -c "$front" "$archive" leg "$run" 3' in text
    assert os.access(script, os.X_OK)
    assert bench.submission.exclude == "n7"


# ── unclear answers ───────────────────────────────────────────────────────────


def test_a_submit_that_was_accepted_without_an_answer_is_adopted(bench: Bench) -> None:
    bench.scheduler.lose = True
    job = bench.ensure()
    assert bench.live == [job]
    assert bench.run.legs[1].job == job
    assert bench.scheduler.asked == ["submit", "find"]


def test_a_submit_that_was_not_accepted_is_made_again_under_its_name_after_two_answers(bench: Bench) -> None:
    bench.scheduler.settle_seconds = 10.0
    bench.scheduler.swallow = True
    job = bench.ensure()
    assert bench.scheduler.asked == ["submit", "find", "find", "submit"]
    times = [at for _, at in bench.scheduler.calls]
    assert times[1] - times[0] >= 10 and times[2] - times[1] >= 20, "a job that was accepted late is found"
    assert len(bench.run.legs[1].submissions) == 1
    assert bench.scheduler.jobs[JobId(job)].status.name == bench.submission.name


def test_a_job_that_shows_up_between_two_lookups_is_adopted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.scheduler.settle_seconds = 10.0
    bench.scheduler.swallow = True
    real = FakeScheduler.find

    def late(self: Scheduler, name: str) -> Sequence[JobId]:
        self.calls.append(("find", self.clock.now()))
        if self.asked.count("find") == 2:
            FakeScheduler.submit(self, Path("late"), name=name)
        return real(self, name)

    monkeypatch.setattr(Scheduler, "find", late)
    assert [bench.ensure()] == bench.live
    assert bench.scheduler.asked == ["submit", "find", "find"]


def test_of_several_jobs_of_one_name_the_oldest_is_kept_and_the_others_cancelled(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def three_times(self: FakeScheduler, script: Path, *, name: str, after: JobId | None = None) -> JobId:
        for _ in range(3):
            real(self, script, name=name, after=after)
        raise SubmitUnclear("no answer")

    real = FakeScheduler.submit
    monkeypatch.setattr(Scheduler, "submit", three_times)
    bystander = real(bench.scheduler, Path("theirs"), name="digits.1.another-token")
    job = bench.ensure()
    assert job == "2"
    assert bench.live == [bystander, job]


def test_a_job_that_can_still_run_is_kept_before_an_older_one_that_has_ended(bench: Bench) -> None:
    name = "digits.1.abcd"
    bench.handover().journal.write(ev.Submitting(leg=1, at=bench.clock.now(), name=name, mem=1024))
    ended, running = (FakeScheduler.submit(bench.scheduler, Path("x"), name=name) for _ in range(2))
    bench.scheduler.end(ended, JobState.FAILED, exit_code=1)
    assert bench.ensure() == running


def test_a_scheduler_that_is_away_for_a_while_is_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.scheduler.down = True
    real = ManualClock.sleep

    def sleep(self: ManualClock, seconds: float) -> None:
        real(self, seconds)
        bench.scheduler.down = self.now() < 1_000_060

    monkeypatch.setattr(ManualClock, "sleep", sleep)
    assert [bench.ensure(patience=300)] == bench.live


def test_a_scheduler_that_never_answers_is_left_with_a_hint(bench: Bench) -> None:
    bench.scheduler.down = True
    began = bench.clock.now()
    with pytest.raises(SubmitUnclear, match="unknown whether job") as caught:
        bench.ensure(patience=120)
    assert "onward tend" in caught.value.hint
    assert 120 <= bench.clock.now() - began < 240
    assert bench.kinds() == ["submitting"]


def test_nobody_waits_on_once_the_leg_is_ending(bench: Bench) -> None:
    bench.scheduler.settle_seconds = 10.0
    bench.scheduler.swallow = True
    handover = bench.handover()
    handover.abandoned = lambda: bench.clock.now() > 1_000_005
    with pytest.raises(SubmitUnclear, match="the leg is ending"):
        handover.ensure(bench.run, bench.wanted, after=None)
    assert bench.clock.now() < 1_000_010


def test_patience_ends_with_a_scheduler_that_finds_nothing_and_accepts_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers every lookup, and none of the submits."""
    bench.scheduler.settle_seconds = 10.0
    asked = 0

    def swallow(*_arguments: object, **_options: object) -> None:
        nonlocal asked
        asked += 1
        assert asked < 20, "in two minutes, each with two lookups between"
        raise SubmitUnclear("no answer")

    monkeypatch.setattr(Scheduler, "submit", swallow)
    with pytest.raises(SubmitUnclear, match="unknown whether"):
        bench.ensure(patience=120)


def test_a_submit_that_is_never_accepted_is_made_again_ever_more_seldom(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lookups that cost nothing, as in a queue on this machine, leave the pauses between submits alone."""
    asked: list[float] = []

    def swallow(*_arguments: object, **_options: object) -> None:
        asked.append(bench.clock.now())
        raise SubmitUnclear("no answer")

    monkeypatch.setattr(Scheduler, "submit", swallow)
    with pytest.raises(SubmitUnclear, match="unknown whether"):
        bench.ensure(patience=120)
    pauses = [round(later - one) for one, later in itertools.pairwise(asked)]
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 29]


# ── refused ───────────────────────────────────────────────────────────────────


def test_a_refusal_is_written_down_and_raised(bench: Bench) -> None:
    bench.scheduler.refuse = "no such partition"
    with pytest.raises(SubmitRefused, match="no such partition"):
        bench.ensure()
    assert bench.kinds() == ["submitting", "refused"]
    assert bench.run.legs[1].submission is None
    assert [bench.ensure()] == bench.live


# ── a crash in between ────────────────────────────────────────────────────────


class Killed(BaseException):
    pass


class DyingJournal(Journal):
    """Its process is killed when the scheduler has just answered."""

    def write(self, event: ev.Event) -> None:
        if isinstance(event, ev.Submitted):
            raise Killed
        super().write(event)


def test_a_job_whose_submitter_died_before_writing_its_id_is_adopted(bench: Bench) -> None:
    handover = bench.handover()
    handover.journal = DyingJournal(bench.dir.desk_journal("dying"))
    with pytest.raises(Killed):
        handover.ensure(bench.run, bench.wanted, after=None)
    assert bench.submission.job is None and len(bench.live) == 1
    assert [bench.ensure()] == bench.live
    assert bench.submission.job == bench.live[0]


def test_a_submitter_that_died_before_asking_leaves_no_job_and_the_next_gets_one(bench: Bench) -> None:
    bench.handover().journal.write(ev.Submitting(leg=1, at=bench.clock.now(), name="digits.1.dead", mem=1024))
    assert [bench.ensure()] == bench.live
    assert bench.ensure() == bench.live[0]


# ── the job that stands ───────────────────────────────────────────────────────


def test_a_queued_job_that_an_administrator_cancelled_is_replaced_twice_and_then_respected(bench: Bench) -> None:
    jobs = [bench.ensure()]
    for _ in range(2):
        bench.scheduler.end(JobId(jobs[-1]), JobState.CANCELLED, exit_code=None, by="root")
        jobs.append(bench.ensure())
    assert len(set(jobs)) == 3
    assert bench.live == jobs[-1:]
    bench.scheduler.end(JobId(jobs[-1]), JobState.CANCELLED, exit_code=None, by="root")
    with pytest.raises(QueuedLegCancelled, match="was cancelled by root") as caught:
        bench.ensure()
    assert caught.value.by == "root"
    assert bench.live == []


def test_a_queued_job_that_somebody_cancelled_says_that_the_run_is_not_to_go_on(bench: Bench) -> None:
    job = JobId(bench.ensure())
    bench.scheduler.end(job, JobState.CANCELLED, exit_code=None, reason="by grace")
    with pytest.raises(QueuedLegCancelled, match="by grace"):
        bench.ensure()
    assert len(bench.scheduler.jobs) == 1


def test_a_queued_job_with_too_little_memory_is_withdrawn_and_replaced(bench: Bench) -> None:
    small = JobId(bench.ensure())
    bench.wanted = Continue(leg=1, mem=2048)
    large = JobId(bench.ensure())
    assert bench.live == [large] and bench.scheduler.jobs[small].status.state is JobState.CANCELLED
    assert bench.submission.mem == 2048
    assert bench.ensure() == large, "our own withdrawal is nobody's cancelling"


def test_a_queued_job_that_may_start_on_a_bad_node_is_replaced(bench: Bench) -> None:
    bench.ensure()
    bench.wanted = Continue(leg=1, mem=1024, exclude=("n1",))
    assert [bench.ensure()] == bench.live
    assert bench.submission.exclude == "n1"


def test_a_withdrawn_job_is_written_down_before_it_is_cancelled(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.ensure()

    def unreachable(*_arguments: object) -> None:
        raise SchedulerUnavailable("no answer")

    monkeypatch.setattr(bench.scheduler, "cancel", unreachable)
    with pytest.raises(SchedulerUnavailable):
        bench.handover().withdraw(bench.run, from_leg=1, reason="the run is over")
    assert bench.run.legs[1].submission is None


def test_a_job_whose_id_was_given_to_a_stranger_is_not_cancelled(bench: Bench) -> None:
    job = JobId(bench.ensure())
    run = bench.run
    bench.scheduler.forget(job)
    stranger = bench.scheduler.submit(bench.dir.script(1), name="stranger.1.t")
    run.legs[1].submissions[next(iter(run.legs[1].submissions))].job = stranger
    bench.handover().withdraw(run, from_leg=1, reason="the run is over")
    assert bench.scheduler.status([stranger])[stranger].state.live


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.FINISHED, JobState.NODE_FAILED, JobState.TIMED_OUT])
def test_a_queued_job_that_ended_without_beginning_the_leg_is_replaced(bench: Bench, state: JobState) -> None:
    bench.scheduler.end(JobId(bench.ensure()), state)
    assert [bench.ensure()] == bench.live


def test_a_job_the_scheduler_forgot_is_replaced_even_if_its_id_was_given_to_another(bench: Bench) -> None:
    forgotten = JobId(bench.ensure())
    fake = bench.scheduler.jobs[forgotten]
    bench.scheduler.forget(forgotten)
    other = FakeScheduler(bench.clock)
    other.submit(fake.script, name="somebody-elses")
    bench.scheduler.jobs[forgotten] = other.jobs[JobId("1")]
    job = bench.ensure()
    assert job != forgotten
    assert bench.live == [forgotten, job], "the stranger is left alone"


def test_a_job_that_is_gone_stands_no_more_even_if_its_clock_went_ahead(bench: Bench) -> None:
    bench.clock.sleep(600)  # on the node that submitted it
    bench.scheduler.forget(JobId(bench.ensure()))
    bench.clock.sleep(-600)  # at the desk
    job = bench.ensure()
    assert bench.ensure() == job
    assert bench.live == [job]


def test_a_scheduler_without_an_answer_changes_nothing(bench: Bench) -> None:
    bench.ensure()
    bench.scheduler.down = True
    with pytest.raises(SchedulerUnavailable):
        bench.ensure()
    assert bench.kinds() == ["submitting", "submitted"]


# ── taking back ───────────────────────────────────────────────────────────────


def test_all_queued_legs_are_taken_back_and_the_claimed_one_is_not(bench: Bench) -> None:
    jobs: list[JobId] = []
    for leg in (1, 2, 3):
        bench.wanted = Continue(leg=leg, mem=1024)
        jobs.append(JobId(bench.ensure(after=jobs[-1] if jobs else None)))
    handover = bench.handover()
    handover.journal.write(ev.Claimed(leg=1, at=bench.clock.now(), job=jobs[0], hosts=["node1"], deadline=None))
    handover.withdraw(bench.run, from_leg=1, reason="the run is over")
    assert bench.live == [jobs[0]]
    handover.withdraw(bench.run, from_leg=1, reason="the run is over")
    assert bench.kinds().count("withdrawn") == 2


def test_a_job_nobody_wrote_down_is_taken_back_too(bench: Bench) -> None:
    name = "digits.2.feed"
    FakeScheduler.submit(bench.scheduler, Path("x"), name=name)
    handover = bench.handover()
    handover.journal.write(ev.Submitting(leg=2, at=bench.clock.now(), name=name))
    handover.withdraw(bench.run, from_leg=1, reason="the run is over")
    assert bench.live == []


@pytest.mark.parametrize(
    ("had", "exclude", "wanted", "fitting"),
    [
        (1024, None, Continue(leg=1, mem=1024), True),
        (2048, None, Continue(leg=1, mem=1024), True),
        (1024, None, Continue(leg=1, mem=2048), False),
        (None, None, Continue(leg=1, mem=None), True),
        (1024, None, Continue(leg=1, mem=None), True),
        (None, None, Continue(leg=1, mem=2048), False),
        (1024, "n1,n2", Continue(leg=1, mem=1024, exclude=("n2",)), True),
        (1024, "n12", Continue(leg=1, mem=1024, exclude=("n1",)), False),
        (1024, None, Continue(leg=1, mem=1024, exclude=("n1",)), False),
    ],
)
def test_a_queued_job_fits_if_it_has_all_that_the_leg_needs(had: int | None, exclude: str | None, wanted: Continue, fitting: bool) -> None:
    assert suits_next_leg(Submission(name="x", at=1.0, mem=had, time=None, exclude=exclude), wanted) is fitting


# ── a scheduler that keeps no word of what was deleted while it waited ────────


class Unseen(Scheduler):
    capabilities = Capabilities(finishing_seconds=30.0, deletes_unseen=True)


def test_a_queued_leg_that_is_nowhere_any_more_was_deleted(bench: Bench) -> None:
    bench.scheduler = Unseen(bench.clock)
    bench.scheduler.forget(JobId(bench.ensure()))
    with pytest.raises(QueuedLegCancelled, match="was deleted while it waited"):
        bench.ensure()


def test_a_leg_near_its_end_does_not_wait_long_for_what_became_of_one_held_on_it(bench: Bench) -> None:
    bench.scheduler = Unseen(bench.clock)
    bench.scheduler.forget(JobId(bench.ensure()))
    began = bench.clock.now()
    with pytest.raises(QueuedLegCancelled):
        bench.ensure(after="1")
    assert bench.clock.now() - began < 6


def test_a_job_in_an_error_state_is_taken_out_of_the_queue_and_another_asked_for(bench: Bench) -> None:
    first = bench.ensure()
    bench.scheduler.end(JobId(first), JobState.FAILED, exit_code=None, reason="error state Eqw")
    second = bench.ensure()
    assert second != first and bench.live == [second]


# ── legs queued ahead ─────────────────────────────────────────────────────────


def ahead(bench: Bench, legs: int, limits: Limits | None = None) -> None:
    cluster = Cluster(name="local", scheduler="local", legs_ahead=legs)
    bench.dir.spec.write_text(json.dumps(spec_to_json(make_spec(resources=Resources(mem=1024), cluster=cluster, limits=limits))))


def test_legs_are_queued_ahead_each_held_on_the_one_before(bench: Bench) -> None:
    ahead(bench, 3)
    first = bench.handover().ensure_ahead(bench.run, bench.wanted, after=None)
    legs = bench.run.legs
    assert sorted(legs) == [1, 2, 3] and legs[1].job == first
    assert [bench.scheduler.jobs[JobId(legs[n].job or "")].after for n in (1, 2, 3)] == [None, legs[1].job, legs[2].job]
    assert bench.handover().ensure_ahead(bench.run, bench.wanted, after=None) == first
    assert len(bench.scheduler.jobs) == 3


def test_no_more_legs_are_queued_ahead_than_the_run_may_have(bench: Bench) -> None:
    ahead(bench, 5, limits=Limits(max_legs=2))
    bench.handover().ensure_ahead(bench.run, bench.wanted, after=None)
    assert sorted(bench.run.legs) == [1, 2]


def test_a_leg_ahead_that_is_refused_is_said_and_the_first_stands(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead(bench, 3)
    submit = bench.scheduler.submit

    def only_two(script: Path, *, name: str, after: JobId | None = None) -> JobId:
        if len(bench.scheduler.jobs) == 2:
            bench.scheduler.refuse = "too many jobs"
        return submit(script, name=name, after=after)

    monkeypatch.setattr(bench.scheduler, "submit", only_two)
    first = bench.handover().ensure_ahead(bench.run, bench.wanted, after=None)
    assert len(bench.live) == 2 and first in bench.live
    assert "2 of 3 legs could be queued ahead" in bench.run.legs[1].warnings[0]


def test_without_legs_ahead_there_is_one(bench: Bench) -> None:
    bench.handover().ensure_ahead(bench.run, bench.wanted, after=None)
    assert len(bench.live) == 1


def test_legs_queued_ahead_are_taken_back_the_last_first(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else taking one back would set the next free."""
    ahead(bench, 3)
    bench.handover().ensure_ahead(bench.run, bench.wanted, after=None)
    order: list[JobId] = []
    cancel = bench.scheduler.cancel

    def noted(jobs: Collection[JobId]) -> None:
        order.extend(jobs)
        cancel(jobs)

    monkeypatch.setattr(bench.scheduler, "cancel", noted)
    bench.handover().withdraw(bench.run, from_leg=1, reason="over")
    assert order == [bench.run.legs[n].submissions.popitem()[1].job for n in (3, 2, 1)]
    assert bench.live == []


def test_what_the_scheduler_has_to_say_about_such_jobs_is_noted(bench: Bench) -> None:
    bench.ensure()
    bench.scheduler.advice = lambda resources: ["the notice is short"]  # type: ignore[attr-defined]
    bench.handover().advise(bench.run)
    assert bench.run.legs[1].warnings == ["the notice is short"]


def test_a_job_that_has_not_what_its_leg_needs_asks_for_another_and_does_not_delete_itself(bench: Bench) -> None:
    own = bench.ensure()
    handover = bench.handover()
    handover.own = own
    other = handover.ensure(bench.run, Continue(leg=1, mem=2048), after=own)
    assert other != own
    assert bench.live == [own, other]  # it leaves by itself; deleting it would end what it still has to do
    assert bench.submission.job == other
