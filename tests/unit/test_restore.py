"""Finding the newest checkpoint that verifies, and putting it on the node's disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.checkpoints.publishing.publish import publish
from onward.checkpoints.restoring.newest import (
    VerifiedCheckpoint,
    newest_in_place,
    published_checkpoints,
    published_names_of,
    restore_newest,
)
from onward.errors import StorageFull
from onward.model.checkpoint import CheckpointName
from tests.disks import refuse_room


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three good ones; the newest is of the newest leg, whatever its step."""
    for leg, step in ((1, 100), (1, 300), (2, 200)):
        put(tmp_path / "store", leg, step)
    return tmp_path / "store"


def put(store: Path, leg: int, step: int) -> Path:
    source = store.parent / "source"
    source.write_bytes(b"%d %d" % (leg, step) * 100)
    publish({"w": source}, store, CheckpointName(leg, step), created=1.0)
    return store / str(CheckpointName(leg, step))


def found(store: Path, target: Path) -> VerifiedCheckpoint:
    answer = restore_newest(store, target)
    assert answer is not None
    return answer


def test_the_newest_is_the_newest_step_of_the_newest_leg(store: Path, tmp_path: Path) -> None:
    answer = found(store, tmp_path / "resume")
    assert (answer.manifest.name, answer.fell_back) == (CheckpointName(2, 200), ())
    assert (tmp_path / "resume" / "w").read_bytes() == b"2 200" * 100
    in_place = newest_in_place(store)
    assert in_place and in_place.manifest.name == CheckpointName(2, 200)


def test_a_damaged_one_is_passed_over_for_the_one_before_and_that_is_said(store: Path, tmp_path: Path) -> None:
    (store / "leg-0002.step-00000200" / "w").write_bytes(b"3 200" * 100)
    os.truncate(store / "leg-0001.step-00000300" / "w", 7)
    answer = found(store, tmp_path / "resume")
    assert answer.manifest.name == CheckpointName(1, 100)
    assert (tmp_path / "resume" / "w").read_bytes() == b"1 100" * 100
    newest, next_ = answer.fell_back
    assert "leg-0002.step-00000200: w does not match its hash" in newest
    assert "leg-0001.step-00000300: w has 7 bytes, expected 500" in next_
    in_place = newest_in_place(store)
    assert in_place and (in_place.manifest.name, in_place.fell_back) == (CheckpointName(1, 100), answer.fell_back)


def test_where_none_verifies_there_is_none(store: Path, tmp_path: Path) -> None:
    for name in published_names_of(store):
        (store / str(name) / "manifest.json").unlink()
    assert restore_newest(store, tmp_path / "resume") is None
    assert newest_in_place(store) is None
    assert not (tmp_path / "resume").exists()


def test_an_empty_store_has_none(tmp_path: Path) -> None:
    assert published_names_of(tmp_path / "nowhere") == []
    assert restore_newest(tmp_path / "nowhere", tmp_path / "resume", wait=lambda: pytest.fail("nothing to wait for")) is None


def test_hidden_and_foreign_entries_are_not_listed(store: Path) -> None:
    for name in (
        *(".leg-0009.step-00000001.partial", ".deleting-leg-0009.step-00000001", "leg-0009.step-1"),
        *("latest", "leg-0009.step-00000009.bak"),
    ):
        shutil.copytree(store / "leg-0001.step-00000100", store / name)
    assert [str(name) for name in published_names_of(store)] == [
        "leg-0001.step-00000100",
        "leg-0001.step-00000300",
        "leg-0002.step-00000200",
    ]


def test_checkpoints_with_missing_or_cut_files_are_not_counted(store: Path) -> None:
    os.truncate(store / "leg-0001.step-00000100" / "w", 1)
    (store / "leg-0002.step-00000200" / "w").unlink()
    assert [c.name for c in published_checkpoints(store)] == [CheckpointName(1, 300)]


def test_one_that_was_reported_but_is_not_seen_yet_is_waited_for(store: Path, tmp_path: Path) -> None:
    """A network file system may show what another node wrote only after a while."""
    waits = 0

    def wait() -> bool:
        nonlocal waits
        waits += 1
        if waits == 3:
            put(store, 2, 400)
        return True

    answer = restore_newest(store, tmp_path / "resume", expected=CheckpointName(2, 400), wait=wait)
    assert answer and (answer.manifest.name, answer.fell_back, waits) == (CheckpointName(2, 400), (), 3)


def test_one_that_was_reported_and_never_shows_is_named_and_the_newest_taken(store: Path, tmp_path: Path) -> None:
    waits = iter([True, True, False])
    answer = restore_newest(store, tmp_path / "resume", expected=CheckpointName(2, 400), wait=lambda: next(waits))
    assert answer and answer.manifest.name == CheckpointName(2, 200)
    assert answer.fell_back == ("leg-0002.step-00000400: was published but is missing",)
    assert next(waits, None) is None


def test_nobody_waits_for_what_is_there(store: Path, tmp_path: Path) -> None:
    answer = restore_newest(store, tmp_path / "resume", expected=CheckpointName(1, 300), wait=lambda: pytest.fail("it is there"))
    assert answer and answer.manifest.name == CheckpointName(2, 200)


def test_a_node_without_room_is_not_a_reason_to_take_an_older_one(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_room(monkeypatch)
    with pytest.raises(StorageFull):
        restore_newest(store, tmp_path / "resume")


@given(st.integers(1, 10**6), st.integers(0, 10**12))
def test_a_name_is_read_as_it_is_written(leg: int, step: int) -> None:
    name = CheckpointName(leg, step)
    assert CheckpointName.parse(str(name)) == name


@given(st.tuples(st.integers(1, 30_000), st.integers(0, 10**10)), st.tuples(st.integers(1, 30_000), st.integers(0, 10**10)))
def test_a_later_leg_is_newer_whatever_its_step(first: tuple[int, int], second: tuple[int, int]) -> None:
    assert (CheckpointName(*first) < CheckpointName(*second)) == (first < second)
