"""The contract of the gateway's store, on a file; and what only a file has to keep."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import update

from onward.errors import NotFound
from onward.model.requests.request import RequestInput
from onward.operations.tracker_access.backup import backup
from onward.operations.tracker_access.location import tracker_location
from onward.tracker.requests.schema import requests
from onward.tracker.requests.store import Requests
from onward.tracker.store import Tracker
from tests.contract.requests import RequestsContract, request, store  # noqa: F401


@pytest.fixture
def requests_place(tmp_path: Path) -> Path:
    return tmp_path / "onward.requests.db"


class TestOnAFile(RequestsContract):
    pass


def test_the_file_and_its_log_are_their_owners_alone(requests_place: Path, store: Requests) -> None:  # noqa: F811
    store.accept(request())
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in requests_place.parent.iterdir() if path.suffix != ".lock"}
    assert len(modes) == 3
    assert set(modes.values()) == {"0o600"}


def test_no_secret_is_left_in_the_file_when_the_run_has_it(requests_place: Path) -> None:
    made = Requests.open(requests_place)
    made.accept(
        request(inputs=(RequestInput(name="Image", url="https://files.lab/a.png?sig=hush-hush"),), settings={"api_token": "hush-hush"})
    )
    assert any(b"hush-hush" in path.read_bytes() for path in requests_place.parent.iterdir())
    made.set_run("r1", run="run-1", folder="/runs/run-1", at=1.0)
    made.close()
    assert not any(b"hush-hush" in path.read_bytes() for path in requests_place.parent.iterdir())


def test_what_an_older_version_kept_is_forgotten(requests_place: Path, store: Requests) -> None:  # noqa: F811
    store.accept(request(inputs=(RequestInput(name="Image", url="https://files.lab/a.png?sig=hush"),)))
    with store.database.writing() as connection:
        connection.execute(update(requests).values(folder="/runs/run-1", state="submitted"))
    store.tidy(now=1.0)
    assert store.of("r1").request.inputs[0].url == "https://files.lab/a.png?…"


def test_where_no_gateway_ever_ran_nothing_is_made_by_looking(requests_place: Path) -> None:
    with pytest.raises(NotFound, match="there are no requests in"):
        Requests.open(requests_place, create=False)
    assert list(requests_place.parent.iterdir()) == []


def test_the_store_lies_beside_the_trackers(tmp_path: Path) -> None:
    assert tracker_location({}, db=str(tmp_path / "lab.db")).requests == str(tmp_path / "lab.requests.db")
    assert tracker_location({"HOME": "/root"}, db="postgresql://ada@host/onward").requests == "postgresql://ada@host/onward"


def test_a_backup_of_the_tracker_has_the_requests_too(tmp_path: Path) -> None:
    location = tracker_location({"HOME": str(tmp_path)}, db=str(tmp_path / "lab.db"))
    Tracker.open(location.db).close()
    held = Requests.open(location.requests)
    held.accept(request())
    backup(location, tmp_path / "copy")
    held.close()
    copy = Requests.open(tracker_location({}, db=str(tmp_path / "copy" / "tracker.db")).requests, create=False)
    assert copy.of("r1").request == request()
    copy.close()
