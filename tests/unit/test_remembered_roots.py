"""Runs are found from any folder: the roots that a user submits to are remembered."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from onward.errors import NotFound
from onward.operations import remembered_roots as subject
from onward.operations.context import OperationsContext
from onward.operations.hosts.local import LocalHost
from onward.operations.remembered_roots import RootState, forget_removed, remember_root, remembered_roots, roots_text
from onward.operations.runs.find import find_run
from tests.sandbox import Sandbox


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"ONWARD_STATE_DIR": str(tmp_path / "state"), "ONWARD_SETTINGS": "", "HOME": str(tmp_path)}


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def place_in(folder: Path, env: dict[str, str]) -> Sandbox:
    """Where somebody submits, with runs in `folder`/runs."""
    return Sandbox(folder, env=env)


def test_a_run_is_found_from_another_folder_once_something_was_submitted_to_its_root(
    tmp_path: Path, env: dict[str, str], elsewhere: Path
) -> None:
    place = place_in(tmp_path / "project", env)
    run = place.submit(name="digits")
    context = OperationsContext(env=env)
    assert context.roots == [elsewhere / "runs", place.root] and context.root == elsewhere / "runs"
    assert [dir.path for dir in context.runs()] == [run.path]
    assert find_run(context, "digits").path == run.path
    assert LocalHost(context).runs(state=None, newest=None).roots == (str(elsewhere / "runs"), str(place.root))


def test_whoever_says_where_to_look_is_shown_that_alone(tmp_path: Path, env: dict[str, str], elsewhere: Path) -> None:
    root = tmp_path / "project" / "runs"
    root.mkdir(parents=True)
    remember_root(env, root)
    assert OperationsContext(env={**env, "ONWARD_ROOT": str(tmp_path)}).roots == [tmp_path]
    assert OperationsContext(env=env, anywhere=False).roots == [elsewhere / "runs"]


def test_of_two_runs_of_one_name_the_one_of_this_place_is_meant(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = place_in(tmp_path / "here", env), place_in(tmp_path / "there", env)
    mine, other = here.submit(name="digits"), there.submit(name="digits")
    monkeypatch.chdir(tmp_path / "here")
    context = OperationsContext(env=env)
    assert len(context.runs()) == 2
    assert find_run(context, "digits").path == mine.path
    monkeypatch.chdir(tmp_path / "there")
    assert find_run(context, "digits").path == other.path


def test_a_running_server_sees_a_root_as_soon_as_it_is_submitted_to(tmp_path: Path, env: dict[str, str], elsewhere: Path) -> None:
    context = OperationsContext(env=env)
    assert context.roots == [elsewhere / "runs"]
    (tmp_path / "new").mkdir()
    remember_root(env, tmp_path / "new")
    assert context.roots == [elsewhere / "runs", tmp_path / "new"]


def test_a_root_that_was_removed_is_forgotten_with_a_word_once(tmp_path: Path, env: dict[str, str], elsewhere: Path) -> None:
    root = tmp_path / "project" / "runs"
    root.mkdir(parents=True)
    remember_root(env, root)
    root.rmdir()
    records = LocalHost(OperationsContext(env=env)).runs(state=None, newest=None)
    assert records.broken == (f"the runs folder {root} was removed; it is forgotten",)
    assert records.roots == (str(elsewhere / "runs"),)
    assert LocalHost(OperationsContext(env=env)).runs(state=None, newest=None).broken == ()
    assert remembered_roots(env) == []


@pytest.mark.parametrize(("field", "other"), [("device", -1), ("host", "another machine")])
def test_a_root_whose_storage_is_away_or_that_another_machine_has_is_kept_in_silence(
    tmp_path: Path, env: dict[str, str], field: str, other: object
) -> None:
    root = tmp_path / "runs"
    root.mkdir()
    remember_root(env, root)
    (note,) = (tmp_path / "state" / "roots").iterdir()
    note.write_text(json.dumps({**json.loads(note.read_text()), field: other}))
    root.rmdir()
    assert [known.state for known in remembered_roots(env)] == [RootState.AWAY]
    assert forget_removed(remembered_roots(env)) == []
    root.mkdir()
    assert [known.state for known in remembered_roots(env)] == [RootState.THERE]


def test_storage_that_hangs_keeps_no_other_root_from_being_seen(
    tmp_path: Path, env: dict[str, str], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, hangs = tmp_path / "good", tmp_path / "hangs"
    for root in (good, hangs):
        root.mkdir()
        remember_root(env, root)
    answers = threading.Event()
    state_of = subject._state
    monkeypatch.setattr(subject, "_PATIENCE", 0.2)
    monkeypatch.setattr(subject, "_state", lambda one: state_of(one) if one.root == str(good) or answers.wait(60) else RootState.AWAY)
    context = OperationsContext(env=env)
    try:
        assert context.roots == [elsewhere / "runs", good]
        assert context.forget_removed_roots() == [f"the runs folder {hangs} does not answer; its runs are not shown"]
        [look] = subject._hanging.values()
        assert remembered_roots(env)[0].state is RootState.SILENT and list(subject._hanging.values()) == [look]  # no second one hangs
    finally:
        answers.set()
    look.join()
    assert RootState.SILENT not in {known.state for known in remembered_roots(env)} and not subject._hanging


def test_a_root_that_another_user_put_in_the_place_of_ours_is_not_read(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "runs"
    root.mkdir()
    remember_root(env, root)
    (note,) = (tmp_path / "state" / "roots").iterdir()
    note.write_text(json.dumps({**json.loads(note.read_text()), "inode": 1}))
    assert [known.state for known in remembered_roots(env)] == [RootState.THERE]  # ours: made anew, or restored from a backup
    monkeypatch.setattr(subject, "_me", lambda: os.getuid() + 1)
    monkeypatch.setattr(subject, "_read", lambda path: subject.RootNote(**json.loads(path.read_text())))
    [known] = remembered_roots(env)
    assert known.state is RootState.FOREIGN
    assert forget_removed([known]) == [
        f"the runs folder {root} was replaced by another user's; its runs are not shown. To forget it: rm {note}"
    ]


def test_notes_that_another_user_wrote_or_that_are_damaged_say_nothing(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    remember_root(env, tmp_path)
    folder = tmp_path / "state" / "roots"
    (folder / "a.json").write_text("{")
    (folder / "b.json").write_text('{"root": 3, "inode": 1, "device": 1, "host": ""}')
    (folder / "c.json").write_text("[]")
    (folder / "d.json").symlink_to(next(iter(folder.glob("*.json"))))
    (folder / "e.json").mkdir()
    os.mkfifo(folder / "f.json")
    assert [known.path for known in remembered_roots(env)] == [tmp_path]
    monkeypatch.setattr(subject, "_me", lambda: os.getuid() + 1)
    assert remembered_roots(env) == []


def test_only_the_newest_are_remembered(tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MOST", 3)
    roots = [tmp_path / str(number) for number in range(5)]
    for root in roots:
        root.mkdir()
        remember_root(env, root)
    assert {known.path for known in remembered_roots(env)} == set(roots[2:])


def test_nothing_depends_on_a_state_folder(tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    env = {"ONWARD_STATE_DIR": str(tmp_path / "file" / "state")}
    remember_root(env, tmp_path)
    assert OperationsContext(env=env).roots == [elsewhere / "runs"]
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    remember_root({}, tmp_path)
    assert remembered_roots({}) == []


def test_a_run_that_is_nowhere_is_looked_for_in_all_roots_and_they_are_named(tmp_path: Path, env: dict[str, str], elsewhere: Path) -> None:
    remember_root(env, tmp_path)
    with pytest.raises(NotFound, match=f"there is no run 'digits' under {elsewhere}/runs or {tmp_path}"):
        find_run(OperationsContext(env=env), "digits")
    assert roots_text(list("abcdefgh")) == "a, b, c, d, e or 3 more"
    assert roots_text(["a"]) == "a"
