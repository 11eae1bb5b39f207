"""The training script of the note that asked for a tracker, as it stands, on a real Slurm: cut twice it is one run and one curve."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import Person, RunOnBed
from tests.cluster.test_outlives_its_jobs import processes_of
from tests.seed_tracker import TRAIN
from tests.servers import Running

pytestmark = [pytest.mark.cluster]


def epochs_of(run: RunOnBed, leg: int) -> int:
    path = run.folder / "logs" / f"leg-{leg:04d}.out"
    return path.read_text().count("epoch ") if path.exists() else 0


def trained(run: RunOnBed, leg: int) -> str:
    """The job of a leg, once it has trained and published something."""
    until = time.monotonic() + 240
    while epochs_of(run, leg) < 4 or not any(e["kind"] == "published" and e["leg"] == leg for e in run.events()):
        assert time.monotonic() < until, run.log()
        time.sleep(0.3)
    return str(next(e["job"] for e in run.events() if e["kind"] == "claimed" and e["leg"] == leg))


def test_the_notes_script_cut_twice_is_one_run_with_its_jobs_and_one_curve(alice: Person, tmp_path: Path) -> None:
    alice.write("seed.py", TRAIN)
    run = alice.submit(
        *("--mem", "300M", "--time", "4:00", "--name", "seed", "--experiment", "seeds"),
        *("--", alice.python, "seed.py", "--epochs", "24", "--pause", "0.7"),
    )
    trained(run, 1)
    os.kill(next(int(e["pid"]) for e in run.events() if e["kind"] == "started"), signal.SIGKILL)
    for process in processes_of(trained(run, 2)):  # supervisor, relay and all
        os.kill(process, signal.SIGKILL)
    shown = run.until_over(within=400)
    assert shown["state"] == "finished" and len(shown["legs"]) == 3, run.log()
    (tmp_path / "server").mkdir()
    os.symlink(run.folder.parent, tmp_path / "server" / "runs")
    with Running(tmp_path / "server") as server:
        token, until = server.token("--name", "ada"), time.monotonic() + 120
        while not server.json("GET", "/api/v1/runs?filter=state%20=%20finished", token)["runs"]:
            assert time.monotonic() < until, server.log
            time.sleep(0.3)
        body: Any = server.json("GET", "/api/v1/runs", token)
        assert [one["id"] for one in body["runs"]] == [run.id]
        seen: Any = server.json("GET", f"/api/v1/runs/{run.id}", token)
        assert (seen["experiment_name"], seen["params"]["epochs"]) == ("seeds", "24")
        jobs = [leg["job"] for leg in seen["legs"]]
        assert jobs == [leg["job"] for leg in shown["legs"]] and len(set(jobs)) == 3
        for metric, values in (("train_loss", [1 / (step + 1) for step in range(24)]), ("val_accuracy", [step / 24 for step in range(24)])):
            points: Any = server.json("GET", f"/api/v1/runs/{run.id}/points?metric={metric}", token)["points"]
            assert [(point["step"], round(point["value"], 6)) for point in points] == [
                (step, round(value, 6)) for step, value in enumerate(values)
            ]


def test_the_notes_script_started_by_hand_logs_to_a_server(alice: Person, tmp_path: Path) -> None:
    with Running(tmp_path / "server") as server:
        token = server.token("--name", "ada")
        (tmp_path / "seed.py").write_text(TRAIN)
        env = {
            **alice.environment,
            "TRACKER_API": f"{server.url}/t/{token}",
            "EXPERIMENT_ID": "seeds",
            "SLURM_JOB_ID": "17",
            "ONWARD_ROOT": str(tmp_path),
        }
        for _ in range(2):  # a job that Slurm starts again
            command = [alice.python, "seed.py", "--epochs", "6", "--pause", "0"]
            subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True, timeout=120)
        body: Any = server.json("GET", "/api/v1/runs?filter=source = 'seed'".replace(" ", "%20"), token)["runs"]
        [one] = body
        assert (one["experiment_name"], one["leg"], one["params"]["seed"]) == ("seeds", 2, "1")
        points: Any = server.json("GET", f"/api/v1/runs/{one['id']}/points?metric=train_loss", token)["points"]
        assert [point["step"] for point in points] == list(range(6))
        assert token not in server.log


EVERY_RANK = """
import os, requests
rank = os.environ["ONWARD_RANK"]
for step in range(5):
    body = {"name": f"loss_{rank}", "value": 1.0, "step": step}
    assert requests.post(f"{os.environ['TRACKER_API']}/runs/any/metrics", json=body).status_code == 200
"""


@pytest.mark.takes("pair")
def test_the_ranks_of_each_node_find_a_relay_there(alice: Person) -> None:
    alice.write("ranks.py", EVERY_RANK)
    sizes = ("--nodes", "2", "--ntasks-per-node", "1", "--mem", "300M", "--time", "3:00", "--name", "ranks", "--launcher", "srun")
    run = alice.submit(*sizes, "--", alice.python, "ranks.py")
    assert run.until_over(within=300)["state"] == "finished", run.log()
    logged = {path.name: path.read_text() for path in (run.folder / "spool").glob("leg-0001.train-relay*.jsonl")}
    assert sorted(logged) == ["leg-0001.train-relay-n1.jsonl", "leg-0001.train-relay.jsonl"]
    assert all(text.count('"m":{"loss_') == 5 for text in logged.values())
    assert all(f'"loss_{rank}"' in "".join(logged.values()) for rank in (0, 1))
