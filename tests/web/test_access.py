"""Every page, light and dark, wide and narrow: axe-core finds nothing serious."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page

import build_web
from tests.needs import missing
from tests.servers import Running
from tests.web.browser import log_in, new_context

AXE = build_web.WEB / "node_modules" / "axe-core" / "axe.min.js"
PAGES = {
    "runs": "/",
    "groups": "/?group=experiment&open=%3Ddemo:%20digits",
    "nothing": "/?q=params.lr%20%3E%20100",
    "new": "/new",
    "script": "/new?show=script",
    "nowhere": "/no/such/page",
}
_RUN = """async () => {
  const found = await axe.run(document, {resultTypes: ["violations"]});
  const grave = found.violations.filter(({impact}) => impact === "serious" || impact === "critical");
  return grave.map(({id, help, nodes}) => ({id, help, where: nodes.slice(0, 3).map(({html}) => html.slice(0, 160))}));
}"""


def serious(page: Page) -> list[Any]:
    """What is seriously wrong on a page as it is shown now."""
    if not AXE.exists():
        missing("axe-core is not installed: make web")
    page.evaluate(AXE.read_text())  # not by a tag: the page's policy forbids it
    found: list[Any] = page.evaluate(_RUN)
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_has_a_serious_problem(server: Running, browser: Browser, link: str, width: int, dark: bool) -> None:
    context, watch = new_context(browser, server.url, width=width, dark=dark)
    page = context.new_page()
    log_in(page, link)
    found = {}
    for name, path in PAGES.items():
        page.goto(path)
        page.wait_for_selector("main :is(.table-row, .card, .empty, .new-form)")
        found[name] = serious(page)
    context.close()
    assert {name: problems for name, problems in found.items() if problems} == {}
    assert watch.wrong == []


def test_menus_and_dialogs_have_no_serious_problem(page: Page) -> None:
    page.goto("/?q=tags.demo = yes")
    page.wait_for_selector(".table-row .cell a")
    for name in ("Group", "Curve", "Columns", "Views"):
        page.get_by_role("button", name=name).first.click()
        page.wait_for_selector(".panel")
        assert serious(page) == [], name
        page.keyboard.press("Escape")
    page.get_by_label("Select lr-0.001").first.check()
    page.keyboard.press("t")
    page.wait_for_selector("dialog")
    assert serious(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.wait_for_selector(".keysheet")
    assert serious(page) == []
