"""Summary: what a pipeline's benchmarks say, from the results of its tasks. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onward.inputs.summary.confidence import Measurement, ShardAndSeed, estimate
from onward.inputs.summary.marks import against, baseline_of, with_best
from onward.inputs.summary.table import BenchmarkSummary, SummaryCell, SummaryColumn, SummaryRow
from onward.model.pipelines.attempt import TaskStatus
from onward.model.pipelines.plan import Benchmark, PipelinePlan
from onward.model.pipelines.score import Score, TaskResult
from onward.model.pipelines.task import Task, TaskState


def summarise(
    plan: PipelinePlan,
    tasks: Sequence[Task],
    results: Mapping[str, TaskResult],
    standings: Mapping[str, TaskStatus],
    *,
    baseline: str | None = None,
) -> BenchmarkSummary:
    """`baseline`: another than the plan's, by the name of a stage or model, with @STEP for one checkpoint of it."""
    columns = tuple(_column(benchmark, tasks, results) for benchmark in plan.benchmarks)
    cells: dict[tuple[str, int | None, str], list[Task]] = {}
    for task in tasks:
        cells.setdefault((task.of, task.step, task.benchmark), []).append(task)
    rows = [_row(plan, of, step, cells, results, standings, columns) for of, step in _subjects(plan, tasks)]
    named = baseline or plan.summary.baseline
    base = baseline_of(rows, named) if named else None
    return BenchmarkSummary(
        name=plan.name,
        columns=columns,
        rows=tuple(with_best(against(rows, base, columns) if base else rows, columns)),
        baseline=base.key if base else None,
        cost=plan.summary.cost or "seconds",
        notes=tuple(_notes(plan, columns, rows, named if base is None else None)),
    )


def _notes(plan: PipelinePlan, columns: Sequence[SummaryColumn], rows: Sequence[SummaryRow], missing: str | None) -> list[str]:
    notes = []
    for column in columns:
        asked = next(benchmark.metric for benchmark in plan.benchmarks if benchmark.name == column.benchmark)
        cells = [row.cells[column.benchmark] for row in rows]
        if column.metric != asked:
            notes.append(f"{column.benchmark} reports no {asked}; its only metric, {column.metric}, is used")
        elif any(cell.done for cell in cells) and all(cell.mean is None for cell in cells):
            notes.append(f"{column.benchmark} reports no {asked}: name one of its metrics with `metric`")
    if missing:
        notes.append(f"the baseline {missing} has no results yet")
    return notes


# ── rows and columns ──────────────────────────────────────────────────────────


def _subjects(plan: PipelinePlan, tasks: Sequence[Task]) -> list[tuple[str, int | None]]:
    """Models and trainings in the order of the file, their checkpoints by step; the newest alone where models are asked for."""
    order = {name: index for index, name in enumerate([*(model.name for model in plan.models), *(stage.name for stage in plan.stages)])}
    found = sorted({(task.of, task.step) for task in tasks}, key=lambda one: (order.get(one[0], len(order)), one[1] or 0))
    if plan.summary.rows != "models":
        return found
    newest = dict(found)
    return [(of, newest[of]) for of in newest]


def _column(benchmark: Benchmark, tasks: Sequence[Task], results: Mapping[str, TaskResult]) -> SummaryColumn:
    """Where the metric is nowhere to be found and there is one other alone, that is what was meant."""
    names = {name for task in tasks if task.benchmark == benchmark.name and task.id in results for name in results[task.id].scores}
    metric = benchmark.metric if benchmark.metric in names or len(names) != 1 else names.pop()
    return SummaryColumn(benchmark=benchmark.name, metric=metric, better=benchmark.better)


def _row(
    plan: PipelinePlan,
    of: str,
    step: int | None,
    tasks: Mapping[tuple[str, int | None, str], Sequence[Task]],
    results: Mapping[str, TaskResult],
    standings: Mapping[str, TaskStatus],
    columns: Sequence[SummaryColumn],
) -> SummaryRow:
    label = next((stage.label for stage in plan.stages if stage.name == of), of)
    cells = {}
    for column in columns:
        cells[column.benchmark] = _cell(tasks.get((of, step, column.benchmark), ()), results, standings, column, plan.summary.cost)
    return SummaryRow(of=of, step=step, label=label if step is None else f"{label}, step {step}", cells=cells)


def _cell(
    tasks: Sequence[Task], results: Mapping[str, TaskResult], standings: Mapping[str, TaskStatus], column: SummaryColumn, cost: str | None
) -> SummaryCell:
    done = {(task.seed, task.shard): results[task.id] for task in tasks if task.id in results}
    failed = [standings[task.id] for task in tasks if task.id in standings and standings[task.id].state is TaskState.FAILED]
    measured = {key: _measurement(one.scores[column.metric], one) for key, one in done.items() if column.metric in one.scores}
    found = estimate(measured) if measured else None
    return SummaryCell(
        tasks=len(tasks),
        done=len(done),
        failed=len(failed),
        mean=found.mean if found else None,
        half=found.half if found else None,
        over=found.over if found else "",
        items=sum(one.items for one in done.values()),
        seconds=sum(one.seconds for one in done.values()),
        cost=_cost(done, cost),
        reason=failed[0].reason if failed else "",
        measured=measured,
    )


def _measurement(score: Score, result: TaskResult) -> Measurement:
    """A score of the task as a whole has the weight of the task's items all the same."""
    return Measurement(value=score.value, weight=max(score.count, result.items if score.count == 1 else 1), spread=score.spread)


def _cost(done: Mapping[ShardAndSeed, TaskResult], metric: str | None) -> float | None:
    if metric is None:
        return sum(one.seconds for one in done.values()) if done else None
    measured = {key: _measurement(one.scores[metric], one) for key, one in done.items() if metric in one.scores}
    return estimate(measured).mean if measured else None
