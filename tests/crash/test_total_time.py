"""The total-time of a run ends the leg in which it is used up, whatever limit the job has."""

from __future__ import annotations

import os
import signal

from tests.crash.conftest import Machine

IGNORES = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n"


def test_a_training_that_goes_on_and_on_has_its_total_time_and_no_leg_more(machine: Machine) -> None:
    run = machine.submit(IGNORES, "--time", "10:00", "--total-time", "0:16", prelude="")
    shown = run.until_over()
    [claimed], [ended] = run.events("claimed"), run.events("ended")
    assert (shown["state"], ended["end"]) == ("failed", "time_limit")
    assert "total-time 00:00:16" in shown["cause"]
    assert ended["at"] - claimed["at"] < 300, "its job had ten minutes"
    assert claimed["deadline"] <= claimed["at"] + 16


def test_a_leg_after_one_that_was_killed_has_what_is_left(machine: Machine) -> None:
    run = machine.submit(IGNORES, "--total-time", "0:40", prelude="")
    run.training_pid(1)
    os.kill(run.supervisor_pid(1), signal.SIGKILL)
    run.training_pid(2)
    first, second = run.events("claimed")
    [found] = run.events("found")
    assert first["deadline"] <= first["at"] + 40, "a job without a limit has this one"
    assert second["deadline"] <= second["at"] + 40 - (found["at"] - first["at"])
