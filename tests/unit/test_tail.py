from __future__ import annotations

import io
import os
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.operations.runs import logs
from onward.operations.runs.logs import LegLogReader, read_logs
from onward.rundir.claim import claim
from onward.rundir.files import growing
from onward.rundir.files.no_links import reading
from onward.rundir.layout import RunDir
from onward.rundir.logs import tail
from onward.rundir.logs.tail import last_lines


class CountedFile(io.FileIO):
    """Notes how much was read of it."""

    taken = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(-1 if size is None else size) or b""
        CountedFile.taken += len(data)
        return data


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    CountedFile.taken = 0
    monkeypatch.setattr(Path, "open", lambda self, mode="r", *_more: CountedFile(str(self), mode))
    return SimpleNamespace(bytes=lambda: CountedFile.taken)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    made = RunDir(tmp_path / "run")
    made.make()
    claim(made, 1, job="1")
    return made


def reader(run: RunDir, *streams: str) -> LegLogReader:
    return LegLogReader(run, streams=streams or ("out", "err"), leg=None, supervisor=False)


def test_the_last_lines_of_ten_gigabytes_cost_a_few_kilobytes(run: RunDir, counted: SimpleNamespace) -> None:
    end = b"".join(b"line %d\n" % number for number in range(1000))
    handle = os.open(run.log(1, "out"), os.O_WRONLY | os.O_CREAT)
    os.pwrite(handle, end, 10_000_000_000)  # a sparse file: what is before it takes no room
    os.close(handle)
    found = list(read_logs(run, reader(run), lines=20, rest=True))
    assert [text for _, text in found[0]["lines"]] == [f"line {number}" for number in range(980, 1000)]
    assert found[0]["offsets"] == {"leg-0001.out": 10_000_000_000 + len(end)}
    assert counted.bytes() <= 200_000


def test_the_last_lines_come_from_as_many_legs_as_it_takes_and_following_goes_on_after_them(run: RunDir) -> None:
    claim(run, 3, job="3")
    for leg in (1, 2, 3):
        run.log(leg, "out").write_text("".join(f"{leg}.{number}\n" for number in range(3)))
    run.log(3, "err").write_text("half a li")
    mine = reader(run)
    assert [line[1] for line in mine.last(5, rest=False)] == ["2.1", "2.2", "3.0", "3.1", "3.2"]
    assert mine.offsets == {"leg-0001.out": 12, "leg-0002.out": 12, "leg-0003.out": 12, "leg-0003.err": 0}
    run.log(3, "err").write_text("half a line\n")
    assert [line[1] for line in mine.read(rest=False)] == ["half a line"]
    assert [line[1] for line in reader(run).last(2, rest=True)] == ["3.2", "half a line"]
    assert reader(run).last(0, rest=True) == []


@given(data=st.binary(max_size=300).map(lambda data: data.replace(b"a", b"\n")), count=st.integers(0, 12), rest=st.booleans())
def test_read_from_the_end_they_are_the_same_lines(data: bytes, count: int, rest: bool) -> None:
    whole = data.split(b"\n")
    last = whole.pop()
    lines = [*whole, last] if rest and last else whole
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tail, "_BLOCK", 7)
        found, end = last_lines(io.BytesIO(data), len(data), count, rest=rest)
    assert found == (lines[-count:] if count else [])
    assert end == (len(data) if rest else len(data) - len(last))


def test_a_progress_bar_that_never_ends_its_line_is_cut(run: RunDir, counted: SimpleNamespace) -> None:
    with open(run.log(1, "out"), "wb") as file:
        file.write(b"epoch 1\n")
        file.truncate(3_000_000_000)  # zeros stand for what it prints
    [(_, text, _, _)] = reader(run).last(20, rest=True)
    assert len(text) <= 2 * tail.LONGEST_LINE
    assert counted.bytes() <= 4 * tail.LONGEST_LINE


def test_a_line_without_an_end_is_handed_on_in_parts_in_bounded_memory(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "_PIECE", 10_000)
    monkeypatch.setattr(logs, "LONGEST_LINE", 50_000)
    run.log(1, "out").write_bytes(b"#" * 5_000_000 + b"\nend\n")
    tracemalloc.start()
    try:
        parts = [len(text) for _, text, _, _ in reader(run).read(rest=True)]
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert sum(parts) == 5_000_003 and max(parts) <= 60_000


def test_whoever_follows_a_run_of_many_legs_opens_the_logs_of_the_last_two(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    claim(run, 30, job="30")
    for leg in range(1, 31):
        run.log(leg, "out").write_text("said\n")
    begun = {leg: SimpleNamespace(number=leg, claimed=True) for leg in range(1, 31)}
    seen = SimpleNamespace(run=SimpleNamespace(closed=None, legs=begun, state="running"))
    looks: list[int] = []
    opened: list[str] = []

    class Watching:
        def __init__(self, *_: object) -> None:
            pass

        def look(self) -> SimpleNamespace:
            looks.append(1)
            return seen

    monkeypatch.setattr(logs, "RunWatch", Watching)
    monkeypatch.setattr(logs, "reason", lambda _: "it trains")
    monkeypatch.setattr("time.sleep", lambda _: opened.append("tick"))
    real = reading

    def counting(root: Path, path: Path) -> Any:
        opened.append(path.name)
        return real(root, path)

    monkeypatch.setattr(logs, "reading", counting)
    following = logs.follow_logs(None, run, reader(run), lines=0)  # type: ignore[arg-type]
    while "tick" not in opened:
        next(following)
    opened.clear()
    while opened.count("tick") < 8:
        next(following)
    assert {name for name in opened if name != "tick"} == {"leg-0029.out", "leg-0029.err", "leg-0030.out", "leg-0030.err"}
    assert len(looks) <= 4
