"""Workers killed with -9 at random moments, others take over: every item is done, and none twice.

Two workers drain the same tasks. Again and again one of them is killed, and with it only what the kernel ends for it: half
of the benchmarks print their items from a grandchild, which lives on. The killed worker's next leg begins at once, as
after a node that was lost. An item is done when its line is printed, so the lines are counted. The rounds run in a
process of their own (`python -m tests.crash.test_kill_worker`), so that forking is cheap.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onward.model.pipelines.plan import Benchmark
from onward.model.pipelines.task import TaskState
from onward.pipelines.benchmarks.worker import main as worker
from onward.rundir.pipeline.tasks import AttemptOwners, read_result, task_dir, task_history, task_standings
from onward.sdk import contract
from tests.workers import ITEM_COUNT, ITEMS, Field, benchmark

KILLS = 60
WORKERS = 2
LONGEST = 0.3  # seconds that a worker is let live
SHARDS = 80  # work for longer than the kills take, also where the killer gets little of the machine
PATIENCE = 400.0  # seconds for all of it


def forked(field: Field, number: int) -> int:
    env = field.leg(number)
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.environ.clear()
        os.environ.update(env)
        code = worker([str(field.dir.path), "all"])
    finally:
        os._exit(code)


def play(folder: str, seed: str) -> None:
    chance = random.Random(int(seed))
    field = Field(root=Path(folder), benchmarks=_benchmarks(), cpus=2)
    workers = {number: forked(field, number) for number in range(1, WORKERS + 1)}
    kills = 0
    while kills < KILLS:
        time.sleep(chance.uniform(0, LONGEST))
        number = chance.choice(sorted(workers))
        os.kill(workers[number], signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(workers[number], 0)[1])
        if status == contract.EXIT_DONE:
            sys.exit(f"all work was done after {kills} kills: too little work for this machine")
        kills += status == -signal.SIGKILL
        workers[number] = forked(field, number)
    for pid in [*workers.values(), 0]:  # the last one: what the last that was killed held is open by now, whoever looked before
        status = os.waitstatus_to_exitcode(os.waitpid(pid or forked(field, 1), 0)[1])
        assert status == contract.EXIT_DONE, status
    print(kills)


def _benchmarks() -> tuple[Benchmark, ...]:
    slow = ITEMS.replace("sleep 0.01", "sleep 0.03")
    return benchmark("own", text=slow, shards=SHARDS), benchmark("grandchild", text=f"({slow}) & wait", shards=SHARDS)


@pytest.mark.slow
def test_workers_killed_60_times_leave_no_item_undone_and_do_none_twice(tmp_path: Path, seed: int) -> None:
    command = [sys.executable, "-m", "tests.crash.test_kill_worker", str(tmp_path), str(seed)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, f"{KILLS}\n"), f"seed {seed}:\n{done.stderr[-4000:]}"
    field = Field(root=tmp_path, benchmarks=_benchmarks())
    attempts = [attempt for task in field.tasks for attempt in task_history(task_dir(field.dir, task), AttemptOwners(field.root)).attempts]
    assert len(attempts) > len(field.tasks) + KILLS / 6, "the kills hit too little"
    assert {standing.state for standing in task_standings(field.dir, field.plan, field.tasks).values()} == {TaskState.DONE}
    for task in field.tasks:
        assert sorted(field.printed(task)) == [str(item) for item in range(1, ITEM_COUNT + 1)], f"{task.id}, seed {seed}"
        result = read_result(task_dir(field.dir, task))
        assert result and (result.items, result.repeated, result.scores["score"].value) == (ITEM_COUNT, 0, 3.0)


def test_an_item_that_a_killed_workers_grandchild_would_still_do_is_left_to_who_takes_over(tmp_path: Path) -> None:
    """The worker and its command are killed, a process that the command started lives on and would print item 2."""
    text = f"({ITEMS.replace('sleep 0.01', 'while [ -e hold ]; do sleep 0.02; done')}) & wait"
    field = Field(root=tmp_path, benchmarks=(benchmark(text=text),))
    (tmp_path / "hold").touch()
    folder = task_dir(field.dir, field.tasks[0])
    try:
        process = field.start(1)
        give_up = time.monotonic() + 20
        while not folder.out(1).exists():
            assert time.monotonic() < give_up
            time.sleep(0.01)
        process.kill()
        process.wait()
        other = field.start(2)  # not yet: leg 1 of worker 1 may live for all it knows
        assert other.wait(timeout=20) == contract.EXIT_DONE and not folder.claim(2).exists()
        field.leg(1)  # its next leg begins: the earlier one is over
        taking = field.start(2)
        while not folder.out(2).exists():
            assert time.monotonic() < give_up + 20
            time.sleep(0.01)
        (tmp_path / "hold").unlink()
        assert taking.wait(timeout=20) == contract.EXIT_DONE
        assert field.printed(field.tasks[0]) == ["1", "2", "3", "4", "5"] and folder.out(1).read_text() == ""
    finally:
        (tmp_path / "hold").unlink(missing_ok=True)
        field.end()


if __name__ == "__main__":
    play(*sys.argv[1:])
