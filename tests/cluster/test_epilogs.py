"""Epilogs of real schedulers: what `onward epilog install` wrote tells a running server of a real job's end."""

from __future__ import annotations

import contextlib
import pwd
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from beds.gridengine import GridEngineBed
from beds.gridengine_layout import ADMIN
from beds.slurm import SlurmBed
from beds.slurm_layout import SLURM_USER
from tests.cluster.conftest import Person, must_be_up
from tests.servers import PATIENCE

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.alone]

TRAIN = "import time; time.sleep(4)"  # until the server has read which job it is


class Up:
    """`onward up` of a person's own, and what it was told."""

    def __init__(self, person: Person, host: str = "127.0.0.1") -> None:
        self._person = person
        self._host = host
        self._db = person.home / "tracker.db"

    def __enter__(self) -> Up:
        self.err = (self._person.home / "up.err").open("w")
        account = pwd.getpwnam(self._person.user)
        self.process = subprocess.Popen(
            [self._person.python, "-m", "onward", "up", "--host", self._host, "--port", "0", "--db", str(self._db)],
            cwd=self._person.home,
            env=self._person.environment,
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            stdout=subprocess.PIPE,
            stderr=self.err,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().partition("/login")[0]
        assert self.url, (self._person.home / "up.err").read_text()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.err.close()

    def webhook_token(self) -> str:
        made = ("token", "create", "--scope", "webhook", "--name", "epilogs", "--db", str(self._db))
        return self._person.onward(*made).stdout.strip()

    def hints(self) -> list[tuple[str, bool, str]]:
        """Job, whether it was one of ours, and what else was said."""
        with contextlib.closing(sqlite3.connect(f"file:{self._db}?mode=ro", uri=True, timeout=30)) as connection:
            return [(job, bool(taken), text) for job, taken, text in connection.execute("SELECT job, taken, text FROM hints ORDER BY at")]


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="onward-epilog-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def install(folder: Path, up: Up, **users: str) -> list[str]:
    """As the site's administrator does; the lines that it says to put into the schedulers' configuration."""
    flags = [word for name, user in users.items() for word in (f"--{name}-user", user)]
    command = [sys.executable, "-m", "onward", "epilog", "install", "--url", up.url, "--dir", str(folder), "--token-file", "-", *flags]
    done = subprocess.run(command, input=up.webhook_token() + "\n", capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return [line.strip() for line in done.stdout.splitlines() if line.startswith("    ")]


def job_of(person: Person, *flags: str) -> str:
    """Of a run that has ended by itself."""
    run = person.submit("--name", "short", *flags, "--", "python3", "-c", TRAIN)
    shown = run.until_over()
    assert shown["state"] == "finished", run.log()
    return str(shown["legs"][0]["job"])


def wait_for(there: Callable[[], bool], up: Up, more: Callable[[], str]) -> None:
    until = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < until, f"{up.hints()}\n{more()}"
        time.sleep(0.2)


@contextlib.contextmanager
def slurm_setting(bed: SlurmBed, line: str) -> Iterator[None]:
    conf = bed.layout.slurm_conf
    before = conf.read_text()

    def write(text: str) -> None:
        conf.write_text(text)
        bed.stop_controller()  # to reconfigure it is not enough: whether there is an epilog is looked at once
        bed.start_controller()
        must_be_up(bed)

    write(f"{before.rstrip()}\n{line}\n")
    try:
        yield
    finally:
        write(before)


@pytest.mark.takes("nodes")
def test_slurms_controller_tells_of_a_jobs_end(bed: SlurmBed, alice: Person, folder: Path) -> None:
    with Up(alice) as up:
        line = install(folder, up, slurm=SLURM_USER, gridengine=ADMIN)[0]
        assert line == f"EpilogSlurmctld={folder}/epilog-slurmctld"
        with slurm_setting(bed, line):
            job = job_of(alice, "--time", "5:00")
            wait_for(lambda: any(one == job and ours for one, ours, _ in up.hints()), up, lambda: (alice.home / "up.err").read_text())
            foreign = alice.run("sbatch", "--parsable", "--wrap", "true").stdout.strip()
            wait_for(lambda: any(one == foreign for one, _, _ in up.hints()), up, lambda: "")
        fields = {job: (ours, text) for job, ours, text in up.hints()}
        assert fields[foreign][0] is False  # of every job of the cluster; only ours make the server look
        assert "alice" in fields[job][1]


@contextlib.contextmanager
def queue_epilog(bed: GridEngineBed, queue: str, value: str) -> Iterator[None]:
    env = {**bed.layout.environment, "PATH": f"{bed.path()}:/usr/bin:/bin"}
    shown = subprocess.run(["qconf", "-sq", queue], env=env, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
    before = next(line.split(maxsplit=1)[1] for line in shown.splitlines() if line.startswith("epilog "))

    def give(text: str) -> None:
        subprocess.run(["qconf", "-rattr", "queue", "epilog", text, queue], env=env, capture_output=True, check=True, timeout=PATIENCE)

    give(value)
    try:
        yield
    finally:
        give(before)


@pytest.mark.takes("hosts")
def test_grid_engines_queue_tells_of_a_jobs_end(gridengine_bed: GridEngineBed, ge_alice: Person, folder: Path) -> None:
    with Up(ge_alice, host=gridengine_bed.layout.master) as up:  # its hosts may have networks of their own, and see each other alone
        line = install(folder, up, slurm=SLURM_USER, gridengine=ADMIN)[1]
        assert line == f"epilog {ADMIN}@{folder}/epilog-gridengine $job_id"
        with queue_epilog(gridengine_bed, "all.q", line.removeprefix("epilog ")):
            job = job_of(ge_alice, "--time", "5:00", "--partition", "all.q")
            wait_for(lambda: any(one == job and ours for one, ours, _ in up.hints()), up, lambda: (ge_alice.home / "up.err").read_text())
    assert gridengine_bed.is_up()  # an epilog that fails puts a queue into an error state
