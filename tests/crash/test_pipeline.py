"""A whole pipeline on one machine: left alone, killed with -9 again and again, stopped by an environment that cannot be built."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from onward.operations.context import OperationsContext
from onward.operations.repair.tend import tend
from tests.crash.conftest import Machine

FILE = """
name: count
cluster: local
environments:
  main: {tool: none, setup: ["echo one", "echo two", SETUP]}
defaults:
  environment: main
  resources: {time: "5:00", mem: 200M, cpus-per-task: 1}
  limits: {max-restarts: 20}
stages:
  prepare: {command: PYTHON prepare.py}
train:
  needs: prepare
  command: PYTHON train.py
benchmark:
  - name: odd
    command: PYTHON score.py {checkpoint} {shard} {items.done}
    checkpoints: all
    shards: 2
    retries: 20
workers: {max-running: 2}
upload: {to: ARCHIVE, what: [summary, results, checkpoints, logs]}
"""

PREPARE = "import time; time.sleep(0.3)\n"

TRAIN = """
import json, sys, time
from pathlib import Path
import onward
run = onward.init(total_steps=60)
before = run.resume()
step = json.loads((Path(before) / "s.json").read_text()) if before else -1
while step < 59:
    step += 1
    run.log({"loss": 1 / (step + 1)}, step=step)
    time.sleep(0.1)
    stop = run.should_stop()
    if stop or step % 20 == 19:
        with run.checkpoint(step) as folder:
            (folder / "s.json").write_text(json.dumps(step))
    if stop:
        sys.exit(75)
run.finish()
"""

SCORE = """
import json, sys, time
from pathlib import Path
checkpoint, shard, done = Path(sys.argv[1]), int(sys.argv[2]), set(Path(sys.argv[3]).read_text().split())
step = json.loads((checkpoint / "s.json").read_text())
for item in range(6):
    if str(item) not in done:
        time.sleep(0.1)
        print(json.dumps({"item": item, "score": (step + item) * (1 + shard)}), flush=True)
"""

KILLS = 5


@pytest.fixture
def project(machine: Machine) -> Machine:
    for name, text in (("prepare.py", PREPARE), ("train.py", TRAIN), ("score.py", SCORE)):
        (machine.home / name).write_text(text)
    return machine


def begin(machine: Machine, *, setup: str = "echo three") -> Path:
    (machine.home / "pipeline.yaml").write_text(
        FILE.replace("PYTHON", sys.executable).replace("SETUP", json.dumps(setup)).replace("ARCHIVE", str(machine.home / "archive"))
    )
    body = json.loads(machine.onward("pipeline", "run", "pipeline.yaml", "--json").stdout)
    return Path(body["folder"])


def show(machine: Machine, folder: Path) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(machine.onward("pipeline", "show", str(folder), "--json").stdout)
    return shown


def until_over(machine: Machine, folder: Path, *, within: float = 240, tended: bool = False) -> dict[str, Any]:
    give_up = time.monotonic() + within
    while not (folder / "params" / "over.json").exists():
        if time.monotonic() > give_up:
            logs = "".join(path.read_text() for path in folder.parent.glob("*/logs/*.log"))
            pytest.fail(f"it is not over after {within} s: {json.dumps(show(machine, folder), indent=1)}\n{logs}")
        if tended:
            tend(OperationsContext(env=machine.environment), grace=2.0)
        time.sleep(0.5)
    return show(machine, folder)


def until_uploaded(machine: Machine, folder: Path, *, tended: bool = False) -> set[str]:
    """All that lies where it is uploaded to, once that is all there is."""
    give_up = time.monotonic() + 60
    while not (folder / "params" / "uploads" / "all").exists():
        assert time.monotonic() < give_up, show(machine, folder)["upload"]
        if tended:
            tend(OperationsContext(env=machine.environment), grace=2.0)
        time.sleep(0.5)
    archive = machine.home / "archive"
    checked = subprocess.run(["sha256sum", "-c", "--quiet", f"{folder.name}/SHA256SUMS"], cwd=archive, capture_output=True, text=True)
    assert not checked.returncode, checked.stderr
    return {str(path.relative_to(archive)) for path in archive.rglob("*") if path.is_file()}


def must_be_uploaded(folder: Path) -> set[str]:
    name = folder.name
    return {
        *(f"{name}/results/tasks/{id}/result.json" for id in EXPECTED),
        *(f"{name}/results/checkpoints/train.step-{step:08d}/s.json" for step in (19, 39, 59)),
        *(f"{name}/results/summary.{format}" for format in ("md", "csv", "json", "html")),
        *(f"{name}-{member}/logs/supervisor.log" for member in ("env-main", "prepare", "train")),
        f"{name}/logs/pipeline.log",
    }


def cells(folder: Path) -> dict[str, float]:
    found = sorted((folder / "results" / "tasks").glob("*/result.json"))
    return {path.parent.name: json.loads(path.read_text())["scores"]["score"]["value"] for path in found}


def printed(folder: Path) -> Counter[tuple[str, int]]:
    """How often each item was done."""
    done: Counter[tuple[str, int]] = Counter()
    for path in (folder / "results" / "tasks").glob("*/out-*.txt"):
        for line in path.read_text().split("\n")[:-1]:
            done[path.parent.name, json.loads(line)["item"]] += 1
    return done


EXPECTED = {
    f"train.{step:08d}.odd.seed-0.shard-{shard}-of-2": sum((step + item) * (1 + shard) for item in range(6)) / 6
    for step in (19, 39, 59)
    for shard in (0, 1)
}


def processes_of(machine: Machine) -> list[int]:
    """All that belong to this test's root and queue, keeper and all."""
    marks = [machine.environment[name].encode() for name in ("ONWARD_STATE_DIR", "ONWARD_ROOT")]
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
        except OSError:
            continue
        if int(process.name) != os.getpid() and any(mark in text for mark in marks):
            found.append(int(process.name))
    return found


def until_a_leg_lives(machine: Machine, folder: Path) -> None:
    give_up = time.monotonic() + 60
    over = folder / "params" / "over.json"
    while not over.exists() and not any(b"supervisor.pyz" in _words(pid) for pid in processes_of(machine)):
        assert time.monotonic() < give_up, "no job of the pipeline started"
        time.sleep(0.1)


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.slow
def test_a_pipeline_carries_itself_to_its_end(project: Machine) -> None:
    folder = begin(project)
    answer = until_over(project, folder)
    assert (answer["state"], answer["cause"]) == ("finished", "all stages and tasks are done"), answer
    assert [(stage["name"], stage["state"]) for stage in answer["stages"]] == [
        ("env-main", "finished"),
        ("prepare", "finished"),
        ("train", "finished"),
    ]
    assert cells(folder) == EXPECTED and set(printed(folder).values()) == {1}
    log = (folder / "logs" / "pipeline.log").read_text()
    assert log.index("count-worker-001 is queued") < log.index("the pipeline is over"), "while it trained"
    assert until_uploaded(project, folder) >= must_be_uploaded(folder)


@pytest.mark.slow
def test_everything_killed_at_five_moments_and_tended_gives_the_same_table_and_no_item_twice(project: Machine, seed: int) -> None:
    chance = random.Random(seed)
    folder = begin(project)
    for _ in range(KILLS):
        until_a_leg_lives(project, folder)  # a job that is killed each time before it begins is lost, and after some of them its run ends
        time.sleep(chance.uniform(0.5, 4.0))
        for pid in processes_of(project):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        tend(OperationsContext(env=project.environment), grace=0.0)
    answer = until_over(project, folder, tended=True)
    logs = "".join(f"== {path}\n{path.read_text()}" for path in sorted(folder.parent.glob("*/logs/*")) if path.is_file())
    assert answer["state"] == "finished", f"seed {seed}: {json.dumps(answer, indent=1)}\n{logs}"
    assert cells(folder) == EXPECTED, seed
    assert set(printed(folder).values()) == {1}, (seed, printed(folder))
    assert until_uploaded(project, folder, tended=True) >= must_be_uploaded(folder), seed


@pytest.mark.slow
def test_an_environment_that_cannot_be_built_stops_before_any_training_is_queued_and_its_line_is_told(project: Machine) -> None:
    folder = begin(project, setup="echo all is lost; false")
    answer = until_over(project, folder)
    assert answer["state"] == "failed"
    assert "setup line 3 `echo all is lost; false` failed with exit code 1" in json.dumps(answer)
    shown = json.loads(project.onward("show", answer["stages"][0]["run"], "--json").stdout)
    assert "all is lost" in json.dumps(shown)
    assert not list(Path(f"{folder}-train").glob("journal/*")), "the training was never asked for"
    assert answer["stages"][2]["why"] == "will not start: env-main ended failed"


@pytest.mark.slow
def test_a_cancelled_pipeline_ends_its_jobs_and_goes_on_when_it_is_asked_to(project: Machine) -> None:
    folder = begin(project)
    give_up = time.monotonic() + 60
    while not list(Path(f"{folder}-train").glob("results/checkpoints/leg-*")):
        assert time.monotonic() < give_up
        time.sleep(0.2)
    project.onward("pipeline", "cancel", folder.name)
    answer = until_over(project, folder, within=30)
    assert (answer["state"], answer["cause"]) == ("cancelled", f"cancelled by {answer['cause'].split()[-1]}")
    assert answer["workers_live"] == 0
    project.onward("pipeline", "rerun", folder.name, "--failed-only")
    answer = until_over(project, folder)
    assert answer["state"] == "finished"
    assert cells(folder).items() >= EXPECTED.items(), "and those of a checkpoint that was saved when it was cancelled"
    assert set(printed(folder).values()) == {1}
