"""Somebody deletes the folder of a run that trains: the deletion stands, and what the node still has lies beside it."""

from __future__ import annotations

import json
import shutil
import socket
import time
from pathlib import Path

import pytest

from onward.schedulers.local.scheduler import LocalScheduler
from tests.crash.conftest import LocalRun, Machine
from tests.crash.test_faults_on_one_machine import alive

pytestmark = pytest.mark.slow

SAVES_ON_REQUEST = """
run = onward.init()
step = 0
while True:
    run.log({"loss": 1.0 / (step + 1)}, step=step)
    print("step", step, flush=True)
    if step == 5 or run.should_stop():
        with run.checkpoint(step) as folder:
            (folder / "state.json").write_text(json.dumps({"step": step}))
    if run.should_stop():
        sys.exit(75)
    step += 1
    time.sleep(0.1)
"""
DEAF = """
print("trains", flush=True)
while True:
    time.sleep(0.1)
"""


def live_jobs(machine: Machine) -> list[str]:
    jobs = LocalScheduler(Path(machine.environment["ONWARD_STATE_DIR"], f"local-{socket.gethostname()}")).live()
    return [status.name for status in jobs.values()]


def until_nothing_is_left(machine: Machine, supervisor: int) -> None:
    give_up = time.monotonic() + 90
    while alive(supervisor) or live_jobs(machine):
        assert time.monotonic() < give_up, live_jobs(machine)
        time.sleep(0.2)


def rescued(run: LocalRun) -> Path:
    [folder] = run.folder.parent.glob("rescued-*")
    return folder


def test_a_training_whose_folder_is_deleted_saves_and_ends_and_is_found_beside(machine: Machine) -> None:
    run = machine.submit(SAVES_ON_REQUEST, "--time", "10:00")
    run.until(lambda _: run.events("published"))
    training, supervisor = run.training_pid(1), run.supervisor_pid(1)
    shutil.rmtree(run.folder)
    until_nothing_is_left(machine, supervisor)
    assert not alive(training)
    assert not run.folder.exists(), "the deletion stands"
    folder = rescued(run)
    note = (folder / "RESCUED.txt").read_text()
    assert f"{run.folder} was deleted while leg 1 of train ({run.id}) trained in job " in note
    [checkpoint] = (folder / "results" / "checkpoints").iterdir()
    step = json.loads((checkpoint / "state.json").read_text())["step"]
    assert step > 5 and f"of step {step}, is in" in note
    assert json.loads((folder / "params" / "spec.json").read_text())["id"] == run.id
    assert f"step {step}\n" in (folder / "logs" / "leg-0001.out").read_text()
    assert f"{run.folder} was deleted while leg 1 trained" in (folder / "logs" / "supervisor.log").read_text()
    for text in (str(folder), run.id, "train"):
        shown = json.loads(machine.onward("show", text, "--json").stdout)
        assert (shown["state"], shown["legs"][0]["end"]) == ("cancelled", "cancelled")
    assert shown["legs"][0]["reason"] == "the run's folder was deleted; the training saved and stopped"
    assert [leg["last_step"] for leg in shown["legs"] if leg["started"]] == [step]
    assert not [path for path in (machine.home.parent / "node").rglob("leg-*") if path.is_dir()], "nothing is left on the node"


def test_a_training_of_which_there_is_nothing_to_save_ends_too(machine: Machine) -> None:
    run = machine.submit(DEAF, "--time", "0:20")
    run.until(lambda _: run.events("started"))
    supervisor = run.supervisor_pid(1)
    shutil.rmtree(run.folder)
    until_nothing_is_left(machine, supervisor)
    assert not run.folder.exists()
    assert "This node had no checkpoint of it." in (rescued(run) / "RESCUED.txt").read_text()
