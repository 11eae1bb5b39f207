"""Requests that nobody thought of, made from the OpenAPI: whatever is asked, no answer is a 5xx. Ours, older scripts' and MLflow's calls.

The two streams (`/live`, a log's `/follow`) are left out: they go on until the client leaves, and schemathesis waits for an end. Their
inputs are tried in tests/services/test_up_streams.py.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import PATIENCE, Running

SECONDS = 40  # of one run; the least part of it is ours
AT_LEAST = 300  # requests generated meanwhile, beside whatever else this machine does
STREAMS = "/live$|/follow$"
HERE = Path(__file__).resolve()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_no_request_that_the_openapi_describes_is_answered_by_a_5xx(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    db = request.getfixturevalue("address") if kind == "postgres" else None
    with Running(tmp_path, "--demo-data", "--no-tend", db=db, settings="[server]\nrequests = 0\n") as server:
        token = server.token("--rights", "admin")
        runs = [run["id"] for run in server.json("GET", "/api/v1/runs", token)["runs"]]
        asked = {"experiment_id": "0", "name": "m", "source_run_id": runs[0]}
        model = server.json("POST", "/api/2.0/mlflow/logged-models", token, asked)["model"]["info"]["model_id"]
        experiments = [str(one["id"]) for one in server.json("GET", "/api/v1/experiments", token)["experiments"]]
        command = [
            *(str(Path(sys.executable).with_name("schemathesis")), "run", f"{server.url}/api/openapi.json"),
            *("-H", f"Authorization: Bearer {token}", "--checks", "not_a_server_error", "--exclude-path-regex", STREAMS),
            *("--phases", "coverage,fuzzing", "--max-examples", "12", "--max-time", str(SECONDS), "--workers", "1"),
            *("--generation-database", "none", "--suppress-health-check", "all", "--warnings", "off", "--no-color"),
        ]
        there = {"THERE_RUN": runs, "THERE_EXPERIMENT": experiments, "THERE_MODEL": [model], "THERE_METRIC": ["loss", "val_accuracy"]}
        env = {
            **{key: value for key, value in os.environ.items() if "proxy" not in key.lower()},
            **{key: " ".join(values) for key, values in there.items()},
            "SCHEMATHESIS_HOOKS": "tests.services.schemathesis_hooks",
            "PYTHONPATH": str(HERE.parents[2]),
        }
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=PATIENCE + 5 * SECONDS, check=False)
        figures = server.ask("GET", "/metrics", token=token)[2].decode()
        said = server.log
    answers = {int(status): int(count) for status, count in re.findall(r'answers_total\{.*status="(\d+)"\} (\d+)', figures)}
    assert "not_a_server_error" not in done.stdout and "Server error" not in done.stdout, done.stdout[-5000:]
    assert {status for status in answers if status >= 500} == set(), done.stdout[-5000:]
    assert '"action": "fault"' not in said
    counted = re.search(r"(\d+) generated", done.stdout)
    assert counted and int(counted[1]) > AT_LEAST, done.stdout[-5000:] + done.stderr[-2000:]
