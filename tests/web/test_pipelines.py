"""The page of pipelines as a person uses it: how far each is, what failed and why, the table as it fills; ended, or tried again."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from onward.api.web_app import STATIC
from onward.model.pipelines.score import Score, TaskResult
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.pipeline.task_layout import TaskDir
from onward.rundir.pipeline.tasks import write_result
from tests.needs import missing
from tests.servers import Running
from tests.web.browser import Watch
from tests.web.measured import GOING, SWEEP, measure
from tests.web.test_access import serious


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    if not (STATIC / "index.html").exists():
        missing("the page is not built: make web")
    folder = tmp_path_factory.mktemp("up")
    measure(folder / "runs", time.time())
    with Running(folder, "--no-tend", settings="[server]\nrequests = 1000\n") as running:
        yield running


def test_the_list_says_how_far_each_is_and_why_it_ended_and_leads_there(page: Page) -> None:
    page.goto("/pipelines")
    going = page.get_by_role("row").filter(has_text=GOING)
    expect(going).to_contain_text("2 of 4")
    expect(going).to_contain_text("24 of 32 done, 1 running, 2 failed")
    expect(page.get_by_role("row").filter(has_text=SWEEP)).to_contain_text("FloatingPointError: the loss is not finite")
    page.get_by_label("Search pipelines").fill("SWEEP")
    expect(going).to_have_count(0)
    assert page.url.endswith("/pipelines?q=SWEEP")
    page.get_by_role("link", name="sweep").click()
    expect(page.get_by_role("heading", name="sweep")).to_be_visible()
    page.go_back()
    expect(page.get_by_label("Search pipelines")).to_have_value("SWEEP")


def test_in_the_list_of_runs_a_pipeline_is_one_line_that_opens_and_can_be_unfolded(page: Page) -> None:
    page.goto("/")
    runs = page.get_by_role("grid", name="Runs")
    line = runs.get_by_role("row").filter(has_text="moons pipeline")
    expect(line).to_contain_text("2 running, 2 submitted, 2 finished")
    expect(runs.get_by_role("row").filter(has_text="sweep pipeline")).to_contain_text("the loss is not finite")
    expect(line.get_by_role("progressbar", name="2 of 4 stages finished")).to_be_visible()
    expect(runs.get_by_role("row").filter(has_text="moons-train")).to_have_count(0)
    line.get_by_role("button", name="Runs of moons").click()
    expect(runs.get_by_role("row").filter(has_text="moons-")).to_have_count(6)
    page.reload()
    expect(runs.get_by_role("row").filter(has_text="moons-")).to_have_count(6)
    line.get_by_role("button", name="Runs of moons").click()
    expect(runs.get_by_role("row").filter(has_text="moons-")).to_have_count(0)
    page.get_by_role("button", name="Fold pipelines").click()
    expect(runs.get_by_role("row").filter(has_text="moons-")).to_have_count(6)
    expect(line).to_have_count(0)
    page.get_by_role("button", name="Fold pipelines").click()
    line.get_by_role("link", name="moons").click()
    expect(page.get_by_role("heading", name="moons")).to_be_visible()


def test_one_shows_its_stages_with_what_they_wait_for_and_leads_to_their_runs(page: Page) -> None:
    page.goto(f"/pipelines/{GOING}")
    stages = page.get_by_role("region", name="Stage graph").get_by_role("listitem")
    expect(stages.filter(has_text="env-main").filter(has_text="skipped")).to_contain_text("unchanged: it is already built")
    expect(stages.filter(has_text="distil")).to_contain_text(re.compile("pending.*waits for train"))
    expect(stages.get_by_role("progressbar", name="step 1,240 of 1,800")).to_have_attribute("aria-valuenow", "69")
    expect(page.get_by_role("listitem").filter(has_text="worker 2")).to_contain_text("running")
    failed = page.get_by_role("group", name=re.compile("The last lines of base · margin")).first
    expect(failed).to_contain_text("the shard has no point of class 1")
    page.goto(f"/pipelines/{SWEEP}")
    page.get_by_role("button", name="train × 6").click()
    assert page.url.endswith("?stages=train")
    expect(page.get_by_role("row").filter(has_text="train lr 0.3, seed 1").first).to_contain_text("failed")
    stages.get_by_role("link", name="env-main").click()
    expect(page).to_have_url(re.compile("/runs/p2enviro"))
    page.get_by_role("link", name=f"pipeline {SWEEP}").click()
    expect(page.get_by_role("heading", name="sweep")).to_be_visible()


def test_the_table_fills_while_one_looks_and_keeps_its_order(page: Page, server: Running) -> None:
    page.goto(f"/pipelines/{GOING}")
    table = page.get_by_role("region", name="Benchmark scores")
    row = table.get_by_role("row").filter(has_text="train, step 1200")
    expect(row).to_contain_text("1 of 2 tasks")
    expect(row).to_contain_text("pending0 of 3 tasks")
    expect(table.get_by_role("row").filter(has_text="train, step 900")).to_contain_text("best: 0.855 ± 0.012")
    expect(table.get_by_role("row").filter(has_text="train, step 600")).to_contain_text("✕ 1 failed")
    expect(table.get_by_role("row").nth(1)).to_contain_text(re.compile("^basebaseline.*–$"))
    table.get_by_role("button", name="accuracy").click()
    assert page.url.endswith("?sort=accuracy")
    expect(table.get_by_role("row").nth(1)).to_contain_text("train, step 1200")
    last = TaskDir(PipelineDir(server.folder / "runs" / GOING).tasks / "train.00001200.accuracy.seed-0.shard-1-of-2")
    write_result(last, TaskResult(scores={"accuracy": Score(value=0.2, count=500, spread=0.2)}, items=500, seconds=1.0))
    expect(row).to_contain_text("0.546 ±")  # without a click
    expect(table.get_by_role("row").nth(1)).to_contain_text("train, step 900")
    page.get_by_label("Compare with").select_option("train")
    expect(row).to_contain_text("train, step 1200baseline")
    assert serious(page) == []


def test_what_failed_is_tried_again(page: Page, server: Running) -> None:
    page.goto(f"/pipelines/{GOING}")
    page.get_by_role("button", name="Rerun failed parts").click()
    expect(page.get_by_text("moons continues")).to_be_visible()
    expect(page.get_by_role("heading", name="Failures")).to_have_count(0)
    expect(page.get_by_role("button", name="Rerun failed parts")).to_have_count(0)
    assert json.loads((server.folder / "runs" / GOING / "params" / "forgiven.json").read_text())["workers"] >= 3


def test_one_that_runs_is_ended_once_one_is_sure(page: Page, server: Running) -> None:
    page.goto(f"/pipelines/{GOING}")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Keep running").click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Yes, cancel the pipeline").click()
    expect(page.get_by_text("moons is cancelled")).to_be_visible()
    assert (server.folder / "runs" / GOING / "params" / "cancelled.json").exists()


def test_one_that_is_not_there_says_so(page: Page, watched: tuple[Page, Watch]) -> None:
    watched[1].expect(404)
    page.goto("/pipelines/2026-11-15_Z_none")
    expect(page.get_by_text("there is no pipeline '2026-11-15_Z_none'")).to_be_visible()
    page.get_by_role("link", name="All pipelines").click()
    expect(page.get_by_role("heading", name="Pipelines")).to_be_visible()
