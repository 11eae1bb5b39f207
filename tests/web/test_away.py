"""A server that goes away and comes back while its page is open."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from onward.api.web_app import STATIC
from tests.benches import until
from tests.needs import missing
from tests.servers import Running
from tests.web.browser import log_in, new_context


def test_a_page_that_is_opened_while_the_server_is_away_opens_when_it_is_back(tmp_path: Path, browser: Browser) -> None:
    if not (STATIC / "index.html").exists():
        missing("the page is not built: make web")
    with Running(tmp_path / "up", "--demo-data") as server:
        context, _ = new_context(browser, server.url)
        page = context.new_page()
        log_in(page, server.link)
        server.stop()
        page.get_by_role("link", name="lr-0.03", exact=True).first.click()
        expect(page.get_by_role("heading", name="The server does not answer")).to_be_visible()
        server.start()
        expect(page.get_by_role("heading", name="lr-0.03")).to_be_visible()
        assert page.locator(".tiles").evaluate("box => getComputedStyle(box).display") == "grid"  # its styles came too
        context.close()


def test_a_page_that_is_opened_after_its_login_was_revoked_says_so(tmp_path: Path, browser: Browser) -> None:
    if not (STATIC / "index.html").exists():
        missing("the page is not built: make web")
    with Running(tmp_path / "up", "--demo-data") as server:
        context, _ = new_context(browser, server.url)
        page = context.new_page()
        log_in(page, server.link)
        session = next(line.split()[0] for line in server.onward("token", "list").stdout.splitlines() if "session" in line)
        assert server.onward("token", "revoke", session).returncode == 0
        until(lambda: context.request.get("/healthz").status == 401, what="the end of the session")  # known within seconds
        page.get_by_role("link", name="lr-0.03", exact=True).first.click()
        expect(page.get_by_role("heading", name="You are no longer logged in")).to_be_visible()
        context.close()
