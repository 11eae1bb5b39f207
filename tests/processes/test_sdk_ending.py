"""A training started by hand has no supervisor: it says itself how it ended, as far as Python knows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from onward.sdk import contract, process_identity
from onward.sdk.unmanaged.exit_state import exit_state


def ended(script: str, tmp_path: Path) -> list[dict[str, Any]]:
    """What the script's run told, after its process has ended."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("ONWARD_")}
    subprocess.run(
        [sys.executable, "-c", script],
        env={**env, contract.ROOT: str(tmp_path), "LOGNAME": "ada"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    return [json.loads(line) for path in sorted(tmp_path.rglob("*.jsonl")) for line in path.read_text().splitlines()]


BEGIN = "import onward, os, sys, threading\nrun = onward.init(name='digits')\nrun.log({'loss': 1.0})\n"


def test_a_process_says_who_it_is(tmp_path: Path) -> None:
    begun = ended(BEGIN, tmp_path)[0]
    assert (begun["user"], begun["name"], begun["process"]["pid"]) == ("ada", "digits", begun["pid"])
    here = process_identity.this_machine()
    assert {key: begun["process"][key] for key in here} == here
    assert process_identity.is_alive(begun["process"], here) is False
    assert process_identity.is_alive(process_identity.this_process(), here) is True


@pytest.mark.parametrize(
    ("script", "state", "reason"),
    [
        ("raise ValueError('no\\nsuch class')", "failed", "ValueError: such class"),
        ("raise MemoryError", "failed", "MemoryError"),
        ("raise KeyboardInterrupt", "cancelled", "interrupted"),
        ("sys.exit(3)", "failed", "exit code 3"),
        ("sys.exit('no data')", "failed", "no data"),
        ("sys.exit(75)", "waiting", "saved; start it again to continue"),
        ("run.finish(exit_code=1)", "failed", "exit code 1"),
        ("sys.excepthook = sys.__excepthook__\nimport onward\nraise ValueError", "finished", ""),  # who hides it from us
    ],
)
def test_a_bad_end_is_told_with_its_reason(script: str, state: str, reason: str, tmp_path: Path) -> None:
    *_, last = ended(BEGIN + script, tmp_path)
    found = ("finished", "") if last["kind"] == "finish" else (last["state"], last["reason"])
    assert found == (state, reason)


@pytest.mark.parametrize("script", ["", "sys.exit()", "sys.exit(0)", "run.finish()", "onward.finish(); sys.exit(4)"])
def test_a_script_that_comes_to_its_end_has_finished_and_says_so_once(script: str, tmp_path: Path) -> None:
    kinds = [record.get("kind") for record in ended(BEGIN + script, tmp_path)]
    assert kinds == ["init", None, "finish"]


def test_a_thread_and_a_forked_child_that_leave_are_not_the_training(tmp_path: Path) -> None:
    script = BEGIN + "thread = threading.Thread(target=sys.exit, args=(3,)); thread.start(); thread.join()\n"
    script += "child = os.fork()\nif child == 0: sys.exit(5)\nos.waitpid(child, 0)\n"
    records = ended(script, tmp_path)
    assert [record.get("kind") for record in records] == ["init", None, "finish"]


def test_one_that_was_asked_to_stop_is_to_go_on(tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    stop.touch()
    script = f"import os; os.environ['{contract.STOP_FILE}'] = '{stop}'\n{BEGIN}assert run.should_stop()\nrun.finish()\n"
    assert ended(script, tmp_path)[-1]["state"] == "waiting"


def test_two_runs_of_a_process_end_each_for_itself(tmp_path: Path) -> None:
    records = ended(BEGIN + "onward.init(name='second').log({'loss': 2.0})\nraise ValueError('bad')", tmp_path)
    ends = [(record["kind"], record.get("reason")) for record in records if record.get("kind") in ("finish", "end")]
    assert sorted(ends) == [("end", "ValueError: bad"), ("finish", None)]


def test_in_a_job_the_exit_code_is_the_supervisors_to_see(tmp_path: Path) -> None:
    script = (
        f"import os; os.environ['{contract.CHECKPOINT_DIR}'] = os.environ['{contract.RUN_DIR}'] = '{tmp_path}'\n{BEGIN}raise ValueError"
    )
    assert [record.get("kind") for record in ended(script, tmp_path)] == ["init", None]


def test_no_exit_code_is_a_good_one() -> None:
    assert exit_state(None, None) == exit_state(None, 0) == exit_state(None, False) == ("finished", "")
    assert exit_state(None, True)[0] == "failed"


@pytest.mark.parametrize("change", [{"boot": "other"}, {"space": "pid:[1]"}, {"began": None}, {"pid": "7"}, {"boot": ""}])
def test_a_process_of_elsewhere_cannot_be_seen(change: dict[str, Any]) -> None:
    assert process_identity.is_alive({**process_identity.this_process(), **change}, process_identity.this_machine()) is None


def test_a_number_that_another_process_has_now_is_not_the_same() -> None:
    assert process_identity.is_alive({**process_identity.this_process(), "began": 1}, process_identity.this_machine()) is False


def test_one_that_is_dead_and_not_yet_waited_for_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        fields = {**process_identity.this_process(), "pid": child.pid, "began": process_identity.start_ticks(child.pid)}
        assert process_identity.is_alive(fields, process_identity.this_machine()) is True
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert process_identity.is_alive(fields, process_identity.this_machine()) is False
    finally:
        child.kill()
        child.communicate()
