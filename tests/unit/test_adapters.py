"""What a benchmark's command leaves, read as items and scores."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from onward.errors import InvalidInput
from onward.model.pipelines.plan import AdapterRule
from onward.model.pipelines.score import BenchmarkItem, Score, scores_of
from onward.pipelines.benchmarks.adapters import ADAPTERS, CommandOutput, items_done, read_output

LM_EVAL: dict[str, Any] = {
    "results": {
        "arc": {"alias": "arc", "acc,none": 0.25, "acc_stderr,none": 0.05, "acc_norm,strict": 0.5, "acc_norm_stderr,strict": "N/A"}
    },
    "n-samples": {"arc": {"original": 120, "effective": 100}},
}
PYTEST_BENCHMARK: dict[str, Any] = {
    "machine_info": {"cpu": {"count": 2}},
    "benchmarks": [{"name": "test_sort", "stats": {"mean": 0.5, "stddev": 0.1, "rounds": 20}}, {"name": "test_once", "stats": {"mean": 2}}],
}


def output(tmp_path: Path, *printed: str, code: int = 0, **files: Any) -> CommandOutput:
    paths = []
    for number, text in enumerate(printed, 1):
        paths.append(tmp_path / f"out-{number}.txt")
        paths[-1].write_text(text)
    folder = tmp_path / "files"
    folder.mkdir(exist_ok=True)
    for name, value in files.items():
        (folder / f"{name}.json").write_text(value if isinstance(value, str) else json.dumps(value))
    return CommandOutput(printed=paths, files=folder, code=code)


def test_json_lines_are_items_and_what_is_said_of_the_whole_and_the_rest_is_talk(tmp_path: Path) -> None:
    printed = 'loading…\n{"item": 1, "right": true, "text": "x"}\n{not json}\n{"item": "b", "scores": {"right": 0}}\n{"perplexity": 3.5}\n'
    found = read_output(AdapterRule(), output(tmp_path, printed))
    assert found.items == (BenchmarkItem(id="1", values={"right": 1.0}), BenchmarkItem(id="b", values={"right": 0.0}))
    assert scores_of(found) == {"right": Score(value=0.5, count=2, spread=math.sqrt(0.5)), "perplexity": Score(value=3.5)}


def test_an_item_counts_once_and_its_first_line_stands(tmp_path: Path) -> None:
    found = read_output(AdapterRule(), output(tmp_path, '{"item": "a", "x": 1}\n', '{"item": "a", "x": 9}\n{"item": "b", "x": 3}\n'))
    assert (scores_of(found)["x"].value, found.repeated) == (2.0, 1)


def test_a_torn_last_line_is_no_item(tmp_path: Path) -> None:
    done = items_done(AdapterRule(), output(tmp_path, '{"item": "a"}\n{"item": "b"}', '{"item": "c"}\n'))
    assert [item.id for item in done] == ["a", "c"]


def test_what_is_not_finite_is_no_score_and_an_error_of_an_item_is_kept(tmp_path: Path) -> None:
    found = read_output(AdapterRule(), output(tmp_path, '{"item": "a", "x": NaN, "y": 1e999, "error": "no answer"}\n'))
    assert found.items == (BenchmarkItem(id="a", error="no answer"),)


def test_json_lines_may_be_in_a_file(tmp_path: Path) -> None:
    rule = AdapterRule(file="lines.json")
    assert items_done(rule, output(tmp_path, "talk\n")) == ()
    assert [item.id for item in items_done(rule, output(tmp_path, "talk\n", lines='{"item": 7}\n'))] == ["7"]


def test_a_pattern_finds_items_or_the_last_score(tmp_path: Path) -> None:
    printed = output(tmp_path, "q1 ok 0.5\nq2 ok 1.5\naccuracy: 0.1\naccuracy: 0.9\naccuracy: many\n")
    items = read_output(AdapterRule(kind="regex", pattern=r"^(?P<item>q\d+) ok (?P<score>\S+)"), printed)
    assert [(item.id, item.values) for item in items.items] == [("q1", {"score": 0.5}), ("q2", {"score": 1.5})]
    whole = read_output(AdapterRule(kind="regex", pattern=r"accuracy: (?P<accuracy>\S+)"), printed)
    assert whole.scores == {"accuracy": Score(value=0.9)}


def test_a_pattern_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not a regular expression"):
        read_output(AdapterRule(kind="regex", pattern="("), output(tmp_path, "x\n"))


def test_a_json_file_is_read_by_keys_or_whole(tmp_path: Path) -> None:
    left = output(tmp_path, out={"results": {"acc": 0.5, "name": "x"}, "seconds": 3})
    assert read_output(AdapterRule(kind="json", file="out.json"), left).scores == {
        "results.acc": Score(value=0.5),
        "seconds": Score(value=3),
    }
    picked = read_output(AdapterRule(kind="json", file="out.json", metrics={"accuracy": "results.acc"}), left)
    assert picked.scores == {"accuracy": Score(value=0.5)}
    with pytest.raises(InvalidInput, match=r"no number under results\.f1") as caught:
        read_output(AdapterRule(kind="json", file="out.json", metrics={"f1": "results.f1"}), left)
    assert "results.acc, seconds" in caught.value.hint


@pytest.mark.parametrize(("text", "why"), [("{", "is not valid JSON"), ("[1]", "is not a JSON object"), (None, "wrote no out.json")])
def test_a_json_file_that_cannot_be_used_is_said(tmp_path: Path, text: str | None, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        read_output(AdapterRule(kind="json", file="out.json"), output(tmp_path, out=text) if text else output(tmp_path))


def test_an_exit_code_is_a_score(tmp_path: Path) -> None:
    assert read_output(AdapterRule(kind="exit-code"), output(tmp_path, code=0)).scores == {"score": Score(value=1.0)}
    assert read_output(AdapterRule(kind="exit-code"), output(tmp_path, code=3)).scores == {"score": Score(value=0.0)}


def test_lm_evaluation_harness_is_read_with_its_standard_errors(tmp_path: Path) -> None:
    found = read_output(AdapterRule(kind="lm-eval"), output(tmp_path, results_2026=LM_EVAL))
    assert found.scores == {"acc": Score(value=0.25, count=100, spread=0.5), "acc_norm.strict": Score(value=0.5, count=100)}
    two = {**LM_EVAL, "results": {**LM_EVAL["results"], "boolq": {"acc,none": 0.75}}}
    assert {"arc/acc", "boolq/acc"} <= set(read_output(AdapterRule(kind="lm-eval"), output(tmp_path, results_2027=two)).scores)
    with pytest.raises(InvalidInput, match="has no results"):
        read_output(AdapterRule(kind="lm-eval"), output(tmp_path, results_2028={}))


def test_pytest_benchmark_is_read_by_its_tests(tmp_path: Path) -> None:
    found = read_output(AdapterRule(kind="pytest-benchmark"), output(tmp_path, bench=PYTEST_BENCHMARK))
    assert found.scores == {"test_sort": Score(value=0.5, count=20, spread=0.1), "test_once": Score(value=2.0)}


def test_every_kind_that_a_file_may_name_has_an_adapter() -> None:
    assert set(ADAPTERS) == {"jsonl", "regex", "json", "exit-code", "lm-eval", "pytest-benchmark"}
