"""An ordinary user whose home is missing, as in a container or a service: each command works, or says in one sentence what to do."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.conftest import wait_for_the_keeper
from tests.everyones_python import make_python

NOBODY = 65534  # has no home; where these tests are not run by root, they act as whoever runs them


BECOME = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


class User:
    def __init__(self, folder: Path, python: Path) -> None:
        self.folder = folder
        self.python = python
        self.variables = {"PATH": "/usr/bin:/bin", "TMPDIR": str(folder), "HOME": str(folder / "closed" / "home")}

    def onward(self, *argv: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        env = {**self.variables, **variables}
        command = [str(self.python), "-m", "onward", *argv]
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            command, cwd=cwd or self.folder, env=env, capture_output=True, text=True, timeout=120, check=False, **BECOME
        )


def can_run(python: Path) -> bool:
    """Whether that user may, and has Onward in it."""
    try:
        done = subprocess.run([python, "-c", "import onward"], cwd="/", capture_output=True, check=False, **BECOME)  # type: ignore[call-overload]
    except PermissionError:  # of Python itself
        return False
    return not done.returncode


@pytest.fixture(scope="module")
def python() -> Iterator[Path]:
    """The tests' own, or a copy, where that lies in a folder that is closed to others."""
    if can_run(Path(sys.executable)):
        yield Path(sys.executable)
        return
    with tempfile.TemporaryDirectory(prefix="onward-python-") as folder:
        copied = make_python(Path(folder))
        assert can_run(copied)
        yield copied


@pytest.fixture
def nobody(python: Path) -> Iterator[User]:
    with tempfile.TemporaryDirectory(prefix="onward-nobody-", ignore_cleanup_errors=True) as made:  # pytest's own are closed to others
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "closed").mkdir(mode=0o555)
        (folder / "open").mkdir()
        if BECOME:
            os.chown(folder / "open", NOBODY, NOBODY)
        yield User(folder, python)
        wait_for_the_keeper(folder / "open" / "state")


def test_a_submit_is_refused_at_once_with_the_variable_to_set_and_leaves_no_run(nobody: User) -> None:
    said = nobody.onward("submit", "--cluster", "local", "--", "/bin/true", cwd=nobody.folder / "open")
    assert said.returncode == 1
    [what, then] = said.stderr.splitlines()
    assert "the local queue's folder" in what and "cannot be created: Permission denied" in what
    assert then == "  → set ONWARD_STATE_DIR to a folder that you may write to"
    assert not list((nobody.folder / "open" / "runs").glob("*_*"))


def test_doctor_calls_it_an_error_and_names_the_variable(nobody: User) -> None:
    said = nobody.onward("doctor", cwd=nobody.folder / "open")
    assert said.returncode == 1
    [line] = [line for line in said.stdout.splitlines() if line.split()[1] == "state"]
    assert line.startswith("BAD") and line.endswith("set ONWARD_STATE_DIR to a folder that you may write to")


def test_with_that_variable_a_run_goes_to_its_end(nobody: User) -> None:
    folder = nobody.folder / "open"
    del nobody.variables["HOME"]
    said = nobody.onward("run", "--cluster", "local", "--", "/bin/echo", "trained", cwd=folder, ONWARD_STATE_DIR=str(folder / "state"))
    assert said.returncode == 0 and "finished in 1 leg" in said.stderr, said.stderr


def test_from_a_folder_that_cannot_be_written_a_submit_says_where_runs_may_go(nobody: User) -> None:
    folder = nobody.folder / "open"
    own = {"ONWARD_STATE_DIR": str(folder / "state")}
    said = nobody.onward("submit", "--cluster", "local", "--", "/bin/true", cwd=nobody.folder / "closed", **own)
    assert said.returncode == 2 and "ONWARD_ROOT" in said.stderr and len(said.stderr.splitlines()) == 2, said.stderr
    own["ONWARD_ROOT"] = str(folder / "runs")
    said = nobody.onward("run", "--cluster", "local", "--", "/bin/echo", "trained", cwd=nobody.folder / "closed", **own)
    assert said.returncode == 0 and "finished in 1 leg" in said.stderr, said.stderr


def test_a_folder_of_the_project_that_cannot_be_looked_into_is_linked(nobody: User) -> None:
    folder = nobody.folder / "open"
    (folder / "shared" / "private").mkdir(parents=True)
    (folder / "shared").chmod(0o755)
    (folder / "shared" / "private").chmod(0o000)
    own = {"ONWARD_STATE_DIR": str(folder / "state"), "ONWARD_ROOT": str(folder / "runs")}
    said = nobody.onward("run", "--cluster", "local", "--", "/bin/echo", "trained", cwd=folder / "shared", **own)
    assert said.returncode == 0 and "finished in 1 leg" in said.stderr, said.stderr
    [run] = (folder / "runs").glob("*_*_*")
    assert (run / "code" / "private").readlink() == folder / "shared" / "private"


def test_the_page_says_where_its_database_may_go(nobody: User) -> None:
    said = nobody.onward("up", cwd=nobody.folder / "open")
    assert said.returncode != 0 and "ONWARD_STATE_DIR" in said.stderr and len(said.stderr.splitlines()) == 2, said.stderr
