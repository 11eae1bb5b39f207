"""Wide live records: a run that logs 5,000 metrics a record, tailed record by record. Points per CPU second, and bytes a point on disk.

    python bench/tracker_wide.py [--metrics 5000] [--records 400] [--watched]

Each record is appended to the spool and read before the next one comes, as a slow training's are; values are random float64. The CPU time
is that of the whole process, with the compaction in the background and until everything is compacted. `--watched`: somebody looks at a
chart after every fifth record. Then the same is pushed, a record a request.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.tracker_table import machine, number
from onward.model.spec import spec_to_json
from onward.rundir.packed_lines import pack_lines
from onward.tracker.store import Tracker
from tests.histories import make_spec
from tests.unit.test_tracker_files import NOW, Folder

_HEADERS = 500  # bytes of a request's and its answer's, generously


def main() -> None:
    parser = argparse.ArgumentParser(description="Wide live records.")
    parser.add_argument("--metrics", type=int, default=5000)
    parser.add_argument("--records", type=int, default=400)
    parser.add_argument("--watched", action="store_true")
    options = parser.parse_args()
    print(f"# bench/tracker_wide.py, {machine()}, {options.records} records of {options.metrics:,} metrics{', watched' * options.watched}")
    names = [f"layers/{n:05d}/grad_norm" for n in range(options.metrics)]
    noise = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        run = Folder(Path(folder), id="widerun1")
        run.begin(1)
        with Tracker.open(Path(folder) / "onward.db") as tracker:
            tracker.upkeep.start()
            tracker.files.look([Path(folder)])
            whole, making = time.process_time(), 0.0
            for n in range(options.records):
                began = time.thread_time()
                values = {name: noise.gauss(0, 1) for name in names}
                with run.path(1).open("a") as file:
                    file.write(json.dumps({"n": n, "t": NOW + n, "s": n, "m": values}, separators=(",", ":")) + "\n")
                making += time.thread_time() - began
                tracker.files.look([Path(folder)])
                if options.watched and n % 5 == 0:
                    tracker.series.chart("widerun1", names[7], buckets=500)
            spent = time.process_time() - whole - making
            points = options.records * options.metrics
            print(f"taken in: {number(points / spent)} points per CPU second")
            began = time.process_time()
            tracker.upkeep.tidy(resting=0)
            for _ in range(100):
                tracker.upkeep.shrink()
            spent += time.process_time() - began
            print(f"with all compaction: {number(points / spent)} points per CPU second")
            assert len(tracker.series.points("widerun1", names[7])) == options.records
        size = (Path(folder) / "onward.db").stat().st_size
        print(f"on disk: {size / points:.1f} bytes a point; spool {run.path(1).stat().st_size / points:.1f}")
        _pushed(Path(folder), min(options.records, 100), names, noise)
        print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def _pushed(folder: Path, records: int, names: list[str], noise: random.Random) -> None:
    """The same from afar, a record a request: bytes on the wire, and the CPU time of both ends."""
    known: set[str] = set()
    sent, packing, taking, offset = 0, 0.0, 0.0, 0
    with Tracker.open(folder / "far.db") as tracker:
        tracker.push.announce(spec_to_json(make_spec(id="farwide1")))
        for n in range(records):
            record = {"n": n, "t": NOW + n, "s": n, "m": {name: noise.gauss(0, 1) for name in names}}
            data = json.dumps(record, separators=(",", ":")).encode() + b"\n"
            began = time.process_time()
            packed = pack_lines(data, known)
            assert packed
            known |= packed.digests
            packing += time.process_time() - began
            sent += len(packed.body) + _HEADERS
            began = time.process_time()
            taken = tracker.push.packed_piece("farwide1", "spool/leg-0001.train-1.jsonl", offset, packed.body)
            taking += time.process_time() - began
            assert taken == offset + len(data)
            offset = taken
        began = time.process_time()
        tracker.upkeep.tidy(resting=0)
        taking += time.process_time() - began
    points = records * len(names)
    print(f"on the wire: {sent / points:.1f} bytes a point, headers and names included; plain lines {offset / points:.1f}")
    print(f"job: {number(points / packing)} points per CPU second; server: {number(points / taking)}, with all compaction")


if __name__ == "__main__":
    main()
