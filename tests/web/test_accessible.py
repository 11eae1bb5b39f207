"""Every page with something on it, light and dark, wide and narrow: nothing serious by axe-core, and nothing wider than the window."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from onward.api.web_app import STATIC
from tests.needs import missing
from tests.servers import Running
from tests.web.browser import log_in, new_context
from tests.web.test_access import serious
from tests.web.tour import STOPS, demo_server, go, with_a_cluster


@pytest.fixture(scope="module")
def toured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    if not (STATIC / "index.html").exists():
        missing("the page is not built: make web")
    with demo_server(tmp_path_factory.mktemp("tour")) as server:
        yield server


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_can_be_used_by_everyone(toured: Running, browser: Browser, width: int, dark: bool) -> None:
    context, watch = new_context(browser, toured.url, width=width, dark=dark)
    with_a_cluster(context)
    page = context.new_page()
    log_in(page, toured.onward("token", "login").stdout.strip())
    found: dict[str, object] = {}
    for name, stop in STOPS.items():
        go(page, stop)
        if problems := serious(page):
            found[name] = problems
        if (wide := page.evaluate("document.documentElement.scrollWidth")) > width:
            found[f"{name}: its width"] = wide
    context.close()
    assert found == {}
    assert watch.wrong == []
