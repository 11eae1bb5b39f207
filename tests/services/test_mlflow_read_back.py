"""What MLflow's client reads back from us equals what it reads back from MLflow's own server, for the same scripts (in `mlflow/`).

MLflow's own answers are kept beside them, written by the same scripts against mlflow 3.17.2's server. The clients are real (`clients`).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.services.served import served

HERE = Path(__file__).parent / "mlflow"
DELIBERATE = {
    "calls": {
        "not_a_number_and_infinite": "we keep infinities; MLflow's database turns them into the largest number",
        "rename_experiment_to_a_name_that_is_taken": "we say RESOURCE_ALREADY_EXISTS; MLflow passes on what its database says",
    },
    "further": {
        "an artifact under a file": "we say 409, and why; MLflow fails inside",
        "an artifact with a number sign": "we say 400, and why; MLflow fails inside",
        "an experiment's name of spaces": "we take none for a name",
        "get_experiment('99999999999999999999')": "we say RESOURCE_DOES_NOT_EXIST; MLflow fails inside",
        "rename a deleted experiment": "we say INVALID_PARAMETER_VALUE; MLflow fails inside",
    },
    "logged_models": {
        "a metric of a model that is not there": "we say RESOURCE_DOES_NOT_EXIST; MLflow passes on what its database says",
        "a model of a run that is not there": "we say RESOURCE_DOES_NOT_EXIST; MLflow takes it",
        "log a param again": "a param that changes is no error, as with runs",
        "outputs of a run again": "said again it is the same; MLflow passes on what its database says",
        "search_logged_models[status != 'READY']": "MLflow finds no status by its name",
        "search_logged_models[status = 'READY']": "MLflow finds no status by its name",
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(DELIBERATE))
def test_a_client_reads_back_what_it_reads_back_from_mlflow(client: tuple[str, Path], script: str, tmp_path: Path) -> None:
    version, python = client
    if script == "logged_models" and version == "2":
        pytest.skip("clients of 2.x know no logged models")
    ours = tmp_path / "ours.json"
    with served(tmp_path / "server") as server:
        env = {**os.environ, "MLFLOW_TRACKING_TOKEN": server.token}
        done = subprocess.run(
            [str(python), str(HERE / f"{script}.py"), server.url, str(ours)], env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr[-3000:]
    expected = json.loads((HERE / f"{'answers' if script == 'calls' else script}-{version}.json").read_text())
    body = json.loads(ours.read_text())
    other = {name: (answer, body.get(name)) for name, answer in expected.items() if body.get(name) != answer}
    assert other.keys() == DELIBERATE[script].keys(), "\n".join(
        f"{name}: MLflow {theirs}, ours {mine}" for name, (theirs, mine) in other.items()
    )
