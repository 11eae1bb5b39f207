"""`onward pipeline summary`: a table, a page, and an exit code, from what lies in a pipeline's folder."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from onward.cli.main import main
from onward.inputs.summary.table import SummaryColumn
from onward.model.pipelines.attempt import Attempt, AttemptEnd, AttemptOwner
from onward.model.pipelines.plan import ExistingModel, PipelinePlan, QualityGate, SummaryRule, plan_to_json
from onward.model.pipelines.score import Score, TaskResult
from onward.model.pipelines.task import tasks_of
from onward.operations.reports.summary_charts import ChartDot, pareto_front
from onward.operations.reports.summary_page import summary_page
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.pipeline.tasks import end_attempt, task_dir, write_result
from tests.unit.test_summary import PLAN, summary
from tests.workers import benchmark

MODELS = (ExistingModel(name="base", path="/m"), ExistingModel(name="<b>new", path="/n"))
MADE = PipelinePlan(
    name="nightly",
    experiment="e",
    cluster="local",
    models=MODELS,
    benchmarks=(benchmark("sums", of=("base", "<b>new"), seeds=(1, 2, 3)), benchmark("words", of=("base",), retries=0)),
    summary=SummaryRule(baseline="base", gates=(QualityGate(benchmark="sums", at_least=0.5),)),
)
Said = tuple[int, str, str]


def pipeline(root: Path, name: str, *, new: float, plan: PipelinePlan = MADE) -> PipelineDir:
    """`new` is better than the base by so much; the task of `words` has failed."""
    dir = PipelineDir(root / name)
    dir.make()
    dir.plan.write_text(json.dumps(plan_to_json(plan)))
    for task in tasks_of(plan, {}):
        folder = task_dir(dir, task)
        folder.path.mkdir()
        if task.benchmark == "words":
            folder.claim(1).write_text('{"run": "w", "leg": 1}')
            owner = AttemptOwner(run="w", leg=1)
            end_attempt(folder, Attempt(number=1, owner=owner, host="n", at=0.0, end=AttemptEnd.FAILED, reason="the command failed"))
        else:
            value = 0.4 + task.seed / 100 + (0.0 if task.of == "base" else new)
            write_result(folder, TaskResult(scores={"score": Score(value=value)}, seconds=2.0 + task.seed))
    return dir


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in {"ONWARD_ROOT": str(tmp_path), "ONWARD_SETTINGS": "", "XDG_CONFIG_HOME": str(tmp_path), "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def onward(capsys: pytest.CaptureFixture[str], *argv: str) -> Said:
    capsys.readouterr()
    code = 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["onward", "pipeline", "summary", *argv])
        try:
            main()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1 if left.code else 0
    answer = capsys.readouterr()
    assert "Traceback (most recent call last)" not in answer.err
    return code, answer.out, answer.err


def test_the_table_is_printed_and_what_failed_is_said(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline(root, "2026-11-16_A_nightly", new=0.2)
    code, out, err = onward(capsys, "nightly")
    rows = [re.split(r"\s{2,}", line) for line in out.splitlines()]
    assert code == 0 and rows[0][1:] == ["sums", "words"]
    assert rows[1] == ["base (baseline)", "0.420 ± 0.025", "0/1 failed"] and rows[2] == ["<b>new", "0.620 ± 0.025* ↑", "–"]
    assert "base words: the command failed" in err and "Student's t" in err


def test_the_summary_is_written_in_every_form(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline(root, "2026-11-16_A_nightly", new=0.2)
    assert json.loads(onward(capsys, "nightly", "--json")[1])["baseline"] == "base"
    assert onward(capsys, "nightly", "--format", "csv")[1].startswith("of,step,benchmark")
    assert onward(capsys, "nightly", "-f", "markdown")[1].startswith("### nightly")
    assert onward(capsys, "nightly", "-f", "html", "-o", str(root / "s.html"))[0] == 0
    page = (root / "s.html").read_text()
    assert "<b>new" not in page and "&lt;b&gt;new" in page
    code, _, err = onward(capsys, "nightly", "-f", "html", "-o", str(root / "no" / "s.html"))
    assert code == 1 and "cannot be written" in err


def test_a_gate_that_is_not_passed_is_an_exit_code(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline(root, "2026-11-16_A_nightly", new=0.2)
    assert onward(capsys, "nightly", "--gate")[0] == 0
    pipeline(root, "2026-11-16_B_nightly", new=0.02)
    code, _, err = onward(capsys, "nightly", "--gate")
    assert code == 7 and "sums is 0.44, expected at least 0.5" in err


def test_two_pipelines_are_compared(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline(root, "2026-11-16_A_nightly", new=0.2)
    pipeline(root, "2026-11-16_B_nightly", new=0.1)
    names = ("--compare", "2026-11-16_A_nightly", "2026-11-16_B_nightly")
    code, out, _ = onward(capsys, *names)
    assert code == 0 and re.search(r"new\s+sums\s+0\.620 ± 0\.025\s+0\.520 ± 0\.025\s+-0\.1 ± 0\s+0 \(paired\)\s+worse", out)
    assert json.loads(onward(capsys, *names, "--json")[1])["rows"][2]["better"] is False
    assert onward(capsys, *names, "-f", "csv")[0] == 2
    assert onward(capsys)[0] == 2 and onward(capsys, "nightly", *names)[0] == 2, "one, or two"


def test_the_table_is_watched_until_the_pipeline_is_over(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dir = pipeline(root, "2026-11-16_A_nightly", new=0.2)
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        dir.over.write_text("{}")

    monkeypatch.setattr("onward.cli.pipelines.summary.time.sleep", sleep)
    code, out, _ = onward(capsys, "nightly", "--watch")
    assert code == 0 and len(looks) == 1 and out.count("(baseline)") == 1


def test_a_pipeline_that_has_measured_nothing_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = replace(MADE, benchmarks=(), models=(), summary=SummaryRule())
    pipeline(root, "2026-11-16_A_empty", new=0, plan=empty)
    assert "no benchmark has results yet" in onward(capsys, "empty")[2]


def test_the_page_is_whole_draws_scores_over_steps_and_against_cost_and_loads_nothing() -> None:
    page = summary_page(summary(), now=0.0)
    charts = re.findall(r'<svg class="chart".*?</svg>', page)
    for drawn in charts:
        ET.fromstring(drawn)
    assert len(charts) == 4 and "Over training" in page and "Against seconds" in page
    assert "<b>0.7020 ± 0.0025</b> ↑" in page and "<small>baseline</small>" in page
    assert not re.search(r"https?://|<script|<link|<img", page) and "default-src 'none'" in page
    assert "No benchmark results yet" in summary_page(replace(summary(replace(PLAN, summary=SummaryRule())), rows=()), now=0.0)


def test_the_front_holds_what_nothing_beats_in_score_and_cost() -> None:
    dots = [
        ChartDot(number=0, label=label, cost=cost, score=score)
        for label, cost, score in (("a", 1, 5), ("b", 2, 4), ("c", 3, 7), ("d", 1, 3))
    ]
    best = {
        better: [dot.label for dot in pareto_front(dots, SummaryColumn(benchmark="x", metric="y", better=better))]
        for better in ("max", "min")
    }
    assert best == {"max": ["a", "c"], "min": ["d"]}
