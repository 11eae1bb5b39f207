"""Tend: every repair that no leg can make, and nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import pytest

from onward.errors import SchedulerUnavailable
from onward.model import events as ev
from onward.model.job import JobId, JobState, JobStatus
from onward.model.run import LegEnd, RunState
from onward.model.spec import Cluster, Limits
from onward.operations.repair.one_run import GRACE, RunRepair
from onward.operations.repair.tend import TendReport, tend
from onward.operations.runs.control import cancel, resume
from onward.operations.runs.record import read_folder
from onward.rundir.journal import Journal, desk_journal
from onward.rundir.layout import RunDir
from onward.rundir.queueing_alone import queueing_alone
from onward.schedulers.base import Capabilities, ask_about
from tests.sandbox import CountingScheduler, PlayedRun, Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def tended(sandbox: Sandbox) -> TendReport:
    """One pass, later than anybody could still be at work."""
    sandbox.clock.sleep(GRACE + 1)
    return tend(sandbox.context)


def live(sandbox: Sandbox) -> list[str]:
    return [job.status.name.rsplit(".", 1)[0] for job in sandbox.scheduler.jobs.values() if job.status.state.live]


# ── healthy runs ──────────────────────────────────────────────────────────────

HEALTHY: dict[str, Callable[[PlayedRun], object]] = {
    "queued": lambda run: None,
    "running": lambda run: run.begin(1),
    "running without a successor": lambda run: run.begin(1, successor=False),
    "between legs": lambda run: run.begin(1).publish(1, 5).end(1, LegEnd.TIME_LIMIT),
    "dead, with a successor queued": lambda run: run.begin(1).die(1, JobState.NODE_FAILED),
    "finished": lambda run: run.begin(1).end(1, LegEnd.DONE),
}


@pytest.mark.parametrize("state", HEALTHY)
def test_a_healthy_run_is_left_alone_and_no_file_is_written(sandbox: Sandbox, state: str) -> None:
    run = sandbox.play()
    HEALTHY[state](run)
    before, jobs = run.files(), live(sandbox)
    done = tended(sandbox)
    assert (done.acted, done.problems) == ([], [])
    assert run.files() == before
    assert live(sandbox) == jobs
    assert done.looked_at == (0 if state == "finished" else 1)


def test_no_runs_are_no_trouble(sandbox: Sandbox) -> None:
    assert tend(sandbox.context) == TendReport()


@pytest.mark.parametrize("count", [1, 50])
def test_one_question_is_enough_for_all_runs_of_a_cluster(sandbox: Sandbox, count: int) -> None:
    for number in range(count):
        sandbox.play(f"run{number}").begin(1)
    sandbox.scheduler.asked = 0
    assert tended(sandbox).looked_at == count
    assert sandbox.scheduler.asked == 1


# ── repairs ───────────────────────────────────────────────────────────────────


def test_a_queued_job_that_the_scheduler_lost_is_queued_again(sandbox: Sandbox) -> None:
    run = sandbox.play()
    sandbox.scheduler.forget(run.job(1))
    done = tended(sandbox)
    assert done.acted == ["digits (k00digit): queued leg 1 as job 2"]
    assert live(sandbox) == ["digits.1"]
    assert run.job(1) == "2"
    assert tended(sandbox).acted == []


def test_two_who_repair_a_run_at_once_queue_one_job(sandbox: Sandbox) -> None:
    """Both have read the run and asked the scheduler before either acts."""
    run = sandbox.play()
    sandbox.scheduler.jobs.clear()
    sandbox.clock.sleep(GRACE + 1)
    read, answers = read_folder(run.dir), ask_about(sandbox.scheduler, [read_folder(run.dir)])
    both = [RunRepair(context=sandbox.context, dir=run.dir, run=read, answers=answers, grace=GRACE) for _ in range(2)]
    assert [bool(one.repair()) for one in both] == [True, False]
    assert len(live(sandbox)) == 1


@pytest.mark.parametrize(("minutes", "jobs"), [(1, 0), (11, 1)])
def test_a_repair_that_was_killed_holds_the_next_one_up_for_ten_minutes(sandbox: Sandbox, minutes: int, jobs: int) -> None:
    run = sandbox.play()
    sandbox.scheduler.jobs.clear()
    with pytest.raises(KeyboardInterrupt), queueing_alone(run.dir, now=sandbox.clock.now()) as alone:
        assert alone
        mark = run.dir.queueing.read_text()
        raise KeyboardInterrupt
    assert not run.dir.queueing.exists(), "one that ends by itself leaves nothing"
    run.dir.queueing.write_text(mark)
    sandbox.clock.sleep(60 * minutes)
    assert tend(sandbox.context).problems == []
    assert len(live(sandbox)) == jobs and run.dir.queueing.exists() is not bool(jobs)


def test_a_lost_successor_of_a_leg_that_ended_is_queued_again(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1).publish(1, 5)
    sandbox.scheduler.forget(run.job(2))
    run.end(1, LegEnd.TIME_LIMIT)
    assert tended(sandbox).acted == ["digits (k00digit): queued leg 2 as job 3"]
    assert live(sandbox) == ["digits.2"]


@pytest.mark.parametrize("accepted", [True, False])
def test_a_submit_that_nobody_heard_the_answer_of_comes_to_one_job(sandbox: Sandbox, accepted: bool) -> None:
    run = sandbox.play()
    name = next(iter(run.leg(1).submissions))
    for path in run.dir.journals.iterdir():
        path.unlink()
    Journal(run.dir.desk_journal("1")).write(ev.Submitting(leg=1, at=run.now(), name=name))
    if not accepted:
        sandbox.scheduler.forget(JobId("1"))
    assert len(tended(sandbox).acted) == 1
    assert live(sandbox) == ["digits.1"]
    assert run.job(1) == ("1" if accepted else "2")
    assert tended(sandbox).acted == []


@pytest.mark.parametrize(
    ("state", "end"),
    [
        (JobState.TIMED_OUT, LegEnd.TIME_LIMIT),
        (JobState.PREEMPTED, LegEnd.PREEMPTED),
        (JobState.NODE_FAILED, LegEnd.NODE_LOST),
        (JobState.FAILED, LegEnd.LOST),
        (JobState.FINISHED, LegEnd.LOST),
    ],
)
def test_a_leg_that_died_without_a_successor_is_settled_and_followed(sandbox: Sandbox, state: JobState, end: LegEnd) -> None:
    run = sandbox.play().begin(1, successor=False).publish(1, 5).die(1, state)
    done = tended(sandbox)
    assert len(done.acted) == 1
    assert "queued leg 2 as job 2" in done.acted[0]
    assert run.leg(1).end is end
    assert live(sandbox) == ["digits.2"]
    assert tended(sandbox).acted == []


def test_a_leg_whose_job_nobody_knows_any_more_is_settled_as_lost_and_followed(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False).publish(1, 5)
    sandbox.scheduler.forget(run.job(1))
    assert len(tended(sandbox).acted) == 1
    assert run.leg(1).end is LegEnd.LOST
    assert live(sandbox) == ["digits.2"]


def test_a_leg_and_its_successor_that_are_both_gone_are_followed(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1).publish(1, 5)
    for job in (run.job(1), run.job(2)):
        sandbox.scheduler.forget(job)
    assert len(tended(sandbox).acted) == 1
    assert run.leg(1).end is LegEnd.LOST
    assert live(sandbox) == ["digits.2"]


def test_a_dead_leg_after_which_policy_ends_the_run_closes_it(sandbox: Sandbox) -> None:
    run = sandbox.play(limits=Limits(max_restarts=0)).begin(1, successor=False).die(1, JobState.FAILED, exit_code=1)
    done = tended(sandbox)
    assert "closed as failed" in done.acted[0]
    assert run.run.state is RunState.FAILED
    assert run.dir.done.exists()
    assert live(sandbox) == []


def test_a_dead_leg_of_a_run_that_was_asked_to_stop_ends_it(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False).publish(1, 5)
    run.write(ev.StopRequested(leg=1, at=run.now(), by="ada"))
    run.die(1)
    tended(sandbox)
    assert run.run.state is RunState.CANCELLED


def test_a_queued_job_that_somebody_cancelled_is_a_cancelled_run(sandbox: Sandbox) -> None:
    run = sandbox.play()
    sandbox.scheduler.cancel([run.job(1)])
    done = tended(sandbox)
    assert "was cancelled before it began" in done.acted[0]
    assert run.run.state is RunState.CANCELLED
    assert run.dir.done.exists()
    assert live(sandbox) == []
    assert resume(sandbox.context, run.dir, changes={}).first_leg == 2


def test_a_queued_job_that_root_cancelled_is_queued_again(sandbox: Sandbox) -> None:
    run = sandbox.play()
    sandbox.scheduler.end(run.job(1), JobState.CANCELLED, exit_code=None, by="root")
    done = tended(sandbox)
    assert done.acted == ["digits (k00digit): job 1 was cancelled by root before it began; queued leg 1 as job 2"]
    assert live(sandbox) == ["digits.1"]
    assert not run.run.closed


def test_root_who_cancels_three_times_in_a_row_is_respected_and_named(sandbox: Sandbox) -> None:
    run = sandbox.play()
    for _ in range(3):
        sandbox.scheduler.end(run.job(1), JobState.CANCELLED, exit_code=None, by="root")
        tended(sandbox)
    closed = run.run.closed
    assert closed and (closed.state, closed.cause) == (RunState.CANCELLED, "root cancelled its jobs 3 times in a row")
    assert "was cancelled by root" in closed.evidence
    assert run.dir.done.exists()
    assert live(sandbox) == []


def test_a_run_goes_on_after_root_cancelled_its_leg_and_its_successor(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1).publish(1, 5)
    for leg in (1, 2):
        sandbox.scheduler.end(run.job(leg), JobState.CANCELLED, exit_code=None, by="root")
    tended(sandbox)
    assert run.leg(1).end is LegEnd.CANCELLED
    assert run.leg(1).cancelled_by == "root"
    assert live(sandbox) == ["digits.2"]


def test_a_cancelled_job_that_was_known_by_name_only_is_a_cancelled_run(sandbox: Sandbox) -> None:
    run = sandbox.play()
    name = next(iter(run.leg(1).submissions))
    for path in run.dir.journals.iterdir():
        path.unlink()
    Journal(run.dir.desk_journal("1")).write(ev.Submitting(leg=1, at=run.now(), name=name))
    sandbox.scheduler.cancel([JobId("1")])
    done = tended(sandbox)
    assert "was cancelled" in done.acted[0]
    assert run.run.state is RunState.CANCELLED


def test_a_job_that_ends_before_it_begins_is_tried_three_times_and_then_the_run_fails_with_evidence(sandbox: Sandbox) -> None:
    run = sandbox.play()
    for job in ("1", "2", "3"):
        assert run.job(1) == job
        sandbox.scheduler.end(JobId(job), JobState.FAILED, exit_code=127, reason="NonZeroExitCode")
        done = tended(sandbox)
    assert "gave up on leg 1" in done.acted[0]
    closed = run.run.closed
    assert closed and closed.state == RunState.FAILED
    assert closed.cause == "3 jobs for leg 1 ended before they could begin"
    assert "job 3, is failed, exit code 127 NonZeroExitCode" in closed.evidence
    assert "supervisor.log" in closed.evidence
    assert "onward doctor" in closed.next
    assert live(sandbox) == []
    assert tended(sandbox).looked_at == 0


def test_after_a_resume_false_starts_are_counted_anew(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1).publish(1, 5).end(1, LegEnd.TIME_LIMIT)
    for _ in range(3):
        sandbox.scheduler.end(run.job(2), JobState.FAILED, exit_code=127)
        tended(sandbox)
    assert run.run.state is RunState.FAILED
    assert resume(sandbox.context, run.dir, changes={}).first_leg == 3
    sandbox.scheduler.end(run.job(3), JobState.FAILED, exit_code=127)
    assert "queued leg 3" in tended(sandbox).acted[0]


def test_an_id_that_was_given_to_a_foreign_job_is_no_sign_of_life(sandbox: Sandbox) -> None:
    run = sandbox.play()
    sandbox.scheduler.forget(run.job(1))
    sandbox.scheduler._last = 0
    assert sandbox.scheduler.submit(run.dir.script(1), name="somebody-elses") == "1"
    done = tended(sandbox)
    assert "queued leg 1 as job 2" in done.acted[0]
    assert live(sandbox) == ["somebody-elses", "digits.1"]


def test_a_foreign_job_in_the_place_of_a_running_leg_is_no_sign_of_life_either(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False).publish(1, 5)
    sandbox.scheduler.forget(run.job(1))
    sandbox.scheduler._last = 0
    sandbox.scheduler.submit(run.dir.script(1), name="somebody-elses")
    tended(sandbox)
    assert run.leg(1).end is LegEnd.LOST
    assert live(sandbox) == ["somebody-elses", "digits.2"]


def test_a_run_that_was_closed_without_its_mark_gets_it_and_keeps_no_job(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1).end(1, LegEnd.DONE)
    run.dir.done.unlink()
    run.queue(2)  # as if its last leg had died between the two strokes
    assert len(tended(sandbox).acted) == 1
    assert live(sandbox) == []
    assert json.loads(run.dir.done.read_text())["state"] == "finished"
    assert run.run.state is RunState.FINISHED
    assert tended(sandbox).looked_at == 0


def test_a_cancel_that_could_not_end_the_jobs_is_finished(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    sandbox.scheduler.down = True
    with pytest.raises(SchedulerUnavailable):
        cancel(sandbox.context, run.dir)
    assert tended(sandbox).unanswered
    sandbox.scheduler.down = False
    assert "cancelled by" in tended(sandbox).acted[0]
    assert live(sandbox) == []
    assert run.run.state is RunState.CANCELLED
    assert run.dir.done.exists()


# ── refusals ──────────────────────────────────────────────────────────────────


def test_a_leg_that_is_refused_is_a_problem_and_is_tried_again_as_often_as_it_takes(sandbox: Sandbox) -> None:
    """A full queue is refused too, and that passes."""
    run = sandbox.play()
    sandbox.scheduler.forget(run.job(1))
    for _ in range(5):
        sandbox.scheduler.refuse = "you have as many jobs queued as the site allows"
        done = tended(sandbox)
        assert done.acted == []
        assert "as many jobs" in done.problems[0]
        assert not done.unanswered
    assert not run.run.closed
    assert "queued leg 1" in tended(sandbox).acted[0]


# ── when not to act ───────────────────────────────────────────────────────────


def test_nothing_is_done_where_somebody_acted_a_moment_ago(sandbox: Sandbox) -> None:
    run = sandbox.play()
    sandbox.scheduler.forget(run.job(1))
    sandbox.clock.sleep(GRACE - 1)
    assert tend(sandbox.context).acted == []
    sandbox.clock.sleep(1)
    assert len(tend(sandbox.context).acted) == 1


def test_a_run_that_is_just_being_resumed_is_left_to_who_resumes_it(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1).publish(1, 5).end(1, LegEnd.OUT_OF_MEMORY)
    sandbox.clock.sleep(1000)
    run.write(ev.Resumed(leg=2, at=run.now(), by="ada"))
    run.dir.done.unlink()
    assert tend(sandbox.context).acted == []
    assert len(tended(sandbox).acted) == 1


def test_a_leg_that_ended_a_moment_ago_may_still_be_queueing_its_successor(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False).publish(1, 5).end(1, LegEnd.TIME_LIMIT)
    assert tend(sandbox.context).acted == []
    assert live(sandbox) == []
    tended(sandbox)
    assert live(sandbox) == ["digits.2"]
    assert run.run.state is RunState.WAITING


def test_a_state_that_has_no_meaning_for_us_is_not_an_end(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False)
    sandbox.scheduler._change(run.job(1), state=JobState.UNKNOWN, reason="RESIZED_TWICE")
    assert tended(sandbox).acted == []


def test_nothing_is_done_where_the_scheduler_does_not_answer(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False)
    sandbox.scheduler.forget(run.job(1))
    sandbox.scheduler.down = True
    before = run.files()
    done = tended(sandbox)
    assert done.acted == []
    assert done.unanswered
    assert "nothing was done" in done.problems[0]
    assert run.files() == before


def test_a_cluster_that_does_not_answer_costs_the_others_nothing(sandbox: Sandbox) -> None:
    down = Cluster(name="lab", scheduler="slurm")
    one, other = sandbox.play("one", cluster=down), sandbox.play("other")
    sandbox.scheduler.forget(one.job(1))
    sandbox.scheduler.forget(other.job(1))

    def make(cluster: Cluster) -> object:
        return sandbox.scheduler if cluster.name == "local" else Silent()

    sandbox.context.make_scheduler = make  # type: ignore[assignment]
    done = tended(sandbox)
    assert [words.split(" ")[0] for words in done.acted] == ["other"]
    assert [words.split(":")[0] for words in done.problems] == ["lab"]


class Silent:
    def status(self, jobs: Collection[JobId]) -> Mapping[JobId, JobStatus]:
        raise SchedulerUnavailable("no answer")


@pytest.mark.parametrize("spec", ["", "{", "[]", '{"schema": 1}'])
def test_a_run_folder_that_cannot_be_read_does_not_stop_the_others(sandbox: Sandbox, spec: str) -> None:
    broken, other = sandbox.play("broken"), sandbox.play("other")
    broken.dir.spec.write_text(spec)
    sandbox.scheduler.forget(other.job(1))
    done = tended(sandbox)
    assert done.looked_at == 2
    assert len(done.acted) == 1
    assert [str(broken.dir.path) in words for words in done.problems] == [True]
    assert not done.unanswered


def test_a_run_folder_that_cannot_be_written_does_not_stop_the_others(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    first, other = sandbox.play("first"), sandbox.play("other")
    sandbox.scheduler.forget(first.job(1))
    sandbox.scheduler.forget(other.job(1))

    def guarded(dir: RunDir) -> Journal:
        if dir == first.dir:
            raise PermissionError(13, "Permission denied")
        return desk_journal(dir)

    monkeypatch.setattr("onward.operations.repair.one_run.desk_journal", guarded)
    done = tended(sandbox)
    assert len(done.acted) == 1
    assert "Permission denied" in done.problems[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_somebody_elses_run_is_theirs_to_tend(sandbox: Sandbox) -> None:
    run = sandbox.play()
    sandbox.scheduler.forget(run.job(1))
    os.chown(run.dir.path, 65534, 65534)
    done = tended(sandbox)
    assert (done.looked_at, done.acted) == (0, [])


# ── a scheduler that is slow to know an end, and keeps no word of what was deleted while it waited ──


class Unseen(CountingScheduler):
    capabilities = Capabilities(finishing_seconds=30.0, deletes_unseen=True)


@pytest.fixture
def slow_place(sandbox: Sandbox) -> Sandbox:
    sandbox.scheduler = Unseen(sandbox.clock)
    return sandbox


def aged(run: PlayedRun, seconds: float) -> None:
    """The leg's files were last written to so long ago."""
    then = run.now() - seconds
    for folder in (run.dir.spool, run.dir.logs, run.dir.journals):
        for path in folder.iterdir():
            os.utime(path, (then, then))


def test_a_leg_that_may_be_finishing_is_left_for_the_next_pass(slow_place: Sandbox) -> None:
    run = slow_place.play().begin(1, successor=False).publish(1, 5)
    slow_place.scheduler.forget(run.job(1))
    slow_place.clock.sleep(GRACE + 1)
    aged(run, 5)
    assert tend(slow_place.context).acted == []
    aged(run, 60)
    assert "queued leg 2" in tend(slow_place.context).acted[0]
    assert run.leg(1).end is LegEnd.LOST


def test_a_waiting_job_that_is_nowhere_any_more_was_deleted_and_its_run_is_cancelled(slow_place: Sandbox) -> None:
    run = slow_place.play()
    slow_place.scheduler.forget(run.job(1))
    tended(slow_place)
    assert run.run.state is RunState.CANCELLED
    assert run.run.closed is not None and "deleted while it waited" in run.run.closed.cause


# ── legs queued ahead ─────────────────────────────────────────────────────────

AHEAD = Cluster(name="local", scheduler="local", legs_ahead=3)


def test_legs_ahead_are_topped_up_each_after_the_one_before(sandbox: Sandbox) -> None:
    run = sandbox.play(cluster=AHEAD).begin(1)
    assert "queued 2 more legs ahead, from leg 3 on" in tended(sandbox).acted[0]
    assert live(sandbox) == ["digits.1", "digits.2", "digits.3", "digits.4"]
    assert sandbox.scheduler.jobs[run.job(4)].after == run.job(3)
    assert sandbox.scheduler.jobs[run.job(3)].after == run.job(2)
    assert tended(sandbox).acted == []


def test_no_leg_is_queued_ahead_beyond_what_the_run_may_have(sandbox: Sandbox) -> None:
    sandbox.play(cluster=AHEAD, limits=Limits(max_legs=2)).begin(1)
    assert tended(sandbox).acted == []


def test_a_run_whose_legs_ahead_are_used_up_goes_on_with_as_many(sandbox: Sandbox) -> None:
    run = sandbox.play(cluster=AHEAD).begin(1, successor=False).publish(1, 5).end(1, LegEnd.TIME_LIMIT)
    assert "queued leg 2" in tended(sandbox).acted[0]
    assert live(sandbox) == ["digits.2", "digits.3", "digits.4"]
    assert sandbox.scheduler.jobs[run.job(4)].after == run.job(3)


def test_a_run_that_was_asked_to_stop_is_not_topped_up(sandbox: Sandbox) -> None:
    run = sandbox.play(cluster=AHEAD).begin(1)
    run.write(ev.StopRequested(leg=1, at=run.now(), by="ada"))
    assert tended(sandbox).acted == []
