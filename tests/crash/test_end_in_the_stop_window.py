"""A training that reaches its end in the very seconds in which it was asked to stop costs no further leg."""

from __future__ import annotations

import pytest

from tests.crash.conftest import Machine

# It takes no notice of the request; it only happens to end after it.
ASKED = "import json, os, time\nwhile not os.path.exists(os.environ['ONWARD_STOP_FILE']):\n    time.sleep(0.05)\n"
TRAINER = """\
folder = os.path.join(os.environ["ONWARD_CHECKPOINT_DIR"], "checkpoint-100")
os.makedirs(folder, exist_ok=True)
note = json.dumps({"global_step": STEP, "max_steps": 100})
for name, content in (("model.safetensors", ""), ("rng_state.pth", ""), ("trainer_state.json", note)):
    with open(os.path.join(folder, name), "w") as file:
        file.write(content)
"""
# It happens to end after it, and never looks whether it is asked: it saves as a framework does, and reads the journal for this test.
UNAWARE = """\
import glob, os, time
open(os.path.join(os.environ["ONWARD_CHECKPOINT_DIR"], "epoch_3.pt"), "w").close()
journal = os.path.join(os.environ["ONWARD_RUN_DIR"], "journal", "leg-*.jsonl")
while "askedtostop" not in "".join(open(path).read() for path in glob.glob(journal)):
    time.sleep(0.1)
"""


@pytest.mark.parametrize(
    ("script", "flags"),
    [(ASKED + TRAINER.replace("STEP", "100"), ()), (ASKED, ("--checkpoints", "own")), (UNAWARE, ())],
    ids=["the Trainer's note", "its own word", "it never looked at the stop file"],
)
def test_one_that_shows_that_it_is_done_is_finished_and_its_next_leg_is_withdrawn(
    machine: Machine, script: str, flags: tuple[str, ...]
) -> None:
    run = machine.submit(script, "--time", "0:15", *flags, prelude="")
    shown = run.until_over()
    assert shown["state"] == "finished" and [leg["end"] for leg in shown["legs"] if leg["started"]] == ["done"]
    assert run.events("askedtostop") and run.events("withdrawn")


def test_one_that_does_not_show_it_goes_on_and_the_next_leg_tells(machine: Machine) -> None:
    script = ASKED.replace("while", "while not os.path.exists('done') and") + TRAINER.replace("STEP", "99") + "open('done', 'w').close()\n"
    run = machine.submit(script, "--time", "0:15", prelude="")
    shown = run.until_over()
    assert shown["state"] == "finished" and [leg["end"] for leg in shown["legs"] if leg["started"]] == ["time_limit", "done"]


def test_one_that_can_go_by_the_time_of_the_jobs_end_is_started_once_more(machine: Machine) -> None:
    script = UNAWARE.replace("while", "leave_at = float(os.environ['ONWARD_DEADLINE']) - 1\nwhile not os.path.exists('done') and")
    run = machine.submit(script + "open('done', 'w').close()\n", "--time", "0:15", prelude="")
    shown = run.until_over()
    assert shown["state"] == "finished" and [leg["end"] for leg in shown["legs"] if leg["started"]] == ["time_limit", "done"]
