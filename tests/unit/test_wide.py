"""Records of many metrics: packed by the training, and the same for whoever reads them."""

from __future__ import annotations

import json
import math
import random
import struct
import zlib
from binascii import b2a_base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onward.rundir.progress import SpoolReader, first_step, leg_progress
from onward.sdk.packed_metrics import pack_names, pack_values, unpacked
from onward.sdk.run import TrainingRun
from onward.sdk.spool import WIDE, SpoolWriter
from onward.sdk.unmanaged.folder import last_step
from onward.tracker.ingest.spool_records import read_lines


def a_run(folder: Path) -> TrainingRun:
    return TrainingRun(folder=folder, leg=1, checkpoints=folder, spool=folder / "spool", resume=None, by_hand=False)


def as_a_gpu_computes_it(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


@settings(max_examples=50)
@given(values=st.dictionaries(st.text(min_size=1, max_size=20), st.floats(), min_size=1, max_size=300))
def test_what_is_packed_comes_back_bit_by_bit(values: dict[str, float]) -> None:
    record = {"n": 1, "t": 2.0, "s": 3, "k": pack_names(list(values)), "v": pack_values(values.values())}
    found = unpacked(json.loads(json.dumps(record)))
    assert {key: found[key] for key in ("n", "t", "s")} == {"n": 1, "t": 2.0, "s": 3}
    assert list(found["m"]) == list(values)
    assert struct.pack(f"{len(values)}d", *found["m"].values()) == struct.pack(f"{len(values)}d", *values.values())


def test_five_thousand_metrics_take_at_most_ten_bytes_each_and_everyone_reads_them(tmp_path: Path) -> None:
    random.seed(7)
    names = [f"layers.{n // 8}.block{n % 8}/grad_norm" for n in range(5000)]
    run = a_run(tmp_path)
    entries = [{name: random.gauss(0, 1) for name in names} for _ in range(3)]
    entries[1:] = [{name: as_a_gpu_computes_it(value) for name, value in values.items()} for values in entries[1:]]
    for step, values in enumerate(entries):
        run.log(values, step=step)
    [path] = (tmp_path / "spool").iterdir()
    wide, *halves = (len(line) for line in path.read_bytes().split(b"\n") if b'"v":' in line)
    assert wide <= 10 * 5000 and max(halves) <= 6 * 5000
    reading = read_lines(path.read_bytes().split(b"\n"))
    assert (reading.refused, [record.metrics for record in reading.records if record.metrics]) == (0, entries)
    assert SpoolReader(path.parent).read().last == entries[-1]
    assert leg_progress(path.parent, 1).last_step == 2 and first_step(path.parent, 1) == 0 and last_step(tmp_path) == 2


def test_numbers_of_other_kinds_and_those_that_are_none_are_packed_too(tmp_path: Path) -> None:
    a_run(tmp_path).log({**{f"m{n}": n for n in range(WIDE)}, "nan": math.nan, "up": math.inf}, step=1)
    last = SpoolReader(tmp_path / "spool").read().last
    assert (last["m7"], last["up"], math.isnan(last["nan"])) == (7.0, math.inf, True)


def test_few_metrics_stay_as_anyone_can_read_them(tmp_path: Path) -> None:
    writer = SpoolWriter(str(tmp_path), leg=1, name="mine")
    writer.write_floats(1, tuple(f"m{n}" for n in range(WIDE - 1)), [0.5] * (WIDE - 1))
    assert json.loads((tmp_path / "leg-0001.mine.jsonl").read_text())["m"]["m98"] == 0.5


def packed(data: bytes) -> str:
    return b2a_base64(zlib.compress(data), newline=False).decode()


@pytest.mark.parametrize(
    ("names", "values"),
    [
        (pack_names(["a", "b"]), pack_values([1.0])),
        (pack_names(["a"]), pack_values([1.0, 2.0])),
        (pack_names(["a"]), packed(bytes(1 << 20))),
        (packed(b" " * (64 << 20) + b"[]"), pack_values([1.0])),
        (packed(b'{"a": 1}'), pack_values([1.0])),
        (packed(b"[1]"), pack_values([1.0])),
        (packed(b'[[0,0,"a"],[1,1,"b"]]'), pack_values([1.0, 2.0])),
        (packed(b"[[0,0,7]]"), pack_values([1.0])),
        (packed(json.dumps([[0, 0, "x" * 100_000], *[[100_000, 0, ""]] * 10_000]).encode()), pack_values([1.0])),
        (packed(b"[" * 100_000), pack_values([1.0])),
        ("%%%", pack_values([1.0])),
        (pack_names(["a"])[:-8], pack_values([1.0])),
        (pack_names(["a"]), 7),
        (None, pack_values([1.0])),
    ],
)
def test_what_is_no_packing_is_refused_and_keeps_nothing_else_back(names: Any, values: Any) -> None:
    good = {"n": 1, "t": 1.0, "s": 1, "m": {"loss": 0.5}}
    bad = {"n": 0, "t": 1.0, "s": 0, "k": names, "v": values}
    reading = read_lines([json.dumps(record).encode() for record in (bad, good)])
    assert (reading.refused, [record.metrics for record in reading.records]) == (1, [{"loss": 0.5}])
    with pytest.raises(ValueError):
        unpacked(bad)
