"""The job script on nodes whose Python is too old, or missing: with real older interpreters, and nothing else on the PATH."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from functools import cache
from pathlib import Path

import pytest

from onward.model.analysis.why import why
from onward.model.policy.lifecycle import Close, Continue, decide
from onward.model.run import LegEnd, RunState
from onward.model.spec import spec_to_json
from onward.rundir.claim import claim
from onward.rundir.freeze import build_archive
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir
from onward.schedulers.job_script import NAMES, job_script
from tests.histories import make_spec
from tests.needs import missing

TOOLS = ("uname", "tr", "ln", "rm", "date", "sleep")
VERSION = "import sys; sys.stdout.write('%d.%d.%d' % sys.version_info[:3])"


@cache
def old_pythons() -> dict[str, str]:
    """Interpreters of this machine that are older than 3.11: version → program. pypy3 of Debian 12 is one (3.9)."""
    named = [shutil.which(name) for name in ("pypy3", "python2.7", *(f"python3.{minor}" for minor in range(6, 11)))]
    built = sorted(Path.home().glob(".pyenv/versions/*/bin/python"))
    found = {}
    for program in [*filter(None, named), *map(str, built)]:
        output = subprocess.run([program, "-c", VERSION], capture_output=True, text=True, timeout=60, check=False)
        if output.returncode == 0 and tuple(map(int, output.stdout.split("."))) < (3, 11):
            found[output.stdout] = program
    return found


def some_old_python() -> tuple[str, str]:
    """The oldest here."""
    if not old_pythons():
        missing("no Python older than 3.11 is here: apt-get install pypy3")
    return min(old_pythons().items(), key=lambda item: tuple(map(int, item[0].split("."))))


class Node:
    """A run folder, and a PATH that holds the shell's tools and the Pythons that a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            program = shutil.which(tool)
            assert program
            (self.bin / tool).symlink_to(program)
        self.dir = RunDir(folder / "runs" / '2026-11-18_A_it\'s a "run"')
        self.dir.make()
        self.dir.spec.write_text(json.dumps(spec_to_json(make_spec())))
        self.dir.supervisor.write_bytes(b"")

    def python(self, name: str, program: str) -> Path:
        path = self.bin / name
        path.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
        path.chmod(0o755)
        return path

    def supervisor(self, text: str) -> None:
        with zipfile.ZipFile(self.dir.supervisor, "w") as archive:
            archive.writestr("__main__.py", text)

    def start(self, leg: int = 1, *, pythons: tuple[str, ...] = ("/nowhere/python3",)) -> subprocess.CompletedProcess[str]:
        script = self.dir.script(leg)
        script.write_text(self.text(leg, pythons=pythons))
        return subprocess.run(
            ["/bin/bash", str(script)], env=self.environment(leg), capture_output=True, text=True, timeout=60, check=False
        )

    def text(self, leg: int = 1, *, pythons: tuple[str, ...], patience: float = 0.0) -> str:
        names = {"run": self.dir.path, "archive": self.dir.supervisor.name, "log": self.dir.supervisor_log}
        return job_script(["#X --time=1"], **names, leg=leg, pythons=pythons, patience=patience)  # type: ignore[arg-type]

    def environment(self, leg: int = 1) -> dict[str, str]:
        return {"PATH": str(self.bin), "SLURM_JOB_ID": f"70{leg}", "LANG": "C"}

    @property
    def said(self) -> str:
        return self.dir.supervisor_log.read_text()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_node_whose_python_is_too_old_ends_the_run_with_its_version_and_what_to_do(node: Node) -> None:
    version, program = some_old_python()
    node.python("python3", program)
    done = node.start()
    assert done.returncode == 1
    assert f"python3 is {version}" in node.said, "supervisor.log says it too"
    run = read_run(node.dir)
    assert run.state is RunState.FAILED and run.closed
    assert f"Onward needs Python 3.11 or newer on the node, and {os.uname().nodename} has none: python3 is {version}" in why(run, {})
    assert "python in the cluster profile" in run.closed.next
    leg = run.legs[1]
    assert leg.claimed and (leg.claimed.job, leg.claimed.hosts) == ("701", [os.uname().nodename])
    assert leg.end is LegEnd.CRASHED


@pytest.mark.parametrize("minor", [*range(6, 11)])
def test_each_older_python_of_this_machine_is_told_by_its_version(node: Node, minor: int) -> None:
    found = [(version, program) for version, program in old_pythons().items() if version.startswith(f"3.{minor}.")]
    if not found:
        pytest.skip(f"there is no Python 3.{minor} here")
    node.python("python3", found[0][1])
    node.start()
    assert f"python3 is {found[0][0]}" in read_run(node.dir).legs[1].reason


def test_a_node_without_any_python_says_so(node: Node) -> None:
    assert node.start().returncode == 1
    assert "has none: none was found" in read_run(node.dir).legs[1].reason


def test_a_python_that_does_not_start_is_said_to_be_one(node: Node) -> None:
    node.python("python3.12", "/nowhere/at/all")
    node.start()
    assert "python3.12 does not start" in read_run(node.dir).legs[1].reason


def test_names_with_quotes_do_no_harm(node: Node) -> None:
    odd = node.python('py"th\\on $(touch pwned)', "/nowhere/at/all")
    node.start(pythons=(str(odd),))
    assert "does not start" in read_run(node.dir).legs[1].reason
    assert not list(node.dir.path.rglob("pwned")) and not Path("pwned").exists()


def test_a_later_leg_ends_and_the_run_goes_on_elsewhere_but_not_twice_in_the_same_way(node: Node) -> None:
    node.python("python3", some_old_python()[1])
    node.start(2)
    run = read_run(node.dir)
    assert not run.closed
    assert decide(run) == Continue(leg=3, mem=None)
    assert "Onward needs Python 3.11 or newer" in why(run, {})
    node.start(3)
    action = decide(read_run(node.dir))
    assert isinstance(action, Close) and "crashed in the same way" in action.cause and "Onward needs Python 3.11" in action.cause


def test_a_leg_that_another_job_has_taken_and_a_run_that_is_over_are_left_alone(node: Node) -> None:
    claim(node.dir, 1, job="6")
    assert node.start(1).returncode == 0
    node.dir.done.write_text("{}")
    assert node.start(2).returncode == 0
    assert os.listdir(node.dir.journals) == []
    assert os.listdir(node.dir.claims) == ["leg-0001.json"]


SAY = "import sys; print(sys.argv[1:], sys.version_info[:2])"


def test_the_first_python_that_fits_is_taken_and_old_ones_are_passed_over(node: Node) -> None:
    old = node.python("old", some_old_python()[1])
    node.python("python3", some_old_python()[1])
    good = node.python("good", sys.executable)
    node.supervisor(SAY)
    done = node.start(pythons=("/nowhere/python3", str(old), str(good)))
    assert done.returncode == 0, node.said
    assert node.said.startswith(f"['leg', {str(node.dir.path)!r}, '1']")
    assert os.listdir(node.dir.journals) == []


@pytest.mark.parametrize("name", ["python3.14", "python3.12", "python3.11", "python3"])
def test_without_the_submitting_python_one_of_the_nodes_own_is_taken(node: Node, name: str) -> None:
    assert name in NAMES
    node.python("python3", some_old_python()[1])
    node.python(name, sys.executable)
    node.supervisor(SAY)
    assert node.start().returncode == 0


def test_the_archive_says_to_an_old_python_that_it_is_too_old(tmp_path: Path) -> None:
    some_old_python()
    archive = tmp_path / "supervisor.pyz"
    build_archive(archive)
    for version, program in old_pythons().items():
        done = subprocess.run([program, str(archive), "leg", "x", "1"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 86
        assert done.stderr.count("\n") == 1 and f"needs Python 3.11 or newer, and {program}" in done.stderr and version in done.stderr


# ── storage that is away for a moment ─────────────────────────────────────────


def test_a_job_waits_for_its_folder_to_come_back_and_begins_then(node: Node) -> None:
    """As where a file system is not mounted yet, or its server restarts."""
    good = node.python("good", sys.executable)
    node.supervisor(SAY)
    root = node.dir.path.parent
    away = root.with_name("not mounted")
    script = node.bin.parent / "job.sh"
    script.write_text(node.text(pythons=(str(good),), patience=50))
    root.rename(away)
    job = subprocess.Popen(["/bin/bash", str(script)], env=node.environment())
    try:
        wait_until_asleep(job.pid)
        away.rename(root)
        assert job.wait(timeout=60) == 0
    finally:
        job.kill()
        job.wait()
    assert node.said.startswith("['leg'")


def test_a_job_whose_folder_goes_away_just_before_python_opens_its_program_waits_again(node: Node) -> None:
    """Seen with storage away for 5 s: the job ended at once, no other was queued, and the run never went on."""
    root = node.dir.path.parent
    away = root.with_name("away")
    good = node.python("good", sys.executable)
    moves = f'case "$1" in -ES) mv {root} {away}; (sleep 1.5; mv {away} {root}) & ;; esac'
    good.write_text(good.read_text().replace("\n", f"\n{moves}\n", 1))
    (node.bin / "mv").symlink_to(str(shutil.which("mv")))
    build_archive(node.dir.supervisor)
    script = node.bin.parent / "job.sh"
    script.write_text(node.text(pythons=(str(good),), patience=60).replace(' leg "$run" 1', ""))
    done = subprocess.run(["/bin/bash", str(script)], env=node.environment(), capture_output=True, timeout=120, check=False)
    assert done.returncode == 2 and "usage: supervisor.pyz" in node.said, node.said


def test_a_job_whose_run_was_deleted_does_not_wait_for_it(node: Node) -> None:
    node.dir.path.with_name("another run").mkdir()
    script = node.bin.parent / "job.sh"
    script.write_text(node.text(pythons=(sys.executable,), patience=3600))
    shutil.rmtree(node.dir.path)
    done = subprocess.run(["/bin/bash", str(script)], env=node.environment(), capture_output=True, timeout=30, check=False)
    assert done.returncode == 1


def wait_until_asleep(pid: int) -> None:
    """Until the shell has a child that sleeps: it waits."""
    give_up = time.monotonic() + 30
    while not Path(f"/proc/{pid}/task/{pid}/children").read_text().strip():
        assert time.monotonic() < give_up, "the job does not wait"
        time.sleep(0.01)
