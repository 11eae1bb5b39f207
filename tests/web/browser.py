"""A person's browser: the system's Chromium, on one server, logged in. What no page may do fails the test that meets it: an error in the
console, a broken answer, a request to anywhere but the server."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response, expect, sync_playwright

from tests.needs import missing

PATIENCE_MS = 30_000  # for a machine that is very busy: no test is meant to take it
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb", "--font-render-hinting=none"]
expect.set_options(timeout=PATIENCE_MS)


@contextmanager
def chromium() -> Iterator[Browser]:
    found = next((path for path in map(shutil.which, _NAMES) if path), None)
    if found is None:
        missing("Chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Watch:
    """What went wrong in a browser. Answers that a test expects to be refused are named beforehand."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.wrong: list[str] = []
        self.expected: set[int] = set()
        self._origin = urlsplit(url).netloc
        context.on("console", self._console)
        context.on("weberror", lambda error: self.wrong.append(f"an error in the page: {error.error}"))
        context.on("request", self._request)
        context.on("response", self._response)

    def expect(self, *statuses: int) -> None:
        self.expected |= set(statuses)

    def _console(self, message: ConsoleMessage) -> None:
        refused = "Failed to load resource" in message.text  # told by the answer itself
        if message.type in ("error", "warning") and not refused:
            self.wrong.append(f"the console says: {message.text}")

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != self._origin:
            self.wrong.append(f"a request to elsewhere: {request.url}")

    def _response(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.expected:
            self.wrong.append(f"{response.request.method} {response.url} answered {response.status}")


def new_context(browser: Browser, url: str, *, width: int = 1280, height: int = 800, dark: bool = False) -> tuple[BrowserContext, Watch]:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        base_url=url,
        timezone_id="UTC",
        locale="en-US",
    )
    context.set_default_timeout(PATIENCE_MS)
    return context, Watch(context, url)


def log_in(page: Page, link: str) -> None:
    """By a one-time link, as `onward up` prints it; it leads to the list of runs."""
    open_list(page, link)


def open_list(page: Page, address: str) -> None:
    """Until there is something to act on."""
    page.goto(address)
    page.wait_for_selector("main :is(.table-row:not(.waiting) .cell a, .card a, .empty)")
