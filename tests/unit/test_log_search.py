"""Searching logs: a match a line, forwards and backwards, whatever is cut where; in bounded pieces."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.rundir.logs import search as log_search
from onward.rundir.logs.search import ERRORS, TextMatches, search_log
from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def find(data: bytes, *texts: bytes, **how: Any) -> TextMatches:
    usual: dict[str, Any] = {"start": len(data) if how.get("back") else 0, "limit": 100}
    return search_log(io.BytesIO(data), len(data), texts, **{**usual, **how})


def lines(found: TextMatches) -> list[tuple[int, str]]:
    return [(match.line_offset, match.line) for match in found.matches]


def test_a_line_is_one_match_however_often_it_holds_the_text() -> None:
    data = b"a step step\nnone\nstep\n"
    assert lines(find(data, b"step")) == [(0, "a step step"), (17, "step")]
    assert [m.offset for m in find(data, b"step").matches] == [2, 17]
    assert lines(find(data, b"step", back=True)) == [(17, "step"), (0, "a step step")]


def test_a_search_goes_on_where_the_last_one_said() -> None:
    data = b"x1\nx2\nx3"
    one = find(data, b"x", limit=1)
    assert (lines(one), one.next) == ([(0, "x1")], 3)
    two = find(data, b"x", limit=1, start=one.next)
    three = find(data, b"x", limit=1, start=two.next)
    assert (lines(three), three.next) == ([(6, "x3")], None)
    last = find(data, b"x", limit=1, back=True)
    assert lines(find(data, b"x", limit=1, back=True, start=last.next)) == [(3, "x2")]


def test_a_line_without_end_is_not_read_to_its_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A progress bar prints for a day without ending its line."""
    monkeypatch.setattr(log_search, "_LONGEST", 1000)
    monkeypatch.setattr(log_search, "_PIECE", 1000)
    monkeypatch.setattr(log_search, "_LINE", 10)
    data = (b"#" * 10_000 + b"step") * 3
    taken: list[int] = []

    class Counted(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            found = super().read(size)
            taken.append(len(found))
            return found

    for back in (False, True):
        taken.clear()
        found = search_log(Counted(data), len(data), [b"step"], start=len(data) if back else 0, limit=1, back=back)
        assert [match.offset for match in found.matches] == [20_000 + 8 + 10_000 if back else 10_000]
        assert sum(taken) <= (4_000 if back else 14_500)


def test_no_more_is_read_than_is_allowed_and_the_rest_is_told() -> None:
    data = b"." * 100 + b"\nhere\n"
    found = find(data, b"here", most=50)
    assert (found.matches, found.next, found.searched) == ((), 50, 50)
    assert len(find(data, b"here", most=60, start=found.next).matches) == 1
    assert find(data, b"none").next is None


def test_errors_are_found_in_what_trainings_and_schedulers_print() -> None:
    for line in (
        *(b"Traceback (most recent call last):", b"ValueError: x", b"slurmstepd: error: Detected 1 oom-kill event", b"[ERROR] no"),
        *(
            b"torch.OutOfMemoryError: CUDA out of memory.",
            b"bash: python: command not found",
            b"OSError: [Errno 28] No space left on device",
        ),
    ):
        data = b"epoch 1 error 0.5 errors=0\n" + line + b"\nend\n"
        assert lines(find(data, *ERRORS, limit=1)) == [(27, line.decode())], line


def test_case_matters_only_where_it_is_asked_for() -> None:
    assert len(find(b"Loss\nLOSS\n", b"loss", case=False).matches) == 2
    assert find(b"Loss\nLOSS\n", b"loss").matches == ()


def test_a_line_without_an_end_shows_what_is_around_the_match() -> None:
    data = b"start\n" + b"." * 5000 + b"needle" + b"." * 5000
    (match,) = find(data, b"needle").matches
    assert (match.line_offset, match.offset) == (6, 5006)
    assert "needle" in match.line
    assert len(match.line) < 4100


@given(
    st.lists(st.sampled_from([b"ab", b"b", b"\n", b"aab", b"zz", b"\xff"]), max_size=40).map(b"".join),
    st.integers(min_value=1, max_value=7),
    st.booleans(),
)
def test_pieces_of_any_size_find_what_reading_the_lines_finds(data: bytes, piece: int, back: bool) -> None:
    held = log_search._PIECE
    log_search._PIECE = piece
    try:
        found = [match.line_offset for match in find(data, b"aab", b"zz", back=back, limit=1000).matches]
    finally:
        log_search._PIECE = held
    want, at = [], 0
    for line in data.split(b"\n"):
        if b"aab" in line or b"zz" in line:
            want.append(at)
        at += len(line) + 1
    assert found == (want[::-1] if back else want)


# ── over HTTP ─────────────────────────────────────────────────────────────────


def test_a_log_is_searched_on_the_server_and_read_by_whole_lines(harness: Harness) -> None:
    run = harness.sandbox.play().begin(1)
    log = run.dir.log(1, "err")
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"one\ntwo Error: bad\nthree")
    assert harness.server.services.tracker.files.look(harness.sandbox.context.roots).problems == []
    at = f"/api/v1/runs/{run.spec.id}/logs/1/err"
    found = good(harness.client.get(f"{at}/search?errors=true"))
    assert found["matches"] == [{"offset": 8, "length": 6, "line_offset": 4, "line": "two Error: bad"}]
    assert (found["next"], found["size"]) == (19, 24)
    assert good(harness.client.get(f"{at}/search?text=THREE&back=true&offset=-1"))["matches"][0]["line_offset"] == 19
    assert good(harness.client.get(f"{at}/search?text=none"))["next"] is None
    assert "nothing to search for" in good(harness.client.get(f"{at}/search"), 400)["detail"]
    assert harness.client.get(f"{at.replace('err', 'out')}/search?text=x").status == 404
    for offset, limit, text, start in (
        (0, 10, "one\n", 0),
        (2, 20, "two Error: bad\n", 4),
        (4, 100, "two Error: bad\nthree", 4),
        (6, 5, "o Err", 6),
    ):
        part = harness.client.get(f"{at}/lines?offset={offset}&limit={limit}")
        assert (part.text, part.headers["x-offset"]) == (text, str(start))
