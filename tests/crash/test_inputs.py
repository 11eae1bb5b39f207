"""Runs of requests on the local scheduler: their inputs, fetched in the job, once; and how a file that cannot be had ends them."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.gateway.rodan import Rodan
from tests.crash.conftest import LocalRun, Machine

pytestmark = pytest.mark.slow

RECIPE = """
name: pages
recipe:
  inputs: {Image: {required: true}, "Layer {n}": {}}
  settings: {Note: {type: str, to: params.note}}
  outputs: {Model: {file: model.bin, required: true}}
train:
  command: PYTHON train.py {params.note}
  params: {note: none}
  resources: {time: "00:10:00"}
"""
TRAIN = """
import hashlib, json, os, sys, onward
given = json.load(open(os.environ["ONWARD_REQUEST_FILE"]))
assert os.path.dirname(given["inputs"]["Image"]) == os.environ["ONWARD_INPUTS_DIR"]
sizes = {name: os.path.getsize(path) for name, path in given["inputs"].items()}
print(os.environ["ONWARD_LEG"], sys.argv[1:], given["settings"], sizes, flush=True)
assert not [name for name in os.environ if name.startswith(("RODAN_", "RABBITMQ_"))]
run = onward.init()
if run.resume() is None:
    with run.checkpoint(1) as folder:
        (folder / "state").write_text("1")
    sys.exit(75)
run.finish()
"""
SUBMIT = """
import json, os, sys
from dataclasses import replace
from pathlib import Path
from onward.model.requests.request import RequestInput
from onward.operations.submit.new_run import submit
from onward.operations.context import OperationsContext
from onward.inputs.recipes.catalog import read_recipe
told = json.load(sys.stdin)
recipe = read_recipe(Path(told["recipe"]))
inputs = [RequestInput(name=name, url=url) for name, url in told["inputs"].items()]
draft = recipe.fill(settings=told["settings"], inputs=inputs, request="r-1", hosts=[told["host"]])
draft = replace(draft, cluster="local", inputs=replace(draft.inputs, token=told["token"], token_for=told["url"]))
print(submit(OperationsContext(env=os.environ), draft, cwd=recipe.folder).path)
"""


@pytest.fixture
def rodan(tmp_path: Path) -> Iterator[Rodan]:
    media = tmp_path / "media"
    media.mkdir()
    for name in ("page.png", "0.png"):
        (media / name).write_bytes(name.encode() * 1000)
    with Rodan(media) as rodan:
        yield rodan


def send(machine: Machine, rodan: Rodan, **settings: str) -> LocalRun:
    recipe = machine.home / "recipes" / "pages"
    recipe.mkdir(parents=True)
    (recipe / "recipe.yaml").write_text(RECIPE.replace("PYTHON", sys.executable))
    (recipe / "train.py").write_text(TRAIN)
    inputs = {"Image": f"{rodan.url}/uploads/page.png", "Layer 0": f"{rodan.url}/uploads/0.png"}
    fields = {"recipe": str(recipe), "inputs": inputs, "settings": settings, "host": rodan.host, "url": rodan.url, "token": rodan.token}
    env = {**machine.environment, "RODAN_PASSWORD": rodan.password, "RABBITMQ_PASSWORD": rodan.password}
    done = subprocess.run(
        [sys.executable, "-c", SUBMIT], input=json.dumps(fields), env=env, cwd=machine.home, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    return LocalRun(machine=machine, id=json.loads((folder / "params" / "spec.json").read_text())["id"], folder=folder)


def holding(run: LocalRun, secret: str) -> dict[str, int]:
    """Files of the run that hold it, and their modes."""
    found = [path for path in run.folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    return {str(path.relative_to(run.folder)): stat.S_IMODE(path.stat().st_mode) for path in found}


def seen_by_others(secret: str) -> list[str]:
    """Processes with it in what they were started with."""
    found = []
    for one in (process / name for process in Path("/proc").glob("[0-9]*") for name in ("cmdline", "environ")):
        try:
            if secret.encode() in one.read_bytes():
                found.append(str(one))
        except OSError:
            continue
    return found


def test_inputs_are_fetched_once_for_all_legs_and_the_token_is_forgotten_with_the_last(machine: Machine, rodan: Rodan) -> None:
    run = send(machine, rodan, Note="; touch /tmp/onward-was-here $(id)")
    assert set(holding(run, rodan.token).items()) <= {("params/secrets/inputs.json", 0o600)}
    shown = run.until_over()
    assert (shown["state"], len(shown["legs"])) == ("finished", 2), run.output("err")
    note = "; touch /tmp/onward-was-here $(id)"
    sizes = {"Image": 8000, "Layer 0": 5000}
    assert run.output() == "".join(f"{leg} {[note]} {{'Note': {note!r}}} {sizes}\n" for leg in (1, 2))
    assert sorted(one.path for one in rodan.seen) == ["/uploads/0.png", "/uploads/page.png"]
    assert holding(run, rodan.token) == {}
    assert holding(run, rodan.password) == {}


def test_a_file_that_is_not_there_ends_the_run_at_once_and_is_its_reason(machine: Machine, rodan: Rodan) -> None:
    (rodan.media / "page.png").unlink()
    run = send(machine, rodan)
    shown = run.until_over()
    assert (shown["state"], len(shown["legs"])) == ("failed", 1)
    assert f"cannot fetch input 'Image': {rodan.host} answered 404 Not Found" in shown["reason"]
    assert run.output() == ""
    assert holding(run, rodan.token) == {}


def test_a_run_that_is_stopped_while_it_fetches_ends_as_asked(machine: Machine, rodan: Rodan) -> None:
    rodan.behave("/uploads/page.png", "silent")
    run = send(machine, rodan)
    run.until(lambda _: rodan.seen)
    assert seen_by_others(rodan.token) == []
    machine.onward("stop", run.id)
    assert run.until_over()["state"] == "cancelled"
    assert run.output() == ""
