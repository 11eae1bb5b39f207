"""A worker drains benchmark tasks: here without a scheduler, with real commands."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onward.model.pipelines.attempt import AttemptEnd
from onward.model.pipelines.plan import AdapterRule, Benchmark
from onward.model.pipelines.score import Score
from onward.model.pipelines.task import TaskState
from onward.pipelines.benchmarks.growing_file import GrowingFile, end_the_line
from onward.pipelines.benchmarks.slots import Slots, worth_beginning
from onward.pipelines.benchmarks.trial_verdict import CommandExit, judge_trial
from onward.rundir.pipeline.tasks import AttemptOwners, allow_another_attempt, read_result, task_dir, task_history, task_standings
from onward.sdk import contract
from onward.sdk.saving import committed, step_of
from onward.supervisor.processes.guard import end_marked
from tests.workers import ITEM_COUNT, ITEMS, Field, benchmark

Make = Callable[..., Field]


@pytest.fixture
def field(tmp_path: Path) -> Iterator[Make]:
    made: list[Field] = []

    def make(*benchmarks: Benchmark, cpus: int = 1, idle: int = 0) -> Field:
        made.append(Field(root=tmp_path, benchmarks=benchmarks, cpus=cpus, idle=idle))
        return made[-1]

    yield make
    for one in made:
        one.end()


def until(holds: Callable[[], bool], *, within: float = 20) -> None:
    give_up = time.monotonic() + within
    while not holds():
        assert time.monotonic() < give_up, "it did not come"
        time.sleep(0.02)


def states(field: Field) -> set[TaskState]:
    return {standing.state for standing in task_standings(field.dir, field.plan, field.tasks).values()}


# ── whole workers ─────────────────────────────────────────────────────────────


def test_a_worker_drains_all_tasks_and_says_what_it_has_done(field: Make) -> None:
    pipeline = field(benchmark(shards=2, seeds=(1, 2)), cpus=2)
    assert pipeline.work() == contract.EXIT_DONE, pipeline.said()
    assert states(pipeline) == {TaskState.DONE}
    result = read_result(task_dir(pipeline.dir, pipeline.tasks[0]))
    assert result and result.items == ITEM_COUNT and result.scores["score"].value == 3.0 and result.repeated == 0 and result.seconds > 0
    saved = committed(pipeline.root / "node" / "1-1" / "checkpoints")
    assert step_of(saved[-1]) == 4 * ITEM_COUNT + 4, "its steps are items and tasks"
    assert not list((pipeline.root / "node" / "1-1" / "tasks").iterdir()), "nothing is left on the node"


def test_a_command_is_told_its_task_and_resumes_the_checkpoint_that_it_judges(field: Make) -> None:
    text = 'echo "{\\"shard\\": $2, \\"seed\\": $3}"; [ "$ONWARD_RESUME_DIR" = "$4" ] && touch "$5/it-was-the-model"; echo $ONWARD_TASK'
    plain = benchmark(text=text, shards=2, seeds=(7,))
    words = ("{shard}", "{seed}", "{checkpoint}", "{results}")
    pipeline = field(benchmark(command=(*plain.command, *words), shards=2, seeds=(7,)))
    pipeline.work()
    folder = task_dir(pipeline.dir, pipeline.tasks[1])
    result = read_result(folder)
    assert result and result.scores == {"shard": Score(value=1), "seed": Score(value=7)}
    assert (folder.files / "it-was-the-model").exists() and folder.out(1).read_text().endswith(f"{pipeline.tasks[1].id}\n")


def test_a_worker_that_is_asked_to_leave_keeps_what_is_done_and_the_next_leg_does_the_rest_alone(field: Make, tmp_path: Path) -> None:
    waits = ITEMS.replace("sleep 0.01", f'[ "$i" != 3 ] || while [ ! -e {tmp_path}/go ]; do sleep 0.05; done')
    pipeline = field(benchmark(text=waits))
    process = pipeline.start()
    until(lambda: len(pipeline.printed(pipeline.tasks[0])) == 2)
    pipeline.stop()
    process.wait(timeout=30)
    assert process.returncode == contract.EXIT_AGAIN
    (tmp_path / "go").touch()
    assert pipeline.work() == contract.EXIT_DONE
    assert pipeline.printed(pipeline.tasks[0]) == ["1", "2", "3", "4", "5"], "each once, over both attempts"
    assert task_dir(pipeline.dir, pipeline.tasks[0]).items_done(2).read_text() == "1\n2\n"
    first = task_history(task_dir(pipeline.dir, pipeline.tasks[0]), AttemptOwners(pipeline.root))
    assert first.done and len(first.attempts) == 2


def test_a_task_that_fails_is_tried_again_and_then_left_with_its_last_words(field: Make) -> None:
    pipeline = field(benchmark("bad", text="echo no such data >&2; exit 3", retries=1), benchmark("good"))
    assert pipeline.work() == contract.EXIT_DONE
    bad = task_standings(pipeline.dir, pipeline.plan, pipeline.tasks)[pipeline.tasks[0].id]
    assert (bad.state, bad.reason, bad.evidence) == (TaskState.FAILED, "the command failed (exit code 3) (2 times)", "no such data")
    assert read_result(task_dir(pipeline.dir, pipeline.tasks[1]))


def test_failed_tasks_are_tried_again_on_request_and_keep_the_items_they_had(field: Make, tmp_path: Path) -> None:
    crash = ITEMS.replace("sleep 0.01;", f'[ "$i" != 4 ] || [ -e {tmp_path}/mended ] || exit 9;')
    pipeline = field(benchmark(text=crash, retries=0))
    pipeline.work()
    assert states(pipeline) == {TaskState.FAILED}
    (tmp_path / "mended").touch()
    assert len(allow_another_attempt(pipeline.dir, pipeline.plan, pipeline.tasks, by="ada", at=1.0)) == 1
    assert pipeline.work() == contract.EXIT_DONE
    assert pipeline.printed(pipeline.tasks[0]) == ["1", "2", "3", "4", "5"] and states(pipeline) == {TaskState.DONE}


def test_a_task_that_takes_longer_than_its_timeout_is_ended_with_all_it_started(field: Make, tmp_path: Path) -> None:
    pipeline = field(benchmark(text=f"echo going; (sleep 60; touch {tmp_path}/lived) & sleep 60", timeout=1, retries=0))
    assert pipeline.work() == contract.EXIT_DONE
    (standing,) = task_standings(pipeline.dir, pipeline.plan, pipeline.tasks).values()
    assert (standing.reason, standing.evidence) == ("it took longer than its timeout of 1 s", "going")
    assert end_marked([{contract.ATTEMPT: f"{task_dir(pipeline.dir, pipeline.tasks[0]).path}#1"}]) == (0, set()), "nothing of it is left"


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (benchmark(text="echo hello"), 'the command wrote no score (expected printed lines like {"item": "q1", "score": 0.5})'),
        (benchmark(command=("/no/such/program",)), "the command cannot be started: No such file or directory: /no/such/program"),
        (benchmark(text="true", adapter=AdapterRule(kind="json", file="out.json")), "the command wrote no out.json into {results}"),
        (benchmark(text="exit 75"), "the command asked to be run again (exit code 75) without finishing an item"),
    ],
)
def test_a_task_that_cannot_be_done_says_why(field: Make, made: Benchmark, reason: str) -> None:
    pipeline = field(made)
    assert pipeline.work() == contract.EXIT_DONE
    (standing,) = task_standings(pipeline.dir, pipeline.plan, pipeline.tasks).values()
    assert standing.state is TaskState.FAILED and standing.reason.startswith(reason)


def test_an_exit_code_may_be_all_that_a_benchmark_says(field: Make) -> None:
    pipeline = field(benchmark(text="exit 1", adapter=AdapterRule(kind="exit-code")))
    pipeline.work()
    result = read_result(task_dir(pipeline.dir, pipeline.tasks[0]))
    assert result and result.scores == {"score": Score(value=0.0)}


def test_lines_that_a_kill_tore_in_a_file_spoil_none_after_them(field: Make) -> None:
    text = 'echo "{\\"item\\": 2, \\"score\\": 1}" >> "$2/lines"; cat "$1" >&2'
    pipeline = field(benchmark(command=("/bin/sh", "-c", text, "sh", "{items.done}", "{results}"), adapter=AdapterRule(file="lines")))
    folder = task_dir(pipeline.dir, pipeline.tasks[0])
    folder.files.mkdir(parents=True)
    (folder.files / "lines").write_text('{"item": 1, "score": 1}\n{"item": 2, "sco')
    pipeline.work()
    result = read_result(folder)
    assert result and result.items == 2 and folder.err(1).read_text() == "1\n"


def test_a_worker_whose_task_was_taken_over_leaves_it_without_a_word(field: Make) -> None:
    pipeline = field(benchmark(text="sleep 60"))
    process = pipeline.start()
    folder = task_dir(pipeline.dir, pipeline.tasks[0])
    until(folder.out(1).exists)
    folder.claim(2).write_text('{"run": "", "leg": 0}')
    until(folder.out(3).exists)  # it takes it back, since nobody owns attempt 2
    assert not folder.end(1).exists()
    process.kill()


def test_a_task_under_which_a_worker_went_away_keeps_no_other_waiting(field: Make) -> None:
    pipeline = field(benchmark(text="echo '{\"score\": 1}'", shards=3))
    first = task_dir(pipeline.dir, pipeline.tasks[0])
    first.path.mkdir()
    first.claim(1).write_text('{"run": "", "leg": 0}')
    pipeline.work()
    finished = sorted(pipeline.tasks, key=lambda task: getattr(read_result(task_dir(pipeline.dir, task)), "at", 0.0))
    assert finished[-1] == pipeline.tasks[0] and states(pipeline) == {TaskState.DONE}


def test_a_worker_waits_for_more_tasks_as_long_as_it_is_told_to(field: Make) -> None:
    began = time.monotonic()
    assert field(benchmark(text="echo '{\"score\": 1}'"), idle=1).work() == contract.EXIT_DONE
    assert time.monotonic() - began >= 1


# ── parts ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (CommandExit(code=0), AttemptEnd.DONE),
        (CommandExit(code=0, asked=True), AttemptEnd.DONE),
        (CommandExit(code=0, asked=True, items=1), AttemptEnd.STOPPED),
        (CommandExit(code=0, asked=True, before=1), AttemptEnd.STOPPED),
        (CommandExit(code=0, asked=True, termed=True), AttemptEnd.STOPPED),
        (CommandExit(code=-15, asked=True, termed=True), AttemptEnd.STOPPED),
        (CommandExit(code=-9, late=5, items=3), AttemptEnd.TIMEOUT),
        (CommandExit(code=75, items=1), AttemptEnd.STOPPED),
        (CommandExit(code=75), AttemptEnd.FAILED),
        (CommandExit(code=1, code_counts=True), AttemptEnd.DONE),
        (CommandExit(code=127, code_counts=True), AttemptEnd.FAILED),
        (CommandExit(code=-11, code_counts=True), AttemptEnd.FAILED),
        (CommandExit(code=1), AttemptEnd.FAILED),
    ],
)
def test_how_a_command_leaves_says_how_its_attempt_ended(ended: CommandExit, expected: AttemptEnd) -> None:
    assert judge_trial(ended)[0] is expected


def test_tasks_share_the_cpus_and_gpus_of_a_worker() -> None:
    slots = Slots(cpus=4, gpus=("0", "1"))
    first, second = slots.take(2), slots.take(2)
    assert (first.gpus, second.gpus) == (("0",), ("1",)) and not slots.fits(1)
    slots.give_back(first)
    assert slots.free == 2 and not slots.fits(None), "a task that says nothing gets all"
    assert slots.take(1).gpus == ("0",)
    assert Slots(cpus=2).take(8).cpus == 2, "more than there is, is all there is"


def test_a_task_that_keeps_nothing_when_it_is_stopped_is_not_begun_without_the_time_for_it() -> None:
    assert worth_beginning(None, 0, 100) and worth_beginning(50, 0, None) and worth_beginning(121, 0, 100)
    assert not worth_beginning(119, 0, 100)


def test_a_growing_file_is_read_by_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "out"
    growing = GrowingFile(path)
    assert list(growing.lines()) == []
    path.write_text("a\nb")
    assert list(growing.lines()) == ["a"]
    end_the_line(path)
    end_the_line(path)
    assert list(growing.lines()) == ["b"] and path.read_text() == "a\nb\n"
    end_the_line(tmp_path / "none")


def test_what_an_attempt_left_running_is_ended_and_nothing_else() -> None:
    marked, other = (subprocess.Popen(["sleep", "60"], env={"ONWARD_ATTEMPT": mark}) for mark in ("/tasks/a#1", "/tasks/a#11"))
    try:
        assert end_marked([{contract.ATTEMPT: "/tasks/a#1"}, {contract.ATTEMPT: "/tasks/a#2"}]) == (1, set())
        assert marked.wait(timeout=10) == -signal.SIGKILL and other.poll() is None
    finally:
        for process in (marked, other):
            process.kill()
            process.wait()
