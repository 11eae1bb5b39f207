"""MLflow's own client in a job, with no server anywhere: the relay answers, and the tracker later has it all."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from onward.model.identity import hex_id
from onward.model.spec import spec_to_json
from onward.rundir.layout import LegLocal, RunDir
from onward.rundir.mirror import carry
from onward.supervisor.preparation.environment import relay_variables
from onward.supervisor.relay.routes import start_relay
from onward.tracker.runs.artifacts import artifacts_of
from onward.tracker.store import Tracker
from tests.histories import make_spec

SCRIPT = Path(__file__).parent / "mlflow" / "in_a_job.py"


def live_leg(python: Path, dir: RunDir, local: LegLocal, leg: int, answers: Path) -> Any:
    relay = start_relay(make_spec(), dir, local, leg=leg)
    assert relay
    try:
        env = {**os.environ, **relay_variables(local), "GIT_PYTHON_REFRESH": "quiet"}
        done = subprocess.run([str(python), str(SCRIPT), str(answers)], env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
    finally:
        relay.close(within=30)
    carry(local, dir)
    return json.loads(answers.read_text())


@pytest.mark.slow
def test_a_client_in_a_job_finds_its_run_in_every_leg_and_the_tracker_has_all_of_it(client: tuple[str, Path], tmp_path: Path) -> None:
    _, python = client
    dir = RunDir(tmp_path / "2026-11-15_A_digits")
    dir.make()
    dir.spec.write_text(json.dumps(spec_to_json(make_spec())))
    models = []
    for leg in (1, 2):
        local = LegLocal(tmp_path / f"node-{leg}")
        local.make()
        body = live_leg(python, dir, local, leg, tmp_path / f"answers-{leg}.json")
        run = hex_id("k3x9q2m7")
        assert (body["id"], body["again"], body["found"], body["experiment"]) == (run, run, [run], True)
        assert body["params"] == {"lr": "0.1", "layers": "3"}
        assert {key: body["metrics"][key] for key in ("nan", "inf")} == {"nan": "nan", "inf": "inf"}
        assert (body["team"], body["gone"], body["status"]) == ("vision", None, "FINISHED")
        assert body["history"] == list(range(30))
        assert body["files"] == ["d.json", "more", "notes"] and body["text"] == "hello"
        if "model" in body:
            assert body["model"]["status"].endswith("READY") and body["model"]["metrics"] == [0.5]
            models.append(body["model"]["id"])
    with Tracker.open(tmp_path / "onward.db") as tracker:
        assert tracker.files.look([tmp_path]).problems == []
        view = tracker.runs.view("k3x9q2m7")
        assert (view.params["lr"], view.tags["team"], "gone" in view.tags) == ("0.1", "vision", False)
        assert [point.step for point in tracker.series.points("k3x9q2m7", "loss")] == list(range(30))
        assert [file.path for file in artifacts_of(tracker, "k3x9q2m7")] == ["d.json", "more/empty", "notes/a.txt"]
        assert sorted(model.id for model in tracker.models.of([view.info.experiment])) == sorted(models)
    assert (dir.artifacts / "more" / "empty").stat().st_size == 0
