"""The relay against kill −9: what a client was told to be logged is there, in one run, whatever died."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from onward.tracker.runs.registry import RunQuery
from onward.tracker.store import Tracker
from tests.crash.conftest import LocalRun, Machine
from tests.seed_tracker import TRAIN

pytestmark = pytest.mark.slow


def wait_for_epoch(run: LocalRun, leg: int, epoch: int, *, within: float = 120) -> None:
    path, until = run.folder / "logs" / f"leg-{leg:04d}.out", time.monotonic() + within
    while not path.exists() or f"epoch {epoch}\n" not in path.read_text():
        assert time.monotonic() < until, (run.folder / "logs" / "supervisor.log").read_text()
        time.sleep(0.1)


def logged(run: LocalRun, leg: int) -> set[tuple[str, int]]:
    path = run.folder / "spool" / f"leg-{leg:04d}.train-relay.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["n"] for record in records] == list(range(len(records)))
    return {(key, record["s"]) for record in records if "m" in record for key in record["m"]}


def test_a_script_that_posts_its_metrics_is_one_run_through_two_kills_and_loses_no_step(machine: Machine, tmp_path: Path) -> None:
    run = machine.submit(TRAIN, "--experiment", "seeds", name="seed", prelude="", arguments=("--epochs", "14", "--pause", "0.3"))
    for leg, epoch in ((1, 3), (2, 7)):
        wait_for_epoch(run, leg, epoch)
        os.kill(next(int(event["pid"]) for event in run.events("started") if event["leg"] == leg), signal.SIGKILL)
    shown = run.until_over(within=180)
    assert (shown["state"], [leg["end"] for leg in shown["legs"]]) == ("finished", ["crashed", "crashed", "done"])
    for leg in (1, 2, 3):
        printed = re.findall(r"epoch (\d+)", (run.folder / "logs" / f"leg-{leg:04d}.out").read_text())
        assert logged(run, leg) >= {(key, int(epoch)) for key in ("train_loss", "val_accuracy") for epoch in printed}
    with Tracker.open(tmp_path / "onward.db") as tracker:
        assert tracker.files.look([Path(machine.environment["ONWARD_ROOT"])]).problems == []
        [found] = tracker.runs.search(RunQuery()).runs
        assert (found.info.run_id, found.info.state, found.info.leg) == (run.id, "finished", 3)
        assert found.params["epochs"] == "14" and found.params["seed"] == "1"
        points = tracker.series.points(run.id, "train_loss")
        assert [(point.step, round(point.value, 6)) for point in points] == [(step, round(1 / (step + 1), 6)) for step in range(14)]


UPLOADS = """
import os, requests
base = os.environ["MLFLOW_TRACKING_URI"]
place = f"{base}/api/2.0/mlflow-artifacts/artifacts/{os.environ['MLFLOW_EXPERIMENT_ID']}/{os.environ['MLFLOW_RUN_ID']}/artifacts"
assert requests.put(f"{place}/plots/loss.bin", data=b"x" * 5_000_000).status_code == 200
print(requests.get(f"{base}/api/2.0/mlflow/runs/get", params={"run_id": "any"}).json()["run"]["info"]["run_id"], flush=True)
print(os.environ["EXPERIMENT_ID"], os.environ["MLFLOW_EXPERIMENT_NAME"], "shell" in os.environ.get("TRACKER_API", ""))
"""


def test_files_are_in_the_runs_folder_when_the_run_is_over_and_a_shells_tracker_is_not_carried(machine: Machine) -> None:
    machine.environment |= {"TRACKER_API": "http://shell", "MLFLOW_TRACKING_URI": "http://shell", "MLFLOW_RUN_ID": "shell"}
    run = machine.submit(UPLOADS, "--experiment", "files", name="upload", prelude="")
    assert run.until_over()["state"] == "finished", run.output("err")
    assert (run.folder / "results" / "artifacts" / "plots" / "loss.bin").stat().st_size == 5_000_000
    assert run.output().splitlines()[1] == "files files False"
    for path in (run.folder / "params").rglob("*"):
        assert path.is_dir() or b"/t/" not in path.read_bytes() or path.name == "supervisor.pyz", path  # no secret stays behind
