"""Through a real sshd to another user's home: what comes of alice's pipeline is carol's there."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from beds.ssh import HOST, MFA_HOST, THERE, SshBed
from tests.cluster.conftest import Person

pytestmark = [pytest.mark.cluster]

FILE = """\
name: sent
cluster: local
stages:
  say: {{command: "python3 -c 'print(17)'", resources: {{time: "5:00", mem: 100M}}}}
upload: {{to: "{host}:tests/{name}/archive", what: [logs, summary], retries: 0}}
"""


@pytest.fixture
def archive(alice: Person) -> Iterator[Path]:
    if not SshBed().is_up():
        if os.environ.get("CI"):
            pytest.fail("the ssh bed is not up, and CI must have it: make beds")
        pytest.skip("the ssh bed is not up: make beds (Debian, root)")
    there = Path(pwd.getpwnam(THERE).pw_dir) / "tests" / alice.home.name
    there.mkdir(parents=True)
    for folder in (there.parent, there):
        shutil.chown(folder, THERE, THERE)
    yield there / "archive"
    shutil.rmtree(there, ignore_errors=True)


def started(alice: Person, host: str) -> Path:
    alice.write("pipeline.yaml", FILE.format(host=host, name=alice.home.name))
    body = json.loads(alice.onward("pipeline", "run", "pipeline.yaml", "--json").stdout)
    return Path(body["folder"])


def test_logs_and_the_table_arrive_at_another_host_and_their_checksums_hold_there(alice: Person, archive: Path) -> None:
    folder = started(alice, HOST)
    give_up = time.monotonic() + 90
    while not (folder / "params" / "uploads" / "all").exists():
        assert time.monotonic() < give_up, alice.onward("pipeline", "show", str(folder)).stdout
        time.sleep(1)
        if (folder / "params" / "over.json").exists():  # where the jobs' Python has no Onward, the summary is left to this
            alice.onward("tend", check=False)
    assert (archive / f"{folder.name}-say" / "logs" / "leg-0001.out").read_text() == "17\n"
    assert (archive / folder.name / "results" / "summary.html").stat().st_uid == pwd.getpwnam(THERE).pw_uid
    checked = subprocess.run(["sha256sum", "-c", "--quiet", f"{folder.name}/SHA256SUMS"], cwd=archive, capture_output=True, text=True)
    assert not checked.returncode, checked.stderr


def test_a_host_that_asks_a_question_is_a_problem_that_show_tells_and_the_pipeline_finishes(alice: Person, archive: Path) -> None:
    folder = started(alice, MFA_HOST)
    give_up = time.monotonic() + 90
    body = json.loads(alice.onward("pipeline", "show", str(folder), "--json").stdout)
    while body["state"] == "running" or not body["upload"]["problems"]:
        assert time.monotonic() < give_up, body
        time.sleep(0.5)
        body = json.loads(alice.onward("pipeline", "show", str(folder), "--json").stdout)
    assert body["state"] == "finished" and "Permission denied" in body["upload"]["problems"][0]
    assert not archive.exists()
