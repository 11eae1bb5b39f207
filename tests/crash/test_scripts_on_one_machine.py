"""Batch scripts on one machine: what happens at the limit, after a crash, and where their output cannot go."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.crash.conftest import LocalRun, Machine


def submit(machine: Machine, body: str, *flags: str, lines: str = "") -> LocalRun:
    (machine.home / "job.sh").write_text(f"#!/bin/bash\n#SBATCH --mem=100M --output=job.%j.txt {lines}\n{body}\n")
    data = json.loads(machine.onward("submit", "--json", "--cluster", "local", *flags, "job.sh").stdout)
    return LocalRun(machine=machine, id=data["id"], folder=Path(data["folder"]))


def over(run: LocalRun) -> dict[str, Any]:
    return run.until(lambda shown: shown["state"] in ("finished", "failed", "cancelled"), within=180)


def ends(shown: dict[str, Any]) -> list[str]:
    return [leg["end"] for leg in shown["legs"]]


def printed(machine: Machine) -> list[str]:
    """What all jobs printed, job after job."""
    files = sorted(machine.home.glob("job.*.txt"), key=lambda path: int(path.name.split(".")[1]))
    return [line for path in files for line in path.read_text().splitlines()]


def test_a_script_that_saves_its_own_way_goes_on_from_limit_to_limit(machine: Machine) -> None:
    """No checkpoint of ours in any leg; two limits in a row would end any other run."""
    body = 'echo $((n = $(cat n 2>/dev/null || echo 0) + 1)) > n\necho start $n\n[ "$n" = 4 ] && exit 0\nsleep 600'
    shown = over(submit(machine, body, "--time", "0:06"))
    assert shown["state"] == "finished" and ends(shown) == ["time_limit"] * 3 + ["done"]
    assert printed(machine) == ["start 1", "start 2", "start 3", "start 4"]


def test_max_legs_bounds_a_script_that_never_ends(machine: Machine) -> None:
    shown = over(submit(machine, "sleep 600", "--time", "0:06", "--max-legs", "2"))
    assert shown["state"] == "failed" and "max-legs (2)" in shown["reason"]


@pytest.mark.parametrize("trap", ["exit 1", "exit 0", "echo saved"], ids=["fails", "exits 0", "goes on"])
def test_whatever_a_script_does_when_it_is_ended_at_its_limit_the_next_leg_starts(machine: Machine, trap: str) -> None:
    body = f"[ -e seen ] && exit 0\ntouch seen\ntrap '{trap}' TERM\nsleep 600 & wait; wait"
    shown = over(submit(machine, body, "--time", "0:08"))
    assert shown["state"] == "finished" and ends(shown) == ["time_limit", "done"]


def test_a_script_that_ends_by_itself_in_its_last_seconds_is_done(machine: Machine) -> None:
    """It was not asked anything that it could hear, so 0 means what it says, however late."""
    body = 'while [ "$(date +%s)" -lt "$(( ${ONWARD_DEADLINE%.*} - 4 ))" ]; do sleep 0.2; done'
    shown = over(submit(machine, body, "--time", "0:12", "--max-legs", "1"))
    assert shown["state"] == "finished" and ends(shown) == ["done"]


def test_the_exit_code_of_a_script_is_not_dropped(machine: Machine) -> None:
    shown = over(submit(machine, "(sleep 600) &\necho broken >&2\nexit 3", "--time", "5:00"))
    assert shown["state"] == "failed" and ends(shown) == ["crashed", "crashed"]
    assert "exit code 3" in shown["reason"] and "broken" in shown["evidence"]
    assert printed(machine) == ["broken", "broken"]


def test_a_signal_that_the_script_set_reaches_its_shell_in_time(machine: Machine) -> None:
    body = "[ -e seen ] && exit 0\ntouch seen\ntrap 'echo told; exit 0' USR1\nsleep 600 & wait"
    shown = over(submit(machine, body, "--time", "0:20", lines="--signal=B:USR1@12"))
    assert shown["state"] == "finished" and ends(shown) == ["time_limit", "done"]
    assert printed(machine) == ["told"]


def test_a_place_for_output_that_cannot_be_written_to_hurts_nothing(machine: Machine) -> None:
    (machine.home / "logs").write_text("a file where a folder should be")
    run = submit(machine, "echo here", "--time", "5:00", lines="--error=logs/err.txt")
    shown = over(run)
    assert shown["state"] == "finished"
    assert printed(machine) == ["here"] and (run.folder / "logs" / "leg-0001.out").read_text() == "here\n"
    journal = (run.folder / "journal" / "leg-0001.jsonl").read_text()
    assert "output cannot be written to" in journal and str(machine.home / "logs" / "err.txt") in journal


def test_the_output_grows_while_the_script_runs(machine: Machine) -> None:
    submit(machine, "echo first\nuntil [ -e go ]; do sleep 0.1; done\necho last", "--time", "5:00")
    give_up = time.monotonic() + 60
    while printed(machine) != ["first"]:
        assert time.monotonic() < give_up, "nothing was printed"
        time.sleep(0.2)
    (machine.home / "go").touch()
    while printed(machine) != ["first", "last"]:
        assert time.monotonic() < give_up + 60, printed(machine)
        time.sleep(0.2)


def test_tasks_find_their_number_and_arguments_are_passed_as_they_are(machine: Machine) -> None:
    (machine.home / "sweep.sh").write_text('#!/bin/bash\n#SBATCH -a 1-2 -o %x.%a.txt -J sweep\nprintf "%s|" $SLURM_ARRAY_TASK_ID "$@"\n')
    body = json.loads(machine.onward("submit", "--json", "--cluster", "local", "sweep.sh", "a b", "{params.x}", "--time", "$HOME").stdout)
    for one in body["runs"]:
        over(LocalRun(machine=machine, id=one["id"], folder=Path(one["folder"])))
    for task in (1, 2):
        assert (machine.home / f"sweep.{task}.txt").read_text() == f"{task}|a b|{{params.x}}|--time|$HOME|"
