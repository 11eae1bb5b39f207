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


@pytest.mark.parametrize(
    ("script", "flags"),
    [(ASKED + TRAINER.replace("STEP", "100"), ()), (ASKED, ("--checkpoints", "own"))],
    ids=["the Trainer's note", "its own word"],
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
