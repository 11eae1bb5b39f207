"""Onward's page, measured: the list of runs, charts, a live run, a long log."""

from __future__ import annotations

import time
from statistics import median, quantiles

from playwright.sync_api import Browser

from bench.tracker_servers import Server
from bench.tracker_table import Table
from bench.web_fill import EACH, KEYS, LEGS, OVERLAID, RARE
from bench.web_window import Window, window

ROWS = ".table-row .cell a"
COUNT = ".chart-count"
_COUNTED = f"document.querySelector({COUNT!r})?.textContent"
_REPEATS = 7


def first_load(table: Table, browser: Browser, server: Server, peer: str) -> None:
    times, sizes, busy = [], [], 0.0
    for number in range(_REPEATS + 1):
        with window(browser, server) as one:
            took = one.opened("/", ROWS)
            if number:
                times.append(took)
            one.page.wait_for_timeout(500)
            sizes.append((one.bytes.get("page", 0), one.bytes.get("answers", 0)))
            if number == _REPEATS:
                before = server.cpu
                busy = one.busy(10)
                idle = (server.cpu - before) / 10
    ms, size = median(times), max(sizes)
    table.row("run list, first rows painted, empty cache", onward=f"{ms:.0f} ms", peers=peer, goal="≤ 1,000 ms", met=ms <= 1000)
    table.row(
        "bytes of that first load, as sent",
        onward=f"{size[0] / 1e3:.0f} kB page, {size[1] / 1e3:.0f} kB answers",
        goal="≤ 250 kB page",
        met=size[0] <= 250_000,
    )
    table.row("list at rest for 10 s: share of a core", onward=f"page {busy:.1%}, server {idle:.1%}", goal="≤ 5 %", met=busy <= 0.05)


def search(table: Table, browser: Browser, server: Server) -> None:
    """A filter typed whole, until the list shows what it finds: one run."""
    times = []
    with window(browser, server) as one:
        one.opened("/", ROWS)
        field = one.page.get_by_role("combobox").first
        for number in range(_REPEATS):
            field.fill(f"params.seed = '{number * 1111 + 7}'")
            field.press("Enter")
            times.append(one.until(f"document.querySelector({ROWS!r})?.textContent === 'run-{number * 1111 + 7}'")[0])
    ms = median(times)
    table.row("run list filtered by a param, of 10,000", onward=f"{ms:.0f} ms", goal="≤ 500 ms", met=ms <= 500)


def charts(table: Table, browser: Browser, server: Server, ids: dict[str, str], peers: dict[str, str]) -> None:
    runs = ids["overlaid"]
    with window(browser, server) as one:
        opened = one.opened(f"/compare?runs={runs}", COUNT)
        one.until("document.querySelectorAll('.compare-runs li.out').length > 20")
        adds = [
            one.acted("document.querySelector('.compare-runs li.out input').click()", f"{_COUNTED} !== before") for _ in range(_REPEATS)
        ]
        one.page.get_by_role("button", name="Show all").click()
        one.until(f"{_COUNTED}?.endsWith('of {OVERLAID * EACH // 1000} k points')")
        frames = one.panned(".u-over", 240)
    ms = median(adds)
    rate, slow = 1000 / (sum(frames) / len(frames)), quantiles(frames, n=20)[-1]
    table.row(f"compare {OVERLAID} runs: ten drawn, empty cache", onward=f"{opened:.0f} ms", peers=peers.get("compare", "–"))
    table.row("one more run on that chart", onward=f"{ms:.0f} ms", peers=peers.get("add", "–"), goal="≤ 300 ms", met=ms <= 300)
    table.row(
        f"{OVERLAID} runs × {EACH:,} points, panned",
        onward=f"{rate:.0f} frames/s, 95 % within {slow:.0f} ms",
        peers=peers.get("pan", "–"),
        goal="≥ 30 frames/s",
        met=rate >= 30,
    )


def wide_and_long(table: Table, browser: Browser, server: Server, ids: dict[str, str], peers: dict[str, str]) -> None:
    with window(browser, server) as one:
        one.opened("/", ROWS)  # its scripts are loaded once, as for anyone who comes from the list
        wide = [one.opened(f"/runs/{ids['wide']}/charts", COUNT) for _ in range(3)]
        nodes = one.page.evaluate("document.querySelectorAll('*').length")
        long = [one.opened(f"/runs/{ids['long']}/charts", COUNT) for _ in range(3)]
    table.row(f"charts of a run of {KEYS:,} metrics", onward=f"{median(wide):.0f} ms, {nodes:,} elements", peers=peers.get("wide", "–"))
    table.row("chart of a million points", onward=f"{median(long):.0f} ms", peers=peers.get("long", "–"))


def live(table: Table, browser: Browser, server: Server) -> None:
    """From the moment before a point is sent until it is painted."""
    asked = {"slurm_job_id": f"live-{time.time()}", "name": "live", "config": {}}
    run = str(server.asked("POST", "/experiments/page/runs", asked)["run_id"])
    step = 0

    def send(count: int) -> None:
        nonlocal step
        points = [{"name": "loss", "step": step + n, "value": 1 / (1 + step + n)} for n in range(count)]
        server.asked("POST", f"/api/v1/runs/{run}/metrics", {"points": points})
        step += count

    send(100)
    behind = []
    with window(browser, server) as one:
        one.opened(f"/runs/{run}/charts", COUNT)
        one.page.wait_for_timeout(1500)
        for _ in range(_REPEATS):
            before = one.page.locator(COUNT).first.text_content()
            began = time.time()
            send(1)
            behind.append(one.until(f"{_COUNTED} !== {before!r}")[1] - began)
            one.page.wait_for_timeout(700)
    late = median(behind)
    table.row(
        "a live chart behind the training, sent to painted",
        onward=f"{late:.2f} s, at most {max(behind):.2f} s",
        goal="≤ 2 s",
        met=max(behind) <= 2,
    )


def log(table: Table, browser: Browser, server: Server, ids: dict[str, str]) -> None:
    """200 MB: opened at its end, gone through by the slider, searched, its first error found."""
    with window(browser, server) as one:
        opened = one.opened(f"/runs/{ids['legs']}/logs?leg={LEGS}", ".log-line")
        first = "document.querySelector('.log-line')?.dataset.at"
        slides = [one.acted(_slide(share), f"Math.abs({first} / 2e8 - {share}) < 0.02") for share in (0.2, 0.7, 0.4, 0.1, 0.5)]
        one.page.get_by_label("Search this log").fill(RARE)
        found = one.until("document.querySelector('.log-find output')?.textContent === '1 line'")[0]
        error = one.acted(
            "[...document.querySelectorAll('.log-tools button')].find((b) => b.textContent === 'First error').click()",
            "document.querySelector('.log-line.on, .log-line[aria-current]') !== null || document.body.textContent.includes('Traceback')",
        )
        frames = _scrolled(one)
        heap = one.heap()
    table.row("log of 200 MB, end shown, empty cache", onward=f"{opened:.0f} ms")
    table.row("the same, another place by the slider", onward=f"{median(slides):.0f} ms")
    table.row("a text at 90 % of it found; its first error shown", onward=f"{found:.0f} ms; {error:.0f} ms")
    rate = 1000 / (sum(frames) / len(frames))
    table.row(
        "the same scrolled; memory of the page's script", onward=f"{rate:.0f} frames/s; {heap:.0f} MB", goal="≥ 30 frames/s", met=rate >= 30
    )


def _slide(share: float) -> str:
    return (
        "(() => { const at = document.querySelector('.log-status input'); "
        f"at.value = String({share} * Number(at.max)); at.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"
    )


def _scrolled(one: Window) -> list[float]:
    script = """async () => {
      const box = document.querySelector(".log-box");
      const times = [];
      for (let n = 0; n <= 180; n++) {
        times.push(await new Promise(requestAnimationFrame));
        box.dispatchEvent(new WheelEvent("wheel", { deltaY: 60, bubbles: true }));
        box.scrollTop += 60;
      }
      return times.slice(1).map((time, n) => time - times[n]);
    }"""
    found: list[float] = one.page.evaluate(script)
    return found
