"""Adapters: from what a benchmark's command leaves, printed or in files, to items and scores.

The native way is a JSON object a line: `{"item": "q17", "accuracy": 1}` is an item that is done, and a line without
`item` says something of the task as a whole. Other tools are read as they are. An adapter is a function from the output
to a reading, in a table by its name: another tool is another line there.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onward.errors import InvalidInput
from onward.model.pipelines.plan import AdapterRule
from onward.model.pipelines.score import BenchmarkItem, ParsedOutput, Score, without_repeats

_ITEM, _ERROR, _SCORES = "item", "error", "scores"

Numbers = Mapping[str, float]
LineReader = Callable[[str], BenchmarkItem | Numbers | None]  # what a line says; None: nothing


@dataclass(frozen=True, kw_only=True)
class CommandOutput:
    """What the attempts of a task left."""

    printed: Sequence[Path]  # stdout of each attempt, in their order
    files: Path  # the folder that the command writes into
    code: int = 0  # with which the last attempt's command exited


def read_output(rule: AdapterRule, output: CommandOutput) -> ParsedOutput:
    """Raises InvalidInput where the output is not what the rule says it is."""
    return ADAPTERS[rule.kind](rule, output)


def items_done(rule: AdapterRule, output: CommandOutput) -> tuple[BenchmarkItem, ...]:
    """What need not be done again. None, where the tool tells only at its end."""
    reader = line_reader(rule)
    return _of_lines(reader, _lines(rule, output)).items if reader else ()


def line_reader(rule: AdapterRule) -> LineReader | None:
    """For output that can be read while it grows."""
    match rule.kind:
        case "jsonl":
            return json_line
        case "regex":
            return regex_line(rule.pattern or "")
        case _:
            return None


# ── lines ─────────────────────────────────────────────────────────────────────


def json_line(line: str) -> BenchmarkItem | Numbers | None:
    """Of a line that is a JSON object; all others are talk."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    inner = entry.get(_SCORES)
    numbers = _numbers({**entry, **inner} if isinstance(inner, dict) else entry)
    if _ITEM not in entry:
        return numbers or None
    numbers.pop(_ITEM, None)
    return BenchmarkItem(id=_id(entry[_ITEM]), values=numbers, error=str(entry.get(_ERROR) or ""))


def regex_line(pattern: str) -> LineReader:
    """Named groups are scores; a group `item` makes each line that matches an item."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InvalidInput(f"the adapter's pattern {pattern!r} is not a regular expression: {error}", hint="fix it in the file") from error

    def read(line: str) -> BenchmarkItem | Numbers | None:
        match = compiled.search(line)
        if match is None:
            return None
        groups = {name: text for name, text in match.groupdict().items() if text is not None}
        item = groups.pop(_ITEM, None)
        numbers = {name: number for name, text in groups.items() if (number := _number_in(text)) is not None}
        return numbers or None if item is None else BenchmarkItem(id=_id(item), values=numbers)

    return read


def _read_lines(rule: AdapterRule, output: CommandOutput) -> ParsedOutput:
    reader = line_reader(rule)
    assert reader is not None
    return _of_lines(reader, _lines(rule, output))


def _of_lines(reader: LineReader, lines: Iterable[str]) -> ParsedOutput:
    items: list[BenchmarkItem] = []
    whole: dict[str, float] = {}
    for line in lines:
        said = reader(line)
        if isinstance(said, BenchmarkItem):
            items.append(said)
        elif said:
            whole.update(said)
    first, repeated = without_repeats(items)
    return ParsedOutput(items=first, scores={name: Score(value=value) for name, value in whole.items()}, repeated=repeated)


def _lines(rule: AdapterRule, output: CommandOutput) -> Iterator[str]:
    """Whole lines: the last may be torn, by a kill in the middle of a write."""
    paths = [output.files / rule.file] if rule.file else output.printed
    for path in paths:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            continue
        yield from (line.decode(errors="replace") for line in data.split(b"\n")[:-1])


# ── files and exit codes ──────────────────────────────────────────────────────


def _read_json(rule: AdapterRule, output: CommandOutput) -> ParsedOutput:
    found = _json_file(rule.file or "*.json", output)
    if not rule.metrics:
        return ParsedOutput(scores={name: Score(value=value) for name, value in _flat(found).items()})
    scores = {}
    for name, keys in rule.metrics.items():
        value = _at(found, keys.split("."))
        if value is None:
            known = ", ".join(list(_flat(found))[:10]) or "none"
            raise InvalidInput(f"{rule.file} has no number under {keys}", hint=f"it has numbers under: {known}")
        scores[name] = Score(value=value)
    return ParsedOutput(scores=scores)


def _read_exit_code(rule: AdapterRule, output: CommandOutput) -> ParsedOutput:
    return ParsedOutput(scores={"score": Score(value=1.0 if output.code == 0 else 0.0)})


def _read_lm_eval(rule: AdapterRule, output: CommandOutput) -> ParsedOutput:
    """lm-evaluation-harness: `results_*.json` with `"acc,none"` and its standard error for each task."""
    found = _json_file(rule.file or "**/results*.json", output)
    tasks = found.get("results")
    if not isinstance(tasks, dict):
        raise InvalidInput("the file of lm-evaluation-harness has no results", hint="give it --output_path {results}")
    samples = found.get("n-samples", {})
    scores: dict[str, Score] = {}
    for task, values in tasks.items():
        count = int(samples.get(task, {}).get("effective") or 1)
        for key, value in _numbers(values).items():
            metric, _, filter_name = key.partition(",")
            if metric.endswith("_stderr"):
                continue
            name = metric if filter_name in ("", "none") else f"{metric}.{filter_name}"
            error = _number(values.get(f"{metric}_stderr,{filter_name}"))
            spread = error * math.sqrt(count) if error is not None and count > 1 else None
            scores[name if len(tasks) == 1 else f"{task}/{name}"] = Score(value=value, count=count, spread=spread)
    return ParsedOutput(scores=scores)


def _read_pytest_benchmark(rule: AdapterRule, output: CommandOutput) -> ParsedOutput:
    """pytest-benchmark's `--benchmark-json`: the mean seconds of each test."""
    found = _json_file(rule.file or "**/*.json", output)
    scores: dict[str, Score] = {}
    for entry in found.get("benchmarks") or ():
        stats = entry.get("stats", {})
        mean, rounds = _number(stats.get("mean")), int(stats.get("rounds") or 1)
        if mean is not None:
            scores[str(entry.get("name"))] = Score(value=mean, count=rounds, spread=_number(stats.get("stddev")) if rounds > 1 else None)
    return ParsedOutput(scores=scores)


def _json_file(pattern: str, output: CommandOutput) -> dict[str, Any]:
    """The newest that fits."""
    paths = [path for path in output.files.glob(pattern) if path.is_file()]
    if not paths:
        there = ", ".join(sorted(path.name for path in output.files.glob("*"))[:10]) or "nothing"
        raise InvalidInput(f"the command wrote no {pattern} into {{results}}", hint=f"{{results}} contains {there}")
    newest = max(paths, key=lambda path: (path.stat().st_mtime, path.name))
    try:
        found = json.loads(newest.read_bytes())
    except ValueError as error:
        raise InvalidInput(f"{newest.name} is not valid JSON: {error}", hint="was it written completely?") from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{newest.name} is not a JSON object", hint="expected { … } with numbers in it")
    return found


ADAPTERS: Mapping[str, Callable[[AdapterRule, CommandOutput], ParsedOutput]] = {
    "jsonl": _read_lines,
    "regex": _read_lines,
    "json": _read_json,
    "exit-code": _read_exit_code,
    "lm-eval": _read_lm_eval,
    "pytest-benchmark": _read_pytest_benchmark,
}

# ── numbers ───────────────────────────────────────────────────────────────────


def _numbers(entry: Mapping[str, Any]) -> dict[str, float]:
    return {str(key): number for key, value in entry.items() if (number := _number(value)) is not None}


def _number(value: object) -> float | None:
    """True is 1. What is not finite is no score."""
    if not isinstance(value, bool | int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _number_in(text: str) -> float | None:
    try:
        return _number(float(text))
    except ValueError:
        return None


def _flat(entry: Mapping[str, Any], before: str = "") -> dict[str, float]:
    """Every number, by its keys with dots."""
    found = {}
    for key, value in entry.items():
        if isinstance(value, dict):
            found.update(_flat(value, f"{before}{key}."))
        elif (number := _number(value)) is not None:
            found[f"{before}{key}"] = number
    return found


def _at(entry: object, keys: Sequence[str]) -> float | None:
    for key in keys:
        entry = entry.get(key) if isinstance(entry, dict) else None
    return _number(entry)


def _id(value: object) -> str:
    """One line, whatever the item is called."""
    return " ".join(str(value).split())
