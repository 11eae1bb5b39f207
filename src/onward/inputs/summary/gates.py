"""Gates: what the newest checkpoints must reach, so that a build can fail when a model has got worse. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from onward.errors import InvalidInput
from onward.inputs.summary.table import BenchmarkSummary, SummaryCell, SummaryColumn, SummaryRow
from onward.model.pipelines.plan import QualityGate


def check_gates(summary: BenchmarkSummary, gates: Sequence[QualityGate]) -> list[str]:
    """What is not as it has to be, a line each. Without gates: that nothing is significantly worse than the baseline."""
    if not gates and summary.baseline is None:
        raise InvalidInput(
            "there is nothing to compare the results with", hint="define `summary: gates` in the pipeline file, or a baseline (--baseline)"
        )
    rows = _newest(summary)
    if not rows:
        return ["there are no results yet"]
    if not gates:
        return [line for row in rows for column in summary.columns if (line := _worse(row, column))]
    return [line for gate in gates for row in rows for line in _missed(summary, gate, row)]


def _newest(summary: BenchmarkSummary) -> list[SummaryRow]:
    """The newest checkpoint of each training and every model, but for the baseline."""
    found = {row.of: row for row in summary.rows if not row.baseline}
    base = summary.row(summary.baseline) if summary.baseline else None
    return [row for row in found.values() if base is None or row.of != base.of or (row.step or 0) > (base.step or 0)]


def _missed(summary: BenchmarkSummary, gate: QualityGate, row: SummaryRow) -> list[str]:
    column = next(one for one in summary.columns if one.benchmark == gate.benchmark)
    cell = row.cells[gate.benchmark]
    where = f"{row.label}: {gate.benchmark}"
    if cell.tasks == 0:
        return []
    if not cell.whole or cell.mean is None:
        return [f"{where} has no result: {_lacks(cell)}"]
    lines = []
    if gate.at_least is not None and cell.mean < gate.at_least:
        lines.append(f"{where} is {cell.mean:.6g}, expected at least {gate.at_least:g}")
    if gate.at_most is not None and cell.mean > gate.at_most:
        lines.append(f"{where} is {cell.mean:.6g}, expected at most {gate.at_most:g}")
    if gate.worse_by is not None:
        lines += _much_worse(summary, column, cell, gate.worse_by, where)
    return lines


def _much_worse(summary: BenchmarkSummary, column: SummaryColumn, cell: SummaryCell, most: float, where: str) -> list[str]:
    base = summary.row(summary.baseline).cells[column.benchmark] if summary.baseline else None
    if base is None or base.mean is None or not base.whole:
        return [f"{where} has no baseline to compare with"]
    assert cell.mean is not None
    loss = (base.mean - cell.mean) * (-1 if column.better == "min" else 1)
    if loss <= most * abs(base.mean):
        return []
    part = f"{loss / abs(base.mean):.1%} " if base.mean else ""
    return [f"{where} is {cell.mean:.6g}, {part}worse than the baseline's {base.mean:.6g}; {most:.1%} is allowed"]


def _worse(row: SummaryRow, column: SummaryColumn) -> str:
    cell = row.cells[column.benchmark]
    if cell.tasks and not cell.whole:
        return f"{row.label}: {column.benchmark} has no result: {_lacks(cell)}"
    found = cell.against
    if not found or not found.significant or not column.beats(0.0, found.difference):
        return ""
    return f"{row.label}: {column.benchmark} is worse than the baseline by {abs(found.difference):.6g} (p {found.p:.2g}, {found.test})"


def _lacks(cell: SummaryCell) -> str:
    failed = f", {cell.failed} failed ({cell.reason})" if cell.failed else ""
    return f"{cell.done} of {cell.tasks} tasks are done{failed}"
