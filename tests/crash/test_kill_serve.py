"""Whoever serves the gateway's requests is killed -9 at its strokes: one run, one job, one answer, whichever stroke it was."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
EVERY = 3  # of some fifty strokes: all of them are `python -m tests.serve_kills FOLDER`


@pytest.mark.slow
@pytest.mark.parametrize("how", ["restart", "takeover"])
def test_a_request_has_one_run_one_job_and_one_answer_wherever_its_server_was_killed(tmp_path: Path, how: str) -> None:
    argv = [sys.executable, "-m", "tests.serve_kills", str(tmp_path), str(EVERY), how]
    done = subprocess.run(argv, cwd=REPO, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    body = [json.loads(line) for line in done.stdout.splitlines()]
    assert [course["killed"] for course in body] == [True] * (len(body) - 1) + [False]
    assert len(body) > 10
    ends = {json.dumps({key: course[key] for key in ("runs", "jobs", "answers", "state")}) for course in body}
    assert ends == {json.dumps({"runs": 1, "jobs": 1, "answers": ["done"], "state": "settled"})}
