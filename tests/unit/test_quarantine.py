"""One bad folder costs the others nothing: it is set aside with its reason, and read as soon as it is good again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onward.errors import StorageError, StorageFull
from onward.model import events as ev
from onward.operations.runs.record import read_folder
from onward.rundir.layout import RunDir
from onward.tracker.ingest.folders import quarantine
from onward.tracker.store import Tracker
from tests.databases import new_database
from tests.unit.test_tracker_files import NOW, Folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[Tracker]:
    with Tracker.open(new_database(tmp_path / "onward.db")) as opened:
        yield opened


def good(root: Path, number: int) -> Folder:
    folder = Folder(root, f"2026-11-15_{chr(65 + number)}_good", id=f"good{number:04d}")
    folder.begin(1)
    folder.log(1, 1, 2, 3)
    return folder


def bad(root: Path, number: int) -> Folder:
    folder = Folder(root, f"2026-11-15_{chr(65 + number)}_bad", id=f"badd{number:04d}")
    folder.begin(1)
    return folder


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def spec(folder: Folder, **others: Any) -> None:
    folder.dir.spec.write_text(json.dumps({**json.loads(folder.dir.spec.read_text()), **others}))


def replace(path: Path, make: Callable[[Path], Any]) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    make(path)


def line(folder: Folder, **event: Any) -> None:
    with folder.dir.leg_journal(1).open("a") as file:
        file.write(json.dumps({"kind": "claimed", "leg": 1, "at": NOW, "job": "7", "hosts": ["n"], "deadline": None, **event}) + "\n")


BROKEN: dict[str, Callable[[Folder], Any]] = {
    "a param nested 950 deep": lambda f: f.dir.spec.write_text(f.dir.spec.read_text().replace('"lr": 0.1', f'"lr": {nested(950)}')),
    "a param nested without end": lambda f: f.dir.spec.write_text(nested(100_000)),
    "a leg of 26 digits": lambda f: f.event(ev.Claimed(leg=10**25, at=NOW, job="7", hosts=["n"], deadline=None)),
    "a leg below zero": lambda f: f.event(ev.Claimed(leg=-(10**25), at=NOW, job="7", hosts=["n"], deadline=None)),
    "not UTF-8": lambda f: f.dir.spec.write_bytes(b'{"id": "\xff\xfe"}'),
    "no JSON": lambda f: f.dir.spec.write_text("{"),
    "nothing": lambda f: f.dir.spec.write_text(""),
    "a list": lambda f: f.dir.spec.write_text("[1, 2]"),
    "a number of 400 digits as time": lambda f: spec(f, created=10**400),
    "NaN as time": lambda f: spec(f, created=float("nan")),
    "a name that is a number": lambda f: spec(f, name=5),
    "params that are a list": lambda f: spec(f, params=[1]),
    "a cluster that is a word": lambda f: spec(f, cluster="local"),
    "an id that is a list": lambda f: spec(f, id=["x"]),
    "an id of nothing": lambda f: spec(f, id=None),
    "half a character": lambda f: f.dir.spec.write_text(f.dir.spec.read_text().replace('"badd', '"\\ud800badd')),
    "a NUL": lambda f: f.dir.spec.write_text(f.dir.spec.read_text().replace('"badd', '"\\u0000badd')),
    "no command": lambda f: f.dir.spec.write_text(f.dir.spec.read_text().replace('"command"', '"order"')),
    "a pipe for a spec": lambda f: replace(f.dir.spec, os.mkfifo),
    "a folder for a spec": lambda f: replace(f.dir.spec, os.mkdir),
    "a link for a spec": lambda f: replace(f.dir.spec, lambda path: os.symlink("/etc/passwd", path)),
    "a link to nowhere for a spec": lambda f: replace(f.dir.spec, lambda path: os.symlink("/nowhere", path)),
    "a spec of a terabyte": lambda f: os.truncate(f.dir.spec, 1 << 40),
    "a pipe for a journal": lambda f: replace(f.dir.leg_journal(1), os.mkfifo),
    "a folder for a journal": lambda f: replace(f.dir.leg_journal(1), os.mkdir),
    "a file for the journals": lambda f: replace(f.dir.journals, Path.touch),
    "a journal of a terabyte": lambda f: os.truncate(f.dir.leg_journal(1), 1 << 40),
    "a pipe for a spool": lambda f: os.mkfifo(f.path(1)),
    "a link for a spool": lambda f: os.symlink("/etc/passwd", f.path(1)),
    "a time of words": lambda f: line(f, at="yesterday"),
    "hosts that are a number": lambda f: line(f, hosts=7),
    "a link for its logs and results": lambda f: replace(f.dir.results, lambda path: os.symlink("/", path)),
}
HARMLESS = {"a leg of 26 digits", "a leg below zero", "a time of words", "hosts that are a number", "NaN as time"}  # may be read, may not


def test_every_good_folder_is_read_whatever_lies_between_them(tracker: Tracker, root: Path) -> None:
    folders, spoiled = [], {}
    for number, (what, spoil) in enumerate(BROKEN.items()):
        folders.append(Folder(root, f"2026-11-15_A_{number:03d}-good", id=f"good{number:04d}"))
        folders[-1].begin(1)
        folders[-1].log(1, 1, 2, 3)
        folder = Folder(root, f"2026-11-15_A_{number:03d}-spoiled", id=f"badd{number:04d}")
        folder.begin(1)
        spoil(folder)
        spoiled[str(folder.dir.path)] = what
    looked = tracker.files.look([root])
    assert [tracker.runs.get(folder.spec.id).last_step for folder in folders] == [3] * len(folders)
    listed = {one.folder: one.reason for one in tracker.files.quarantine.listed()}
    missing = {what for path, what in spoiled.items() if path not in listed}
    assert missing <= HARMLESS
    assert not [path for path in listed if path not in spoiled]
    assert all(reason for reason in listed.values())
    assert len(looked.problems) == len(listed)
    folders[0].log(1, 4, start=3)
    assert tracker.files.look([root]).problems == [], "each is told of once"
    assert tracker.runs.get(folders[0].spec.id).last_step == 4


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
EVENTS = ("claimed", "restored", "ended", "found", "submitted", "submitting", "published", "missed", "closed", "resumed", "gone", "warned")


KEYS = ("name", "created", "user", "params", "cluster", "limits", "command", "member")
FACTS = ("leg", "at", "job", "hosts", "deadline", "step", "end", "state", "reason", "cause", "name")
LINES = st.tuples(st.sampled_from(EVENTS), st.dictionaries(st.sampled_from(FACTS), VALUES)).map(
    lambda one: {"leg": 1, "at": NOW, **one[1], "kind": one[0]}
)


@given(changes=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3), events=st.lists(LINES, max_size=4), tail=st.binary(max_size=20))
@settings(max_examples=40, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_folder_holds_the_next_one_is_read(
    tracker: Tracker, tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any], events: list[dict[str, Any]], tail: bytes
) -> None:
    root = tmp_path_factory.mktemp("runs")
    folder = bad(root, 0)
    spec(folder, **changes)
    with folder.dir.leg_journal(1).open("ab") as file:
        file.write("".join(json.dumps(event) + "\n" for event in events).encode() + tail + b"\n")
    after = Folder(root, "2026-11-15_B_good", id=f"g{os.urandom(4).hex()}")
    after.begin(1)
    after.log(1, 1)
    tracker.files.look([root])
    assert tracker.runs.get(after.spec.id).last_step == 1
    try:
        read_folder(folder.dir)
    except StorageError as error:
        assert str(folder.dir.path) in str(error)


def test_a_folder_is_tried_again_when_it_changes_and_else_ever_more_seldom(
    tracker: Tracker, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [NOW]
    monkeypatch.setattr(tracker.files.quarantine, "_now", lambda: now[0])
    folder = bad(root, 0)
    text = folder.dir.spec.read_text()
    folder.dir.spec.write_text("{")
    tries: list[float] = []
    put = quarantine.Quarantine.put

    def counted(self: quarantine.Quarantine, dir: RunDir, error: Exception) -> str | None:
        tries.append(now[0] - NOW)
        return put(self, dir, error)

    monkeypatch.setattr(quarantine.Quarantine, "put", counted)
    while now[0] < NOW + 3600:
        tracker.files.look([root])
        now[0] += 1.0
    assert tries[:5] == [0, 2, 6, 14, 30]
    assert tries[-1] - tries[-2] == 600
    folder.dir.spec.write_text(text)
    tracker.files.look([root])
    assert tracker.runs.get(folder.spec.id).state == "running"
    assert tracker.files.quarantine.listed() == []


def test_a_folder_that_is_deleted_is_no_longer_shown(tracker: Tracker, root: Path) -> None:
    folder = bad(root, 0)
    folder.dir.spec.write_text("{")
    good(root, 1)
    tracker.files.look([root])
    assert len(tracker.files.quarantine.listed()) == 1
    shutil.rmtree(folder.dir.path)
    tracker.files.look([root])
    assert tracker.files.quarantine.listed() == []


def test_what_was_set_aside_is_known_after_a_restart_and_released_when_it_is_good(root: Path, tmp_path: Path) -> None:
    folder = bad(root, 0)
    text = folder.dir.spec.read_text()
    folder.dir.spec.write_text("{")
    with Tracker.open(tmp_path / "onward.db") as tracker:
        tracker.files.look([root])
    folder.dir.spec.write_text(text)
    with Tracker.open(tmp_path / "onward.db") as tracker:
        assert [one.folder for one in tracker.files.quarantine.listed()] == [str(folder.dir.path)]
        tracker.files.look([root])
        assert tracker.files.quarantine.listed() == []


def test_a_store_that_is_full_is_no_fault_of_a_folder(tracker: Tracker, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good(root, 0)

    def full(_job: object) -> None:
        raise StorageFull("there is no room")

    with monkeypatch.context() as patch:
        patch.setattr(tracker._writer, "do", full)
        with pytest.raises(StorageFull):
            tracker.files.look([root])
    tracker.files.look([root])
    assert tracker.runs.get("good0000").last_step == 3
    assert tracker.files.quarantine.listed() == []


def test_a_root_that_cannot_be_listed_hides_no_other(tracker: Tracker, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good(root, 0)
    gone = tmp_path / "unmounted"
    (gone / ".onward").mkdir(parents=True)
    real = os.stat

    def stat(path: Any, *args: Any, **others: Any) -> os.stat_result:
        if path == gone:
            raise OSError(5, "Input/output error", str(gone))
        return real(path, *args, **others)

    monkeypatch.setattr(os, "stat", stat)
    looked = tracker.files.look([gone, root])
    assert looked.points == 3
    assert looked.problems == [f"{gone} cannot be listed: Input/output error"]
