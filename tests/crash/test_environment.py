"""Environments prepared before launch, in real runs on the local scheduler: what the training finds, and how a failure ends the run."""

from __future__ import annotations

import pytest

from tests.crash.conftest import Machine

pytestmark = pytest.mark.slow

SAYS = "print('found', os.environ.get('GREETING'), onward.__name__, flush=True)\n"


def test_the_training_finds_what_was_set_up_and_the_log_what_was_printed(machine: Machine) -> None:
    run = machine.submit(SAYS, "--env", "WORD=hello", "--setup", "echo setting up", "--setup", 'export GREETING="$WORD there" PYTHONPATH=')
    assert run.until_over()["state"] == "finished"
    assert run.output() == "found hello there onward\n"
    assert "setting up\n" in run.output("err")


def test_a_failing_line_ends_the_run_after_two_legs_and_is_its_cause(machine: Machine) -> None:
    run = machine.submit(SAYS, "--setup", "true", "--setup", "echo no such package; false")
    shown = run.until_over()
    assert (shown["state"], len(shown["legs"])) == ("failed", 2)
    assert "setup line 2 `echo no such package; false` failed with exit code 1" in shown["reason"]
    assert run.output() == ""
    assert "no such package" in run.output("err")
    assert "no such package" in machine.onward("show", run.id).stdout


def test_a_run_that_is_stopped_while_it_prepares_ends_as_asked(machine: Machine) -> None:
    run = machine.submit(SAYS, "--setup", "echo preparing; sleep 600", "--time", "10:00")
    run.until(lambda _: "preparing" in run.output("err"))
    machine.onward("stop", run.id)
    assert run.until_over()["state"] == "cancelled"
    assert run.output() == ""


def test_a_run_that_is_cancelled_while_it_prepares_ends_as_asked(machine: Machine) -> None:
    run = machine.submit(SAYS, "--setup", "echo preparing; sleep 600", "--time", "10:00")
    run.until(lambda _: "preparing" in run.output("err"))
    machine.onward("cancel", run.id)
    assert run.until_over()["state"] == "cancelled"
    assert run.output() == ""


def test_preparing_that_takes_longer_than_half_of_the_leg_is_named(machine: Machine) -> None:
    shown = machine.submit(SAYS, "--setup", "sleep 600", "--time", "0:20").until_over()
    assert shown["state"] == "failed"
    assert "setup line 1 `sleep 600` took more than" in shown["reason"]
