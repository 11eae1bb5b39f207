"""What the tracker costs and bears, beside its peers in one run: csv and jsonl lines, trackio, and MLflow's server at its leanest.

    python bench/tracker.py                      everything, in at most a quarter of an hour
    python bench/tracker.py --only ingest        a part; may be repeated

Figures are medians of repeats, but for answers of MLflow that take long. Everything is on the loopback of this machine, and what is started
is ended.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.tracker_servers import peers_python, peers_versions
from bench.tracker_table import Table, machine

PARTS = {  # its module, what it is about, and the seconds it may take
    "client": ("log() in the training's thread", 240),
    "ingest": ("Points taken in", 240),
    "charts": ("Charts", 150),
    "runs_list": ("10,000 runs", 110),
    "startup": ("Start and rest", 70),
    "store": ("Memory and disk", 180),
    "many_starts": ("360 processes start a run at once", 120),
}
_WHOLE = 15 * 60


class TimeIsUp(Exception):
    pass


def main() -> None:
    parser = argparse.ArgumentParser(description="What the tracker costs and bears, beside its peers.")
    parser.add_argument("--only", choices=PARTS, action="append", help="only this part; may be repeated")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="work here, and leave what is there afterwards")
    parser.add_argument("--patience", metavar="FACTOR", type=float, default=1.0, help="so many times the time, on a machine that is busy")
    options = parser.parse_args()
    peers_python()
    print(f"# bench/tracker.py, {machine()}\n\nPeers: {', '.join(f'{name} {version}' for name, version in peers_versions().items())}.")
    table = Table()
    began = time.monotonic()
    for part in options.only or PARTS:
        title, limit = PARTS[part]
        left = _WHOLE * options.patience - (time.monotonic() - began)
        table.begin(title)
        start = time.monotonic()
        with _folder(options.keep, part) as work:
            try:
                with _at_most(min(limit * options.patience, left)):
                    importlib.import_module(f"bench.tracker_{part}").measure(table, work)
            except TimeIsUp:
                table.note(f"**{part} was stopped after {time.monotonic() - start:.0f} s: its time was up.**")
                table.missed.append(f"{part}: stopped")
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:  # the other parts are worth having
                table.note(f"**{part} failed: {error}**")
                table.missed.append(f"{part}: failed")
        table.end(time.monotonic() - start)
    print(f"\nTook {time.monotonic() - began:.0f} s. " + (f"Missed: {'; '.join(table.missed)}." if table.missed else "Every goal was met."))


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _folder(keep: Path | None, part: str) -> Iterator[Path]:
    if keep:
        (keep / part).mkdir(parents=True, exist_ok=True)
        yield (keep / part).absolute()
        return
    made = Path(tempfile.mkdtemp(prefix=f"onward-bench-{part}-", dir="/var/tmp"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


if __name__ == "__main__":
    main()
