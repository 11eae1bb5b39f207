"""A window of the system's Chromium that times what happens in it, by its own clock, until it was painted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page

from bench.tracker_servers import Server

PATIENCE_S = 60
_WATCH = """{
  const look = () => {
    if (document.querySelector(%s)) requestAnimationFrame(() => setTimeout(() => { window.painted = performance.now(); }));
    else requestAnimationFrame(look);
  };
  look();
}"""
_ACT = """async () => {
  const before = document.querySelector(".chart-count")?.textContent;
  const seen = () => (%(test)s);
  const began = performance.now();
  %(act)s;
  while (!seen()) {
    if (performance.now() - began > %(patience)d) throw new Error("what was awaited has not come");
    await new Promise(requestAnimationFrame);
  }
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return [performance.now() - began, Date.now()];
}"""
_FRAMES = """async ([selector, turns]) => {
  const over = document.querySelector(selector);
  const box = over.getBoundingClientRect();
  const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true, cancelable: true };
  const turn = (deltaX, deltaY, ctrlKey) => over.dispatchEvent(new WheelEvent("wheel", { ...at, deltaX, deltaY, ctrlKey }));
  for (let n = 0; n < 3; n++) turn(0, -50, true);
  await new Promise((done) => setTimeout(done, 1500));
  const times = [];
  for (let n = 0; n <= turns; n++) {
    times.push(await new Promise(requestAnimationFrame));
    turn(n % 120 < 60 ? 6 : -6, 0, false);
  }
  return times.slice(1).map((time, n) => time - times[n]);
}"""


class Window:
    def __init__(self, page: Page, server: Server) -> None:
        self.page = page
        self._server = server
        self.bytes: dict[str, int] = {}
        self._kinds: dict[str, str] = {}
        self._tools = page.context.new_cdp_session(page)
        self._tools.send("Network.enable")
        self._tools.on("Network.responseReceived", self._answered)
        self._tools.on("Network.loadingFinished", self._loaded)

    def _answered(self, expected: Any) -> None:
        self._kinds[expected["requestId"]] = "answers" if "api/" in expected["response"]["url"].partition("?")[0] else "page"

    def _loaded(self, expected: Any) -> None:
        kind = self._kinds.get(expected["requestId"], "page")
        self.bytes[kind] = self.bytes.get(kind, 0) + int(expected["encodedDataLength"])

    def opened(self, path: str, selector: str) -> float:
        """Milliseconds from the navigation until what is sought was painted."""
        self.page.add_init_script(_WATCH % json.dumps(selector))
        self.page.goto(self._server.url + path, wait_until="commit")
        self.until("window.painted")
        return float(self.page.evaluate("window.painted"))

    def until(self, test: str) -> tuple[float, float]:
        """Milliseconds until a test, in the page's words, holds and is painted; and the time of day then."""
        return self._act("", test)

    def acted(self, act: str, test: str) -> float:
        """Milliseconds from an act until a test holds and is painted; to both, `before` is how many points the first chart had."""
        return self._act(act, test)[0]

    def _act(self, act: str, test: str) -> tuple[float, float]:
        took, now = self.page.evaluate(_ACT % {"act": act, "test": test, "patience": PATIENCE_S * 1000})
        return float(took), float(now) / 1000

    def panned(self, selector: str, turns: int) -> list[float]:
        """Milliseconds of each frame while a hand moves the chart a little in every one."""
        found: list[float] = self.page.evaluate(_FRAMES, [selector, turns])
        return found

    def busy(self, seconds: float) -> float:
        """Share of a processor that the page's own thread uses while nothing is done to it."""
        self._tools.send("Performance.enable")
        before = self._task_seconds()
        self.page.wait_for_timeout(seconds * 1000)
        return (self._task_seconds() - before) / seconds

    def _task_seconds(self) -> float:
        answer = self._tools.send("Performance.getMetrics")["metrics"]
        return next(float(one["value"]) for one in answer if one["name"] == "TaskDuration")

    def heap(self) -> float:
        """MB of JavaScript's memory after a collection."""
        self._tools.send("HeapProfiler.collectGarbage")
        return float(self._tools.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


@contextmanager
def window(browser: Browser, server: Server) -> Iterator[Window]:
    """One that knows nothing yet: no cache, no cookie."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, extra_http_headers=dict(server.headers))
    context.set_default_timeout(PATIENCE_S * 1000)
    try:
        yield Window(context.new_page(), server)
    finally:
        context.close()
