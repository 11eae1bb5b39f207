from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from onward.rundir.progress import SpoolReader, first_step, leg_progress
from onward.sdk.spool import SpoolWriter


def records(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for path in sorted(folder.iterdir()) for line in path.read_bytes().split(b"\n") if line]


def test_what_a_training_writes_its_reader_follows(tmp_path: Path) -> None:
    writer, reader = SpoolWriter(str(tmp_path), leg=1), SpoolReader(tmp_path)
    assert reader.read().records == 0
    writer.write({"kind": "init", "total": 50})
    writer.write({"s": 7, "m": {"loss": 0.5}})
    assert (reader.read().total, reader.progress.last_step, reader.progress.finished) == (50, 7, False)
    writer.write({"s": 8, "m": {"loss": 0.25, "accuracy": 0.9}})
    writer.write({"kind": "finish", "s": 8})
    progress = reader.read()
    assert (progress.first_step, progress.last_step, progress.records, progress.finished) == (7, 8, 4, True)
    assert progress.last == {"loss": 0.25, "accuracy": 0.9}
    assert reader.read().records == 4


def test_a_reader_waits_for_the_rest_of_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "leg-0001.train-1.jsonl"
    line = b'{"n":0,"t":1.0,"s":3,"m":{"loss":1.0}}\n'
    reader = SpoolReader(tmp_path)
    for cut in range(len(line)):
        path.write_bytes(line[:cut])
        assert reader.read().records == 0
    path.write_bytes(line)
    assert reader.read().last_step == 3


def test_broken_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    lines = [
        b"garbage",
        b'{"m":{"a":1}}',
        b"[]",
        b'{"s":"x","t":1,"m":{}}',
        b'{"s":1e999,"t":1,"m":{}}',
        b'{"s":4,"t":1.0,"m":{"a":2.0}}',
        b"",
    ]
    (tmp_path / "leg-0001.train-1.jsonl").write_bytes(b"\n".join(lines))
    assert SpoolReader(tmp_path).read().last_step == 4
    assert leg_progress(tmp_path, 1).last == {"a": 2.0}


def test_nan_and_infinity_are_kept(tmp_path: Path) -> None:
    writer = SpoolWriter(str(tmp_path), leg=1)
    writer.write({"s": 1, "m": {"nan": math.nan, "up": math.inf, "down": -math.inf}})
    last = SpoolReader(tmp_path).read().last
    assert math.isnan(last["nan"]) and last["up"] == math.inf and last["down"] == -math.inf


FORKS = """
import os, sys
from onward.sdk.spool import SpoolWriter

writer = SpoolWriter(sys.argv[1], leg=1)
writer.write({"s": 1, "m": {"parent": 1.0}})
worker = os.fork()
if worker == 0:
    writer.write({"s": 2, "m": {"worker": 1.0}})
    os._exit(0)
os.waitpid(worker, 0)
writer.write({"s": 3, "m": {"parent": 1.0}})
print(os.getpid(), worker)
"""


def test_a_forked_worker_writes_a_file_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORKS, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60)
    parent, worker = (tmp_path / f"leg-0001.train-{pid}.jsonl" for pid in done.stdout.split())
    assert set(tmp_path.iterdir()) == {parent, worker}
    assert [json.loads(line)["s"] for line in parent.read_text().splitlines()] == [1, 3]
    assert [json.loads(line)["n"] for line in parent.read_text().splitlines()] == [0, 1]
    assert [json.loads(line)["s"] for line in worker.read_text().splitlines()] == [2]
    assert SpoolReader(tmp_path).read().records == 3


def test_threads_that_log_at_once_never_share_a_number(tmp_path: Path) -> None:
    writer = SpoolWriter(str(tmp_path), leg=1)
    writer.write({"kind": "init"})

    def log_some() -> None:
        for _ in range(300):
            writer.write({"s": 1, "m": {}})

    threads = [threading.Thread(target=log_some) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(str(record["n"])) for record in records(tmp_path)) == list(range(1801))


def test_a_full_disk_raises_nothing_and_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = SpoolWriter(str(tmp_path), leg=1)
    writer.write({"s": 1, "m": {}})
    with monkeypatch.context() as full:
        full.setattr(os, "write", refuse(errno.ENOSPC))
        for step in range(2, 9):
            writer.write({"s": step, "m": {}})
    writer.write({"s": 9, "m": {}})
    assert [record["s"] for record in records(tmp_path)] == [1, 9]
    assert capsys.readouterr().err.count("training continues") == 1


def test_a_record_cut_by_a_full_disk_does_not_take_the_next_one_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SpoolWriter(str(tmp_path), leg=1)
    writer.write({"s": 1, "m": {}})
    real = os.write
    with monkeypatch.context() as nearly_full:
        nearly_full.setattr(os, "write", lambda handle, data: real(handle, data[: len(data) // 2]))
        writer.write({"s": 2, "m": {}})
    writer.write({"s": 3, "m": {}})
    writer.write({"s": 4, "m": {}})
    progress = SpoolReader(tmp_path).read()
    assert (progress.last_step, progress.records) == (4, 3)


def test_a_folder_that_cannot_be_made_raises_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spool").write_text("a file is in the way")
    writer = SpoolWriter(str(tmp_path / "spool"), leg=1)
    writer.write({"s": 1, "m": {}})
    writer.write({"s": 2, "m": {}})
    assert capsys.readouterr().err.count("cannot log to") == 1


def test_progress_from_the_end_of_a_long_spool_is_that_of_the_whole(tmp_path: Path) -> None:
    writer = SpoolWriter(str(tmp_path), leg=3)
    writer.write({"kind": "init", "total": 4000})
    for step in range(4000):
        writer.write({"s": step, "m": {"loss": float(step)}})
    from_end = leg_progress(tmp_path, 3)
    assert (from_end.total, from_end.last_step, from_end.last) == (4000, 3999, {"loss": 3999.0})
    assert from_end.records < 4001, "it reads the end only"
    assert from_end.steps_per_second and from_end.steps_per_second > 0
    assert leg_progress(tmp_path, 2).records == 0
    assert first_step(tmp_path, 3) == 0


def test_a_short_spool_is_not_counted_twice(tmp_path: Path) -> None:
    writer = SpoolWriter(str(tmp_path), leg=1)
    writer.write({"s": 5, "m": {}})
    assert leg_progress(tmp_path, 1).records == 1
    writer.write({"s": 6, "m": {}})
    assert leg_progress(tmp_path, 1).records == 2


def test_the_rate_counts_all_writers_and_no_clock_that_went_back(tmp_path: Path) -> None:
    for name, times in (("a", (10.0, 30.0)), ("b", (12.0, 20.0))):
        lines = [json.dumps({"n": i, "t": t, "s": int(t), "m": {}}) for i, t in enumerate(times)]
        (tmp_path / f"leg-0001.train-{name}.jsonl").write_text("\n".join(lines) + "\n")
    assert leg_progress(tmp_path, 1).steps_per_second == 1.0


def test_a_training_that_logged_nothing_has_no_progress(tmp_path: Path) -> None:
    assert leg_progress(tmp_path / "nowhere", 1).last_step is None
    assert first_step(tmp_path, 1) is None
    assert SpoolReader(tmp_path / "nowhere").read().records == 0
    assert SpoolReader(tmp_path).read().steps_per_second is None


def refuse(number: int) -> Callable[[int, bytes], int]:
    def write(_handle: int, _data: bytes) -> int:
        raise OSError(number, os.strerror(number))

    return write


def test_the_short_way_writes_the_same_records(tmp_path: Path) -> None:
    writer = SpoolWriter(str(tmp_path), leg=1, name="mine")
    keys = ('a "quoted" one', "100 %", "%r %d", "ä\n")
    writer.write_floats(7, keys, [0.1, -2.5e-300, 3.0, 1e22])
    writer.write({"s": 8, "m": {}}, at=12.5)
    first, second = (json.loads(line) for line in (tmp_path / "leg-0001.mine.jsonl").read_text().splitlines())
    assert (first["n"], first["s"], first["m"]) == (0, 7, dict(zip(keys, [0.1, -2.5e-300, 3.0, 1e22], strict=True)))
    assert (second["n"], second["t"]) == (1, 12.5)


def test_threads_that_log_at_once_from_the_start_never_share_a_number(tmp_path: Path) -> None:
    writer = SpoolWriter(str(tmp_path), leg=1)
    start = threading.Barrier(6)

    def log_some() -> None:
        start.wait()
        for step in range(100):
            writer.write_floats(step, ("a",), [0.5])

    threads = [threading.Thread(target=log_some) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(str(record["n"])) for record in records(tmp_path)) == list(range(600))


# ── spools without end ────────────────────────────────────────────────────────


def test_a_reader_that_is_far_behind_takes_the_beginning_and_the_end(tmp_path: Path) -> None:
    """As a publisher that was started again in the middle of a leg."""
    path = tmp_path / "leg-0001.train-1.jsonl"
    path.write_bytes(b'{"n":0,"t":1.0,"kind":"init","total":900}\n')
    end = b"".join(b'{"n":%d,"t":%d.0,"s":%d,"m":{"loss":0.5}}\n' % (n, n, n) for n in range(1, 401))
    handle = os.open(path, os.O_WRONLY)
    os.pwrite(handle, b"\n" + end, 100_000_000_000)  # sparse
    os.close(handle)
    tracemalloc.start()
    try:
        reader = SpoolReader(tmp_path)
        progress = reader.read()
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()
    assert (progress.total, progress.last_step) == (900, 400)
    SpoolWriter(str(tmp_path), leg=1, name="train-1").write({"s": 401, "m": {}})
    assert reader.read().last_step == 401


def test_what_is_new_is_read_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.rundir.progress._PIECE", 64)
    writer = SpoolWriter(str(tmp_path), leg=1)
    for step in range(50):
        writer.write({"s": step, "m": {f"metric {n}": 0.5 for n in range(step % 7)}})
    assert SpoolReader(tmp_path).read().records == 50


def test_a_line_that_is_no_record_of_ours_is_passed_over_however_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.rundir.progress._PIECE", 100)
    monkeypatch.setattr("onward.rundir.progress.LONGEST_RECORD", 300)
    path = tmp_path / "leg-0001.train-1.jsonl"
    record = b'{"n":1,"t":1.0,"s":%d,"m":{}}\n'
    reader = SpoolReader(tmp_path)
    path.write_bytes(record % 1 + b"#" * 1000)
    assert reader.read().last_step == 1
    with path.open("ab") as file:
        file.write(b"#" * 100 + b'{"s":99,"t":1,"m":{}}\n' + record % 2)
    assert (reader.read().last_step, reader.progress.records) == (2, 2)


def test_progress_is_seen_where_a_record_is_longer_than_the_end_that_is_read(tmp_path: Path) -> None:
    writer = SpoolWriter(str(tmp_path), leg=1)
    wide = {f"layers.{n}/gradient_norm": 0.5 for n in range(5000)}
    writer.write({"kind": "init", "total": 100})
    for step in range(4):
        writer.write({"s": step, "m": wide})
    found = leg_progress(tmp_path, 1)
    assert (found.total, found.last_step, len(found.last)) == (100, 3, 5000)


def test_names_that_are_never_used_twice_do_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.rundir.progress._MOST_KEYS", 10)
    writer = SpoolWriter(str(tmp_path), leg=1)
    for step in range(100):
        writer.write({"s": step, "m": {"loss": float(step), f"sample {step}": 1.0}})
    progress = SpoolReader(tmp_path).read()
    assert len(progress.last) <= 11 and progress.last["loss"] == 99.0
