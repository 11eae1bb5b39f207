"""Cancel, stop and resume: in every state, and each twice."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from onward.checkpoints.publishing.publish import publish
from onward.errors import Conflict, SchedulerUnavailable, StorageError, SubmitRefused, SubmitUnclear
from onward.model import events as ev
from onward.model.checkpoint import CheckpointName
from onward.model.job import JobId, JobState
from onward.model.policy.lifecycle import Close
from onward.model.run import LegEnd, Run, RunState
from onward.model.spec import Limits, Resources
from onward.operations.repair.tend import tend
from onward.operations.runs.control import cancel, resume, stop
from onward.rundir.journal import Journal, desk_journal, read_events
from onward.rundir.run_end import close_run
from tests.sandbox import PlayedRun, Sandbox

FullDisk = Callable[..., None]


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def cancelled(run: PlayedRun) -> Run:
    return cancel(run.sandbox.context, run.dir)


def stopped(run: PlayedRun) -> Run:
    return stop(run.sandbox.context, run.dir)


def resumed(run: PlayedRun, **changes: Any) -> Run:
    return resume(run.sandbox.context, run.dir, changes=changes)


def live(run: PlayedRun) -> list[str]:
    """Jobs that run or may still run, by name without token."""
    return [job.status.name.rsplit(".", 1)[0] for job in run.sandbox.scheduler.jobs.values() if job.status.state.live]


def kinds(run: PlayedRun) -> list[str]:
    return sorted(event.kind for event in read_events(run.dir))


# ── cancel ────────────────────────────────────────────────────────────────────


def test_cancelling_a_queued_run_takes_its_job_back_and_closes_it(sandbox: Sandbox) -> None:
    run = sandbox.play()
    after = cancelled(run)
    assert after.state is RunState.CANCELLED
    assert after.closed and after.closed.cause.startswith("cancelled by ")
    assert "onward resume" in after.closed.next
    assert run.dir.done.exists()
    assert live(run) == []


def test_cancelling_a_running_run_ends_its_job_and_takes_the_successor_back(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    assert len(live(run)) == 2
    after = cancelled(run)
    assert after.state is RunState.CANCELLED
    assert after.legs[1].end is LegEnd.CANCELLED
    assert live(run) == []


def test_a_checkpoint_that_its_leg_could_not_tell_of_is_known_when_it_is_cancelled(sandbox: Sandbox) -> None:
    """It was published, and the supervisor was ended before it wrote that down."""
    run = sandbox.play().begin(1)
    weights = run.dir.path.parent / "weights.bin"
    weights.write_bytes(b"w")
    publish({"weights.bin": weights}, run.dir.checkpoints, CheckpointName(1, 7), created=1.0)
    after = cancelled(run)
    assert after.closed and after.closed.next.endswith("continues from the last checkpoint")
    assert after.legs[1].last_published == 7


def test_a_leg_that_is_being_ended_may_still_store_a_checkpoint(sandbox: Sandbox) -> None:
    after = cancelled(sandbox.play().begin(1))
    assert after.closed and "unless its last leg stored a checkpoint while it was ended" in after.closed.next


def test_cancelling_between_legs_takes_the_next_leg_back(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1).publish(1, 10).end(1, LegEnd.TIME_LIMIT)
    assert run.run.state is RunState.WAITING
    assert cancelled(run).state is RunState.CANCELLED
    assert live(run) == []


def test_cancelling_twice_is_cancelling_once(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    cancelled(run)
    before = run.files()
    assert cancelled(run).state is RunState.CANCELLED
    assert run.files() == before
    assert kinds(run).count("closed") == 1


def test_a_cancel_that_was_killed_before_its_last_stroke_is_finished_by_the_next(sandbox: Sandbox) -> None:
    run = sandbox.play()
    cancelled(run)
    run.dir.done.unlink()
    assert cancelled(run).state is RunState.CANCELLED
    assert run.dir.done.exists()


@pytest.mark.parametrize(("verb", "words"), [(cancelled, "cannot be cancelled"), (stopped, "cannot be stopped")])
@pytest.mark.parametrize(("end", "state"), [(LegEnd.DONE, "finished"), (LegEnd.OUT_OF_MEMORY, "failed")])
def test_a_run_that_ended_otherwise_can_be_neither_cancelled_nor_stopped(
    sandbox: Sandbox, verb: Any, words: str, end: LegEnd, state: str
) -> None:
    run = sandbox.play().begin(1).end(1, end)
    assert run.run.state == state
    with pytest.raises(Conflict) as caught:
        verb(run)
    assert words in caught.value.message
    assert caught.value.exit_code == 5


def test_cancel_with_an_unreachable_scheduler_says_that_the_run_will_not_go_on(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    sandbox.scheduler.down = True
    for _ in range(2):
        with pytest.raises(SchedulerUnavailable) as caught:
            cancelled(run)
        assert "will not continue" in caught.value.message
        assert "again" in caught.value.hint
    assert kinds(run).count("cancelrequested") == 1
    assert not run.run.closed
    run.end(1, LegEnd.TIME_LIMIT)  # the leg comes to its end by itself
    assert run.run.state is RunState.CANCELLED

    sandbox.scheduler.down = False
    assert cancelled(run).state is RunState.CANCELLED


def test_cancelled_again_once_the_scheduler_answers_the_job_is_ended(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    sandbox.scheduler.down = True
    with pytest.raises(SchedulerUnavailable):
        cancelled(run)
    sandbox.scheduler.down = False
    assert cancelled(run).state is RunState.CANCELLED
    assert live(run) == []


def test_a_foreign_job_that_was_given_our_id_is_not_cancelled(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False)
    job = run.job(1)
    sandbox.scheduler.forget(job)
    sandbox.scheduler._last = int(job) - 1
    assert sandbox.scheduler.submit(run.dir.script(1), name="somebody-elses") == job
    cancelled(run)
    assert sandbox.scheduler.named("somebody-elses").state is JobState.QUEUED


def test_a_run_whose_submit_was_never_answered_is_cancelled_by_name(sandbox: Sandbox) -> None:
    run = sandbox.play()
    name = next(iter(run.leg(1).submissions))
    for path in run.dir.journals.iterdir():
        path.unlink()
    Journal(run.dir.desk_journal("1")).write(ev.Submitting(leg=1, at=run.now(), name=name))
    assert run.leg(1).job is None
    assert cancelled(run).state is RunState.CANCELLED
    assert live(run) == []


# ── on a disk that takes nothing ──────────────────────────────────────────────


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    """From here on nothing can be written to the disk: neither to a journal nor as a mark."""

    def fill(code: int = errno.ENOSPC) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(Journal, "_append", refuse)
        monkeypatch.setattr("onward.rundir.run_end.write_whole", refuse)

    return fill


@pytest.mark.parametrize(
    ("code", "words", "next"),
    [
        (errno.ENOSPC, "is full", "free some space, then run onward cancel {id} again"),
        (errno.EDQUOT, "is full (quota)", "free some space, then run onward cancel {id} again"),
        (errno.EROFS, "is read-only", "run onward cancel {id} again when the disk can be written"),
        (errno.EIO, "cannot be written (I/O error)", "run onward cancel {id} again when the disk can be written"),
    ],
)
def test_cancelling_on_a_disk_that_takes_nothing_ends_all_jobs_and_says_what_is_left(
    sandbox: Sandbox, full_disk: FullDisk, code: int, words: str, next: str
) -> None:
    run = sandbox.play().begin(1)
    full_disk(code)
    with pytest.raises(StorageError) as caught:
        cancelled(run)
    assert caught.value.message == (
        f"the jobs of digits are cancelled, but the disk of {sandbox.root} {words}, so the run is not marked as cancelled"
    )
    assert caught.value.hint == next.format(id=run.spec.id)
    assert live(run) == [] and not run.run.cancel


def test_on_a_full_disk_the_queued_leg_is_ended_before_the_one_at_work(
    sandbox: Sandbox, full_disk: FullDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other way round, the end of the one would start the other."""
    run = sandbox.play().begin(1)
    third = run.queue(3, after=run.job(2))
    ended: list[JobId] = []
    cancel_for_real = sandbox.scheduler.cancel

    def noting(jobs: Sequence[JobId]) -> None:
        ended.extend(jobs)
        cancel_for_real(jobs)

    monkeypatch.setattr(sandbox.scheduler, "cancel", noting)
    full_disk()
    with pytest.raises(StorageError):
        cancelled(run)
    assert ended == [third, run.job(2), run.job(1)]


def test_on_a_full_disk_a_job_whose_submit_was_never_answered_is_ended_by_its_name(sandbox: Sandbox, full_disk: FullDisk) -> None:
    run = sandbox.play()
    name = next(iter(run.leg(1).submissions))
    for path in run.dir.journals.iterdir():
        path.unlink()
    Journal(run.dir.desk_journal("1")).write(ev.Submitting(leg=1, at=run.now(), name=name))
    full_disk()
    with pytest.raises(StorageError):
        cancelled(run)
    assert live(run) == []


def test_a_cancel_that_a_full_disk_kept_from_being_recorded_is_finished_by_the_next(
    sandbox: Sandbox, full_disk: FullDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = sandbox.play().begin(1)
    full_disk()
    with pytest.raises(StorageError):
        cancelled(run)
    monkeypatch.undo()
    assert cancelled(run).state is RunState.CANCELLED
    assert run.dir.done.exists()


def test_on_a_full_disk_tend_finds_the_cancelled_jobs_and_queues_none(
    sandbox: Sandbox, full_disk: FullDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = sandbox.play().begin(1)
    full_disk()
    with pytest.raises(StorageError):
        cancelled(run)
    monkeypatch.undo()
    run.later()
    tend(sandbox.context)
    assert run.run.state is RunState.CANCELLED
    assert live(run) == []


def test_where_neither_disk_nor_scheduler_takes_a_cancel_nothing_is_said_to_be_done(sandbox: Sandbox, full_disk: FullDisk) -> None:
    run = sandbox.play().begin(1)
    sandbox.scheduler.down = True
    full_disk()
    with pytest.raises(SchedulerUnavailable, match="digits is not cancelled: its jobs could not be ended") as caught:
        cancelled(run)
    assert os.strerror(errno.ENOSPC) in caught.value.message
    assert "when the scheduler answers" in caught.value.hint


@pytest.mark.parametrize("began", [True, False])
def test_a_stop_that_cannot_be_recorded_says_so_and_names_what_helps(sandbox: Sandbox, full_disk: FullDisk, began: bool) -> None:
    run = sandbox.play()
    if began:
        run.begin(1)
    before = live(run)
    full_disk()
    with pytest.raises(StorageError) as caught:
        stopped(run)
    assert f"the disk of {sandbox.root} is full, so it cannot be recorded that digits is to stop" in caught.value.message
    assert f"onward cancel {run.spec.id} ends its jobs all the same" in caught.value.message
    assert caught.value.hint == f"free some space, then run onward stop {run.spec.id} again"
    assert live(run) == before


def test_an_error_that_is_none_of_the_disk_is_not_taken_for_one(sandbox: Sandbox, full_disk: FullDisk) -> None:
    run = sandbox.play().begin(1)
    full_disk(errno.EACCES)
    with pytest.raises(PermissionError):
        cancelled(run)
    assert len(live(run)) == 2


# ── stop ──────────────────────────────────────────────────────────────────────


def test_stopping_a_running_run_asks_its_leg_and_leaves_the_rest_to_it(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    after = stopped(run)
    assert after.state is RunState.RUNNING
    assert after.stop is not None
    assert run.dir.stop_request.exists()
    assert len(live(run)) == 2
    run.publish(1, 10).end(1, LegEnd.AGAIN)
    assert run.run.state is RunState.CANCELLED
    assert run.run.closed and "stopped by" in run.run.closed.cause
    assert "step 10" in run.run.closed.cause


def test_stopping_a_running_run_twice_asks_once(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    stopped(run)
    stopped(run)
    assert kinds(run).count("stoprequested") == 1


def test_stopping_a_queued_run_closes_it_as_it_stands(sandbox: Sandbox) -> None:
    run = sandbox.play()
    after = stopped(run)
    assert after.state is RunState.CANCELLED
    assert after.closed and "before it began" in after.closed.cause
    assert "onward resume" in after.closed.next
    assert live(run) == []
    assert stopped(run).state is RunState.CANCELLED


def test_stopping_between_legs_keeps_what_was_saved(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1).publish(1, 10).end(1, LegEnd.TIME_LIMIT)
    after = stopped(run)
    assert after.state is RunState.CANCELLED
    assert after.closed and "after checkpoint at step 10" in after.closed.cause
    assert live(run) == []


def test_stop_with_an_unreachable_scheduler_binds_all_the_same(sandbox: Sandbox) -> None:
    run = sandbox.play()
    sandbox.scheduler.down = True
    with pytest.raises(SchedulerUnavailable, match="will stop as soon as its next leg begins"):
        stopped(run)
    assert run.dir.stop_request.exists()
    sandbox.scheduler.down = False
    assert stopped(run).state is RunState.CANCELLED


def test_a_run_that_was_asked_to_stop_can_still_be_cancelled(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    stopped(run)
    assert cancelled(run).state is RunState.CANCELLED
    assert live(run) == []


# ── resume ────────────────────────────────────────────────────────────────────


def test_a_run_cancelled_while_queued_goes_on_as_leg_two(sandbox: Sandbox) -> None:
    """Leg 1 was asked for and taken back: its number is used up, so that no late job of it can come to life."""
    run = sandbox.play()
    cancelled(run)
    after = resumed(run)
    assert after.first_leg == 2
    assert after.state is RunState.SUBMITTED
    assert live(run) == ["digits.2"]
    assert not run.dir.done.exists()


def test_every_further_cancel_while_queued_uses_up_one_number(sandbox: Sandbox) -> None:
    run = sandbox.play()
    for leg in (2, 3, 4):
        cancelled(run)
        assert resumed(run).first_leg == leg
        assert live(run) == [f"digits.{leg}"]


def test_a_run_cancelled_in_its_second_leg_goes_on_as_its_third(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1).publish(1, 10).end(1, LegEnd.TIME_LIMIT).begin(2)
    cancelled(run)
    assert resumed(run).first_leg == 3
    assert live(run) == ["digits.3"]


def test_a_stopped_run_goes_on_and_is_no_longer_asked_to_stop(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    stopped(run)
    run.publish(1, 10).end(1, LegEnd.AGAIN)
    after = resumed(run)
    assert after.stop is None
    assert not run.dir.stop_request.exists()
    assert after.state is RunState.WAITING


def test_resume_changes_what_was_asked_and_later_changes_add_up(sandbox: Sandbox) -> None:
    run = sandbox.play(resources=Resources(time=60, mem=1024), limits=Limits(max_legs=1))
    cancelled(run)
    after = resumed(run, mem=2048, max_legs=5)
    assert (after.resources.mem, after.resources.time, after.limits.max_legs) == (2048, 60, 5)
    assert after.legs[2].submission and after.legs[2].submission.mem == 2048
    cancelled(run)
    after = resumed(run, time=120)
    assert (after.resources.mem, after.resources.time, after.limits.max_legs) == (2048, 120, 5)
    assert "#FAKE --time=120" in run.dir.script(3).read_text()


def test_a_leg_that_is_still_being_ended_is_waited_for(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False)
    job = run.job(1)
    cancelled(run)
    sandbox.scheduler._change(job, state=JobState.RUNNING, reason="")  # a scheduler takes its time to kill
    resumed(run)
    assert sandbox.scheduler.jobs[run.job(2)].after == job


def test_resuming_twice_is_a_conflict_and_queues_nothing_more(sandbox: Sandbox) -> None:
    run = sandbox.play()
    cancelled(run)
    resumed(run)
    with pytest.raises(Conflict, match="does not need to be resumed"):
        resumed(run)
    assert live(run) == ["digits.2"]


@pytest.mark.parametrize("state", ["submitted", "running", "waiting"])
def test_a_run_that_is_not_over_needs_no_resuming(sandbox: Sandbox, state: str) -> None:
    run = sandbox.play()
    if state != "submitted":
        run.begin(1)
    if state == "waiting":
        run.publish(1, 1).end(1, LegEnd.TIME_LIMIT)
    before = run.files()
    with pytest.raises(Conflict) as caught:
        resumed(run)
    assert f"is {state} and does not need to be resumed" in caught.value.message
    assert caught.value.exit_code == 5
    assert run.files() == before


def test_a_run_that_is_being_stopped_is_said_to_be_when_it_is_resumed(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    stopped(run)
    with pytest.raises(Conflict, match="is being stopped: its training was asked to save") as caught:
        resumed(run)
    assert "resume it then" in caught.value.hint


def test_legs_that_left_when_the_run_was_over_are_not_spoken_of_when_it_is_resumed(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    run = sandbox.play().begin(1)
    left = [run.job(2), run.queue(3, after=run.job(2))]
    run.write(ev.Ended(leg=1, at=run.now(), end=LegEnd.CRASHED, reason="x", final=True))
    sandbox.scheduler.end(run.job(1))
    close_run(run.dir, desk_journal(run.dir), Close(state=RunState.FAILED, cause="x"), leg=1, at=run.now())
    for job in left:
        sandbox.scheduler.end(job)
    assert resumed(run).legs[2].job not in left
    assert caplog.records == []


def test_a_finished_run_cannot_be_resumed(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1).end(1, LegEnd.DONE)
    with pytest.raises(Conflict, match="is finished"):
        resumed(run)


def test_a_resume_that_is_refused_leaves_the_run_as_it_was_to_be_resumed_in_another_way(sandbox: Sandbox) -> None:
    run = sandbox.play()
    cause = (cancelled(run).closed or pytest.fail("not closed")).cause
    sandbox.scheduler.refuse = "more memory than any node has"
    with pytest.raises(SubmitRefused, match="more memory"):
        resumed(run, mem=1 << 30)
    assert run.run.state is RunState.CANCELLED
    assert run.run.closed and run.run.closed.cause == cause
    assert run.dir.done.exists()
    after = resumed(run, mem=1024)
    assert after.state is RunState.SUBMITTED
    assert after.resources.mem == 1024
    assert len(live(run)) == 1


@pytest.mark.parametrize("began", [True, False])
def test_where_the_scheduler_does_not_answer_a_resume_changes_nothing(sandbox: Sandbox, began: bool) -> None:
    run = sandbox.play()
    if began:
        run.begin(1)
    cancelled(run)
    before = run.files()
    sandbox.scheduler.down = True
    with pytest.raises(SchedulerUnavailable):
        resumed(run)
    assert run.run.state is RunState.CANCELLED
    assert run.files() == before
    sandbox.scheduler.down = False
    assert resumed(run).first_leg == 2


def test_an_unclear_resume_is_left_to_tend(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    run = sandbox.play()
    cancelled(run)

    def silent(script: Path, *, name: str, after: JobId | None = None) -> JobId:
        sandbox.scheduler.down = True
        raise SubmitUnclear(f"submitting {name}: no answer")

    with monkeypatch.context() as patched:
        patched.setattr(sandbox.scheduler, "submit", silent)
        with pytest.raises(SubmitUnclear) as caught:
            resumed(run)
    assert "tend" in caught.value.hint
    assert not run.run.closed
    sandbox.scheduler.down = False
    run.later()
    assert len(tend(sandbox.context).acted) == 1
    assert live(run) == ["digits.2"]


# ── when all its jobs were ended at the scheduler ─────────────────────────────


@pytest.fixture
def swept(sandbox: Sandbox) -> PlayedRun:
    """`scancel -u me`: the leg at work and its successor are gone at once, with nobody left to write it down."""
    run = sandbox.play().begin(1).publish(1, 10)
    sandbox.scheduler.cancel([run.job(1), run.job(2)])
    return run


def test_a_run_whose_jobs_were_all_cancelled_can_be_resumed_at_once(swept: PlayedRun) -> None:
    assert resumed(swept).state is not RunState.CANCELLED
    assert swept.leg(1).end is LegEnd.CANCELLED
    assert len(live(swept)) == 1


def test_a_run_whose_jobs_were_all_cancelled_is_stopped_by_that(swept: PlayedRun) -> None:
    assert stopped(swept).state is RunState.CANCELLED
