"""The example of a scheduler as a plugin passes the contract, on a real task-spooler; and a run goes through it, legs and all."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from onward.errors import NotOffered
from onward.model.job import JobId, JobState, JobStatus
from onward.model.spec import Cluster, Resources
from onward.schedulers.base import Scheduler, snapshot_of
from tests.benches import ANYTHING, Bench, Plan, until, wait_for, write_script
from tests.contract.test_scheduler import SchedulerContract

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "plugin"

pytestmark = pytest.mark.slow


def example() -> ModuleType:
    if "onward_tsp" not in sys.modules:
        spec = importlib.util.spec_from_file_location("onward_tsp", EXAMPLE / "onward_tsp.py")
        assert spec and spec.loader
        sys.modules["onward_tsp"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["onward_tsp"])
    return sys.modules["onward_tsp"]


class SpoolerBench:
    """A task-spooler of its own."""

    shortest_limit = 1

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = Path(tempfile.mkdtemp(prefix="tsp-")) / "s"  # a socket's path must be short
        self.options = {"socket": str(self.socket), "notes": str(folder / "notes")}
        made: Scheduler = example().TaskSpooler(Cluster(name="box", scheduler="tsp", options=self.options))
        self.scheduler = made

    def tsp(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "TS_SOCKET": str(self.socket)}
        return subprocess.run(["tsp", *words], env=env, capture_output=True, text=True, timeout=60, check=False)

    def script(self, plan: Plan, *, resources: Resources = ANYTHING, output: Path | None = None) -> Path:
        return write_script(self, plan.text(), resources=resources, output=output)

    def wait_for(self, job: JobId, *states: JobState) -> JobStatus:
        return wait_for(self.scheduler, job, states, seconds=90)

    def reach_limit(self, job: JobId) -> None: ...

    def close(self) -> None:
        def ours() -> list[str]:
            rows = [line.split() for line in self.tsp("-l").stdout.splitlines()[1:]]
            for row in rows:
                if row[1] in ("queued", "running"):
                    self.tsp("-r" if row[1] == "queued" else "-k", row[0])
            return [row[0] for row in rows if row[1] in ("queued", "running")]

        until(lambda: not ours(), what="the end of all jobs")
        self.tsp("-K")
        shutil.rmtree(self.socket.parent, ignore_errors=True)


@pytest.fixture
def spooler(tmp_path: Path) -> Iterator[SpoolerBench]:
    if shutil.which("tsp") is None:
        if os.environ.get("CI"):
            pytest.fail("task-spooler is not installed, and CI must have it: make beds")
        pytest.skip("task-spooler is not installed: make beds")
    made = SpoolerBench(tmp_path)
    try:
        yield made
    finally:
        made.close()


class TestThePluginOfTheExamples(SchedulerContract):
    @pytest.fixture
    def bench(self, spooler: SpoolerBench) -> Bench:
        return spooler

    def test_a_snapshot_that_a_plugin_does_not_offer_is_said_to_be_so(self, bench: Bench) -> None:
        with pytest.raises(NotOffered, match="TaskSpooler does not report its nodes") as caught:
            snapshot_of(bench.scheduler)
        assert "snapshot" in caught.value.hint


TRAIN = """
import json, sys, time, onward
run = onward.init(total_steps=60)
saved = run.resume()
first = json.loads((saved / "state.json").read_text())["step"] + 1 if saved else 0
for step in range(first, 60):
    time.sleep(0.1)
    run.log({"loss": 1.0}, step=step)
    print("step", step, flush=True)
    if run.should_stop():
        with run.checkpoint(step) as folder:
            (folder / "state.json").write_text(json.dumps({"step": step}))
        sys.exit(75)
run.finish()
"""
SETTINGS = """
[clusters.box]
scheduler = "tsp"
options = {{ socket = "{socket}", notes = "{notes}" }}
"""


def test_a_run_outlives_its_jobs_on_a_plugin_that_only_the_desk_has_installed(spooler: SpoolerBench, tmp_path: Path) -> None:
    """The job's Python finds the plugin in the run's archive: PYTHONPATH, by which the desk finds it here, is not passed on."""
    site = tmp_path / "site"
    shutil.copytree(EXAMPLE, site)
    info = site / "onward_tsp-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: onward-tsp\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[onward.schedulers]\ntsp = onward_tsp:TaskSpooler\n")
    (tmp_path / "settings.toml").write_text(SETTINGS.format(**spooler.options))
    (tmp_path / "train.py").write_text(TRAIN)
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("ONWARD_", "SLURM_"))},
        "PYTHONPATH": str(site),
        "ONWARD_SETTINGS": str(tmp_path / "settings.toml"),
        "ONWARD_ROOT": str(tmp_path / "runs"),
        "ONWARD_STATE_DIR": str(tmp_path / "state"),
    }

    def onward(*words: str) -> str:
        done = subprocess.run([sys.executable, "-m", "onward", *words], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    assert "Task Spooler v" in onward("clusters")
    body = json.loads(onward("submit", "--json", "--cluster", "box", "--time", "0:05", "--", sys.executable, "train.py"))
    folder = Path(body["folder"])
    until((folder / "params" / "done.json").exists, seconds=180, what="the end of the run")
    shown = json.loads(onward("show", body["id"], "--json"))
    log = (folder / "logs" / "supervisor.log").read_text()
    assert (shown["state"], shown["legs"][0]["end"]) == ("finished", "time_limit"), log
    steps = [line for leg in sorted((folder / "logs").glob("leg-*.out")) for line in leg.read_text().splitlines()]
    assert steps == [f"step {step}" for step in range(60)]
