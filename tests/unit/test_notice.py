"""The notice that a job will be killed: what it meant, by the scheduler's own word."""

from __future__ import annotations

from pathlib import Path

import pytest

from onward.clock import ManualClock
from onward.model import events as ev
from onward.model.job import Allocation, JobId, JobState, JobStatus
from onward.model.stop_reason import StopReason
from onward.rundir.journal import Journal, desk_journal, read_events
from onward.rundir.layout import RunDir
from onward.supervisor.leg.context import LegContext
from onward.supervisor.stop.kill_notice import KillNotice, was_given_up
from tests.fakes import FakeScheduler
from tests.histories import make_spec

START = 1_800_000_000.0
MINE = Allocation(job=JobId("7"), hosts=("e1.lab.example",), deadline=START + 600, started=START)


def said(state: JobState, *, nodes: tuple[str, ...] = ("e1",), started: float | None = START) -> JobStatus:
    return JobStatus(id=JobId("7"), name="train.1.abc", state=state, nodes=nodes, started=started)


@pytest.mark.parametrize(
    ("status", "given_up"),
    [
        (said(JobState.RUNNING), False),  # being deleted: it is known to run here until it is gone
        (said(JobState.RUNNING, started=START + 1), False),
        (None, False),
        (said(JobState.CANCELLED), False),
        (said(JobState.QUEUED, nodes=(), started=None), True),
        (said(JobState.HELD, nodes=(), started=None), True),
        (said(JobState.RUNNING, nodes=("e2",)), True),
        (said(JobState.RUNNING, started=START + 60), True),  # the same host has come back, and the job with it
    ],
)
def test_a_job_that_waits_or_runs_anew_was_given_up_and_any_other_deleted(status: JobStatus | None, given_up: bool) -> None:
    assert was_given_up(status, MINE) is given_up


class Bench:
    def __init__(self, folder: Path) -> None:
        self.dir = RunDir(folder)
        desk_journal(self.dir).close()
        self.clock = ManualClock(START)
        self.scheduler = FakeScheduler(self.clock)
        script = folder / "job.sh"
        script.write_text("#!/bin/sh\n")
        job = self.scheduler.submit(script, name="train.1.abc")
        self.scheduler.start(job, nodes=("e1",))
        allocation = Allocation(job=job, hosts=("e1",), deadline=START + 600, started=START)
        journal = Journal(self.dir.leg_journal(1))
        self.notice = KillNotice(
            LegContext(
                dir=self.dir,
                spec=make_spec(),
                leg=1,
                scheduler=self.scheduler,
                allocation=allocation,
                clock=self.clock,
                journal=journal,
            )
        )
        self.job = job


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_no_notice_means_nothing(bench: Bench) -> None:
    bench.notice.settle()
    assert (bench.notice.deleted, bench.notice.given_up) == (False, False)


def test_a_notice_is_written_down_at_once_and_is_a_deletion_by_the_schedulers_word(bench: Bench) -> None:
    bench.notice.came()
    assert [event.why for event in read_events(bench.dir) if isinstance(event, ev.AskedToStop)] == [StopReason.DELETED]
    bench.notice.settle()
    assert (bench.notice.deleted, bench.notice.given_up) == (True, False)


def test_after_the_limit_a_notice_is_not_written_down(bench: Bench) -> None:
    bench.clock.sleep(601)
    bench.notice.came()
    assert not [event for event in read_events(bench.dir) if isinstance(event, ev.AskedToStop)]


def test_a_host_that_was_given_up_is_told_from_a_deletion(bench: Bench) -> None:
    bench.scheduler.requeue(bench.job)
    bench.notice.came()
    bench.notice.settle()
    assert (bench.notice.deleted, bench.notice.given_up) == (False, True)


def test_without_an_answer_it_counts_as_a_deletion(bench: Bench) -> None:
    bench.scheduler.down = True
    bench.notice.came()
    bench.notice.settle()
    assert (bench.notice.deleted, bench.notice.given_up) == (True, False)
