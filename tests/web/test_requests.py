"""The page of requests as a person uses it: found by how they stand, looked into, a result taken away, one cancelled."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from onward.api.web_app import STATIC
from onward.model.requests.request import RequestEnding
from onward.tracker.requests.store import Requests
from tests.needs import missing
from tests.servers import Running
from tests.web.asked import DONE, FAILED, RUNNING, UNSENT, ask
from tests.web.browser import Watch
from tests.web.test_access import serious


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    if not (STATIC / "index.html").exists():
        missing("the page is not built: make web")
    folder = tmp_path_factory.mktemp("up")
    ask(folder, time.time())
    with Running(folder, "--no-tend", settings="[server]\nrequests = 1000\n") as running:
        yield running


def test_requests_are_found_by_how_they_stand_and_by_text_and_the_address_says_so(page: Page) -> None:
    page.goto("/requests")
    expect(page.get_by_role("row").filter(has_text=FAILED)).to_contain_text("out of memory")
    expect(page.get_by_role("row").filter(has_text=UNSENT)).to_contain_text("tried 3×: the broker has no queue 'gone'")
    page.get_by_role("button", name=re.compile("^open")).click()
    expect(page.get_by_role("row").filter(has_text=RUNNING)).to_contain_text("left")
    expect(page.get_by_text(DONE)).to_have_count(0)
    assert page.url.endswith("/requests?state=open")
    page.get_by_role("button", name=re.compile("^refused")).click()
    expect(page.get_by_text("Patch height: 32 is less than 64")).to_be_visible()
    page.get_by_label("Search requests").fill("no such")
    expect(page.get_by_text("No request matches")).to_be_visible()
    expect(page.get_by_label("Search requests")).to_be_focused()  # one types on
    page.go_back()
    expect(page.get_by_text(RUNNING)).to_be_visible()


def test_one_shows_what_it_asked_and_its_answer_and_gives_the_results_out(page: Page) -> None:
    page.goto("/requests")
    page.get_by_role("link", name=DONE).click()
    expect(page.get_by_role("heading", name=DONE)).to_be_visible()
    expect(page.get_by_label("Settings")).to_contain_text("Maximum number of training epochs")
    expect(page.get_by_label("Metrics")).to_contain_text("0.981")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download Model 0").click()
    assert Path(download.value.path()).read_bytes() == b"weights" * 90_000
    page.goto(f"/requests/{FAILED}")
    expect(page.get_by_label("Last lines of its training log")).to_contain_text("oom_kill")
    expect(page.get_by_text("send it again with a larger Maximum memory (MB)")).to_be_visible()
    assert serious(page) == []


def test_an_open_one_is_cancelled_once_one_is_sure(page: Page, server: Running) -> None:
    page.goto(f"/requests/{RUNNING}")
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "42")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Keep running").click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Yes, cancel it").click()
    expect(page.get_by_text("being cancelled", exact=True)).to_be_visible()
    store = Requests.open(server.folder / "tracker.requests.db", create=False)
    asked = store.of(RUNNING)
    store.close()
    assert asked.ending is RequestEnding.CANCELLED


def test_one_that_is_not_there_says_so(page: Page, watched: tuple[Page, Watch]) -> None:
    watched[1].expect(404)
    page.goto("/requests/no-such")
    expect(page.get_by_text("there is no request 'no-such'")).to_be_visible()
    page.get_by_role("link", name="All requests").click()
    expect(page.get_by_role("heading", name="Requests")).to_be_visible()
