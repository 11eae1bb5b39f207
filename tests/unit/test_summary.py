"""The summary of a pipeline, from the results of its tasks."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from onward.errors import InvalidInput
from onward.inputs.summary.aggregate import summarise
from onward.inputs.summary.differences import differences
from onward.inputs.summary.gates import check_gates
from onward.inputs.summary.table import BenchmarkSummary
from onward.inputs.summary.text import (
    as_csv,
    as_json,
    difference_lines,
    differences_json,
    differences_markdown,
    legend,
    markdown,
    number,
    table_lines,
)
from onward.model.pipelines.attempt import TaskStatus
from onward.model.pipelines.plan import Benchmark, CheckpointChoice, ExistingModel, PipelinePlan, QualityGate, Stage, StageKind, SummaryRule
from onward.model.pipelines.score import Score, TaskResult
from onward.model.pipelines.task import PublishedCheckpoint, Task, TaskState, tasks_of
from onward.model.spec import RunDraft

DRAFT = RunDraft(name="train", experiment="e", cluster="local", command=("true",))
BOTH = ("train", "base")
ACCURACY = Benchmark(name="accuracy", command=("x",), of=BOTH, pool="p", checkpoints=CheckpointChoice(all=True), seeds=(1, 2, 3))
LOSS = replace(ACCURACY, name="loss", metric="nats", better="min", shards=2, seeds=(0,))
PLAN = PipelinePlan(
    name="nightly",
    experiment="e",
    cluster="local",
    stages=(Stage(name="train", kind=StageKind.TRAIN, draft=DRAFT),),
    models=(ExistingModel(name="base", path="/m"),),
    benchmarks=(ACCURACY, LOSS),
    summary=SummaryRule(baseline="base"),
)
STEPS = {"train": (PublishedCheckpoint(step=100, number=1), PublishedCheckpoint(step=200, number=2, last=True))}
Measured = Callable[[Task], TaskResult | None]


def measured(task: Task) -> TaskResult | None:
    """The base is at 0.5 and 2.0; the training is better at each step."""
    step = (task.step or 0) / 1000
    value = 0.5 + step + task.seed / 1000 if task.benchmark == "accuracy" else 2.0 - step + task.shard / 100
    name = "score" if task.benchmark == "accuracy" else "nats"
    return TaskResult(scores={name: Score(value=value, count=10, spread=0.05)}, items=10, seconds=3.0)


def summary(
    plan: PipelinePlan = PLAN, by: Measured = measured, failed: Mapping[str, str] | None = None, baseline: str | None = None
) -> BenchmarkSummary:
    tasks = tasks_of(plan, STEPS)
    found = {task.id: result for task in tasks if (result := by(task)) and task.id not in (failed or {})}
    standings = {id: TaskStatus(state=TaskState.FAILED, next=2, reason=reason) for id, reason in (failed or {}).items()}
    return summarise(plan, tasks, found, standings, baseline=baseline)


def test_rows_are_models_and_checkpoints_and_columns_are_benchmarks() -> None:
    found = summary()
    assert [row.key for row in found.rows] == ["base", "train@100", "train@200"]
    assert [row.label for row in found.rows] == ["base", "train, step 100", "train, step 200"]
    assert table_lines(found)[2] == ("train, step 200", "0.7020 ± 0.0025* ↑", "1.805 ± 0.023* ↑")


def test_the_newest_checkpoint_alone_stands_for_its_model_where_models_are_asked_for() -> None:
    rows = summary(replace(PLAN, summary=SummaryRule(rows="models"))).rows
    assert [row.key for row in rows] == ["base", "train@200"]


def test_the_best_is_by_the_benchmarks_own_sense_and_among_whole_cells_alone() -> None:
    last = [task.id for task in tasks_of(PLAN, STEPS) if task.step == 200 and task.benchmark == "loss"]
    found = summary(failed={last[0]: "exit code 3"})
    best = {name: row.key for row in found.rows for name, cell in row.cells.items() if cell.best}
    assert best == {"accuracy": "train@200", "loss": "train@100"}
    assert table_lines(found)[2][2] == "1.810 ± 0.036 (1/2 failed)"
    assert "train@200 loss: exit code 3" in legend(found)


def test_where_all_are_equal_none_is_best() -> None:
    level = summary(by=lambda task: measured(replace(task, step=0)))
    assert not any(cell.best for row in level.rows for cell in row.cells.values())
    two = summary(by=lambda task: measured(replace(task, step=min(task.step or 0, 100))))
    assert [row.key for row in two.rows if row.cells["loss"].best] == ["train@100", "train@200"]


def test_what_is_not_there_yet_is_said_so() -> None:
    tasks = tasks_of(PLAN, STEPS)
    lost = {task.id: "killed" for task in tasks if task.step == 100 and task.benchmark == "loss"}
    found = summary(by=lambda task: measured(task) if task.step != 200 else None, failed=lost)
    assert table_lines(found)[1][2] == "0/2 failed" and table_lines(found)[2][1:] == ("…", "…")
    assert table_lines(summary(replace(PLAN, benchmarks=(replace(ACCURACY, of=("base",)), LOSS))))[1][1] == "–"


def test_each_row_is_tested_against_the_baseline_and_the_test_is_named() -> None:
    cells = summary().row("train@100").cells
    accuracy, loss = cells["accuracy"].against, cells["loss"].against
    assert accuracy and (accuracy.test, accuracy.pairs, accuracy.significant) == ("paired", 3, True)
    assert loss and (loss.test, loss.significant) == ("welch", True)
    assert summary().row("base").baseline and summary().row("base").cells["loss"].against is None
    answer = " ".join(legend(summary()))
    assert "Welch's test" in answer and "pairs of the same shard and seed" in answer and "Holm" in answer


def test_another_baseline_can_be_named_and_one_that_is_not_there_is_refused() -> None:
    assert summary(baseline="train@100").baseline == "train@100" and summary(baseline="train").baseline == "train@200"
    with pytest.raises(InvalidInput, match="not a benchmarked stage or model") as caught:
        summary(baseline="trian")
    assert caught.value.hint == "there are base, train"
    assert "the baseline train@999 has no results yet" in summary(baseline="train@999").notes


def test_the_one_metric_that_is_told_stands_for_the_one_that_was_forgotten() -> None:
    forgotten = replace(PLAN, benchmarks=(replace(LOSS, metric="score"),))
    assert summary(forgotten).columns[0].metric == "nats" and "is used" in summary(forgotten).notes[0]
    two = summary(forgotten, by=lambda task: TaskResult(scores={"a": Score(value=1.0), "b": Score(value=2.0)}))
    assert two.notes == ("loss reports no score: name one of its metrics with `metric`",) and table_lines(two)[0][1] == "no score"


def test_cost_is_a_metric_or_the_seconds_that_were_spent() -> None:
    assert summary().rows[0].cells["accuracy"].cost == 9.0
    priced = replace(PLAN, summary=SummaryRule(cost="nats"))
    assert summary(priced).rows[0].cells["loss"].cost == pytest.approx(2.005)
    assert summary(priced).rows[0].cells["accuracy"].cost is None


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (0.91234, 0.0132, "0.912 ± 0.013"),
        (1234.5, 56.7, "1234 ± 57"),
        (0.5, None, "0.5"),
        (0.5, 0.0, "0.5 ± 0"),
        (1e12, 1e9, "1e+12 ± 1e+09"),
    ],
)
def test_numbers_have_the_digits_that_their_interval_leaves(mean: float, half: float | None, text: str) -> None:
    assert number(mean, half) == text


# ── as text ───────────────────────────────────────────────────────────────────


def test_markdown_has_the_best_in_bold_and_no_name_breaks_its_table() -> None:
    text = markdown(summary(replace(PLAN, name="a|b\nc")))
    assert "### a\\|b c" in text and "| train, step 200 | **0.7020 ± 0.0025** ↑ |" in text and "- bold is the best of its column" in text
    assert all(line.count(" | ") == 2 for line in text.splitlines() if line.startswith("| train"))


def test_csv_has_a_line_for_each_cell_and_no_formula() -> None:
    first = next(task for task in tasks_of(PLAN, STEPS) if task.benchmark == "loss")
    rows = list(csv.DictReader(io.StringIO(as_csv(summary(failed={first.id: "=cmd()"})))))
    assert len(rows) == 6 and rows[1]["reason"] == "'=cmd()"
    assert (rows[5]["of"], rows[5]["step"], rows[5]["metric"], rows[5]["tasks_done"]) == ("train", "200", "nats", "2")
    assert float(rows[2]["difference"]) == pytest.approx(0.1) and rows[2]["test"] == "paired"


def test_json_holds_every_measurement() -> None:
    body = json.loads(json.dumps(as_json(summary()), allow_nan=False))
    cell = body["rows"][1]["cells"]["accuracy"]
    assert body["schema"] == 1 and body["rows"][1]["key"] == "train@100" and cell["whole"] and len(cell["measured"]) == 3
    assert cell["measured"][0] == {"seed": 1, "shard": 0, "value": 0.601, "weight": 10, "spread": 0.05}


# ── gates ─────────────────────────────────────────────────────────────────────


def test_gates_hold_the_newest_checkpoints_to_what_they_must_reach() -> None:
    found = summary()
    assert (
        check_gates(found, [QualityGate(benchmark="accuracy", at_least=0.7), QualityGate(benchmark="loss", at_most=1.9, worse_by=0.0)])
        == []
    )
    assert check_gates(found, [QualityGate(benchmark="accuracy", at_least=0.8)]) == [
        "train, step 200: accuracy is 0.702, expected at least 0.8"
    ]
    assert check_gates(found, [QualityGate(benchmark="loss", at_most=1)]) == ["train, step 200: loss is 1.805, expected at most 1"]


def test_a_gate_on_the_loss_against_the_baseline_knows_which_way_is_worse() -> None:
    worse = summary(by=lambda task: measured(replace(task, step=-(task.step or 0))))
    (line,) = check_gates(worse, [QualityGate(benchmark="loss", worse_by=0.05)])
    assert line == "train, step 200: loss is 2.205, 10.0% worse than the baseline's 2.005; 5.0% is allowed"
    assert check_gates(worse, [QualityGate(benchmark="loss", worse_by=0.2)]) == []


def test_what_was_not_measured_passes_no_gate() -> None:
    lost = {task.id: "exit code 3" for task in tasks_of(PLAN, STEPS) if task.step == 200 and task.shard == 1}
    gates = [QualityGate(benchmark="loss", at_most=9)]
    assert check_gates(summary(failed=lost), gates) == [
        "train, step 200: loss has no result: 1 of 2 tasks are done, 1 failed (exit code 3)"
    ]
    assert check_gates(summary(replace(PLAN, summary=SummaryRule())), [QualityGate(benchmark="loss", worse_by=0.1)])[0].endswith(
        "compare with"
    )


def test_without_gates_nothing_may_be_significantly_worse_than_the_baseline() -> None:
    assert check_gates(summary(), ()) == []
    worse = summary(by=lambda task: measured(replace(task, step=-(task.step or 0))))
    assert [line.split(" is ")[0] for line in check_gates(worse, ())] == ["train, step 200: accuracy", "train, step 200: loss"]
    with pytest.raises(InvalidInput, match="nothing to compare the results with"):
        check_gates(summary(replace(PLAN, summary=SummaryRule())), ())


# ── two pipelines ─────────────────────────────────────────────────────────────


def test_two_pipelines_are_compared_row_by_row() -> None:
    other = summary(by=lambda task: measured(replace(task, step=(task.step or 0) * 2)))
    found = differences(summary(), other)
    assert len(found.rows) == 6 and found.notes == ()
    last = found.rows[4]
    assert (last.label, last.column.benchmark, last.better) == ("train, step 200", "accuracy", True)
    assert found.rows[0].better is None and found.rows[5].better is True, "the base is the same; a lower loss is better"
    assert difference_lines(found)[4][4:] == ("+0.2 ± 0", "0 (paired)", "better")
    assert "| train, step 200 | accuracy |" in differences_markdown(found)
    assert json.loads(json.dumps(differences_json(found)))["rows"][4]["better"] is True


def test_pipelines_without_a_step_in_common_are_compared_by_their_newest_checkpoints() -> None:
    without = replace(PLAN, models=(), benchmarks=(ACCURACY,), summary=SummaryRule())
    tasks = tasks_of(without, {"train": (PublishedCheckpoint(step=300, number=1),)})
    other = summarise(without, tasks, {task.id: result for task in tasks if (result := measured(task))}, {})
    found = differences(summary(without), other)
    assert found.rows[0].label == "train, step 300 / train, step 200" and "newest" in found.notes[0]


def test_pipelines_with_nothing_in_common_are_refused() -> None:
    other = summary(replace(PLAN, benchmarks=(replace(ACCURACY, name="other"),)))
    with pytest.raises(InvalidInput, match="no benchmark in common"):
        differences(summary(), other)
