"""One browser, a server with runs to look at for each file; every test a window of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from onward.api.web_app import STATIC
from tests.needs import missing
from tests.servers import Running
from tests.web.browser import Watch, chromium, log_in, new_context, open_list


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that runs may be started from."""
    folder = tmp_path_factory.mktemp("code")
    (folder / "train.py").write_text("print('trained')\n")
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, code: Path) -> Iterator[Running]:
    if not (STATIC / "index.html").exists():
        missing("the page is not built: make web")
    settings = f'[server]\ncode = ["{code}"]\nrequests = 1000\n'
    with Running(tmp_path_factory.mktemp("up"), "--demo-data", settings=settings) as running:
        yield running


@pytest.fixture
def link(server: Running) -> str:
    done = server.onward("token", "login")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def session(server: Running, browser: Browser) -> dict[str, str]:
    """One login for all windows of a file: to start a command for each takes longer than what most of them test."""
    context, _ = new_context(browser, server.url)
    log_in(context.new_page(), server.link)
    kept = {one["name"]: one["value"] for one in context.cookies()}
    context.close()
    return kept


@pytest.fixture
def watched(server: Running, browser: Browser) -> Iterator[tuple[Page, Watch]]:
    """A window that nobody is logged in with yet, and what goes wrong in it."""
    context, watch = new_context(browser, server.url)
    yield context.new_page(), watch
    context.close()
    assert watch.wrong == []


@pytest.fixture
def page(server: Running, watched: tuple[Page, Watch], session: dict[str, str]) -> Page:
    window, _ = watched
    window.context.add_cookies([{"name": name, "value": value, "url": server.url} for name, value in session.items()])
    open_list(window, "/")
    return window
