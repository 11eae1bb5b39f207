"""Runs compared, as a person does it: over each other, side by side, in groups, against each other."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.servers import Running

HOSTILE = '<img src=x onerror="alert(1)"> \u202eright to left'


@pytest.fixture(scope="module")
def runs(server: Running) -> list[str]:
    token = server.token()
    made = []
    for index in range(14):
        params = {"lr": 0.1 if index % 2 else 0.01, "seed": index, "model": "resnet"}
        name = HOSTILE if index == 3 else f"compared-{index}"
        run = server.json("POST", "/api/v1/runs", token, {"experiment": "compared", "name": name, "params": params})["id"]
        told = [{"name": "val/loss", "step": s, "value": (1 + index) * math.exp(-s / 50)} for s in range(100)]
        server.json("POST", f"/api/v1/runs/{run}/metrics", token, {"points": told})
        made.append(str(run))
    return made


def opened(page: Page, runs: list[str], query: str = "") -> Page:
    page.goto(f"/compare?runs={','.join(runs)}{query}")
    page.wait_for_selector(".compare-runs li")
    return page


def test_ten_runs_are_drawn_on_open_and_the_rest_on_click(page: Page, runs: list[str]) -> None:
    opened(page, runs)
    expect(page.locator(".compare-runs header")).to_contain_text("14 runs")
    count = page.locator(".chart-count")
    expect(count).to_have_text("1,000 points")
    page.locator(".compare-runs li").nth(12).get_by_role("checkbox").check()
    expect(count).to_have_text("1,100 points")
    page.get_by_role("button", name="Show all").click()
    expect(count).to_have_text("1,400 points")
    page.reload()
    expect(count).to_have_text("1,400 points")


def test_the_selection_is_edited_in_place_and_shared_by_its_address(page: Page, runs: list[str]) -> None:
    opened(page, runs[:2])
    page.locator(".compare-runs li").first.hover()
    page.get_by_role("button", name="Remove compared-0").click()
    expect(page.locator(".compare-runs li")).to_have_count(1)
    page.get_by_role("combobox", name="Add runs").fill("compared-7")
    page.get_by_role("option", name=re.compile("compared-7")).click()
    expect(page.locator(".compare-runs li")).to_have_count(2)
    expect(page).to_have_url(re.compile(runs[7]))
    page.go_back()
    expect(page.locator(".compare-runs li")).to_have_count(1)


def test_a_filter_adds_all_it_finds(page: Page, runs: list[str]) -> None:
    page.goto("/compare")
    expect(page.get_by_text("No runs to compare yet")).to_be_visible()
    field = page.get_by_role("combobox", name="Add runs")
    field.fill("experiment = 'compared' and params.lr = 0.1")
    field.press("Enter")
    expect(page.locator(".compare-runs li")).to_have_count(7)
    expect(page).not_to_have_url(re.compile(runs[1]))


def test_the_pointer_reads_all_runs_sorted_by_value(page: Page, runs: list[str]) -> None:
    opened(page, runs[:5])
    page.wait_for_selector(".chart-count")
    page.locator(".u-over").first.hover()
    rows = page.locator(".tip tr")
    expect(rows).to_have_count(5)
    values = [float(cell) for cell in page.locator(".tip .value").all_inner_texts()]
    assert values == sorted(values, reverse=True)


def test_only_params_that_differ_are_shown_unless_all_are_asked_for(page: Page, runs: list[str]) -> None:
    opened(page, runs[:4], "&tab=params")
    expect(page.get_by_role("rowheader")).to_have_text(["lr", "seed"])
    page.get_by_label("Show equal params too (1)").check()
    expect(page.get_by_role("rowheader")).to_have_text(["lr", "seed", "model"])


def test_the_best_of_each_metric_stands_out_and_the_others_are_told_against_the_baseline(page: Page, runs: list[str]) -> None:
    opened(page, runs[:3], f"&tab=metrics&base={runs[1]}")
    cells = page.get_by_role("row", name="val/loss").get_by_role("cell")
    expect(cells.nth(0)).to_have_class("best")
    expect(cells.nth(0)).to_contain_text("−50 %")
    expect(cells.nth(2)).to_contain_text("+50 %")
    page.get_by_role("button", name=re.compile("lower is better; reverse")).click()
    expect(cells.nth(2)).to_have_class("best")


def test_groups_are_means_over_all_runs_whichever_are_drawn(page: Page, runs: list[str]) -> None:
    with page.expect_request(lambda request: request.url.endswith("/series/aggregates/search")) as waiting:
        opened(page, runs, f"&group=params.lr&draw={runs[0]}")
    asked: Any = waiting.value.post_data_json
    assert sorted(len(group["runs"]) for group in asked["groups"]) == [7, 7]
    expect(page.locator(".compare-groups li")).to_have_text(["lr 0.017", "lr 0.17"])
    expect(page.locator(".chart-count")).to_have_text("14 runs")


def test_a_brush_keeps_what_passes_and_is_in_the_address(page: Page, runs: list[str]) -> None:
    opened(page, runs, "&tab=parallel")
    slider = page.get_by_role("slider", name=re.compile("^lr"))
    slider.focus()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_text("7 of 14 runs selected")).to_be_visible()
    expect(page).to_have_url(re.compile("brush=params.lr"))
    page.get_by_role("button", name="Plot these").click()
    expect(page.locator(".compare-runs header")).to_contain_text("7 shown")


def test_a_scatter_tells_how_two_things_go_together(page: Page, runs: list[str]) -> None:
    opened(page, runs, "&tab=scatter&sx=params.seed&sy=metrics.val/loss")
    expect(page.get_by_text("correlation 1")).to_be_visible()
    expect(page.locator(".scatter circle")).to_have_count(14)


def test_a_hostile_name_is_only_text(page: Page, runs: list[str]) -> None:
    opened(page, runs[3:4])
    expect(page.locator(".compare-runs li a")).to_contain_text("<img src=x")
    assert page.locator("img").count() == 0
