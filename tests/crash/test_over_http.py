"""Runs asked for over HTTP, executed for real on one machine: submitted, cloned with another param, stopped and resumed; seen live."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.crash.conftest import Machine
from tests.http_load import wait_until
from tests.servers import Running

TRAIN = """\
import sys, time
import onward
run = onward.init()
start = run.resume_step
step = 0 if start is None else start + 1
last, pause = int(sys.argv[1]), float(sys.argv[2])
while step < last:
    run.log({"loss": 1 / (step + 1)}, step=step)
    if run.should_stop():
        with run.checkpoint(step) as folder:
            (folder / "state").write_text(str(step))
        sys.exit(75)
    time.sleep(pause)
    step += 1
run.finish()
"""


@pytest.mark.slow
def test_a_run_is_submitted_cloned_stopped_and_resumed_over_http(machine: Machine, tmp_path: Path) -> None:
    project = machine.home / "project"
    project.mkdir()
    (project / "train.py").write_text(TRAIN)
    draft = {
        "name": "short",
        "cluster": "local",
        "train": {"command": [sys.executable, "train.py", "{params.steps}", "{params.pause}"], "params": {"steps": 5, "pause": 0.0}},
    }
    settings = f'[server]\ncode = ["{machine.home}"]\n'
    server = Running(tmp_path / "server", settings=settings, root=tmp_path / "runs", state=tmp_path / "state")
    with server:
        token = server.token()

        def state(run: str) -> str:
            return str(server.json("GET", f"/api/v1/runs/{run}", token)["state"])

        first = server.json("POST", "/api/v1/runs", token, {"draft": draft, "folder": str(project)})["id"]
        wait_until(lambda: state(first) in ("finished", "failed"))
        assert state(first) == "finished"
        (project / "train.py").write_text("raise SystemExit('the code has changed since')")
        second = server.json("POST", f"/api/v1/runs/{first}/clone", token, {"params": {"steps": 400, "pause": 0.05}, "name": "long"})["id"]
        wait_until(lambda: bool(server.json("GET", f"/api/v1/runs/{second}/metrics", token)["metrics"].get("loss")))
        server.json("POST", f"/api/v1/runs/{second}/stop", token)
        wait_until(lambda: state(second) in ("cancelled", "finished", "failed"))
        assert state(second) == "cancelled"
        assert server.json("GET", f"/api/v1/runs/{second}/checkpoints", token)["checkpoints"]
        server.json("POST", f"/api/v1/runs/{second}/resume", token, {"limits": {"max-legs": 3}})
        wait_until(lambda: state(second) == "finished")

        def steps() -> list[int]:
            [chart] = server.json("GET", f"/api/v1/series?run={second}&metric=loss&buckets=1000", token)["series"]
            return list(chart["steps"])

        wait_until(lambda: len(steps()) == 400)  # the last records may be read a moment after the end
        assert steps() == list(range(400))
        assert server.json("GET", f"/api/v1/params/diff?run={first}&run={second}", token)["different"]["steps"] == ["5", "400"]
