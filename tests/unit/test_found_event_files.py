"""Event files that a training writes into its own places, brought to where they are mirrored and read from."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from onward.clock import ManualClock
from onward.rundir.event_files.search import EventFileSearch, event_file_place, link_event_files
from onward.rundir.layout import LegLocal, RunDir
from onward.rundir.mirror import carry
from onward.supervisor.telemetry.found_event_files import FoundEventFiles

HOST = socket.gethostname()
BEGAN = 1_800_000_000.0
OURS = 4242


def event_file(at: float = BEGAN + 5, *, pid: int = OURS, host: str = HOST) -> str:
    return f"events.out.tfevents.{at:.0f}.{host}.{pid}.0"


class Leg:
    """A leg whose code is a snapshot in the run's folder, with a link in it to a folder that all runs of the project share."""

    def __init__(self, base: Path) -> None:
        self.run, self.local = RunDir(base / "2026-11-19_A_x"), LegLocal(base / "node")
        self.run.make()
        self.local.make()
        self.project = base / "project"
        (self.project / "runs").mkdir(parents=True)
        (self.run.code / "runs").symlink_to(self.project / "runs")
        self.clock = ManualClock(1000.0)
        self.found = self.looking_in(self.run.code)

    def looking_in(self, folder: Path) -> FoundEventFiles:
        return FoundEventFiles(
            run=self.run,
            local=self.local,
            folder=folder,
            submitted=BEGAN - 3600,
            began=BEGAN,
            processes=lambda: [OURS],
            now=self.clock.now,
        )

    def brought(self) -> dict[str, bytes]:
        there = self.local.tensorboard
        return {str(path.relative_to(there)): path.read_bytes() for path in sorted(there.rglob("*")) if path.is_file()}


def write(path: Path, data: bytes = b"events") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(data)
    return path


@pytest.fixture
def leg(tmp_path: Path) -> Leg:
    return Leg(tmp_path)


# ── where they are put ────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("found", "folder"),
    [
        ("runs/Nov19_12-00-00_node7/E", "runs/Nov19_12-00-00_node7/E"),
        ("out/gpt2/runs/Nov19_12-00-00_node7/E", "runs/Nov19_12-00-00_node7/E"),
        ("outputs/lightning_logs/version_3/E", "lightning_logs/version_3/E"),
        ("logs/train/E", "train/E"),
        ("generator/E", "generator/E"),
        ("E", "E"),
    ],
)
def test_folders_that_every_training_has_are_no_part_of_a_metrics_name(found: str, folder: str) -> None:
    assert event_file_place(Path(found)) == Path(folder)


# ── in the folder for checkpoints ─────────────────────────────────────────────


def test_those_beside_checkpoints_are_mirrored_and_grow_though_the_training_removes_them(leg: Leg) -> None:
    name = f"runs/Nov19_12-00-00_node7/{event_file()}"
    beside = write(leg.local.checkpoints / name)
    write(leg.local.checkpoints / "checkpoint-500" / "trainer_state.json")
    leg.found.look()
    write(beside, b" and more")
    beside.unlink()
    leg.found.look()
    carry(leg.local, leg.run)
    assert (leg.run.tensorboard / name).read_bytes() == b"events and more"
    assert [path.name for path in leg.run.tensorboard.rglob("*") if path.is_file()] == [event_file()]


def test_those_of_a_leg_that_was_killed_before_the_first_look_are_carried_over_too(leg: Leg) -> None:
    write(leg.local.checkpoints / "runs" / event_file())
    carry(leg.local, leg.run)  # as salvage does it
    assert (leg.run.tensorboard / "runs" / event_file()).read_bytes() == b"events"


# ── in the working folder ─────────────────────────────────────────────────────


def test_those_in_the_working_folder_are_copied_as_they_grow(leg: Leg) -> None:
    source = write(leg.run.code / "lightning_logs" / "version_0" / event_file())
    leg.found.look()
    write(source, b", more")
    leg.clock.sleep(60)
    leg.found.look()
    assert leg.brought() == {f"lightning_logs/version_0/{event_file()}": b"events, more"}
    write(source, b", last")
    leg.found.finish(within=30)
    assert leg.brought() == {f"lightning_logs/version_0/{event_file()}": b"events, more, last"}


def test_one_that_begins_after_the_last_look_is_found_when_the_training_has_gone(leg: Leg) -> None:
    leg.found.look()
    write(leg.run.code / "out" / "runs" / "a" / event_file())
    leg.found.look()
    assert leg.brought() == {}
    leg.found.finish(within=30)
    assert leg.brought() == {f"runs/a/{event_file()}": b"events"}


def test_one_that_the_code_came_with_is_not_taken(leg: Leg) -> None:
    write(leg.run.code / "lightning_logs" / event_file(BEGAN - 86400))
    custom = write(leg.run.code / "lightning_logs" / "events.out.tfevents.mine")
    os.utime(custom, (BEGAN - 86400, BEGAN - 86400))
    leg.found.finish(within=30)
    assert leg.brought() == {}


def test_what_an_earlier_leg_has_not_carried_is_taken_and_what_it_has_is_not_copied_again(leg: Leg) -> None:
    for name in ("a", "b"):
        write(leg.run.code / "runs2" / "runs" / name / event_file(BEGAN - 600))
    write(leg.run.tensorboard / "runs" / "a" / event_file(BEGAN - 600))
    write(leg.run.tensorboard / "runs" / "b" / event_file(BEGAN - 600), b"ev")
    leg.found.finish(within=30)
    assert leg.brought() == {f"runs/b/{event_file(BEGAN - 600)}": b"events"}
    carry(leg.local, leg.run)
    assert (leg.run.tensorboard / "runs" / "b" / event_file(BEGAN - 600)).read_bytes() == b"events"


def test_of_a_folder_that_runs_share_only_files_of_this_trainings_processes_are_taken(leg: Leg) -> None:
    leg.found.look()
    shared = leg.project / "runs" / "Nov19_12-00-00_here"
    mine = write(shared / event_file())
    for other in (event_file(pid=77), event_file(host="elsewhere"), event_file(BEGAN - 7200), "events.out.tfevents.mine"):
        write(shared / other)
    leg.found.finish(within=30)
    assert leg.brought() == {f"runs/Nov19_12-00-00_here/{mine.name}": b"events"}


def test_a_run_without_a_snapshot_takes_its_own_files_from_the_folder_it_was_started_in(leg: Leg) -> None:
    found = leg.looking_in(leg.project)
    found.look()
    write(leg.project / "runs" / "a" / event_file())
    write(leg.project / "runs" / "b" / event_file(pid=77))
    write(leg.project / "2026-11-19_B_other" / "results" / "tensorboard" / event_file())
    found.finish(within=30)
    assert leg.brought() == {f"runs/a/{event_file()}": b"events"}


def test_one_that_the_training_removed_is_let_go_and_the_others_go_on(leg: Leg) -> None:
    gone, stays = (write(leg.run.code / "lightning_logs" / name / event_file()) for name in ("a", "b"))
    leg.found.look()
    gone.unlink()
    write(stays, b", more")
    leg.found.finish(within=30)
    assert leg.brought()[f"lightning_logs/b/{event_file()}"] == b"events, more"


# ── how much a look may ask ───────────────────────────────────────────────────


def test_a_look_is_bounded_and_begins_with_the_folders_that_are_likely(tmp_path: Path) -> None:
    for number in range(500):
        (tmp_path / f"data{number:03d}" / "part").mkdir(parents=True)
    write(tmp_path / "gpt2-output" / "runs" / "Nov19_12-00-00_node7" / event_file())
    search = EventFileSearch(base=tmp_path)
    assert [path.name for path in search.files()] == [event_file()]
    assert search.looked <= 200


def test_a_folder_with_very_many_files_is_not_read_to_its_end(tmp_path: Path) -> None:
    for number in range(6000):
        (tmp_path / f"{number}.txt").touch()
    write(tmp_path / "runs" / event_file())
    search = EventFileSearch(base=tmp_path)
    assert len(list(search.files())) <= 1 and search.looked == 1


def test_the_more_there_is_to_look_at_the_longer_until_the_next_look(leg: Leg) -> None:
    for number in range(150):
        (leg.run.code / f"part{number}").mkdir()
    leg.found.look()
    write(leg.run.code / "lightning_logs" / event_file())
    leg.clock.sleep(100)
    leg.found.look()
    assert leg.brought() == {}
    leg.clock.sleep(300)
    leg.found.look()
    assert len(leg.brought()) == 1


def test_links_in_the_folder_for_checkpoints_are_not_taken_for_event_files(leg: Leg, tmp_path: Path) -> None:
    secret = write(tmp_path / "secret")
    (leg.local.checkpoints / event_file()).symlink_to(secret)
    link_event_files(leg.local)
    assert leg.brought() == {}
