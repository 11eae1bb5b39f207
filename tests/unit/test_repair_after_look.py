"""Whoever looks at runs repairs them: after the look, once a minute at most, and never at its cost."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from onward.cli.runs import show as show_verb
from onward.cli.runs.follow import follow
from onward.model.job import JobId, JobState, JobStatus
from onward.model.run import LegEnd
from onward.operations.context import OperationsContext
from onward.operations.hosts.local import LocalHost
from onward.operations.repair.after_look import EVERY, keep_repairing, repair_after_look
from onward.operations.repair.one_run import GRACE
from onward.operations.repair.tend import tend
from onward.operations.runs.record import inspect_run, run_record
from onward.operations.runs.watch import RunWatch
from onward.operations.submit.new_run import submit
from onward.rundir.journal import read_run
from onward.rundir.pipeline.layout import PipelineDir
from onward.schedulers.local.scheduler import LocalScheduler
from tests.sandbox import CountingScheduler, PlayedRun, Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path, env={"ONWARD_STATE_DIR": str(tmp_path / "state")})


def vanished(sandbox: Sandbox, name: str = "digits") -> PlayedRun:
    """A run whose only job the scheduler has lost, longer ago than anybody could still be at it."""
    run = sandbox.play(name)
    sandbox.scheduler.forget(run.job(1))
    sandbox.clock.sleep(GRACE + 1)
    return run


def live(sandbox: Sandbox) -> list[str]:
    return [job.status.name.rsplit(".", 1)[0] for job in sandbox.scheduler.jobs.values() if job.status.state.live]


def test_a_look_queues_a_job_for_a_run_that_has_none_and_says_so(sandbox: Sandbox) -> None:
    vanished(sandbox)
    assert repair_after_look(sandbox.context) == ["digits (k00digit): queued leg 1 as job 2"]
    assert live(sandbox) == ["digits.1"]


def test_a_burst_of_looks_asks_the_scheduler_once(sandbox: Sandbox) -> None:
    vanished(sandbox)
    repair_after_look(sandbox.context)
    sandbox.scheduler.asked = 0
    for _ in range(20):
        assert repair_after_look(sandbox.context) == []
    assert sandbox.scheduler.asked == 0
    sandbox.clock.sleep(EVERY)
    repair_after_look(sandbox.context)
    assert sandbox.scheduler.asked > 0


class LooksAgain(CountingScheduler):
    """While it is asked, a second look comes, so late that the stamp alone would let it in."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(sandbox.clock)
        self.jobs = sandbox.scheduler.jobs
        self._place = sandbox
        self.second: list[str] | None = None

    def status(self, jobs: Collection[JobId]) -> Mapping[JobId, JobStatus]:
        if self.second is None:
            self.second = ["not over"]
            self._place.clock.sleep(10 * EVERY)
            self.second = repair_after_look(self._place.context)
        return super().status(jobs)


def test_two_that_look_at_once_do_not_repair_twice(sandbox: Sandbox) -> None:
    vanished(sandbox)
    sandbox.scheduler = scheduler = LooksAgain(sandbox)
    assert len(repair_after_look(sandbox.context)) == 1
    assert scheduler.second == []


def test_a_scheduler_that_is_down_does_not_spoil_a_look(sandbox: Sandbox) -> None:
    vanished(sandbox)
    sandbox.scheduler.down = True
    assert repair_after_look(sandbox.context) == []


class Hanging(CountingScheduler):
    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(sandbox.clock)
        self.answer = threading.Event()

    def _answer(self) -> None:
        self.answer.wait()
        super()._answer()


def test_a_scheduler_that_hangs_does_not_hold_a_look_up(sandbox: Sandbox) -> None:
    """The test ends only because the look does not wait for an answer that never comes."""
    vanished(sandbox)
    sandbox.scheduler = scheduler = Hanging(sandbox)
    assert repair_after_look(sandbox.context, patience=0.01) == []
    scheduler.down = True
    scheduler.answer.set()


def test_a_state_folder_that_cannot_be_made_does_not_spoil_a_look(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in its place")
    vanished(sandbox)
    assert repair_after_look(sandbox.context) == []


def test_a_look_does_not_speak_to_the_hosts_that_pipelines_upload_to(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sandbox.root / "2026-11-15_A_sweep"
    pipeline = PipelineDir(folder)
    pipeline.plan.parent.mkdir(parents=True)
    pipeline.plan.write_text("{}")
    pipeline.over.write_text("{}")
    assert pipeline.is_pipeline()
    spoken: list[PipelineDir] = []

    def tend_upload(context: OperationsContext, dir: PipelineDir) -> list[str]:
        spoken.append(dir)
        return []

    monkeypatch.setattr("onward.operations.pipelines.control.tend_upload", tend_upload)
    repair_after_look(sandbox.context)
    assert spoken == []
    tend(sandbox.context)
    assert spoken == [pipeline]


def test_inside_a_job_nothing_is_repaired(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, env={"ONWARD_STATE_DIR": str(tmp_path / "state"), "ONWARD_LEG": "1"})
    vanished(sandbox)
    assert repair_after_look(sandbox.context) == []
    assert live(sandbox) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_somebody_elses_run_is_not_repaired_by_a_look(sandbox: Sandbox) -> None:
    run = vanished(sandbox)
    os.chown(run.dir.path, 65534, 65534)
    assert repair_after_look(sandbox.context) == []


def test_a_screen_that_stays_open_goes_on_repairing_until_it_is_closed(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.operations.repair.after_look.EVERY", 0.001)
    closed = threading.Event()
    screen = threading.Thread(target=keep_repairing, args=(sandbox.context, closed))
    vanished(sandbox)
    screen.start()
    while live(sandbox) != ["digits.1"]:
        screen.join(0.01)
    closed.set()
    screen.join()


# ── waiting for a run ─────────────────────────────────────────────────────────


def test_who_follows_a_run_whose_job_vanished_queues_another(sandbox: Sandbox) -> None:
    run = vanished(sandbox)
    RunWatch(sandbox.context, run.dir).look()
    assert live(sandbox) == ["digits.1"]
    assert run.job(1) == "2"


def test_who_follows_a_run_leaves_what_happened_a_moment_ago_to_others(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False).publish(1, 5).end(1, LegEnd.TIME_LIMIT)
    RunWatch(sandbox.context, run.dir).look()
    assert live(sandbox) == []


def test_who_follows_a_run_with_a_vanished_job_does_not_press_the_scheduler(sandbox: Sandbox) -> None:
    run = sandbox.play()
    sandbox.scheduler.forget(run.job(1))
    watch = RunWatch(sandbox.context, run.dir)
    watch.look()
    sandbox.scheduler.asked = 0
    watch._asked -= 5.0  # as if five seconds had passed
    watch.look()
    assert sandbox.scheduler.asked == 0


def test_who_follows_a_run_is_not_disturbed_by_a_refusal(sandbox: Sandbox) -> None:
    run = vanished(sandbox)
    sandbox.scheduler.refuse = "no such partition"
    assert RunWatch(sandbox.context, run.dir).look().run.closed is None


class Forgetful(LocalScheduler):
    """This machine's own queue; it loses the first job that it accepts."""

    def __init__(self, state: Path) -> None:
        super().__init__(state)
        self.lost = JobId("")

    def submit(self, script: Path, *, name: str, after: JobId | None = None) -> JobId:
        if not self.lost:
            self.lost = JobId("77")
            return self.lost
        return super().submit(script, name=name, after=after)


def test_onward_run_goes_on_to_the_end_though_its_job_vanished(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ONWARD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr("onward.operations.runs.watch.GRACE", 0.0)
    scheduler = Forgetful(tmp_path / "state" / "queue")
    context = OperationsContext(env=sandbox.context.env, make_scheduler=lambda _: scheduler)
    dir = submit(context, sandbox.draft(), cwd=sandbox.project)
    assert read_run(dir).legs[1].job == scheduler.lost
    follow(LocalHost(context), str(dir.path))
    assert "finished in 1 leg" in capsys.readouterr().err
    assert (dir.logs / "leg-0001.out").read_text() == "trained\n"


# ── a run without a job says so ───────────────────────────────────────────────


def since(run: PlayedRun) -> float | None:
    answer: float | None = run_record(inspect_run(run.sandbox.context, run.dir), details=False)["no_job_since"]
    return answer


def test_a_run_whose_leg_ended_with_no_successor_says_since_when_it_has_no_job(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False).publish(1, 5)
    sandbox.clock.sleep(100)
    ended = run.now()
    run.end(1, LegEnd.TIME_LIMIT)
    sandbox.clock.sleep(500)
    assert since(run) == ended


def test_a_run_whose_job_vanished_says_when_it_last_had_one(sandbox: Sandbox) -> None:
    run = sandbox.play()
    queued = run.now()
    sandbox.clock.sleep(500)
    sandbox.scheduler.forget(run.job(1))
    assert since(run) == queued


def test_a_run_whose_job_was_cancelled_by_root_says_when(sandbox: Sandbox) -> None:
    run = sandbox.play()
    sandbox.clock.sleep(500)
    sandbox.scheduler.end(run.job(1), JobState.CANCELLED, exit_code=None, by="root")
    assert since(run) == run.now()


def test_a_run_that_has_a_job_is_over_or_has_a_silent_scheduler_is_not_said_to_have_none(sandbox: Sandbox) -> None:
    queued, running, done, unheard = (sandbox.play(name) for name in ("queued", "running", "done", "unheard"))
    running.begin(1)
    done.begin(1).end(1, LegEnd.DONE)
    assert [since(run) for run in (queued, running, done)] == [None, None, None]
    sandbox.scheduler.down = True
    assert since(unheard) is None


def test_show_has_a_line_for_it(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False).publish(1, 5).end(1, LegEnd.TIME_LIMIT)
    facts = dict(show_verb._facts(run_record(inspect_run(sandbox.context, run.dir))))
    assert "the run waits until one is queued" in facts["no job"]
    assert "no job is queued for it" in facts["why"]
