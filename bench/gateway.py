"""The gateway under load: how fast requests are accepted, what it costs at rest, and what is left of 1,000 requests among kills.

    python bench/gateway.py [--count 1000] [--seconds 20] [--no-kills]

A request is accepted when it is stored; it is acknowledged right after. The recipe is done at once, on the local scheduler.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from onward.tracker.requests.store import Requests
from tests.brokers import broker_of_its_own
from tests.gateway_load import Client, Killer, Site


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=60.0)
    parser.add_argument("--no-kills", action="store_true")
    options = parser.parse_args()
    with broker_of_its_own() as broker:
        with tempfile.TemporaryDirectory(prefix="onward-bench-", ignore_cleanup_errors=True) as folder:
            site = Site(folder=Path(folder), broker=broker)
            site.start()
            try:
                at_rest(site)
                accepted(site, Client(broker), rate=options.rate, seconds=options.seconds)
            finally:
                site.end()
                site.leave()
        if not options.no_kills:
            with tempfile.TemporaryDirectory(prefix="onward-bench-", ignore_cleanup_errors=True) as folder:
                among_kills(Site(folder=Path(folder), broker=broker, server=True), Client(broker), count=options.count)


def at_rest(site: Site, *, seconds: float = 20.0) -> None:
    wait_for(lambda: "listening" in site.log())
    time.sleep(3)
    before = cpu(site)
    time.sleep(seconds)
    print(f"at rest: {100 * (cpu(site) - before) / seconds:.2f} % of a core (goal ≤ 1 %)", flush=True)


def accepted(site: Site, client: Client, *, rate: float, seconds: float) -> None:
    """At a steady rate, and as fast as one sender can. The time from the broker's confirm to the store's is counted."""
    paced = int(rate * seconds)
    began = time.monotonic()
    for number in range(paced):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        client.send(number)
    burst = range(paced, paced + 500)
    start = time.time()
    for number in burst:
        client.send(number)
    requests = Requests.open(next(site.folder.glob("state/*.requests.db")))
    wait_for(lambda: sum(requests.counts().values()) >= paced + len(burst))
    stored = {record.request.id: record.request.received for record in requests.list(limit=100_000)}
    requests.close()
    delays = sorted(max(0.0, stored[f"load-{number}"] - client.published[f"load-{number}"]) for number in range(paced))
    took = max(stored[f"load-{number}"] for number in burst) - start
    p99 = delays[int(0.99 * len(delays))]
    print(f"accepted at {rate:.0f} a second: p50 {1000 * statistics.median(delays):.0f} ms, p99 {1000 * p99:.0f} ms (goal ≤ 250 ms)")
    print(f"accepted as fast as they are sent: {len(burst) / took:.0f} requests a second (goal ≥ 50)", flush=True)


def among_kills(site: Site, client: Client, *, count: int) -> None:
    site.start()
    killer = Killer(site, seed=1, every=(4.0, 10.0))
    killer.start()
    began = time.monotonic()
    try:
        for number in range(count):
            client.send(number)
            client.collect()
        while len(client.answers) < count and time.monotonic() - began < 1800:
            client.collect(within=2.0)
    finally:
        killer.stop()
        site.start()
    client.collect(within=15.0)
    took = time.monotonic() - began
    site.end()
    site.leave()
    runs = site.runs()
    twice = sum(len(ids) > 1 for ids in client.answers.values())
    print(f"{count} requests among {dict(killer.kills)} kills, {took:.0f} s: {len(client.answers)} answers, {twice} of them twice")
    print(
        f"  {len(runs)} runs, {sum(number > 1 for number in runs.values())} requests with more than one; {dict(client.states)}", flush=True
    )


def cpu(site: Site) -> float:
    """Seconds that the gateway's process has used."""
    fields = Path(f"/proc/{site.process['gateway'].pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def wait_for(holds: object, *, within: float = 120.0) -> None:
    give_up = time.monotonic() + within
    while not holds():  # type: ignore[operator]
        if time.monotonic() > give_up:
            raise SystemExit("it did not come")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
