from __future__ import annotations

import os
import threading
from pathlib import Path

from onward.clock import ManualClock
from onward.supervisor.stop.store_probe import StoreProbe, write_and_flush


def test_a_probe_writes_what_it_says_and_leaves_nothing_behind(tmp_path: Path) -> None:
    assert write_and_flush(tmp_path, 10_000_000) > 0
    assert os.listdir(tmp_path) == []


def test_probes_are_made_one_at_a_time_and_their_results_taken_once(tmp_path: Path) -> None:
    probe = StoreProbe(tmp_path, ManualClock(5.0))
    probe.want(0)
    assert probe.take() == []
    probe.want(1000)
    _finish()
    [found] = probe.take()
    assert (found.at, found.bytes) == (5.0, 1000)
    assert probe.take() == []


def test_a_store_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    probe = StoreProbe(tmp_path / "missing", ManualClock())
    probe.want(1000)
    _finish()
    assert probe.take() == []


def _finish() -> None:
    for thread in threading.enumerate():
        if thread.name == "store probe":
            thread.join()
