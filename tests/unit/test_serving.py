"""Who serves a database: one server a file, by whatever name it is reached, and no trace of it when it has stopped."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from onward.api.server import Listening
from onward.errors import Conflict, InvalidInput, StorageError
from onward.operations.tracker_access.location import ServingLock, TrackerLocation, open_tracker, tracker_location
from tests.disks import small_disk


def location(tmp_path: Path, db: Path | str) -> TrackerLocation:
    return tracker_location({"HOME": str(tmp_path), "ONWARD_STATE_DIR": str(tmp_path / "state")}, str(db))


def test_a_second_server_of_a_file_is_refused_and_told_where_the_first_one_is(tmp_path: Path) -> None:
    first = ServingLock(location(tmp_path, tmp_path / "a.db"))
    first.at("http://127.0.0.1:1")
    with pytest.raises(Conflict, match=r"a\.db at http://127\.0\.0\.1:1") as raised:
        ServingLock(location(tmp_path, tmp_path / "a.db"))
    assert "--db" in raised.value.hint
    first.close()
    ServingLock(location(tmp_path, tmp_path / "a.db")).close()


def by_link(target: Path, name: Path) -> None:
    name.symlink_to(target)


def by_hard_link(target: Path, name: Path) -> None:
    os.link(target, name)


def by_folder(target: Path, name: Path) -> None:
    """A link to the folder rather than to the file."""
    (name.parent / "folder").symlink_to(target.parent)
    name.symlink_to(Path("folder") / target.name)


@pytest.mark.parametrize("link", [by_link, by_hard_link, by_folder])
def test_a_file_reached_by_another_name_is_the_same_file(tmp_path: Path, link: Callable[[Path, Path], None]) -> None:
    (tmp_path / "other").mkdir()
    at = location(tmp_path, tmp_path / "a.db")
    serving = ServingLock(at)
    with open_tracker(at):
        link(tmp_path / "a.db", tmp_path / "other" / "b.db")
        with pytest.raises(Conflict):
            ServingLock(location(tmp_path, tmp_path / "other" / "b.db"))
    serving.close()
    ServingLock(location(tmp_path, tmp_path / "other" / "b.db")).close()


def test_what_lies_beside_a_database_is_found_through_a_link_to_it(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    answer = location(tmp_path, tmp_path / "link.db")
    assert (answer.db, answer.files) == (str(tmp_path / "real.db"), tmp_path / "real.files")


def test_a_server_that_has_stopped_leaves_no_note(tmp_path: Path) -> None:
    for db in (str(tmp_path / "a.db"), "postgresql://ann@host/onward"):
        at = location(tmp_path, db)
        one = ServingLock(at)
        one.at("http://127.0.0.1:1")
        assert at.served_at() == "http://127.0.0.1:1"
        one.close()
        assert at.served_at() is None
    assert list(tmp_path.rglob("*.server")) == []


def test_of_two_servers_on_one_postgresql_the_first_ones_note_stays_until_it_stops(tmp_path: Path) -> None:
    at = location(tmp_path, "postgresql://ann@host/onward")
    one, two = ServingLock(at), ServingLock(at)
    one.at("http://127.0.0.1:1")
    two.at("http://127.0.0.1:2")
    two.close()
    assert at.served_at() == "http://127.0.0.1:1"
    one.close()
    assert at.served_at() is None


def test_what_cannot_be_a_database_is_told_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a folder"):
        ServingLock(location(tmp_path, tmp_path))
    with pytest.raises(InvalidInput, match="port is not a number"):
        ServingLock(location(tmp_path, "postgresql://ann:secret@host:port/onward"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kilobytes=64, read_only=True) as disk:
        with pytest.raises(StorageError, match=rf"{disk} cannot be written") as raised:
            ServingLock(location(tmp_path, disk / "a.db"))
        assert "--db" in raised.value.hint


@pytest.mark.parametrize("name", ["http://x/y", "https://tracker.example.org", "x/y", "x:8765", "a b", "", "x@y"])
def test_a_name_that_is_no_hosts_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="--name") as raised:
        Listening(names=(name,))
    assert "tracker.example.org" in raised.value.hint


@pytest.mark.parametrize("name", ["tracker.example.org", "TRACKER", "10.0.0.7", "tracker.example.org."])
def test_a_name_of_a_host_is_taken(name: str) -> None:
    assert Listening(names=(name,)).names == (name,)
