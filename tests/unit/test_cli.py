"""The command line: what every verb prints, says and exits with. The fake scheduler stands in for the local one."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from onward.checkpoints.manifest import OWN, FileEntry, Manifest
from onward.cli import verbs
from onward.cli.main import app, main
from onward.model import events as ev
from onward.model.job import JobState
from onward.model.run import LegEnd, RunState
from onward.model.spec import CheckpointRule
from onward.rundir.journal import Journal, read_run
from onward.rundir.layout import RunDir
from tests.sandbox import NOON, PlayedRun, Sandbox, strict_json

VERBS = [
    "submit",
    "run",
    "runs",
    "show",
    "logs",
    "cancel",
    "stop",
    "resume",
    "adopt",
    "clone",
    "checkpoints",
    "fetch",
    "cluster",
    "clusters",
    "doctor",
    "tend",
    "clean",
    "top",
    "help",
    "schema",
    "up",
    "backup",
    "report",
    "request",
    "sync",
]
OF_A_RUN = ["show", "logs", "cancel", "stop", "resume", "adopt", "clone", "checkpoints"]


@dataclass(frozen=True, kw_only=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return strict_json(self.out)


Onward = Callable[..., Said]


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    sandbox = Sandbox(tmp_path)
    (tmp_path / "onward").mkdir()
    (tmp_path / "onward" / "settings.toml").write_text('cluster = "local"\n')  # a real Slurm of this machine is not for tests
    for name in [name for name in os.environ if name.startswith("ONWARD_")]:
        monkeypatch.delenv(name)
    for name, value in {**sandbox.context.env, "ONWARD_SETTINGS": "", "XDG_CONFIG_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("onward.schedulers.local.scheduler.LocalScheduler", lambda **slots: sandbox.scheduler)
    monkeypatch.chdir(sandbox.project)
    return sandbox


@pytest.fixture
def onward(sandbox: Sandbox, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Onward]:
    """Run a command in this process. Nothing it says may ever be a traceback."""

    def run(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["onward", *arguments])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1 if error.code else 0
        out, err = capsys.readouterr()
        assert "Traceback (most recent call last)" not in err
        return Said(code=code, out=out, err=err)

    yield run


# ── usage ─────────────────────────────────────────────────────────────────────


def test_these_are_the_verbs() -> None:
    if not app.registered_commands:
        verbs.register(app)
    assert [command.name for command in app.registered_commands] == VERBS


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_verb_has_help(onward: Onward, verb: str, flag: str) -> None:
    said = onward(verb, flag)
    assert said.code == 0
    assert f"Usage: onward {verb}" in said.out


def test_the_help_of_all_names_every_verb_with_a_whole_sentence(onward: Onward) -> None:
    said = onward("--help")
    assert said.code == 0
    for verb in VERBS:
        [line] = [line for line in said.out.splitlines() if line.startswith(f"  {verb} ")]
        assert line.endswith(".")
        assert "..." not in line


def test_run_takes_what_submit_takes(onward: Onward) -> None:
    def flags(verb: str) -> set[str]:
        return {word for word in onward(verb, "-h").out.replace(",", " ").split() if word.startswith("--")}

    assert flags("submit") - flags("run") == {"--json"}
    assert flags("run") <= flags("submit")


def test_the_version_is_told(onward: Onward) -> None:
    assert onward("--version").out.startswith("onward ")


def test_without_a_verb_there_is_help(onward: Onward) -> None:
    said = onward()
    assert said.code == 2
    assert "Commands:" in said.out + said.err


@pytest.mark.parametrize("arguments", [("destroy",), ("runz",), ("--what",)])
def test_an_unknown_verb_or_flag_is_answered_with_a_helpful_line(onward: Onward, arguments: tuple[str, ...]) -> None:
    said = onward(*arguments)
    assert said.code == 2
    assert "No such" in said.err
    assert arguments[0] in said.err
    assert "Try 'onward -h' for help" in said.err


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_flag_of_a_verb_is_a_usage_error(onward: Onward, verb: str) -> None:
    said = onward(verb, "--no-such-flag")
    assert said.code == 2
    assert "No such option: --no-such-flag" in said.err
    assert said.out == ""


@pytest.mark.parametrize("verb", OF_A_RUN)
def test_a_verb_that_wants_a_run_says_so(onward: Onward, verb: str) -> None:
    said = onward(verb)
    assert said.code == 2
    assert "Missing argument 'RUN'" in said.err
    assert "`onward runs` lists the runs" in said.err


@pytest.mark.parametrize("verb", OF_A_RUN)
def test_a_run_that_is_not_there_is_not_found(onward: Onward, verb: str) -> None:
    said = onward(verb, "nothing")
    assert said.code == 3
    assert "onward: there is no run 'nothing'" in said.err
    assert "  → " in said.err
    assert said.out == ""


@pytest.mark.parametrize("verb", OF_A_RUN)
def test_a_name_that_two_have_is_a_conflict(onward: Onward, sandbox: Sandbox, verb: str) -> None:
    sandbox.play()
    sandbox.play()
    said = onward(verb, "digits")
    assert said.code == 5
    assert "k00digit" in said.err
    assert "k01digit" in said.err


@pytest.mark.parametrize("verb", OF_A_RUN)
def test_an_unset_variable_in_a_script_is_no_run(onward: Onward, sandbox: Sandbox, verb: str) -> None:
    run = sandbox.play()
    assert onward(verb, "").code == 2
    assert run.run.state is RunState.SUBMITTED


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("submit",), "nothing to run"),
        (("submit", "params.yaml"), "no such file"),
        (("submit", "--time", "soon", "--", "python3", "train.py"), "--time"),
        (("submit", "--mem", "much", "--", "python3", "train.py"), "--mem"),
        (("submit", "--name", "a b", "--", "python3", "train.py"), "--name"),
        (("submit", "--name", "../x", "--", "python3", "train.py"), "--name"),
        (("submit", "--gpus", "-1", "--", "python3", "train.py"), "--gpus"),
        (("submit", "--max-legs", "0", "--", "python3", "train.py"), "--max-legs"),
        (("submit", "--param", "x", "--", "python3", "train.py"), "--param"),
        (("submit", "--", "python3", "trian.py"), "did you mean train.py?"),
        (("submit", "--", "python3", "broken.py"), "broken.py:1"),
        (("submit", "--", "no-such-program"), "not on the PATH"),
        (("submit", "--", ""), "found no program"),
        (("submit", "--", "python3", "train.py", "{params.lr}"), "{params.lr}"),
        (("runs", "--state", "happy"), "submitted, running, waiting"),
        (("logs", "digits", "--leg", "0"), "--leg"),
        (("logs", "digits", "-n", "many"), "--lines"),
        (("resume", "digits", "--mem", "much"), "--mem"),
    ],
)
def test_bad_input_is_a_usage_error_that_names_it_and_makes_nothing(
    onward: Onward, sandbox: Sandbox, arguments: tuple[str, ...], message: str
) -> None:
    sandbox.write("broken.py", "def (:\n")
    sandbox.play()
    said = onward(*arguments)
    assert said.code == 2, said
    assert message in said.err
    assert said.out == ""
    assert len(sandbox.folders()) == 1


# ── submit ────────────────────────────────────────────────────────────────────


def test_submit_prints_the_id_alone_and_talks_beside_it(onward: Onward, sandbox: Sandbox) -> None:
    said = onward("submit", "--cluster", "local", "--", "python3", "train.py")
    assert said.code == 0
    [folder] = sandbox.folders()
    run = read_run(RunDir(sandbox.root / folder))
    assert said.out == f"{run.spec.id}\n"
    assert "train: leg 1 is job 1 on local" in said.err
    assert f"onward logs -f {run.spec.id}" in said.err


@pytest.mark.parametrize(("time", "legs"), [("24", "24 min"), ("24:00:00", "24 h"), ("0:30", "30 s")])
def test_submit_says_how_it_read_the_time_limit(onward: Onward, sandbox: Sandbox, time: str, legs: str) -> None:
    said = onward("submit", "--cluster", "local", "--time", time, "--", "python3", "train.py")
    assert f"train: leg 1 is job 1 on local, in legs of {legs}; folder" in said.err


def test_submit_in_json_has_what_a_script_needs(onward: Onward, sandbox: Sandbox) -> None:
    body = onward("submit", "--json", "--cluster", "local", "--name", "a", "--", "python3", "train.py").json
    assert body.keys() == {"schema", "id", "name", "folder", "cluster", "job", "host"}
    assert (body["schema"], body["name"], body["cluster"], body["job"]) == (1, "a", "local", "1")
    assert Path(body["folder"]).is_dir()


@pytest.mark.parametrize("dashes", [["--"], []])
def test_from_its_first_word_on_the_command_is_its_own_also_without_dashes(onward: Onward, sandbox: Sandbox, dashes: list[str]) -> None:
    command = ["python3", "train.py", "--name", "mine", "--no-such-flag", "-n", "3", "conf.yaml", "--json"]
    body = onward("submit", "--cluster", "local", "--json", "--name", "ours", *dashes, *command).json
    spec = read_run(RunDir(Path(body["folder"]))).spec
    assert list(spec.command) == command
    assert spec.name == "ours"


def test_a_params_file_may_be_followed_by_flags_that_override_it(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.write("params.yaml", "name: file\ntrain:\n  command: python3 train.py\n  resources: {time: 10}\n")
    body = onward("submit", "params.yaml", "--cluster", "local", "--time", "20", "--json").json
    spec = read_run(RunDir(Path(body["folder"]))).spec
    assert (spec.name, spec.resources.time) == ("file", 1200)


def test_after_a_params_file_stands_nothing_else(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.write("params.yaml", "name: file\ntrain: {command: python3 train.py}\n")
    said = onward("submit", "params.yaml", "more")
    assert said.code == 2
    assert "'more'" in said.err


def test_a_wrong_key_is_answered_with_file_line_and_guess(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.write("params.yaml", "name: file\ntrain:\n  command: python3 train.py\n  resources: {tiem: 10}\n")
    said = onward("submit", "params.yaml")
    assert said.code == 2
    assert "params.yaml:4" in said.err
    assert "did you mean time?" in said.err


def test_a_dry_run_prints_the_script_that_submit_then_writes_and_makes_nothing(onward: Onward, sandbox: Sandbox) -> None:
    line = ["--cluster", "local", "--time", "5", "--", "python3", "train.py"]
    shown = onward("submit", "--dry-run", *line)
    assert shown.code == 0
    assert sandbox.folders() == []
    assert sandbox.scheduler.jobs == {}
    body = onward("submit", "--json", *line).json
    assert Path(body["folder"], "params", "leg-0001.sh").read_text() == shown.out
    assert body["folder"] in shown.err


def test_a_dry_run_in_json(onward: Onward, sandbox: Sandbox) -> None:
    body = onward("submit", "--dry-run", "--json", "--cluster", "local", "--", "python3", "train.py").json
    assert body.keys() == {"schema", "folder", "command", "script", "notes"}
    assert body["script"].startswith("#!/bin/bash\n")
    assert sandbox.folders() == []


def test_a_cluster_that_is_not_there_is_not_found(onward: Onward) -> None:
    said = onward("submit", "--cluster", "lokal", "--", "python3", "train.py")
    assert said.code == 3
    assert "did you mean local?" in said.err


def test_a_refusal_is_told_with_the_schedulers_words(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.scheduler.refuse = "no such partition"
    said = onward("submit", "--cluster", "local", "--", "python3", "train.py")
    assert said.code == 1
    assert "no such partition" in said.err
    assert sandbox.folders() == []


def test_a_root_that_cannot_be_written_to_is_told(onward: Onward, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONWARD_ROOT", "/dev/null/runs")
    said = onward("submit", "--cluster", "local", "--", "python3", "train.py")
    assert said.code == 2
    assert "cannot store runs in /dev/null/runs" in said.err


def test_a_folder_that_was_removed_under_ones_feet_is_told(onward: Onward, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = sandbox.folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    said = onward("submit", "--cluster", "local", "--", "sleep", "1")
    assert said.code == 2
    assert "no longer exists" in said.err


# ── looking ───────────────────────────────────────────────────────────────────


def test_where_there_are_no_runs_that_is_said_with_the_place(onward: Onward, sandbox: Sandbox) -> None:
    said = onward("runs")
    assert (said.code, said.out) == (0, "")
    assert f"no runs under {sandbox.root}" in said.err
    assert onward("runs", "--json").json == {"schema": 1, "runs": [], "roots": [str(sandbox.root)], "unanswered": []}


def test_runs_are_listed_newest_last_in_plain_words(onward: Onward, sandbox: Sandbox) -> None:
    run = sandbox.play("first").begin(1)
    run.log(1, {"kind": "init", "total": 60, "t": 1.0}, {"s": 29, "t": 2.0, "m": {}})
    sandbox.play("second")
    said = onward("runs")
    header, one, two = said.out.splitlines()
    assert header.split() == ["ID", "NAME", "STATE", "LEGS", "PROGRESS", "MADE", "WHY"]
    assert one.split()[:7] == ["k00first", "first", "running", "1", "29/60", "50", "%"]
    assert one.endswith("leg 1 runs on node1")
    assert two.endswith("leg 1 is queued")


def test_runs_of_one_state_can_be_asked_for(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.play("one").begin(1)
    sandbox.play("two")
    assert [entry["name"] for entry in onward("runs", "--json", "--state", "running").json["runs"]] == ["one"]
    assert "no run under" in onward("runs", "--state", "failed").err


def test_of_many_runs_the_newest_thirty_are_shown_unless_all_are_wanted(onward: Onward, sandbox: Sandbox) -> None:
    for number in range(32):
        sandbox.play(f"r{number}")
    said = onward("runs")
    assert len(said.out.splitlines()) == 31
    assert "and 2 older" in said.err
    assert len(onward("runs", "--all").out.splitlines()) == 33
    assert len(onward("runs", "--json").json["runs"]) == 32


def test_a_broken_folder_does_not_hide_the_other_runs(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.play("broken").dir.spec.write_text("{")
    sandbox.play("good")
    said = onward("runs")
    assert said.code == 0
    assert "good" in said.out
    assert "_A_broken cannot be read" in said.err
    shown = onward("show", "2026-11-15_A_broken")
    assert shown.code == 1
    assert "cannot be read as a run" in shown.err and "put a good copy of" in shown.err


@pytest.mark.parametrize("named", ["folder", "name", "id", "path"])
@pytest.mark.parametrize("damaged", ["", "{", '{"id": 7}', "\0\0\0", "[]"])
def test_a_run_whose_spec_is_damaged_can_be_cancelled_whatever_it_is_called_by(
    onward: Onward, sandbox: Sandbox, damaged: str, named: str
) -> None:
    run = sandbox.play("broken").begin(1)
    other = sandbox.play("good").begin(1)
    jobs = {run.job(1), run.job(2)}
    called = {"folder": run.dir.path.name, "name": "broken", "id": run.spec.id, "path": str(run.dir.path)}[named]
    run.dir.spec.write_text(damaged)
    shown = onward("show", called)
    assert shown.code == 1 and f"onward cancel {run.dir.path}" in shown.err
    said = onward("cancel", called)
    assert said.code == 0, said.err
    assert "its spec cannot be read; ended job" in said.err and "put a good copy of" in said.err
    assert "onward cancel" not in said.err and f"then onward resume {run.dir.path}" in said.err, "what was done is not asked for again"
    live = {job for job, fake in sandbox.scheduler.jobs.items() if fake.status.state.live}
    assert live == {other.job(1), other.job(2)} and not jobs & live, "and nobody else's"
    assert run.dir.done.exists()


def test_a_run_whose_spec_is_damaged_is_not_called_cancelled_while_its_scheduler_is_silent(onward: Onward, sandbox: Sandbox) -> None:
    run = sandbox.play("broken").begin(1)
    run.dir.spec.write_text("{")
    sandbox.scheduler.down = True
    said = onward("cancel", run.dir.path.name)
    assert said.code == 6 and "not all schedulers answered" in said.err and f"onward cancel {run.dir.path} again" in said.err
    assert not run.dir.done.exists()


def test_show_tells_state_cause_evidence_and_what_to_do(onward: Onward, sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False)
    run.save(1, 9)
    run.write(
        ev.Ended(leg=1, at=run.now(), end="crashed", reason="the training failed (exit code 1)", evidence="Traceback\n  ValueError: x")
    )
    run.write(ev.Closed(leg=1, at=run.now(), state="failed", cause="it crashed", evidence="first\n  second\x1b[2J", next="mend it"))
    said = onward("show", "digits")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0] == "digits  k00digit  failed"
    assert "  why         it crashed" in lines
    assert lines[lines.index("  evidence    first") + 1] == "                second"
    assert "  next        mend it" in lines
    assert any(line.startswith("  saved       1 checkpoint, the newest at step 9 (leg 1)") for line in lines)
    assert lines[-1].split()[:4] == ["1", "1", "failed", "crashed"]


def test_show_in_json_is_one_object_with_a_schema(onward: Onward, sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    run.log(1, {"s": 1, "t": 1.0, "m": {"loss": float("nan"), "grad": float("inf"), "lr": 0.1}})
    body = onward("show", "digits", "--json").json
    assert body["schema"] == 1
    assert body["progress"]["metrics"] == {"loss": None, "grad": None, "lr": 0.1}
    assert "nan" in onward("show", "digits").out


def test_checkpoints_are_listed_and_a_damaged_one_is_exit_code_1(onward: Onward, sandbox: Sandbox) -> None:
    run = sandbox.play()
    assert "no checkpoint yet" in onward("checkpoints", "digits").err
    folder = run.save(1, 9)
    said = onward("checkpoints", "digits")
    assert said.code == 0
    assert said.out.splitlines()[1].split()[:5] == ["9", "1", "63", "B", "published"]
    assert "verified" in onward("checkpoints", "digits", "--verify").out
    (folder / "w.bin").write_bytes(b"x" * 63)
    said = onward("checkpoints", "digits", "--verify")
    assert said.code == 1
    assert "does not match its hash" in said.out
    assert onward("checkpoints", "digits", "--verify", "--json").json["checkpoints"][0]["state"] == "damaged"


def test_checkpoints_lists_the_trainings_own_files_and_whether_they_are_published(onward: Onward, sandbox: Sandbox) -> None:
    dir = sandbox.submit(checkpoints=CheckpointRule(paths=("*.pt",)))
    assert "no checkpoint yet" in onward("checkpoints", "digits").err
    for number, name in enumerate(("carried.pt", "newer.pt", "new.pt", "seen.bin")):
        (dir.code / name).write_bytes(b"x" * (number + 1))
        os.utime(dir.code / name, (NOON + number, NOON + number))
    journal = Journal(dir.leg_journal(1))
    journal.write(ev.SelfSaved(leg=1, at=sandbox.clock.now(), files=["seen.bin", "gone.bin"], bytes=4, written=NOON))
    journal.close()
    written = {"carried.pt": int(NOON * 1e9), "newer.pt": 1}
    files = {name: FileEntry(size=number + 1, hash="", written=at) for number, (name, at) in enumerate(written.items())}
    manifest = Manifest(leg=1, step=7, created=NOON, files=files, made_by=OWN)
    folder = dir.checkpoints / str(manifest.name)
    folder.mkdir()
    (folder / "manifest.json").write_text(manifest.to_json())
    body = onward("checkpoints", "digits", "--json").json["own_files"]
    assert [(one["path"], one["bytes"], one["published"], one["step"]) for one in body] == [
        ("seen.bin", 4, "no", None),
        ("new.pt", 3, "no", None),
        ("newer.pt", 2, "older", 7),
        ("carried.pt", 1, "yes", 7),
    ]
    lines = onward("checkpoints", "digits").out.splitlines()
    assert lines[-1].split()[0] == "carried.pt" and lines[-1].endswith("with step 7")
    assert lines[-2].endswith("an older version, with step 7") and lines[-3].endswith("no")


def test_clusters_tells_which_answer(onward: Onward, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(sandbox.folder))
    body = onward("clusters", "--json").json
    assert body["schema"] == 1
    local, slurm, gridengine = body["clusters"]
    assert (local["name"], local["auto"], local["answers"], local["about"]) == ("local", True, True, "fake scheduler: 0 jobs")
    assert (slurm["name"], slurm["answers"]) == ("slurm", False)
    assert (gridengine["name"], gridengine["answers"]) == ("gridengine", False)
    assert "yes" in onward("clusters").out
    sandbox.scheduler.down = True
    assert onward("clusters", "--json").json["clusters"][0]["answers"] is False


def test_a_cluster_is_shown_with_its_nodes_jobs_and_what_could_start(onward: Onward, sandbox: Sandbox) -> None:
    first = sandbox.scheduler.submit(sandbox.root, name="first")
    sandbox.scheduler.submit(sandbox.root, name="second", after=first)
    sandbox.scheduler.start(first)
    body = onward("cluster", "local", "--json").json
    assert (body["schema"], body["name"], body["scheduler"], body["host"]) == (1, "local", "local", None)
    assert [(job["name"], job["state"]) for job in body["jobs"]] == [("first", "running"), ("second", "held")]
    shown = onward("cluster", "local").out
    assert "waits for job 1" in shown
    assert "all  1 node: 15 CPUs, 64 GiB, for at most 24 h" in shown
    assert onward("cluster", "nowhere").code == 3
    assert onward("cluster", "--jobs", "theirs").code == 2
    sandbox.scheduler.down = True
    said = onward("cluster", "local")
    assert (said.code, said.out) == (6, "")
    assert "the fake scheduler is down" in said.err


def test_doctor_finds_what_is_bad(onward: Onward, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(sandbox.folder))
    said = onward("doctor")
    assert said.code == 0
    assert "BAD" not in said.out
    sandbox.scheduler.down = True
    monkeypatch.setenv("ONWARD_ROOT", "/dev/null/runs")
    said = onward("doctor")
    assert said.code == 1
    bad = [line.split()[1] for line in said.out.splitlines() if line.startswith("BAD")]
    assert bad == ["root", "local"]
    assert [one["what"] for one in onward("doctor", "--json").json["findings"] if not one["fine"]] == ["root", "local"]


def without_a_job(sandbox: Sandbox) -> PlayedRun:
    """Since long ago: on the real clock, by which the command line goes."""
    run = sandbox.play()
    sandbox.scheduler.forget(run.job(1))
    return run


def live_jobs(sandbox: Sandbox) -> list[str]:
    return [job.status.name.rsplit(".", 1)[0] for job in sandbox.scheduler.jobs.values() if job.status.state.live]


def test_doctor_names_the_runs_without_a_job(onward: Onward, sandbox: Sandbox) -> None:
    run = without_a_job(sandbox)
    said = onward("doctor")
    assert said.code == 1
    assert f"no job is queued for 1 of 1 open runs: digits ({run.spec.id})" in said.out
    [line] = [line for line in onward("doctor").out.splitlines() if line.split()[1] == "runs"]
    assert line.split(maxsplit=2) == ["ok", "runs", "1 open, none without a job"], "the first look repaired it"


@pytest.mark.parametrize("verb", [("show", "digits"), ("show", "digits", "--json"), ("runs",), ("runs", "--json"), ("logs", "digits")])
def test_a_look_at_a_run_whose_job_vanished_queues_another(onward: Onward, sandbox: Sandbox, verb: tuple[str, ...]) -> None:
    without_a_job(sandbox)
    said = onward(*verb)
    assert said.code == 0
    assert "repaired: digits" in said.err and "queued leg 1 as job 2" in said.err
    assert "repaired" not in said.out
    assert live_jobs(sandbox) == ["digits.1"]


def test_a_repair_that_fails_is_not_heard_of_in_a_look(onward: Onward, sandbox: Sandbox) -> None:
    without_a_job(sandbox)
    sandbox.scheduler.refuse = "no such partition"
    said = onward("show", "digits")
    assert (said.code, said.err) == (0, "")


def test_submit_says_once_how_to_have_runs_watched(onward: Onward, sandbox: Sandbox) -> None:
    first, second = (onward("submit", "--", "python3", "train.py") for _ in range(2))
    assert "onward tend --install" in first.err and "onward up" in first.err
    assert "onward tend --install" not in second.err
    assert onward("submit", "--json", "--", "python3", "train.py").code == 0


def test_tend_installs_or_uninstalls_and_not_both(onward: Onward, sandbox: Sandbox) -> None:
    for flags in (("--install", "--uninstall"), ("--cron",)):
        said = onward("tend", *flags)
        assert (said.code, "either --install or --uninstall" in said.err) == (2, True)


def test_doctor_names_folders_that_cannot_be_read_and_why(onward: Onward, sandbox: Sandbox) -> None:
    good, broken = sandbox.submit(), sandbox.submit()
    broken.spec.write_text("{")
    copy = good.path.with_name(f"{good.path.name}-copy")
    shutil.copytree(good.path, copy)
    said = onward("doctor").out
    assert re.search(rf"BAD  folder .*{broken.path} cannot be read as a run: .*spec.json is not a valid spec", said)
    assert re.search(rf"BAD  folder .*{copy} is a copy of {good.path}, the home of run \w+;", said)


def test_a_line_of_a_journal_that_is_no_event_is_named_by_show_and_doctor_alone(onward: Onward, sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    with run.dir.leg_journal(1).open("ab") as journal:
        journal.write(b"nonsense\n")
    assert "nonsense" not in onward("runs").err + onward("logs", "digits").err + onward("checkpoints", "digits").err
    said = onward("show", "digits")
    assert "not an event, and ignored: leg-0001.jsonl, line 3: 'nonsense'" in said.out and "nonsense" not in said.err
    assert "lines that are not events, and are ignored: leg-0001.jsonl, line 3: 'nonsense'" in onward("doctor").out


def test_doctor_passes_over_folders_that_others_keep_private(onward: Onward, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    private = sandbox.submit()

    def refused(run: RunDir) -> None:
        raise PermissionError(13, "Permission denied", str(run.spec))

    monkeypatch.setattr("onward.operations.runs.record.read_run", refused)
    assert str(private.path) not in onward("doctor").out


def test_doctor_only_notes_a_scheduler_that_nobody_uses(onward: Onward, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    (sandbox.folder / "qconf").write_text("#!/bin/sh\nexit 1\n")
    (sandbox.folder / "qconf").chmod(0o755)
    monkeypatch.setenv("PATH", str(sandbox.folder))
    said = onward("doctor")
    noted = [line.split(maxsplit=2)[:2] for line in said.out.splitlines() if not line.startswith("ok")]
    assert (said.code, noted) == (0, [["note", "gridengine"]])
    assert "not used: " in said.out


def test_the_schema_is_json(onward: Onward) -> None:
    assert onward("schema").json["$schema"].startswith("https://json-schema.org/")


# ── control ───────────────────────────────────────────────────────────────────


def test_cancel_says_how_to_go_on_and_may_be_repeated(onward: Onward, sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    for _ in range(2):
        said = onward("cancel", "digits")
        assert (said.code, said.out) == (0, "")
        assert "digits is cancelled: cancelled by" in said.err
        assert f"onward resume {run.spec.id}" in said.err
    assert onward("cancel", "digits", "--json").json["state"] == "cancelled"


def test_stop_says_that_the_training_is_asked(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.play().begin(1)
    said = onward("stop", "digits")
    assert said.code == 0
    assert "asked to save and stop" in said.err
    assert onward("stop", "digits", "--json").json["state"] == "running"


def test_resume_says_which_job(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.play()
    onward("cancel", "digits")
    said = onward("resume", "digits", "--mem", "2G", "--max-legs", "3")
    assert said.code == 0
    assert "leg 2 is job 2" in said.err
    assert "does not need to be resumed" in onward("resume", "digits").err
    assert onward("resume", "digits").code == 5


@pytest.mark.parametrize("verb", ["cancel", "stop", "resume"])
def test_a_finished_run_is_a_conflict(onward: Onward, sandbox: Sandbox, verb: str) -> None:
    sandbox.play().begin(1).end(1, LegEnd.DONE)
    assert onward(verb, "digits").code == 5


def test_cancel_without_a_scheduler_is_exit_code_6_and_says_what_holds(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.play().begin(1)
    sandbox.scheduler.down = True
    said = onward("cancel", "digits")
    assert said.code == 6
    assert "digits will not continue" in said.err


def test_tend_says_what_it_did_and_nothing_where_there_is_nothing_to_do(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.clock.sleep(-1e9)  # the command has the real clock, for which all this is long ago
    run = sandbox.play()
    said = onward("tend")
    assert (said.code, said.out, said.err) == (0, "", "")
    sandbox.scheduler.forget(run.job(1))
    said = onward("tend")
    assert said.code == 0
    assert said.out == "digits (k00digit): queued leg 1 as job 2\n"


def test_tend_without_a_scheduler_is_exit_code_6(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.play()
    sandbox.scheduler.down = True
    said = onward("tend")
    assert said.code == 6
    assert "nothing was done" in said.err
    assert onward("tend", "--json").json["problems"]


def test_tend_with_a_broken_folder_is_exit_code_1(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.play().dir.spec.write_text("{")
    assert onward("tend").code == 1


# ── logs ──────────────────────────────────────────────────────────────────────


def printed(run: PlayedRun, leg: int, stream: str, text: str | bytes) -> None:
    run.dir.log(leg, stream).write_bytes(text if isinstance(text, bytes) else text.encode())


def test_before_the_job_has_started_there_is_nothing_and_that_is_said(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.play()
    said = onward("logs", "digits")
    assert (said.code, said.out) == (0, "")
    assert "has printed nothing yet; -f waits for it" in said.err


@pytest.mark.parametrize("follow", [(), ("-f",)])
def test_a_leg_that_there_is_not_is_refused(onward: Onward, sandbox: Sandbox, follow: tuple[str, ...]) -> None:
    run = sandbox.play().begin(1).publish(1, 1).end(1, LegEnd.TIME_LIMIT).begin(2).end(2, LegEnd.DONE)
    said = onward("logs", "digits", "--leg", "99", *follow)
    assert (said.code, said.out) == (3, "")
    assert f"there is no leg 99: digits has legs 1 to 2\n  → onward show {run.spec.id} lists them" in said.err


def test_a_leg_that_is_queued_has_printed_nothing_yet(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.play().begin(1)
    assert "leg 2 has printed nothing yet" in onward("logs", "digits", "--leg", "2").err
    assert "digits has legs 1 to 2" in onward("logs", "digits", "--leg", "3").err


def test_logs_come_leg_after_leg_with_titles_beside_them(onward: Onward, sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1).publish(1, 1).end(1, LegEnd.TIME_LIMIT).begin(2)
    printed(run, 1, "out", "one\n")
    printed(run, 1, "err", "warning\n")
    printed(run, 2, "out", "two\nunfinished line")
    said = onward("logs", "digits")
    assert said.out.splitlines() == ["one", "warning", "two", "unfinished line"]
    assert [line.split(" ─")[0] for line in said.err.splitlines()] == ["── leg 1 stdout", "── leg 1 stderr", "── leg 2 stdout"]


@pytest.mark.parametrize(
    ("flags", "lines"),
    [
        (("--leg", "1"), ["1 out", "1 err a", "1 err b"]),
        (("--leg", "2"), ["2 out a", "2 out b"]),
        (("--err",), ["1 err a", "1 err b"]),
        (("--out",), ["1 out", "2 out a", "2 out b"]),
        (("--out", "--err", "--leg", "1"), ["1 out", "1 err a", "1 err b"]),
        (("-n", "1"), ["2 out b"]),
        (("-n", "3"), ["1 err b", "2 out a", "2 out b"]),
        (("-n", "0"), []),
        (("-n", "2", "--err"), ["1 err a", "1 err b"]),
        (("--supervisor",), ["the supervisor"]),
    ],
)
def test_parts_of_the_logs_can_be_asked_for(onward: Onward, sandbox: Sandbox, flags: tuple[str, ...], lines: list[str]) -> None:
    run = sandbox.play().begin(1).publish(1, 1).end(1, LegEnd.TIME_LIMIT).begin(2)
    printed(run, 1, "out", "1 out\n")
    printed(run, 1, "err", "1 err a\n1 err b\n")
    printed(run, 2, "out", "2 out a\n2 out b\n")
    run.dir.supervisor_log.write_text("the supervisor\n")
    said = onward("logs", "digits", *flags)
    assert said.code == 0
    assert said.out.splitlines() == lines


def test_no_escape_sequence_of_a_training_reaches_a_pipe(onward: Onward, sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    printed(
        run,
        1,
        "out",
        b"\x1b[31mred\x1b[0m\x1b[2J\x1b]0;title\x07 bell\x07\n10%\r99%\n\xff\xfe not utf-8\nform\x0cfeed\nsep\xe2\x80\xa8arator\n",
    )
    assert onward("logs", "digits").out.splitlines() == ["red bell", "99%", "\ufffd\ufffd not utf-8", "formfeed", "separator"]


def test_of_a_run_that_is_over_and_printed_nothing_nobody_is_told_to_wait(onward: Onward, sandbox: Sandbox) -> None:
    sandbox.play().begin(1).end(1, LegEnd.DONE)
    assert onward("logs", "digits").err == "the run printed nothing\n"


def test_following_a_run_that_is_over_prints_all_and_how_it_ended(onward: Onward, sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    printed(run, 1, "out", "one\nlast words")
    run.end(1, LegEnd.DONE, reason="the training finished")
    said = onward("logs", "-f", "digits")
    assert said.code == 0
    assert said.out.splitlines() == ["one", "last words"]
    assert said.err.endswith("the run is finished: the training finished\n")


# ── faults of ours ────────────────────────────────────────────────────────────


def test_an_internal_error_is_one_line_and_a_way_to_report_it(onward: Onward, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("never thought of this")

    monkeypatch.setattr("onward.operations.context.OperationsContext.runs", fail)
    said = onward("runs")
    assert said.code == 1
    assert "internal error: RuntimeError: never thought of this" in said.err
    assert "ONWARD_TRACEBACK=1" in said.err
    monkeypatch.setenv("ONWARD_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        onward("runs")


def test_a_disk_that_does_not_play_along_is_one_line(onward: Onward, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.play()

    def fail(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "/somewhere")

    monkeypatch.setattr("onward.rundir.journal.Journal.write", fail)
    said = onward("cancel", "digits")
    assert said.code == 1
    assert "Permission denied: '/somewhere'" in said.err


def test_settings_that_are_wrong_are_told_with_their_file(onward: Onward, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sandbox.folder / "settings.toml"
    path.write_text("rot = 1\n")
    monkeypatch.setenv("ONWARD_SETTINGS", str(path))
    for verb in ("runs", "tend", "doctor", "clusters"):
        said = onward(verb)
        assert said.code == 2
        assert str(path) in said.err


def test_a_job_state_with_two_words_is_shown_as_two_words(onward: Onward, sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False).die(1, JobState.OUT_OF_MEMORY)
    run.write(ev.EndFound(leg=1, at=run.now(), end="out_of_memory", reason="killed"))
    assert "out of memory" in onward("show", "digits").out
    assert json.loads(onward("show", "digits", "--json").out)["legs"][0]["state"] == "out_of_memory"


# ── clean ─────────────────────────────────────────────────────────────────────


def test_clean_only_says_what_it_would_free_until_it_is_told_yes(sandbox: Sandbox, onward: Onward) -> None:
    assert "nothing to remove" in onward("clean").err
    run = sandbox.play().begin(1).end(1, LegEnd.DONE)
    (run.dir.workdir / "cache").write_bytes(b"x" * 100_000)
    said = onward("clean")
    assert said.code == 0 and "would be freed; onward clean --yes does it" in said.out and str(run.dir.workdir) in said.out
    [item] = onward("clean", "--json").json["items"]
    assert (item["kind"], item["path"], item["removed"]) == ("workdir", str(run.dir.workdir), False) and item["bytes"] >= 100_000
    assert onward("clean", "--older", "36500", "--json").json["items"] == []
    assert (run.dir.workdir / "cache").exists()
    done = onward("clean", "--yes", "--json").json
    assert done["freed"] == done["bytes"] == item["bytes"] and done["items"][0]["removed"]
    assert not (run.dir.workdir / "cache").exists()
    assert onward("clean", "--older", "-1").code == 2


def test_clean_tells_what_it_could_not_remove_and_exits_with_1(sandbox: Sandbox, onward: Onward, monkeypatch: pytest.MonkeyPatch) -> None:
    run = sandbox.play().begin(1).end(1, LegEnd.DONE)
    (run.dir.workdir / "cache").mkdir()

    def refuses(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("onward.operations.admin.cleanup.shutil.rmtree", refuses)
    said = onward("clean", "--yes")
    assert said.code == 1 and f"{run.dir.workdir}: Permission denied" in said.err and "0 B freed" in said.out


def test_doctor_and_token_list_tell_of_tokens_that_end_within_a_fortnight(onward: Onward, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    assert "tokens" not in onward("doctor").out
    for name, expires in (("laptop", "90d"), ("old script", "100-0"), ("for ever", None), ("for an hour", "1:00:00")):
        assert onward("token", "create", "--name", name, *(("--expires", expires) if expires else ())).code == 0
    assert onward("token", "create", "--expires", "0d").code == 2
    assert "none expires within 14 days" in onward("doctor").out
    monkeypatch.setattr(time, "time", lambda: now + 80 * 86400)
    line = next(line for line in onward("doctor").out.splitlines() if " tokens " in line)
    assert line.startswith("note tokens")
    assert "(laptop) in 10 days" in line and "old script" not in line and "onward token create" in line
    listed = onward("token", "list")
    assert [line.split("  ")[-1].strip() for line in listed.out.splitlines() if "(soon)" in line] == ["laptop"]
    assert "1 of them expires within 14 days" in listed.err
