"""The page under load, in the system's Chromium: 10,000 runs, 3,000 metrics, a million points, 200 MB of log; MLflow's page beside it.

    python bench/web.py                          everything, in about ten minutes
    python bench/web.py --keep FOLDER --alone    on a store that is kept, without MLflow's page

Times are the browser's own, from a navigation or a click until what was asked for is painted; medians of repeats. The page must be built
(`make web`). What is started is ended.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import web_pages, web_peers
from bench.tracker_servers import onward_up
from bench.tracker_table import Table, machine
from bench.web_fill import fill
from tests.web.browser import chromium


def main() -> None:
    parser = argparse.ArgumentParser(description="The page under load, in a browser.")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="work here, and leave what is there afterwards")
    parser.add_argument("--alone", action="store_true", help="without MLflow's page beside it")
    options = parser.parse_args()
    work = options.keep.absolute() if options.keep else Path(tempfile.mkdtemp(prefix="onward-bench-web-", dir="/var/tmp"))
    try:
        _measure(work, alone=options.alone)
    finally:
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)


def _measure(work: Path, *, alone: bool) -> None:
    began = time.monotonic()
    ids = fill(work / "onward")
    with chromium() as browser:
        print(f"# bench/web.py, {machine()}, Chromium {browser.version}\n\nThe store was filled in {time.monotonic() - began:.0f} s.")
        peers = {} if alone else web_peers.measure(browser, work / "mlflow")
        table = Table()
        table.begin("The page")
        start = time.monotonic()
        with onward_up(work / "onward") as server:
            web_pages.first_load(table, browser, server, peers.get("list", "–"))
            web_pages.search(table, browser, server)
            web_pages.charts(table, browser, server, ids, peers)
            web_pages.wide_and_long(table, browser, server, ids, peers)
            web_pages.live(table, browser, server)
            web_pages.log(table, browser, server, ids)
        table.end(time.monotonic() - start)
    print(f"Missed: {'; '.join(table.missed)}." if table.missed else "Every goal was met.")


if __name__ == "__main__":
    main()
