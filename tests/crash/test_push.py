"""A server that cannot see the runs folder: jobs send their records, the server dies meanwhile, and everything is there once."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.crash.conftest import Machine
from tests.seed_tracker import TRAIN
from tests.servers import Running

pytestmark = pytest.mark.slow


def name_the_server(machine: Machine, server: Running, token: str) -> None:
    path = machine.home / "token"
    path.write_text(token)
    path.chmod(0o600)
    settings = machine.home / "settings.toml"
    settings.write_text(f'[tracker]\nurl = "{server.url}"\ntoken-file = "{path}"\n')
    machine.environment["ONWARD_SETTINGS"] = str(settings)


def points(server: Running, token: str, run: str, metric: str) -> list[tuple[int, float]]:
    body: Any = server.json("GET", f"/api/v1/runs/{run}/points?metric={metric}", token)
    return [(point["step"], round(point["value"], 6)) for point in body["points"]]


def test_a_run_reaches_a_server_that_sees_nothing_of_it_and_dies_meanwhile(machine: Machine, tmp_path: Path) -> None:
    with Running(tmp_path / "server") as server:
        token = server.token("--name", "ada")
        name_the_server(machine, server, token)
        run = machine.submit(TRAIN, "--time", "0:45", name="seed", prelude="", arguments=("--epochs", "25", "--pause", "0.4"))
        secret = run.folder / "params" / "secrets" / "tracker-token"
        assert (secret.stat().st_mode & 0o777, secret.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert secret.read_text() not in (run.folder / "params" / "spec.json").read_text()
        until = time.monotonic() + 90
        while not points_so_far(server, token, run.id):
            assert time.monotonic() < until, (run.folder / "logs" / "supervisor.log").read_text()
            time.sleep(0.3)
        server.kill()
        time.sleep(2)
        server.start()
        assert run.until_over(within=180)["state"] == "finished"
        machine.onward("sync", str(run.folder))
        expected = [(step, round(1 / (step + 1), 6)) for step in range(25)]
        assert points(server, token, run.id, "train_loss") == expected
        again = machine.onward("sync", str(run.folder))
        assert ": 0 bytes sent" in again.stdout
        assert points(server, token, run.id, "train_loss") == expected
        logs: Any = server.json("GET", f"/api/v1/runs/{run.id}/logs", token)["logs"]
        assert {(log["leg"], log["stream"]) for log in logs} >= {(0, "supervisor"), (1, "out")}
        for log in logs:
            name = "supervisor.log" if log["stream"] == "supervisor" else f"leg-{log['leg']:04d}.{log['stream']}"
            sent = server.ask("GET", f"/api/v1/runs/{run.id}/logs/{log['leg']}/{log['stream']}?limit=4000000", token=token)[2]
            assert sent == (run.folder / "logs" / name).read_bytes(), name
        shown: Any = server.json("GET", f"/api/v1/runs/{run.id}", token)
        assert (shown["state"], shown["params"]["epochs"], shown["source"]) == ("finished", "25", "onward")
        # the run's token is for this run alone
        other: Any = server.json("POST", "/api/v1/runs", token, {"name": "other"})
        status, _, _ = server.ask("POST", f"/api/v1/runs/{other['id']}/metrics", token=secret.read_text(), json={"name": "x", "value": 1})
        assert status == 403


def points_so_far(server: Running, token: str, run: str) -> bool:
    status, _, body = server.ask("GET", f"/api/v1/runs/{run}/points?metric=train_loss", token=token)
    return status == 200 and len(json.loads(body)["points"]) > 2


def test_a_server_that_is_away_at_submit_keeps_no_run_from_finishing_and_gets_it_later(machine: Machine, tmp_path: Path) -> None:
    with Running(tmp_path / "server") as server:
        token = server.token("--name", "ada")
        name_the_server(machine, server, token)
        server.kill()
        run = machine.submit("run = onward.init()\nfor s in range(5): run.log({'loss': float(s)}, step=s)\nrun.finish()")
        assert run.until_over()["state"] == "finished"
        assert machine.onward("sync", str(run.folder), check=False).returncode == 6
        server.start()
        machine.onward("sync", str(run.folder))
        assert points(server, token, run.id, "loss") == [(step, float(step)) for step in range(5)]


BY_HAND = """
import onward as wandb
wandb.init(project="sweep", name="mine", config={"lr": 0.1})
for step in range(7):
    wandb.log({"loss": 1.0 / (step + 1)})
wandb.finish()
"""


def test_a_training_by_hand_is_sent_by_hand(machine: Machine, tmp_path: Path) -> None:
    with Running(tmp_path / "server") as server:
        token = server.token("--name", "ada")
        name_the_server(machine, server, token)
        subprocess.run(
            [sys.executable, "-c", BY_HAND], env=machine.environment, cwd=machine.home, check=True, capture_output=True, timeout=60
        )
        [folder] = (Path(machine.environment["ONWARD_ROOT"]) / "by-hand").iterdir()
        for _ in range(2):
            body = json.loads(machine.onward("sync", "--json", str(folder)).stdout)
        shown: Any = server.json("GET", f"/api/v1/runs/{body['run']}", token)
        assert (shown["state"], shown["params"]["lr"]) == ("finished", "0.1")
        assert server.json("GET", f"/api/v1/experiments/{shown['experiment']}", token)["name"] == "sweep"
        assert points(server, token, body["run"], "loss") == [(step, round(1 / (step + 1), 6)) for step in range(7)]
        assert len(server.json("GET", "/api/v1/runs", token)["runs"]) == 1


def test_a_folder_that_is_none_and_a_token_that_others_may_read_are_refused(machine: Machine, tmp_path: Path) -> None:
    with Running(tmp_path / "server") as server:
        name_the_server(machine, server, "owu_wrong_token")
        done = machine.onward("sync", str(tmp_path), check=False)
        assert done.returncode == 3 and "is not a run folder" in done.stderr
        (machine.home / "token").chmod(0o644)
        done = machine.onward("sync", str(tmp_path), check=False)
        assert done.returncode == 4 and "mode 644" in done.stderr
