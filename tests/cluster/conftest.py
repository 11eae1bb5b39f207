"""The beds, and a person on each: alice, an ordinary user who runs `onward` and nothing else."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from beds.bed import Bed
from beds.gridengine import GridEngineBed
from beds.slurm import SlurmBed
from beds.software import SoftwareBed
from onward.errors import OnwardError
from tests.run_records import run_record

REPO = Path(__file__).resolve().parents[2]
TRAIN = REPO / "examples" / "digits" / "train.py"
_ASKED_EVERY = 5.0  # seconds


def must_be_up(bed: Bed) -> None:
    """Where only a part is down, another test has crashed it, and will mend it."""
    give_up = time.monotonic() + 180
    while not bed.is_up() and any(" runs," in said for said in bed.status()) and time.monotonic() < give_up:
        time.sleep(2)
    if not bed.is_up():
        if os.environ.get("CI"):
            pytest.fail(f"the {bed.name} bed is not up, and CI must have it: make beds")
        pytest.skip(f"the {bed.name} bed is not up: make beds (Debian, root)")
    if os.geteuid() != 0:
        pytest.skip("cluster tests act as another user and need root")


@pytest.fixture(scope="session")
def bed() -> SlurmBed:
    bed = SlurmBed()
    must_be_up(bed)
    return bed


@pytest.fixture(scope="session")
def gridengine_bed() -> GridEngineBed:
    bed = GridEngineBed()
    must_be_up(bed)
    return bed


@dataclass(kw_only=True)
class Person:
    """Runs commands as an ordinary user, with a bare environment, from a folder of their own."""

    user: str
    home: Path  # this test's folder
    python: str
    environment: dict[str, str]
    scheduler: str = "slurm"

    def run(self, *argv: str, timeout: float = 120, check: bool = True, **more: str) -> subprocess.CompletedProcess[str]:
        env = {**self.environment, **more}
        who: dict[str, Any] = {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid, "extra_groups": []}
        done = subprocess.run(argv, cwd=self.home, env=env, **who, capture_output=True, text=True, timeout=timeout)
        if check and done.returncode:
            pytest.fail(f"{' '.join(argv)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def onward(self, *argv: str, timeout: float = 120, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run(self.python, "-m", "onward", *argv, timeout=timeout, check=check)

    def submit(self, *argv: str) -> RunOnBed:
        body = json.loads(self.onward("submit", "--json", *argv).stdout)
        return RunOnBed(person=self, id=body["id"], folder=Path(body["folder"]))

    def write(self, name: str, text: str) -> Path:
        path = self.home / name
        path.write_text(text)
        os.chown(path, pwd.getpwnam(self.user).pw_uid, -1)
        return path

    def queue(self) -> list[str]:
        """This user's jobs: id, name, state and where."""
        if self.scheduler == "gridengine":
            return gridengine_queue(self.run("qstat", "-u", self.user, "-xml").stdout)
        return self.run("squeue", "-h", "-u", self.user, "-o", "%i %j %T %N").stdout.splitlines()


def gridengine_queue(shown: str) -> list[str]:
    """Slurm's words for Grid Engine's letters: what waits is PENDING, unless it was deleted and is about to go."""
    lines = []
    for job in ElementTree.fromstring(shown).iter("job_list"):
        letters = job.findtext("state", "")
        state = "LEAVING" if "d" in letters else "ERROR" if "E" in letters else "PENDING" if "q" in letters else "RUNNING"
        where = job.findtext("queue_name") or ""
        lines.append(f"{job.findtext('JB_job_number')} {job.findtext('JB_name')} {state} {where.partition('@')[2]}".rstrip())
    return lines


@dataclass(kw_only=True)
class RunOnBed:
    person: Person
    id: str
    folder: Path

    def show(self) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self.person.onward("show", self.id, "--json").stdout)
        return shown

    def until(self, holds: Callable[[dict[str, Any]], object], *, within: float = 120, what: str = "") -> dict[str, Any]:
        """Until `onward show` says so: it is asked when the folder looks like it, and now and then anyway, since some things only the
        scheduler knows."""
        give_up, ask = time.monotonic() + within, time.monotonic() + _ASKED_EVERY
        while True:
            asked = time.monotonic() >= ask
            shown = self.show() if asked else self._shown_here()
            if holds(shown) and (asked or holds(shown := self.show())):
                return shown
            if asked:
                ask = time.monotonic() + _ASKED_EVERY
            if time.monotonic() > give_up:
                pytest.fail(f"{what or 'what was waited for'} did not come within {within} s:\n{json.dumps(shown, indent=1)}\n{self.log()}")
            time.sleep(0.5)

    def _shown_here(self) -> dict[str, Any]:
        try:
            return run_record(self.folder, self.person.environment)
        except (OnwardError, OSError):
            return self.show()

    def until_over(self, *, within: float = 300) -> dict[str, Any]:
        """Waits for the run's own mark; `onward show` is asked seldom, for runs whose end nobody has noted yet."""
        give_up, done = time.monotonic() + within, self.folder / "params" / "done.json"
        while True:
            ask = time.monotonic() + 15
            while not done.exists() and time.monotonic() < min(ask, give_up):
                time.sleep(0.3)
            shown = self.show()
            if shown["state"] in ("finished", "failed", "cancelled"):
                return shown
            if time.monotonic() > give_up:
                pytest.fail(f"the end of the run did not come within {within} s:\n{json.dumps(shown, indent=1)}\n{self.log()}")
            time.sleep(0.3)

    def until_step(self, step: int, *, leg: int = 1, within: float = 120) -> dict[str, Any]:
        """Until this leg trains, has passed this step and has published a checkpoint."""
        return self.until(
            lambda r: (
                len(r["legs"]) >= leg and (r["legs"][leg - 1]["last_step"] or -1) >= step and any(c["leg"] == leg for c in r["checkpoints"])
            ),
            within=within,
            what=f"step {step} of leg {leg}",
        )

    def log(self) -> str:
        path = self.folder / "logs" / "supervisor.log"
        return path.read_text() if path.exists() else "(no supervisor.log)"

    def events(self) -> list[dict[str, Any]]:
        lines = (line for path in sorted((self.folder / "journal").glob("*.jsonl")) for line in path.read_text().splitlines())
        return sorted((json.loads(line) for line in lines), key=lambda e: e["at"])

    def jobs_left(self) -> list[str]:
        """This run's jobs in the queue, but for one that is just leaving."""
        names = {event["name"] for event in self.events() if event["kind"] == "submitting"}
        left = [line for line in self.person.queue() if line.split()[1] in names]
        give_up = time.monotonic() + 45
        while left and not any("PENDING" in line for line in left) and time.monotonic() < give_up:
            time.sleep(0.5)
            left = [line for line in self.person.queue() if line.split()[1] in names]
        return left


@pytest.fixture(scope="session")
def site() -> Iterator[tuple[str, dict[str, str]]]:
    """A Python with Onward that alice may run: this one, or a copy of its packages where she cannot reach this checkout."""
    reachable = ["runuser", "-u", "alice", "--", sys.executable, "-c", "import onward, onward.cli.main, numpy, sklearn"]
    if subprocess.run(reachable, cwd="/", capture_output=True, check=False).returncode == 0:
        yield sys.executable, {}
        return
    copy = Path("/var/tmp") / f"onward-site-{os.getpid()}"
    shutil.copytree(sysconfig.get_paths()["purelib"], copy / "packages", symlinks=False)
    shutil.copytree(REPO / "src" / "onward", copy / "packages" / "onward", dirs_exist_ok=True)
    subprocess.run(["chmod", "-R", "a+rX", str(copy)], check=True)
    yield "/usr/bin/python3", {"PYTHONPATH": str(copy / "packages")}
    shutil.rmtree(copy)


@pytest.fixture
def alice(bed: SlurmBed, site: tuple[str, dict[str, str]], request: pytest.FixtureRequest) -> Iterator[Person]:
    """On Slurm, with a folder of this test's own, the demo's training in it; whatever jobs she leaves are ended."""
    with person(site, request, scheduler="slurm", environment=bed.environment()) as one:
        yield one


@pytest.fixture
def bob(bed: SlurmBed, site: tuple[str, dict[str, str]], request: pytest.FixtureRequest) -> Iterator[Person]:
    """On Slurm too. Nobody else uses his account, so that a test may put limits on it; through ssh alice is carol."""
    with person(site, request, scheduler="slurm", environment=bed.environment(), user="bob") as one:
        yield one


@pytest.fixture
def ge_alice(gridengine_bed: GridEngineBed, site: tuple[str, dict[str, str]], request: pytest.FixtureRequest) -> Iterator[Person]:
    """The same on Grid Engine. Slurm's programs are here too, so her settings name the cluster, and that Slurm is out of reach."""
    environment = {**gridengine_bed.layout.environment, "SLURM_CONF": "/nonexistent/slurm.conf"}
    with person(site, request, scheduler="gridengine", environment=environment, first=gridengine_bed.path()) as one:
        one.environment["ONWARD_SETTINGS"] = str(one.write("settings.toml", 'cluster = "gridengine"\n'))
        yield one


@pytest.fixture(scope="session")
def software() -> SoftwareBed:
    """Lmod and its modules: `person.environment.update(software.environment())` is what a login gives."""
    bed = SoftwareBed()
    must_be_up(bed)
    return bed


@contextmanager
def person(
    site: tuple[str, dict[str, str]],
    request: pytest.FixtureRequest,
    *,
    scheduler: str,
    environment: dict[str, str],
    first: str = "",
    user: str = "alice",
) -> Iterator[Person]:
    python, more = site
    account = pwd.getpwnam(user)
    home = Path(account.pw_dir) / "tests" / f"{request.node.name[:60]}-{os.getpid()}-{time.time():.0f}"
    home.mkdir(parents=True)
    shutil.copy(TRAIN, home / "train.py")
    for path in (home.parent, home, home / "train.py"):
        os.chown(path, account.pw_uid, account.pw_gid)
    surroundings = {
        "HOME": account.pw_dir,
        "USER": user,
        "LOGNAME": user,
        "PATH": ":".join(folder for folder in (str(Path(python).parent), first, "/usr/bin", "/bin") if folder),
        "ONWARD_ROOT": str(home / "runs"),
        "SKLEARN_SKIP_OPENMP": "1",
        "OMP_NUM_THREADS": "1",
        **environment,
        **more,
    }
    one = Person(user=user, home=home, python=python, environment=surroundings, scheduler=scheduler)
    yield one
    for folder in (home / "runs").glob("*"):
        if not (folder / "params" / "done.json").exists():
            one.onward("cancel", str(folder), check=False)
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def unbroken(site: tuple[str, dict[str, str]], tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """The final weights of a training that nothing interrupted, by number of epochs."""
    made: dict[int, Path] = {}

    def weights(epochs: int) -> Path:
        if epochs not in made:
            folder = tmp_path_factory.mktemp("unbroken")
            out = folder / "weights.npz"
            env = {**os.environ, "ONWARD_RUN_DIR": str(folder / "run"), "OMP_NUM_THREADS": "1"}
            env.pop("ONWARD_CHECKPOINT_DIR", None)
            command = [sys.executable, str(TRAIN), "--epochs", str(epochs), "--out", str(out)]
            subprocess.run(command, env=env, check=True, capture_output=True)
            made[epochs] = out
        return made[epochs]

    return weights
