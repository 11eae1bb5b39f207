"""`onward cancel --all`: all of mine that is open, or what some words mean, after a question."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from onward.model.pipelines.plan import PipelinePlan, Stage, StageKind
from onward.model.run import LegEnd, RunState
from onward.model.spec import RunDraft
from onward.operations.pipelines.start import start_pipeline
from onward.operations.runs.cancel_many import cancel_many, open_runs
from onward.rundir.journal import Journal
from tests.sandbox import Sandbox
from tests.unit.test_cli import Onward
from tests.unit.test_cli import onward as onward
from tests.unit.test_cli import sandbox as sandbox


def named(sandbox: Sandbox, words: str = "") -> list[str]:
    return [run.name for run in open_runs(sandbox.context, words=words)[0]]


def pipeline(sandbox: Sandbox) -> Path:
    draft = RunDraft(name="digits", experiment="digits", cluster="local", command=("true",))
    stages = tuple(Stage(name=name, kind=StageKind.STAGE, draft=draft) for name in ("first", "second"))
    plan = PipelinePlan(name="piped", experiment="digits", cluster="local", stages=stages)
    return start_pipeline(sandbox.context, plan, source="stages: {}", cwd=sandbox.project).path


# ── what is meant ─────────────────────────────────────────────────────────────


def test_what_is_over_or_somebody_elses_or_a_copy_is_not_meant(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.play("mine").begin(1)
    sandbox.play("done").begin(1).end(1, LegEnd.DONE)
    assert named(sandbox) == ["mine"]
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    assert named(sandbox) == []


def test_all_of_the_words_must_be_in_the_line_of_a_run(sandbox: Sandbox) -> None:
    sandbox.play("lr-1", experiment="sweep").begin(1)
    sandbox.play("lr-2", experiment="sweep")
    sandbox.play("other").begin(1)
    assert named(sandbox, "sweep") == ["lr-1", "lr-2"]
    assert named(sandbox, "SWEEP running") == ["lr-1"]
    assert named(sandbox, "sweep elsewhere") == []


def test_a_run_that_cannot_be_read_is_told_and_keeps_none_from_being_meant(sandbox: Sandbox) -> None:
    sandbox.play("broken").dir.spec.write_text("{")
    sandbox.play("whole")
    found, broken = open_runs(sandbox.context, words="")
    assert [run.name for run in found] == ["whole"]
    assert len(broken) == 1 and "cannot be read as a run" in broken[0]


# ── ending them ───────────────────────────────────────────────────────────────


def test_a_pipeline_is_ended_as_a_whole_and_first_so_that_it_queues_nothing_more(sandbox: Sandbox) -> None:
    folder = pipeline(sandbox)
    found, _ = open_runs(sandbox.context, words="")
    assert (found[0].id, found[0].folder) == ("pipeline", str(folder))
    entries = list(cancel_many(sandbox.context, [run.folder for run in found], silent=set()))
    assert {run.error for run in entries} == {""}
    assert named(sandbox) == []


def test_a_scheduler_that_is_silent_is_asked_once_and_no_leg_of_the_others_begins(sandbox: Sandbox) -> None:
    runs = [sandbox.play(name).begin(1) for name in ("a", "b", "c")]
    sandbox.scheduler.down = True
    sandbox.scheduler.asked = 0
    silent: set[str] = set()
    entries = list(cancel_many(sandbox.context, [str(run.dir.path) for run in runs], silent=silent))
    once = sandbox.scheduler.asked
    assert [run.exit_code for run in entries] == [6, 6, 6] and silent == {"local"}
    assert all(run.run.cancel for run in runs)
    list(cancel_many(sandbox.context, [str(runs[0].dir.path)], silent=silent))
    assert sandbox.scheduler.asked == once


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From here on nothing can be written to the disk of the runs."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill() -> None:
        monkeypatch.setattr(Journal, "_append", refuse)
        monkeypatch.setattr("onward.rundir.run_end.write_whole", refuse)
        monkeypatch.setattr("onward.operations.pipelines.control.write_whole", refuse)

    return fill


def test_on_a_full_disk_the_jobs_of_all_are_ended_and_each_says_that_it_is_not_marked(
    onward: Onward, sandbox: Sandbox, full_disk: Callable[[], None]
) -> None:
    folder = pipeline(sandbox)
    runs = [sandbox.play(name).begin(1) for name in ("a", "b")]
    full_disk()
    said = onward("cancel", "--all", "--yes", "--json")
    assert said.code == 1
    body = {run["name"]: run for run in said.json["runs"]}
    for run in runs:
        assert f"the jobs of {run.spec.name} are cancelled, but the disk of {sandbox.root} is full" in body[run.spec.name]["error"]
        assert body[run.spec.name]["hint"] == f"free some space, then run onward cancel {run.spec.id} again"
    assert "is full, so the run is not marked as cancelled" in body[folder.name]["error"]
    assert body[folder.name]["hint"].endswith(f"then run onward pipeline cancel {folder.name} again")
    assert not [job for job in sandbox.scheduler.jobs.values() if job.status.state.live]


def test_on_a_full_disk_a_cluster_that_is_silent_keeps_none_of_the_others_from_being_told(
    sandbox: Sandbox, full_disk: Callable[[], None]
) -> None:
    runs = [sandbox.play(name).begin(1) for name in ("a", "b")]
    sandbox.scheduler.down = True
    full_disk()
    entries = list(cancel_many(sandbox.context, [str(run.dir.path) for run in runs], silent=set()))
    assert entries[0].error.startswith("a is not cancelled: its jobs could not be ended")
    assert entries[1].error == f"the disk of {sandbox.root} is full, so b is not cancelled"


def test_a_run_whose_folder_cannot_be_written_keeps_none_of_the_others_from_being_ended(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [sandbox.play(name).begin(1) for name in ("a", "b")]
    append = Journal._append

    def refuse(journal: Journal) -> None:
        if runs[0].dir.path in journal._path.parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        append(journal)

    monkeypatch.setattr(Journal, "_append", refuse)
    entries = list(cancel_many(sandbox.context, [str(run.dir.path) for run in runs], silent=set()))
    assert [(bool(one.error), one.exit_code) for one in entries] == [(True, 1), (False, 0)]
    assert runs[1].run.state is RunState.CANCELLED


# ── the command ───────────────────────────────────────────────────────────────


def test_it_lists_what_it_will_end_and_without_a_terminal_wants_to_be_told(onward: Onward, sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    said = onward("cancel", "--all")
    assert said.code == 2 and run.spec.id in said.out and "--yes goes without asking" in said.err
    assert not run.run.closed
    said = onward("cancel", "--all", "--yes")
    assert said.code == 0 and "digits is cancelled" in said.err
    assert run.run.state is RunState.CANCELLED


@pytest.mark.parametrize(("answer", "state"), [(True, RunState.CANCELLED), (False, RunState.RUNNING)])
def test_at_a_terminal_it_asks(
    onward: Onward,
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    answer: bool,
    state: RunState,
) -> None:
    run = sandbox.play().begin(1)
    asked: list[str] = []

    def confirm(text: str, **_: bool) -> bool:
        asked.append(text)
        return answer

    monkeypatch.setattr("onward.cli.runs.cancel_all._at_a_terminal", lambda: True)
    monkeypatch.setattr("typer.confirm", confirm)
    said = onward("cancel", "--all", "digits")
    assert asked == ["cancel this one, without a last checkpoint?"]
    assert run.run.state is state and said.code == (0 if answer else 1)


def test_where_nothing_is_meant_nothing_is_asked(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.play()
    said = onward("cancel", "--all", "nobody")
    assert (said.code, said.out) == (0, "") and "nothing of yours that is open has 'nobody'" in said.err


def test_words_that_are_empty_do_not_mean_everything(onward: Onward, sandbox: Sandbox) -> None:
    run = sandbox.play()
    said = onward("cancel", "--all", "", "--yes")
    assert said.code == 2 and "leave them out" in said.err and run.run.state is RunState.SUBMITTED


def test_one_that_cannot_be_ended_is_told_and_in_json_too(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.play().begin(1)
    sandbox.scheduler.down = True
    said = onward("cancel", "--all", "--yes", "--json")
    [run] = said.json["runs"]
    assert said.code == run["exit_code"] == 6 and "could not be ended" in run["error"]
