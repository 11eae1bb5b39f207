"""Jobs that a leg queued and could not write down, because its disk was full: nobody queues them twice, and a cancel ends them."""

from __future__ import annotations

import errno
import os
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest

from onward.clock import ManualClock
from onward.errors import SchedulerUnavailable, StorageError
from onward.model import events as ev
from onward.model.job import JobId, JobState, job_name
from onward.model.policy.lifecycle import Continue
from onward.model.policy.unrecorded_jobs import note_unrecorded
from onward.model.run import LegEnd, RunState
from onward.model.spec import Resources
from onward.operations.repair.one_run import GRACE
from onward.operations.repair.tend import TendReport, tend
from onward.operations.runs.control import cancel, resume, stop
from onward.operations.runs.record import inspect_run, reason
from onward.rundir.claim import claim
from onward.rundir.journal import Journal, desk_journal
from onward.supervisor.leg.handover import Handover
from tests.sandbox import PlayedRun, Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def queue_unrecorded(run: PlayedRun, leg: int, *, after: str | None = None, token: str = "0ab1") -> JobId:
    """As a leg does whose journal takes nothing: only its memory knows the job."""
    name = job_name(run.spec.name, leg, run=run.spec.id, token=token)
    return run.sandbox.scheduler.submit(run.dir.script(leg), name=name, after=JobId(after) if after else None)


def claim_unrecorded(run: PlayedRun, leg: int, job: JobId) -> None:
    run.sandbox.scheduler.start(job)
    claim(run.dir, leg, job=job)


def live(sandbox: Sandbox) -> list[str]:
    return [job.status.name.rsplit(".", 1)[0] for job in sandbox.scheduler.jobs.values() if job.status.state.live]


def tended(sandbox: Sandbox) -> TendReport:
    sandbox.clock.sleep(GRACE + 1)
    return tend(sandbox.context)


def fill(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Journal, "_append", refuse)
    monkeypatch.setattr("onward.rundir.run_end.write_whole", refuse)


# ── tend ──────────────────────────────────────────────────────────────────────


def test_tend_queues_no_second_job_where_a_dead_leg_left_one_that_no_journal_names(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False)
    job = queue_unrecorded(run, 2, after=run.job(1))
    run.die(1, JobState.NODE_FAILED)
    assert tended(sandbox).acted == [f"digits (k00digit): found job {job} of leg 2, which was not recorded"]
    assert live(sandbox) == ["digits.2"]
    assert run.job(2) == job
    assert tended(sandbox).acted == []


def test_tend_says_that_the_disk_is_full_and_queues_nothing(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    run = sandbox.play().begin(1, successor=False)
    queue_unrecorded(run, 2, after=run.job(1))
    run.die(1, JobState.NODE_FAILED)
    fill(monkeypatch)
    done = tended(sandbox)
    assert done.acted == []
    left = "what was found about digits (k00digit) is not recorded, and nothing was submitted for it"
    assert done.problems == [f"the disk of {sandbox.root} is full, so {left}; free some space, then run onward tend again"]
    assert live(sandbox) == ["digits.2"]


def test_a_job_that_lives_a_leg_which_no_journal_gave_it_is_that_legs(sandbox: Sandbox) -> None:
    """It was queued for leg 2, and claimed leg 1, whose own job could not begin."""
    run = sandbox.play()
    job = queue_unrecorded(run, 2)
    sandbox.scheduler.end(run.job(1), JobState.FAILED)
    claim_unrecorded(run, 1, job)
    assert tended(sandbox).acted == [f"digits (k00digit): found job {job} of leg 1, which was not recorded"]
    assert reason(inspect_run(sandbox.context, run.dir)) == "leg 1 runs on " + run.leg(1).claimed.hosts[0]  # type: ignore[union-attr]
    assert live(sandbox) == ["digits.2"]


def test_a_claim_alone_makes_a_job_known_whatever_its_token_looks_like(sandbox: Sandbox) -> None:
    """A supervisor of an earlier version gives names that do not tell the run."""
    run = sandbox.play().begin(1, successor=False)
    job = sandbox.scheduler.submit(run.dir.script(2), name="digits.2.9d3b52ba")
    run.end(1, LegEnd.TIME_LIMIT)
    claim_unrecorded(run, 2, job)
    cancel(sandbox.context, run.dir)
    assert live(sandbox) == []


def test_jobs_of_another_run_with_the_same_name_are_left_alone(sandbox: Sandbox) -> None:
    first, second = sandbox.play("digits"), sandbox.play("digits")
    first.begin(1, successor=False).die(1, JobState.NODE_FAILED)
    job = queue_unrecorded(second, 2, after=second.job(1))
    tended(sandbox)
    assert first.job(2) != job == second.job(2)
    cancel(sandbox.context, first.dir)
    assert sandbox.scheduler.jobs[job].status.state.live


@pytest.mark.parametrize("count", [1, 40])
def test_one_listing_is_enough_for_all_runs(sandbox: Sandbox, count: int) -> None:
    for number in range(count):
        run = sandbox.play(f"run{number}").begin(1, successor=False)
        queue_unrecorded(run, 2, after=run.job(1))
    sandbox.scheduler.asked = 0
    assert len(tended(sandbox).acted) == count
    assert sandbox.scheduler.asked == 1


def test_a_scheduler_that_cannot_be_asked_gets_no_job(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False)
    queue_unrecorded(run, 2, after=run.job(1))
    run.die(1)
    sandbox.scheduler.down = True
    before = run.files()
    done = tended(sandbox)
    assert done.unanswered and not done.acted
    assert run.files() == before


# ── cancel, stop, resume ──────────────────────────────────────────────────────


def test_a_cancel_ends_a_job_that_no_journal_names(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False)
    queue_unrecorded(run, 2, after=run.job(1))
    assert cancel(sandbox.context, run.dir).state is RunState.CANCELLED
    assert live(sandbox) == []


def test_a_cancel_on_a_full_disk_ends_it_too(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    run = sandbox.play()
    claim_unrecorded(run, 1, run.job(1))
    queue_unrecorded(run, 2, after=run.job(1))
    fill(monkeypatch)
    with pytest.raises(StorageError, match=r"the jobs of digits are cancelled, but the disk of .* is full"):
        cancel(sandbox.context, run.dir)
    assert live(sandbox) == []


def test_a_stop_between_legs_takes_it_back(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False).publish(1, 5).end(1, LegEnd.TIME_LIMIT)
    queue_unrecorded(run, 2)
    assert stop(sandbox.context, run.dir).closed
    assert live(sandbox) == []


def test_a_cancel_that_cannot_ask_the_scheduler_is_not_done(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False)
    queue_unrecorded(run, 2, after=run.job(1))
    sandbox.scheduler.down = True
    with pytest.raises(SchedulerUnavailable, match="its jobs could not be ended"):
        cancel(sandbox.context, run.dir)
    assert not run.run.closed


def test_resume_goes_on_with_the_job_that_is_there(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False)
    cancel(sandbox.context, run.dir)
    job = queue_unrecorded(run, 2)
    assert resume(sandbox.context, run.dir, changes={}).legs[2].job == job
    assert live(sandbox) == ["digits.2"]


# ── a leg's own successor ─────────────────────────────────────────────────────


def handover(run: PlayedRun, own: str | None = None) -> Handover:
    place = run.sandbox
    return Handover(dir=run.dir, scheduler=place.scheduler, journal=desk_journal(run.dir, patient=True), clock=place.clock, own=own)


def test_a_leg_queues_no_successor_where_one_waits_that_no_journal_names(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False)
    job = queue_unrecorded(run, 2, after=run.job(1))
    assert handover(run, run.job(1)).ensure(run.run, Continue(leg=2, mem=None), after=run.job(1)) == job
    assert live(sandbox) == ["digits.1", "digits.2"]
    assert run.job(2) == job


def test_a_leg_is_not_its_own_successor(sandbox: Sandbox) -> None:
    """Its job was queued for leg 2, unrecorded, and is about to live leg 1."""
    run = sandbox.play()
    sandbox.scheduler.end(run.job(1), JobState.FAILED)
    own = queue_unrecorded(run, 2)
    sandbox.scheduler.start(own)
    queued = handover(run, own).ensure(run.run, Continue(leg=2, mem=None), after=own)
    assert queued != own
    assert live(sandbox) == ["digits.2", "digits.2"]


def test_a_scheduler_that_is_silent_for_a_while_is_asked_again_before_anything_is_submitted(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False)
    job = queue_unrecorded(run, 2, after=run.job(1))
    sandbox.scheduler.down, sandbox.scheduler.asked = True, 0

    class Waking(ManualClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            sandbox.scheduler.down = sandbox.scheduler.asked < 3

    able = replace(handover(run, run.job(1)), clock=Waking(sandbox.clock.now()))
    assert able.ensure(run.run, Continue(leg=2, mem=None), after=run.job(1)) == job
    assert live(sandbox) == ["digits.1", "digits.2"]


# ── show ──────────────────────────────────────────────────────────────────────

Room = namedtuple("Room", "f_flag f_blocks f_bavail f_files f_favail")


@pytest.mark.parametrize(
    ("room", "words"),
    [
        (Room(0, 100, 0, 100, 50), "is full"),
        (Room(0, 100, 50, 100, 0), "is full"),
        (Room(os.ST_RDONLY, 100, 50, 100, 50), "is read-only"),
    ],
)
def test_show_says_that_the_disk_is_full(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, room: Room, words: str) -> None:
    run = sandbox.play().begin(1)
    monkeypatch.setattr(os, "statvfs", lambda _: room)
    answer = reason(inspect_run(sandbox.context, run.dir))
    assert answer == f"leg 1 runs on node1; the disk of {sandbox.root} {words}: nothing about the run can be recorded"


@pytest.mark.parametrize("room", [Room(0, 100, 50, 100, 50), Room(0, 0, 0, 0, 0)])
def test_show_calls_no_disk_full_that_has_room_or_does_not_say(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, room: Room) -> None:
    run = sandbox.play().begin(1)
    monkeypatch.setattr(os, "statvfs", lambda _: room)
    assert reason(inspect_run(sandbox.context, run.dir)) == "leg 1 runs on node1"


def test_show_names_a_job_that_is_not_recorded(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False)
    job = queue_unrecorded(run, 2, after=run.job(1))
    answer = reason(inspect_run(sandbox.context, run.dir))
    assert answer == f"leg 1 runs on node1; job {job} of leg 2 could not be recorded: is the disk of {sandbox.root} full?"


# ── the rule itself ───────────────────────────────────────────────────────────


def test_a_found_job_counts_as_having_what_the_run_asks_for(sandbox: Sandbox) -> None:
    run = sandbox.play(resources=Resources(mem=64_000, time=60)).begin(1, successor=False)
    queue_unrecorded(run, 2, after=run.job(1))
    found = run.run
    note_unrecorded([found], sandbox.scheduler.live())
    note_unrecorded([found], sandbox.scheduler.live())
    assert [(s.mem, s.time, s.unrecorded) for s in found.legs[2].submissions.values()] == [(64_000, 60, True)]


def test_a_job_that_was_taken_back_stays_taken_back_while_it_ends(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False)
    job = queue_unrecorded(run, 2, after=run.job(1))
    run.write(ev.Withdrawn(leg=2, at=run.now(), name=sandbox.scheduler.jobs[job].status.name, job=job, reason="as the test says"))
    found = run.run
    note_unrecorded([found], sandbox.scheduler.live())
    assert found.legs[2].submission is None
