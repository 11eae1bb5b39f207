"""The log viewer: any length, any text, any leg; searched on the server, at an address that can be shared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.benches import until
from tests.servers import Running
from tests.web.training import Started, start

LINES = 400_000
NEEDLE = 321_987


@pytest.fixture(scope="module")
def run(server: Running, code: Path) -> Started:
    """With a log of some 20 MB in the place of its own."""
    started = start(server, server.token(), code, "talks")
    started.until("finished")
    with (started.dir / "logs" / "leg-0001.out").open("w") as log:
        for number in range(LINES):
            log.write(f"\x1b[2m12:00:{number % 60:02d}\x1b[0m line {number} \x1b[31mof\x1b[0m many\n")
            if number == NEEDLE:
                log.write("Traceback (most recent call last):\n  \x1b[38;5;208mValueError\x1b[0m: a <script>needle()</script>\n")
    return started


@pytest.fixture
def log(page: Page, run: Started) -> Page:
    page.goto(f"{run.server.url}/runs/{run.id}/logs")
    expect(page.locator(".log-line").last).to_contain_text(f"line {LINES - 1} of many")
    return page


def test_only_a_part_is_held_and_the_end_comes_first(log: Page) -> None:
    assert log.locator(".log-line").count() < 4000
    expect(log.locator(".log-status")).to_contain_text("end of")


def test_the_first_error_is_one_press_away_and_has_an_address(log: Page) -> None:
    log.keyboard.press("!")
    found = log.locator(".log-line.on")
    expect(found).to_contain_text("Traceback (most recent call last):")
    expect(log.get_by_text("<script>needle()</script>")).to_be_visible()
    expect(log).to_have_url(re.compile(r"at=\d+"))
    other = log.context.new_page()
    other.goto(log.url)
    expect(other.locator(".log-line.on")).to_contain_text("Traceback")
    expect(other.locator(".log-line.on")).to_be_in_viewport()


def test_a_search_finds_what_is_not_loaded_and_walks_from_match_to_match(log: Page) -> None:
    log.keyboard.press("/")
    log.keyboard.type(" 12345")  # 12345, and 123450 to 123459
    expect(log.locator(".log-find output")).to_have_text("11 lines")
    log.keyboard.press("Enter")
    expect(log.locator(".log-line.on")).to_contain_text("line 12345 of many")
    expect(log.locator(".log-line.on mark")).to_have_text(" 12345")
    log.keyboard.press("Enter")
    expect(log.locator(".log-line.on")).to_contain_text("line 123450 of many")
    log.keyboard.press("Shift+Enter")
    expect(log.locator(".log-find output")).to_have_text("1 of 11")
    expect(log.locator(".log-line.on")).to_contain_text("line 12345 of many")
    log.reload()
    expect(log.locator(".log-line.on")).to_contain_text("line 12345 of many")


def test_scrolling_reads_on_and_moves_nothing_that_is_looked_at(log: Page) -> None:
    log.locator(".log-box").hover()

    def numbers() -> list[int]:
        found: list[int] = log.locator(".log-line").evaluate_all(
            "lines => lines.map(line => Number(/line (\\d+)/.exec(line.textContent)[1]))"
        )
        return found

    def far_up() -> bool:
        log.mouse.wheel(0, -1200)
        log.wait_for_timeout(30)
        seen = numbers()
        assert seen == list(range(seen[0], seen[0] + len(seen)))
        return seen[0] < LINES - 1500

    until(far_up, what="1,500 lines before the end")
    expect(log).to_have_url(re.compile(r"at=\d+"))
    log.get_by_role("button", name="Jump to the end").click()
    expect(log.locator(".log-line").last).to_contain_text(f"line {LINES - 1} of many")


def test_colours_are_drawn_and_text_is_only_text(log: Page) -> None:
    log.keyboard.press("!")
    expect(log.locator(".log-line.on + .log-line span").first).to_have_css("color", "rgb(255, 135, 0)")
    expect(log.locator(".log-line .f1").first).to_have_text("of")
    assert log.locator(".log-lines script").count() == 0


def test_streams_and_long_lines_have_keys(log: Page) -> None:
    log.keyboard.press("w")
    expect(log).to_have_url(re.compile("wrap=0"))
    log.keyboard.press("e")
    expect(log.locator(".log-none")).to_contain_text("Leg 1 wrote no errors (it ended: done).")
    log.keyboard.press("v")
    expect(log.locator(".log-line").first).to_be_visible()
    expect(log).to_have_url(re.compile("log=supervisor"))
    log.go_back()
    expect(log.locator(".log-none")).to_be_visible()


def test_a_log_is_downloaded_whole(log: Page, run: Started) -> None:
    with log.expect_download() as loaded:
        log.get_by_role("link", name="Download this log").click()
    assert Path(loaded.value.path()).stat().st_size == (run.dir / "logs" / "leg-0001.out").stat().st_size
