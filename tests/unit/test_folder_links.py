"""Whatever somebody links into a run's folder, the server stays inside its roots; and a run stays with its folder and its owner."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onward.model import events as ev
from onward.operations.runs.control import cancel
from onward.operations.runs.find import find_run
from onward.operations.submit.new_run import submit
from onward.rundir.files.no_links import LinkRefused, NotAFile, open_beneath, open_folder_beneath, read_beneath
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir, own_run
from onward.tracker.ingest.folders import ownership
from onward.tracker.store import Tracker
from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good
from tests.unit.test_tracker_files import Folder

SECRET = "the private key of whoever runs the server"
ALICE, MALLORY = 54_321, 54_322  # nobody's numbers on any machine that tests run on


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The server's own, outside of every root."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("id_rsa", "leg-0001.out", "supervisor.log", "code.diff", "spec.json", "leg-0001.train-1.jsonl"):
        (folder / name).write_text(SECRET)
    return folder


def submitted(harness: Harness) -> tuple[str, RunDir]:
    dir = submit(harness.sandbox.context, harness.sandbox.draft(command=("python3", "train.py")), cwd=harness.sandbox.project)
    (dir.artifacts / "plot.png").write_text("a plot")
    (dir.code / "out").mkdir()
    dir.log(1, "out").write_text("a line\n")
    harness.opened.tracker.files.look(harness.sandbox.context.roots)
    return read_run(dir).spec.id, dir


def swap(folder: Path, target: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
    else:
        folder.unlink(missing_ok=True)
    folder.symlink_to(target)


# ── opening ───────────────────────────────────────────────────────────────────


def test_no_component_below_the_root_may_be_a_link_but_the_root_may(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "run" / "logs").mkdir(parents=True)
    (real / "run" / "logs" / "a").write_text("text")
    root = tmp_path / "root"
    root.symlink_to(real)
    assert read_beneath(root, root / "run" / "logs" / "a") == b"text"
    (real / "linked").symlink_to(real / "run")
    (real / "run" / "linked").symlink_to(real / "run" / "logs")
    (real / "run" / "logs" / "linked").symlink_to("a")
    for path in ("linked/logs/a", "run/linked/a", "run/logs/linked"):
        with pytest.raises(LinkRefused, match="links below the runs folder are not followed"):
            read_beneath(root, root / path)
    with pytest.raises(ValueError, match="leads outside"):
        read_beneath(root, root / "run" / ".." / ".." / "other")
    with pytest.raises(LinkRefused), open_folder_beneath(root, root / "linked" / "made", make=True):
        pass
    assert not (real / "run" / "made").exists()


def test_a_pipe_a_socket_or_a_folder_is_no_file_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(NotAFile):
            read_beneath(tmp_path, tmp_path / name)
    with pytest.raises(NotAFile):
        open_beneath(tmp_path, tmp_path / "pipe", os.O_WRONLY)


def test_a_file_without_an_end_fills_no_memory(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="larger than 1 MiB"):
        read_beneath(tmp_path, tmp_path / "sparse", most=1 << 20)


def test_no_handle_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "link").symlink_to("/")
    before = len(os.listdir("/proc/self/fd"))
    for path in ("a/link/x", "a/missing/x", "a/b"):
        with pytest.raises(OSError):
            read_beneath(tmp_path, tmp_path / path)
    assert len(os.listdir("/proc/self/fd")) == before


# ── what the server serves ────────────────────────────────────────────────────


def links(dir: RunDir, home: Path) -> dict[str, Callable[[], None]]:
    return {
        "artifacts": lambda: swap(dir.artifacts, home),
        "results": lambda: swap(dir.results, home),
        "code": lambda: swap(dir.code, home),
        "a folder in the code": lambda: swap(dir.code / "out", home),
        "the list of the code": lambda: swap(dir.code_list, home / "id_rsa"),
        "logs": lambda: swap(dir.logs, home),
        "one log": lambda: swap(dir.log(1, "out"), home / "id_rsa"),
        "params": lambda: swap(dir.params, home),
        "code.diff": lambda: swap(dir.code_diff, home / "id_rsa"),
        "spool": lambda: swap(dir.spool, home),
        "journal": lambda: swap(dir.journals, home),
        "the folder": lambda: swap(dir.path, home),
        "checkpoints": lambda: swap(dir.checkpoints, home),
    }


@pytest.mark.parametrize("what", list(links(RunDir(Path()), Path())))
def test_a_link_in_a_run_folder_leads_nobody_to_the_servers_files(harness: Harness, home: Path, what: str) -> None:
    run, dir = submitted(harness)
    (home / "artifacts").mkdir()
    (home / "artifacts" / "id_rsa").write_text(SECRET)
    before = sorted(home.rglob("*"))
    links(dir, home)[what]()
    harness.opened.tracker.files.look(harness.sandbox.context.roots)
    at = f"/api/v1/runs/{run}"
    paths = ["", "/overview", "/artifacts", "/artifacts/id_rsa", "/artifacts/artifacts/id_rsa", "/code-diff", "/checkpoints", "/logs"]
    paths += ["/written", "/written?path=out", "/written/id_rsa", "/written/out/id_rsa"]
    paths += [f"/logs/1/{stream}{end}" for stream in ("out", "supervisor") for end in ("", "/file", "/lines", "/search?text=private")]
    for path in paths:
        answer = harness.client.get(at + path)
        assert SECRET not in answer.text, path
        assert answer.status < 500, path
        assert "id_rsa" not in answer.text or path.endswith("/id_rsa"), path
    harness.client.ask("PUT", f"{at}/artifacts/mine", body=b"written through a link")
    harness.client.ask("DELETE", f"{at}/artifacts/id_rsa")
    assert sorted(home.rglob("*")) == before


def test_a_linked_artifacts_folder_is_refused_in_words(harness: Harness, home: Path) -> None:
    run, dir = submitted(harness)
    swap(dir.artifacts, home)
    answer = harness.client.get(f"/api/v1/runs/{run}/artifacts/id_rsa")
    assert answer.status == 404
    assert "'artifacts' is a link, and the server does not follow links" in answer.text


def test_a_folder_with_linked_journals_is_set_aside_with_its_reason(harness: Harness, home: Path) -> None:
    _, dir = submitted(harness)
    swap(dir.journals, home)
    harness.opened.tracker.files.look(harness.sandbox.context.roots)
    (answer,) = good(harness.client.get("/api/v1/trouble/folders"))["folders"]
    assert answer["folder"] == str(dir.path)
    assert "links below the runs folder are not followed" in answer["reason"]


def test_a_root_that_is_a_link_works(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "disk")
    folder = Folder(tmp_path / "runs")
    folder.begin(1)
    folder.log(1, 1, 2)
    with Tracker.open(tmp_path / "onward.db") as tracker:
        assert tracker.files.look([tmp_path / "runs"]).points == 2


def test_a_person_may_name_a_run_by_a_link_to_its_folder(harness: Harness) -> None:
    run, dir = submitted(harness)
    (harness.sandbox.folder / "mine").symlink_to(dir.path)
    assert read_run(find_run(harness.sandbox.context, str(harness.sandbox.folder / "mine"))).spec.id == run


def test_a_job_goes_on_in_a_folder_that_was_moved_and_left_a_link(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    (tmp_path / "new disk").mkdir()
    shutil.move(folder.dir.path, tmp_path / "new disk" / "moved")
    folder.dir.path.symlink_to(tmp_path / "new disk" / "moved")
    assert read_run(own_run(folder.dir.path)).spec.id == folder.spec.id
    with pytest.raises(LinkRefused):
        read_run(folder.dir)


# ── whose run it is ───────────────────────────────────────────────────────────


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[Tracker]:
    with Tracker.open(tmp_path / "onward.db") as opened:
        yield opened


@pytest.fixture
def owners(monkeypatch: pytest.MonkeyPatch) -> dict[Path, int]:
    """Who owns which folder, as the system would say."""
    fields: dict[Path, int] = {}
    monkeypatch.setattr(ownership, "owner_of", lambda dir: fields.get(dir.path, ALICE))
    monkeypatch.setattr("onward.tracker.ingest.folders.tail.owner_of", lambda dir: fields.get(dir.path, ALICE))
    monkeypatch.setattr(ownership, "user_name", {ALICE: "ada", MALLORY: "mallory"}.__getitem__)
    return fields


def planted(root: Path, owners: dict[Path, int], victim: Folder, name: str = "2026-11-14_A_mine") -> Folder:
    """A folder of Mallory's that says it is the victim's run, and that it has failed."""
    folder = Folder(root, name)
    folder.dir.spec.write_text(json.dumps({**json.loads(folder.dir.spec.read_text()), "name": "stolen"}))
    owners[folder.dir.path] = MALLORY
    folder.begin(1)
    folder.event(ev.Closed(leg=1, at=5.0, state="failed", cause="Mallory says so"))
    assert folder.spec.id == victim.spec.id
    return folder


def reasons(tracker: Tracker) -> dict[str, str]:
    return {Path(one.folder).name: one.reason for one in tracker.files.quarantine.listed()}


def test_a_second_folder_with_a_runs_id_is_refused_and_both_are_named(tracker: Tracker, root: Path, owners: dict[Path, int]) -> None:
    victim = Folder(root)
    victim.begin(1)
    tracker.files.look([root])
    false = planted(root, owners, victim)
    tracker.files.look([root])
    run = tracker.runs.get(victim.spec.id)
    assert (run.name, run.state, run.folder) == ("digits", "running", str(victim.dir.path))
    assert str(victim.dir.path) in reasons(tracker)[false.dir.path.name]
    assert str(false.dir.path) in reasons(tracker)[false.dir.path.name]


def test_when_the_first_folder_is_gone_only_its_owner_may_bring_it_back(tracker: Tracker, root: Path, owners: dict[Path, int]) -> None:
    victim = Folder(root)
    victim.begin(1)
    tracker.files.look([root])
    shutil.move(victim.dir.path, root / "2026-11-15_B_moved")
    false = planted(root, owners, victim)
    tracker.files.look([root])
    run = tracker.runs.get(victim.spec.id)
    assert (run.name, run.state, run.folder) == ("digits", "running", str(root / "2026-11-15_B_moved"))
    assert "mallory" in reasons(tracker)[false.dir.path.name]
    assert (
        "belongs to ada" in reasons(tracker)[false.dir.path.name]
        or str(root / "2026-11-15_B_moved") in reasons(tracker)[false.dir.path.name]
    )


def test_a_folder_that_becomes_somebody_elses_is_no_longer_read(tracker: Tracker, root: Path, owners: dict[Path, int]) -> None:
    victim = Folder(root)
    victim.begin(1)
    tracker.files.look([root])
    owners[victim.dir.path] = MALLORY
    victim.event(ev.Closed(leg=1, at=5.0, state="failed", cause="Mallory says so"))
    tracker.files.look([root])
    assert tracker.runs.get(victim.spec.id).state == "running"
    assert "mallory" in reasons(tracker)[victim.dir.path.name]


def test_a_run_that_was_sent_is_not_taken_over_by_somebody_elses_folder(tracker: Tracker, root: Path, owners: dict[Path, int]) -> None:
    victim = Folder(root)
    tracker.push.announce(json.loads(victim.dir.spec.read_text()))
    shutil.move(victim.dir.path, root.parent / "elsewhere")
    false = planted(root, owners, victim)
    tracker.files.look([root])
    assert (tracker.runs.get(victim.spec.id).name, tracker.runs.get(victim.spec.id).folder) == ("digits", None)
    assert "ada" in reasons(tracker)[false.dir.path.name]
    shutil.move(root.parent / "elsewhere", victim.dir.path)
    tracker.files.look([root])
    assert tracker.runs.get(victim.spec.id).folder == str(victim.dir.path)


def test_one_folder_under_two_names_of_its_root_is_one_run(tracker: Tracker, root: Path, owners: dict[Path, int]) -> None:
    victim = Folder(root)
    victim.begin(1)
    tracker.files.look([root])
    (root.parent / "again").symlink_to(root)
    victim.event(ev.Ended(leg=1, at=9.0, end="time_limit", reason="so"))
    tracker.files.look([root.parent / "again"])
    assert not reasons(tracker)


# ── a second real user ────────────────────────────────────────────────────────


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_another_users_folder_cannot_lead_the_server_or_root_elsewhere(harness: Harness, home: Path) -> None:
    """Mallory owns the folder and may change it at will; the server here is root, who may write everywhere."""
    run, dir = submitted(harness)
    for path in [dir.path, *dir.path.rglob("*")]:
        os.chown(path, MALLORY, MALLORY, follow_symlinks=False)
    child = os.fork()
    if child == 0:  # Mallory's own process
        try:
            os.chdir(dir.path)  # what lies above is only for who runs the tests
            os.setgid(MALLORY)
            os.setuid(MALLORY)
            for folder in ("results/artifacts", "logs", "journal"):
                swap(Path(folder), home)
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    before = sorted(home.iterdir())
    harness.opened.tracker.files.look(harness.sandbox.context.roots)
    for what in ("artifacts/id_rsa", "logs/1/out/file"):
        assert SECRET not in harness.client.get(f"/api/v1/runs/{run}/{what}").text
    harness.client.ask("PUT", f"/api/v1/runs/{run}/artifacts/authorized_keys", body=b"mallory's key")
    with pytest.raises(Exception, match="link"):
        cancel(harness.sandbox.context, dir)
    assert sorted(home.iterdir()) == before
