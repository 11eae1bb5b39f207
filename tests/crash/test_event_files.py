"""Event files in a training's own places, on one machine: none of what was logged is lost, whatever dies."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from onward.rundir.event_files.frames import read_frames
from onward.rundir.event_files.scalar_events import read_event
from tests.crash.conftest import Machine

pytestmark = pytest.mark.slow

# As trainers do it: one writes below its checkpoints, the other below the folder it works in.
TRAINING = """
import event_files
out = os.environ["ONWARD_CHECKPOINT_DIR"]
name = f"events.out.tfevents.{time.time():.0f}.{os.uname().nodename}.{os.getpid()}.0"
folders = {"trainer": f"{out}/runs/Nov19_12-00-00_host", "lightning": "lightning_logs/version_0"}
resumed = os.environ.get("ONWARD_RESUME_NEWEST")
step = int(open(f"{resumed}/step").read()) if resumed else 0
while step < 60:
    time.sleep(0.2)
    step += 1
    for tag, folder in folders.items():
        event_files.write(event_files.Path(folder, name), [event_files.scalar(time.time(), step, tag, 1.0)])
    if step % 10 == 0:
        os.makedirs(f"{out}/checkpoint-{step}")
        open(f"{out}/checkpoint-{step}/step", "w").write(str(step))
"""


def test_a_kill_of_the_supervisor_costs_no_event_that_was_written(machine: Machine) -> None:
    (machine.home / "event_files.py").write_text((Path(__file__).parents[1] / "event_files.py").read_text())
    run = machine.submit(TRAINING, "--time", "5:00")
    run.until(lambda shown: shown["checkpoints"])
    os.kill(run.supervisor_pid(1), signal.SIGKILL)
    shown = run.until_over(within=180)
    assert shown["state"] == "finished" and len(shown["legs"]) >= 2, shown["reason"]
    found = list((run.folder / "results" / "tensorboard").rglob("*tfevents*"))
    events = [event for path in found for _, event in read_frames(path.read_bytes(), 0, read_event).found]
    assert {(tag, event.step) for event in events for tag, _ in event.values} == {
        (tag, step) for tag in ("trainer", "lightning") for step in range(1, 61)
    }
    assert {path.parent.relative_to(run.folder / "results" / "tensorboard").as_posix() for path in found} == {
        "runs/Nov19_12-00-00_host",
        "lightning_logs/version_0",
    }
