"""A training in another Python than Onward's own, with nothing installed in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.crash.conftest import LocalRun, Machine
from tests.interpreters import interpreter

TRAIN = """
import json, sys, time
import onward

run = onward.init(total_steps=10_000)
state = run.resume()
step = json.loads((state / "state.json").read_text())["step"] if state else 0
print("python %d.%d, leg %d, from step %d" % (sys.version_info[:2] + (run.leg, step)))
while True:
    step += 1
    run.log({"loss": 1.0 / step}, step=step)
    if run.leg == 2 and step % 20 == 0:
        break
    if run.should_stop():
        with run.checkpoint(step) as folder:
            (folder / "state.json").write_text(json.dumps({"step": step}))
        sys.exit(75)
    time.sleep(0.02)
run.finish()
"""


@pytest.mark.parametrize("version", ["3.8", "3.9"])
def test_a_training_in_an_older_python_goes_on_in_its_second_leg(version: str, machine: Machine) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}: install it as python{version} on PATH or with pyenv")
    (machine.home / "train.py").write_text(TRAIN)
    output = machine.onward("submit", "--json", "--cluster", "local", "--time", "0:08", "--", python, "train.py")
    run = LocalRun(machine=machine, id=json.loads(output.stdout)["id"], folder=Path(json.loads(output.stdout)["folder"]))
    shown = run.until_over()
    assert shown["state"] == "finished" and [leg["end"] for leg in shown["legs"]] == ["time_limit", "done"]
    first, second = run.output().splitlines()
    assert first == f"python {version}, leg 1, from step 0"
    assert second == f"python {version}, leg 2, from step {shown['legs'][0]['last_step']}"
