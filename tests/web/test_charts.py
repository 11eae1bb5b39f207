"""A run's charts, as a person uses them: zoom and go back, read, search, follow a live run, keep what is seen."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect

from tests.servers import Running

STEPS = 400


class Training:
    """A training that logs by the calls of older scripts: a second start with the same job is a further leg."""

    def __init__(self, server: Running, name: str) -> None:
        self._server, self._name = server, name
        self._token = server.token()
        self.run = ""
        self.begin()

    def begin(self) -> None:
        asked = {"slurm_job_id": f"job-{self._name}", "config": {"lr": 0.1}, "name": self._name}
        self.run = str(self._server.json("POST", "/experiments/charts/runs", self._token, asked)["run_id"])

    def log(self, steps: range, value: float | str | None = None, **others: str) -> None:
        name = others.get("name", "loss")
        told = [{"name": name, "step": s, "value": math.exp(-s / 200) if value is None else value} for s in steps]
        self._server.json("POST", f"/api/v1/runs/{self.run}/metrics", self._token, {"points": told})


@pytest.fixture(scope="module")
def training(server: Running) -> Training:
    made = Training(server, "long")
    for first in range(0, 20_000, 5000):
        made.log(range(first, first + 5000))
    made.log(range(0, STEPS, 10), name="val/accuracy")
    made.log(range(STEPS), name="val/nan", value="NaN")
    return made


def opened(page: Page, run: str, query: str = "") -> Page:
    page.goto(f"/runs/{run}/charts{query}")
    page.wait_for_selector(".chart-count")
    return page


def chart(page: Page, metric: str) -> Locator:
    return page.locator("figure.chart", has=page.locator("h3", has_text=re.compile(f"^{re.escape(metric)}$")))


def drag(page: Page, over: Locator, start: float, end: float) -> None:
    box: Any = over.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * start, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * (start + end) / 2, y, steps=3)
    page.mouse.move(box["x"] + box["width"] * end, y, steps=3)
    page.mouse.up()


def test_a_zoom_asks_the_server_again_is_shared_by_all_charts_and_back_undoes_it(page: Page, training: Training) -> None:
    opened(page, training.run)
    count = chart(page, "loss").locator(".chart-count")
    expect(count).to_have_text(re.compile(r"of 20 k points$"))
    with page.expect_response(lambda answer: answer.url.endswith("/api/v1/series/search")):
        drag(page, chart(page, "loss").locator(".u-over"), 0.5, 0.51)
    expect(count).to_have_text(re.compile(r"^2\d\d points$"))  # every single one
    expect(page).to_have_url(re.compile("zoom="))
    shared = page.url
    expect(chart(page, "val/accuracy").get_by_text("There are no points in this zoom range")).to_be_visible()
    page.go_back()
    expect(count).to_have_text(re.compile(r"of 20 k points$"))
    page.goto(shared)
    expect(count).to_have_text(re.compile(r"^2\d\d points$"))
    box: Any = chart(page, "loss").locator(".u-over").bounding_box()
    page.mouse.dblclick(box["x"] + 50, box["y"] + 50)
    expect(count).to_have_text(re.compile(r"of 20 k points$"))
    expect(page).not_to_have_url(re.compile("zoom="))


def closer(request: Request) -> bool:
    return request.url.endswith("/series/search") and '"spans":{}' not in (request.post_data or "")


def test_the_pointer_reads_the_value_and_all_charts_show_the_place(page: Page, training: Training) -> None:
    series = "**/api/v1/series/search"
    held: list[Route] = []  # the part of `loss` that is zoomed into comes when the pointer already rests
    page.route(series, lambda route: held.append(route) if closer(route.request) else route.continue_())
    with page.expect_request(closer):
        opened(page, training.run, "?zoom=0..200")
    chart(page, "val/accuracy").locator(".u-over").hover()
    expect(page.locator(".tip")).to_contain_text("Step")
    expect(chart(page, "loss").locator(".chart-now")).to_have_count(0)
    for route in held:
        route.continue_()
    page.unroute(series)
    expect(chart(page, "loss").locator(".chart-now")).to_have_text(re.compile(r"^0\.\d+"))


def test_a_chart_without_data_says_why_and_offers_what_has_some(page: Page, training: Training) -> None:
    opened(page, training.run, "?x=metric:epoch")
    empty = chart(page, "loss").locator(".chart-empty")
    expect(empty).to_contain_text("no epoch to plot against")
    expect(chart(page, "val/nan").locator(".chart-empty")).to_contain_text("no epoch to plot against")
    empty.get_by_role("button", name="Plot against step").click()
    expect(empty).to_have_count(0)
    expect(chart(page, "val/nan").locator(".chart-empty")).to_contain_text("All 400 values are NaN or infinite")


def test_charts_are_used_by_keys_alone(page: Page, training: Training) -> None:
    opened(page, training.run)
    page.keyboard.press("y")
    page.keyboard.press("s")
    expect(page).to_have_url(re.compile(r"logy=1.*smooth=0\.6|smooth=0\.6.*logy=1"))
    plot = chart(page, "loss").locator(".plot")
    plot.focus()
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile("zoom="))
    page.keyboard.press("]")
    expect(chart(page, "loss").locator(".tip")).to_be_visible()
    page.keyboard.press("0")
    expect(page).not_to_have_url(re.compile("zoom="))
    page.keyboard.press("t")
    expect(chart(page, "loss").get_by_role("columnheader", name="Step")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("accur")
    expect(page.locator("figure.chart")).to_have_count(1)
    expect(page).to_have_url(re.compile("q=accur"))


def test_what_is_seen_can_be_kept(page: Page, training: Training, tmp_path: Path) -> None:
    opened(page, training.run, "?zoom=0..105")
    here = chart(page, "val/accuracy")
    expect(here.locator(".chart-count")).to_have_text("11 points")
    for kind in ("CSV", "SVG", "PNG"):
        here.locator(".chart-menu summary").click()
        with page.expect_download() as waiting:
            here.get_by_role("button", name=f"Save as {kind}").click()
        waiting.value.save_as(tmp_path / kind)
    rows = (tmp_path / "CSV").read_text().splitlines()
    assert rows[0] == "run,name,step,val/accuracy,lowest,highest"
    assert [row.split(",")[2] for row in rows[1:]] == [str(step) for step in range(0, 110, 10)]
    assert (tmp_path / "SVG").read_text().startswith("<svg")
    assert (tmp_path / "PNG").read_bytes().startswith(b"\x89PNG")


def test_a_live_run_is_followed_through_a_leg_change_without_losing_the_zoom(page: Page, server: Running) -> None:
    training = Training(server, "live")
    training.log(range(100))
    opened(page, training.run)
    count = chart(page, "loss").locator(".chart-count")
    expect(count).to_have_text("100 points")
    drag(page, chart(page, "loss").locator(".u-over"), 0.5, 0.99)
    expect(count).to_have_text(re.compile(r"^(48|49|50) points$"))
    expect(page).to_have_url(re.compile("zoom="))
    zoomed = page.url
    training.log(range(100, 120))
    training.begin()
    training.log(range(80, 150), value=0.5)
    page.wait_for_function("() => document.querySelector('.chart-count').title.includes('a later leg logged again')")
    assert page.url == zoomed
    expect(count).to_have_text(re.compile(r"^(48|49|50) points$"))
    page.locator(".plot").first.press("0")
    expect(count).to_have_text("150 points")


def test_thousands_of_metrics_are_searched_first_and_drawn_when_they_come_into_view(page: Page, server: Running) -> None:
    training = Training(server, "wide")
    told = [{"name": f"layer.{n}/scale", "step": s, "value": n + s} for n in range(1500) for s in range(2)]
    server.json("POST", f"/api/v1/runs/{training.run}/metrics", server.token(), {"points": told})
    opened(page, training.run)
    expect(page.get_by_placeholder("Search 1,500 metrics")).to_be_visible()
    assert page.locator("figure.chart").count() < 60
    page.get_by_placeholder("Search 1,500 metrics").fill("layer.1499")
    expect(page.locator("figure.chart")).to_have_count(1)
