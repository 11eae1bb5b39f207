"""The store that the page is measured on: ten thousand runs, and among them one of everything that pages break on.

3,000 metric keys on one run, a million points in one series, a log of 200 MB, a run of twelve legs, gaps of NaN, and names as nobody should
give them: tags of scripts, right to left, 300 characters.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bench.tracker_fill import STAMP, fill_onward_runs, value
from onward.model.run import LegEnd
from onward.tracker.runs.registry import NewRun
from onward.tracker.store import Tracker
from tests.sandbox import Sandbox

if TYPE_CHECKING:
    from onward.rundir.layout import RunDir

RUNS, KEYS, MILLION = 10_000, 3_000, 1_000_000
OVERLAID, EACH = 50, 10_000
LEGS, LOG_BYTES = 12, 200_000_000
RARE = "the needle of this log"
HOSTILE = (
    "<script>document.title = 'owned'</script>",
    '"><img src=x onerror="document.title = \'owned\'">',
    "\u202eתירבע ןומיא\u202c שם",
    "ملف التدريب \u200f٣",
    "n" * 300,
    "{{7*7}} ${7*7} %s %00 \\ ' ; drop table runs --",
    "👩🏽‍🔬🧪 a\u0301\u0323 zero\u200bwidth",
)
_AT_ONCE = 10_000


def fill(folder: Path) -> dict[str, str]:
    """The ids of what is to be opened, by name; those of the overlaid runs as one text with commas. Made once: later calls read them."""
    kept = folder / "web.json"
    if kept.exists():
        found: dict[str, str] = json.loads(kept.read_text())
        return found
    folder.mkdir(parents=True, exist_ok=True)
    fill_onward_runs(folder, RUNS - OVERLAID - len(HOSTILE) - 4)
    with Tracker.open(folder / "onward.db") as tracker:
        ids = {"long": _long(tracker), "wide": _wide(tracker), "gaps": _gaps(tracker), "overlaid": ",".join(_overlaid(tracker))}
        for name in HOSTILE:
            _hostile(tracker, name)
        tracker.upkeep.tidy(resting=0)
        legs = _legs(folder)
        tracker.files.look([legs.path.parent])
    ids["legs"] = str(json.loads(legs.spec.read_text())["id"])
    kept.write_text(json.dumps(ids))
    return ids


def _new(tracker: Tracker, name: str, **more: str) -> str:
    params = {"lr": 0.1, "seed": 1, **more}
    return tracker.runs.create(NewRun(experiment="page", name=name, params=params, source="by-hand", leg=1)).run_id


def _long(tracker: Tracker) -> str:
    run = _new(tracker, "a million points")
    for first in range(0, MILLION, _AT_ONCE):
        steps = range(first, first + _AT_ONCE)
        tracker.ingest.points(run, [("loss", step, STAMP / 1000 + step / 10, value(step)) for step in steps])
    return run


def _wide(tracker: Tracker) -> str:
    run = _new(tracker, "thousands of keys")
    for first in range(0, KEYS, 100):
        points = [
            (f"layer{key // 100}/weight{key % 100}", step, STAMP / 1000 + step, value(step * 50, key))
            for key in range(first, first + 100)
            for step in range(50)
        ]
        tracker.ingest.points(run, points)
    return run


def _gaps(tracker: Tracker) -> str:
    run = _new(tracker, "gaps")
    entries = [
        ("loss", step, STAMP / 1000 + step, math.nan if step % 500 > 350 else math.inf if step == 77 else value(step))
        for step in range(5000)
    ]
    tracker.ingest.points(run, entries)
    return run


def _overlaid(tracker: Tracker) -> Iterator[str]:
    for number in range(OVERLAID):
        run = _new(tracker, f"over-{number:02d}", size=f"{number % 5}")
        tracker.ingest.points(run, [("loss", step, STAMP / 1000 + step / 10, value(step, number)) for step in range(EACH)])
        yield run


def _hostile(tracker: Tracker, name: str) -> None:
    made = NewRun(experiment=name[:200], name=name, params={name[:200]: name}, tags={name[:200]: name}, source="by-hand", leg=1)
    run = tracker.runs.create(made).run_id
    tracker.ingest.points(run, [(name[:200], step, STAMP / 1000 + step, value(step)) for step in range(300)])


def _legs(folder: Path) -> RunDir:
    """A run of Onward's own, whose last leg wrote a great deal."""
    played = Sandbox(folder).play("legs", experiment="page")
    for leg in range(1, LEGS + 1):
        played.begin(leg).later(1200).publish(leg, leg * 100).later(1800)
        steps = range((leg - 1) * 100, leg * 100)
        played.log(leg, *({"s": step, "t": played.now() - 1900 + step, "m": {"loss": value(step * 20)}} for step in steps))
        played.end(leg, LegEnd.TIME_LIMIT if leg < LEGS else LegEnd.DONE)
        played.dir.log(leg, "err").write_text(f"leg {leg}: a warning\n")
        played.dir.log(leg, "out").write_text("".join(f"step {step} of leg {leg}\n" for step in steps))
    _write_log(played.dir.log(LEGS, "out"))
    return played.dir


def _write_log(to: Path) -> None:
    """Lines as a training prints them, colours and a bar that goes over itself among them; what is sought stands near the end."""
    block = "".join(
        f"2026-11-15 12:{n // 60 % 60:02d}:{n % 60:02d} \x1b[32mINFO\x1b[0m step {n} loss={value(n):.6f} lr=1.0e-3 tokens/s=48210\n"
        for n in range(2000)
    ).encode()
    with to.open("wb") as log:
        while log.tell() < LOG_BYTES * 0.9:
            log.write(block)
        log.write(f"Traceback (most recent call last):\nRuntimeError: {RARE}\n".encode())
        while log.tell() < LOG_BYTES:
            log.write(block)
