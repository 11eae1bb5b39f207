"""The first minutes of a job: its successor is queued before anything can fail, and a job that leaves is replaced."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from onward.errors import AlreadyClaimed, InvalidInput
from onward.model import events as ev
from onward.model.job import Allocation, JobId, JobState
from onward.model.policy.lifecycle import Close
from onward.model.run import LegEnd, RunState
from onward.rundir import journal as journal_module
from onward.rundir import run_end
from onward.rundir.claim import claim
from onward.rundir.journal import Journal, read_events, read_run
from onward.rundir.run_end import close_run
from onward.sdk import contract
from onward.supervisor import main
from onward.supervisor.leg import handover as handover_module
from onward.supervisor.leg.begin import Successor, abandon_start, is_free, leg_of_job, may_begin
from onward.supervisor.leg.context import LegContext
from onward.supervisor.leg.end import continue_or_close, keep_untold
from onward.supervisor.leg.train import LegTraining
from onward.supervisor.preparation.before_training import PreparedTraining
from onward.supervisor.preparation.environment import local_folder
from onward.supervisor.ranks.rank_group import RankGroup
from onward.supervisor.ranks.start import LaunchCommand
from onward.supervisor.stop.signals import Signals
from tests.fakes import FakeScheduler
from tests.sandbox import PlayedRun, Sandbox


@pytest.fixture
def run(tmp_path: Path) -> PlayedRun:
    return Sandbox(tmp_path).play()


def job_starts(run: PlayedRun, leg: int, *, free: bool = True) -> LegContext:
    """The job that is queued for this leg starts; `free`: whether or not what it is held on has ended."""
    job = run.job(leg)
    fake = run.sandbox.scheduler.jobs[job]
    if free:
        fake.after = None  # as where the controller has forgotten the job before it
    run.sandbox.scheduler.start(job)
    return context(run, leg, job)


def context(run: PlayedRun, number: int, job: str) -> LegContext:
    allocation = Allocation(job=JobId(job), hosts=("node1",), deadline=None)
    leg = leg_of_job(run.run, number, allocation)
    journal = Journal(run.dir.leg_journal(leg), patient=True)
    found = LegContext(
        dir=run.dir,
        spec=run.spec,
        leg=leg,
        scheduler=run.sandbox.scheduler,
        allocation=allocation,
        clock=run.sandbox.clock,
        journal=journal,
    )
    found.patience = 900.0
    found.wait_for_storage_anew()
    return found


def live(scheduler: FakeScheduler) -> dict[str, str | None]:
    """Jobs that have not ended → the job that each is held on."""
    return {job: fake.after for job, fake in scheduler.jobs.items() if fake.status.state.live}


# ── too early ─────────────────────────────────────────────────────────────────


def test_a_job_that_starts_too_early_queues_exactly_one_in_its_place_held_on_its_predecessor(run: PlayedRun) -> None:
    first = run.begin(1).job(1)
    early = job_starts(run, 2)
    successor = Successor(early, run.run)
    assert not may_begin(early)
    successor.take_back("it came too early")
    run.sandbox.scheduler.end(early.allocation.job)
    [(again, held_on)] = [(job, after) for job, after in live(run.sandbox.scheduler).items() if job != first]
    assert held_on == first and again != early.allocation.job
    assert run.leg(2).job == again, "which the journals know as leg 2's"
    run.end(1, LegEnd.TIME_LIMIT)
    assert may_begin(job_starts(run, 2)), "and it lives the leg when its time has come"


def test_where_the_hold_does_not_work_each_early_job_waits_longer_for_its_predecessor(run: PlayedRun) -> None:
    run.begin(1)
    waits = []
    for _ in range(4):
        early = job_starts(run, 2)
        began = run.now()
        assert not may_begin(early)
        waits.append(run.now() - began)
        run.sandbox.scheduler.end(early.allocation.job)
    assert waits == [6, 66, 126, 246], "no storm"


def test_an_early_job_whose_predecessor_ends_while_it_waits_lives_its_leg(run: PlayedRun) -> None:
    first = run.begin(1).job(1)
    for _ in range(2):
        early = job_starts(run, 2)
        assert not may_begin(early)
        run.sandbox.scheduler.end(early.allocation.job)
    run.publish(1, 5)
    early = job_starts(run, 2)
    asked = run.sandbox.scheduler.status

    def ends_meanwhile(jobs: object) -> object:
        if run.now() > began + 30 and run.sandbox.scheduler.jobs[first].status.state.live:
            run.sandbox.scheduler.end(first, JobState.TIMED_OUT)
        return asked(jobs)  # type: ignore[arg-type]

    began = run.now()
    run.sandbox.scheduler.status = ends_meanwhile  # type: ignore[method-assign, assignment]
    assert may_begin(early)


# ── a predecessor that never began ────────────────────────────────────────────


def test_the_successor_of_a_job_that_was_killed_before_its_claim_lives_that_jobs_leg(run: PlayedRun) -> None:
    first = job_starts(run, 1)
    assert is_free(run.run, first.leg)
    Successor(first, run.run).done.wait(10)
    run.sandbox.scheduler.end(run.job(1), JobState.NODE_FAILED, exit_code=None)
    second = job_starts(run, 2, free=False)
    assert second.leg == 1 and may_begin(second)
    claim(run.dir, second.leg, job=second.allocation.job)
    successor = Successor(second, run.run)
    successor.done.wait(10)
    found = read_run(run.dir)
    assert found.legs[1].claimed and found.legs[1].claimed.job == second.allocation.job
    assert found.legs[1].submission and found.legs[1].submission.job == second.allocation.job, "asked after by the name that it has"
    assert found.legs[2].job not in (None, second.allocation.job), "and leg 2 has a job of its own"
    assert live(run.sandbox.scheduler)[found.legs[2].job or ""] == second.allocation.job


def test_a_duplicate_that_leaves_takes_back_only_what_it_queued_itself(run: PlayedRun) -> None:
    first = run.begin(1).job(1)
    run.write(ev.Warned(leg=1, at=run.now(), text="so that the journals differ"))
    duplicate = context(run, 1, run.sandbox.scheduler.submit(run.dir.script(1), name="digits.1.0badcafe"))
    assert not is_free(run.run, duplicate.leg), "its leg is taken, so it queues nothing"
    assert not may_begin(duplicate)
    assert live(run.sandbox.scheduler)[run.job(2)] == first


# ── storage ───────────────────────────────────────────────────────────────────


@pytest.fixture
def read_only(run: PlayedRun, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """From now on nothing in the run's folder can be written."""
    real = os.open

    def refuse(path: str | os.PathLike[str], flags: int, *rest: int, **others: int) -> int:
        if str(path).startswith(str(run.dir.path)) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return real(path, flags, *rest, **others)

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(handover_module, "write_whole", lambda path, *_, **__: refuse(path, os.O_WRONLY))
    yield


@pytest.mark.usefixtures("read_only")
def test_the_successor_is_queued_though_nothing_can_be_written(run: PlayedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    first = job_starts(run, 1)
    successor = Successor(first, run.run)
    successor.done.wait(10)
    [held] = [job for job, after in live(run.sandbox.scheduler).items() if after == first.allocation.job]
    script = run.sandbox.scheduler.jobs[JobId(held)].script
    assert script.parent != run.dir.params and not script.exists(), "submitted from the node, where it is not left"
    monkeypatch.undo()
    successor.give_up()
    assert run.leg(2).job == held, "noted as soon as that was possible"


@pytest.mark.usefixtures("read_only")
def test_a_job_that_gives_up_on_its_storage_leaves_one_job_that_goes_on_waiting(run: PlayedRun) -> None:
    first = job_starts(run, 1)
    before = run.run
    successor = Successor(first, before)
    successor.done.wait(10)
    assert abandon_start(first, before, successor, OSError(errno.EROFS, "read-only")) == 1
    [(again, held_on)] = [(job, after) for job, after in live(run.sandbox.scheduler).items() if job != first.allocation.job]
    assert held_on == first.allocation.job
    assert run.sandbox.scheduler.jobs[JobId(again)].status.name.startswith("digits.1."), "for the same leg"


@pytest.mark.usefixtures("read_only")
def test_jobs_that_have_waited_long_enough_leave_the_rest_to_tend(run: PlayedRun) -> None:
    first = replace(job_starts(run, 1), waited=6600.0)
    before = run.run
    successor = Successor(first, before)
    successor.done.wait(10)
    abandon_start(first, before, successor, OSError(errno.EROFS, "read-only"))
    assert list(live(run.sandbox.scheduler)) == [first.allocation.job]


def test_a_claim_whose_attempt_failed_and_succeeded_all_the_same_is_ours(run: PlayedRun) -> None:
    claim(run.dir, 1, job="7")
    claim(run.dir, 1, job="7", repeated=True)
    assert [event.kind for event in read_events(run.dir)].count("claimed") == 0


# ── the end of a run ──────────────────────────────────────────────────────────


@pytest.fixture
def closed_without_a_mark(run: PlayedRun, monkeypatch: pytest.MonkeyPatch) -> LegContext:
    """Its journal took that the run is over, and the storage then took no more."""
    run.begin(1).publish(1, 5).write(ev.Ended(leg=1, at=run.now(), end=LegEnd.DONE, reason="the training finished"))
    last = context(run, 1, run.job(1))

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(run_end, "write_whole", refuse)
        with pytest.raises(OSError, match="No space"):
            continue_or_close(last)
    assert run.run.closed and not run_end.is_over(run.dir)
    return last


def test_a_leg_that_could_not_mark_its_run_as_over_does_it_at_the_next_try(run: PlayedRun, closed_without_a_mark: LegContext) -> None:
    """Seen with storage away for 5 s: the run was over, and its pipeline and its request never knew."""
    continue_or_close(closed_without_a_mark)
    assert run_end.end_of(run.dir) and [e.kind for e in read_events(run.dir)].count("closed") == 1


def test_a_run_that_its_last_leg_could_not_mark_as_over_is_marked_by_the_next_job(
    run: PlayedRun, closed_without_a_mark: LegContext
) -> None:
    assert not may_begin(job_starts(run, 2))
    assert run_end.is_over(run.dir)


def test_an_end_that_was_not_written_yet_is_written_before_the_run_is_marked_as_over(
    run: PlayedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.begin(1).publish(1, 5).write(ev.Ended(leg=1, at=run.now(), end=LegEnd.DONE, reason="the training finished"))
    last = context(run, 1, run.job(1))
    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "write_all", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space")))
        with pytest.raises(OSError, match="No space"):
            continue_or_close(last)
    assert not run_end.is_over(run.dir) and not run.run.closed
    continue_or_close(last)
    assert run_end.is_over(run.dir) and [e.kind for e in read_events(run.dir)].count("closed") == 1


def test_what_a_leg_could_not_say_at_its_end_stays_on_its_node_and_is_brought_by_the_next_job_there(
    run: PlayedRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its training finished, and is not trained again, although the storage was full over its very end."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    run.begin(1).publish(1, 5)
    last, local = context(run, 1, run.job(1)), local_folder(run.spec, 1, run=run.dir)
    local.log(1, "out").write_text("its last words\n")
    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "write_all", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space")))
        last.journal.write(ev.Ended(leg=1, at=run.now(), end=LegEnd.DONE, reason="the training finished"))
        keep_untold(last, local)
    run.sandbox.scheduler.end(run.job(1), JobState.FAILED, exit_code=1)
    assert not may_begin(job_starts(run, 2))
    assert run.leg(1).end is LegEnd.DONE and run_end.is_over(run.dir)
    assert run.dir.log(1, "out").read_text() == "its last words\n"


def test_a_leg_leaves_its_folder_on_the_node_as_long_as_a_checkpoint_in_it_is_not_published(
    run: PlayedRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Seen with 4.4 GB and a leg of 50 s: step 229 was committed, not published in time, and deleted with the folder."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    last, local = context(run.begin(1), 1, run.job(1)), local_folder(run.spec, 1, run=run.dir)
    folder = local.checkpoints / contract.step_folder(229)
    folder.mkdir()
    (folder / contract.COMMIT_FILE).write_text('{"step": 229, "seconds": 1.0}')
    main._remove_node_folder(last, local, None)
    assert folder.exists()
    (run.dir.checkpoints / "leg-0001.step-00000229").mkdir()
    main._remove_node_folder(last, local, None)
    assert not local.path.exists()


class NoPublisher:
    def drain(self, *, until: float) -> None:
        pass


def test_a_training_whose_code_is_away_is_not_blamed_for_it(run: PlayedRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two legs that met this would end the run as crashed twice in the same way."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    begun, local = context(run.begin(1), 1, run.job(1)), local_folder(run.spec, 1, run=run.dir)

    def start() -> None:
        launch = LaunchCommand(command=("/nowhere/train",), env={}, rank_group=RankGroup(local, None))
        prepared = PreparedTraining(run=read_run(run.dir), resume=None, env={}, launch=launch)
        training = LegTraining(context=begun, local=local, signals=Signals(), woken=threading.Event(), companions=None)  # type: ignore[arg-type]
        training._start_child(prepared, NoPublisher())  # type: ignore[arg-type]

    with pytest.raises(InvalidInput, match="cannot be started"):
        start()
    run.dir.path.rename(tmp_path / "away")
    with pytest.raises(FileNotFoundError):
        start()


def test_a_run_that_was_cancelled_while_a_job_waited_for_its_storage_is_not_begun(run: PlayedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = job_starts(run, 1)

    def full(*_: object, **__: object) -> None:
        monkeypatch.undo()
        closing = Close(state=RunState.CANCELLED, cause="cancelled by ada")
        close_run(run.dir, Journal(run.dir.leg_journal(1)), closing, leg=1, at=run.now())
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(main, "claim", full)
    with pytest.raises(AlreadyClaimed, match=r"the run is over \(cancelled\)"):
        main._claim(begun)
    assert not run.dir.claim(1).exists()
