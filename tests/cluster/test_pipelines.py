"""The example's pipeline on real clusters: a training of several jobs, benchmarks of each checkpoint meanwhile, one table."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import REPO, Person

pytestmark = [pytest.mark.cluster]
EXAMPLE = REPO / "examples" / "pipeline"


def bring(person: Person) -> None:
    for path in EXAMPLE.iterdir():
        if path.is_file():
            shutil.copy(path, person.home / path.name)
            os.chown(person.home / path.name, pwd.getpwnam(person.user).pw_uid, -1)


def look(person: Person, folder: Path) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(person.onward("pipeline", "show", str(folder), "--json").stdout)
    return shown


def until_over(person: Person, folder: Path, *, within: float) -> dict[str, Any]:
    give_up = time.monotonic() + within
    while not (folder / "params" / "over.json").exists():
        if time.monotonic() > give_up:
            logs = "".join(path.read_text() for path in sorted(folder.parent.glob("*/logs/*.log")))
            pytest.fail(f"it is not over after {within} s: {json.dumps(look(person, folder), indent=1)}\n{logs}")
        time.sleep(1)
    return look(person, folder)


def closed_in_the_middle(person: Person, *words: str) -> Path:
    """A shell that starts the pipeline and stays with it, ended by the end of its terminal."""
    account = pwd.getpwnam(person.user)
    shell = subprocess.Popen(
        [person.python, "-m", "onward", "pipeline", "run", "pipeline.yaml", "--wait", *words],
        cwd=person.home,
        env=person.environment,
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert shell.stdout is not None
    name = shell.stdout.readline().strip()
    folder = Path(person.environment["ONWARD_ROOT"], name)
    give_up = time.monotonic() + 120
    while not list(folder.parent.glob(f"{name}-train/journal/leg-*.jsonl")):
        assert shell.poll() is None and time.monotonic() < give_up, person.onward("pipeline", "show", str(folder)).stdout
        time.sleep(0.5)
    os.killpg(shell.pid, signal.SIGHUP)
    shell.wait(30)
    shell.stdout.close()
    return folder


def items(folder: Path, benchmark: str) -> Counter[tuple[str, str]]:
    done: Counter[tuple[str, str]] = Counter()
    for path in (folder / "results" / "tasks").glob(f"*.{benchmark}.*/out-*.txt"):
        for line in path.read_text().split("\n")[:-1]:
            done[path.parent.name, str(json.loads(line)["item"])] += 1
    return done


def results(folder: Path) -> list[str]:
    return [path.parent.name for path in sorted((folder / "results" / "tasks").glob("*/result.json"))]


def assert_all_but_the_broken(folder: Path, record: dict[str, Any]) -> None:
    broken = {one["id"] for one in record["failed_tasks"]}
    assert broken and all(".margin." in id and "shard-1-of-2" in id for id in broken), record
    assert record["tasks"]["failed"] == len(broken) and record["tasks"]["done"] == len(results(folder))
    assert sum(record["tasks"].values()) == record["tasks"]["done"] + len(broken), "every other cell is filled"
    assert "is broken" in record["failed_tasks"][0]["evidence"]


def mend_and_finish(person: Person, folder: Path) -> dict[str, Any]:
    person.run("touch", str(next(folder.glob("code/**/score.py")).with_name("mended")))
    person.onward("pipeline", "rerun", folder.name, "--failed-only")
    return until_over(person, folder, within=240)


def test_the_examples_pipeline_fills_its_table_with_nothing_alive_outside_jobs(alice: Person) -> None:
    bring(alice)
    folder = closed_in_the_middle(alice)
    answer = until_over(alice, folder, within=900)
    assert answer["state"] == "failed" and "tasks failed" in answer["cause"]
    assert_all_but_the_broken(folder, answer)
    legs = json.loads(alice.onward("show", f"{folder}-train", "--json").stdout)["legs"]
    assert len(legs) >= 4, "the training took four jobs"
    tried = list((folder / "results" / "tasks").glob("*.noise.*/claim-*.json"))
    assert len(tried) >= 3, "one benchmark was longer than three jobs"
    assert len(items(folder, "noise")) == 100 and set(items(folder, "noise").values()) == {1}, "no item was done twice"
    log = (folder / "logs" / "pipeline.log").read_text()
    first = next(line for line in log.splitlines() if "worker-001 is queued" in line)
    assert first[:19] < time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(legs[-1]["ended"])), "benchmarks ran while it trained"
    assert Path(f"{folder.parent}/.environments").is_dir()
    answer = mend_and_finish(alice, folder)
    assert answer["state"] == "finished" and answer["tasks"]["failed"] == 0
    assert alice.queue() == [] or not any(line.split()[1].startswith("moons") and "PENDING" in line for line in alice.queue())


@pytest.mark.gridengine
def test_the_same_file_on_grid_engine(ge_alice: Person) -> None:
    bring(ge_alice)
    folder = closed_in_the_middle(ge_alice, "--cluster", "gridengine", "--set", "steps=90", "--set", "patience=0.1")
    answer = until_over(ge_alice, folder, within=600)
    assert_all_but_the_broken(folder, answer)
    assert set(items(folder, "noise").values()) == {1} and len(items(folder, "noise")) == 100
    assert mend_and_finish(ge_alice, folder)["state"] == "finished"
