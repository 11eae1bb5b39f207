"""TensorBoard's files of a run, and of any folder, are read as they grow: every point once, restarts told apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.errors import InvalidInput, NotFound
from onward.model import events as ev
from onward.operations.imports.tensorboard import TensorboardImport, TensorboardImportResult
from onward.tracker.runs.registry import RunQuery
from onward.tracker.store import Tracker
from tests import event_files as files
from tests.databases import new_database
from tests.unit.test_tracker_files import NOW, Folder

RUN = "k3x9q2m7"
NAME = "events.out.tfevents.1700000000.node1.7.0"


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[Tracker]:
    with Tracker.open(new_database(tmp_path / "onward.db")) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "runs").mkdir()
    made = Folder(tmp_path / "runs")
    made.begin(1)
    return made


def look(tracker: Tracker, folder: Folder) -> list[str]:
    return tracker.files.look([folder.dir.path.parent]).problems


def steps(tracker: Tracker, run: str = RUN, key: str = "loss") -> list[int]:
    return [point.step for point in tracker.series.points(run, key)]


def keys(tracker: Tracker, run: str = RUN) -> list[str]:
    return sorted(tracker.runs.view(run).metrics)


# ── a run of ours ─────────────────────────────────────────────────────────────


def test_a_file_is_read_as_it_grows_torn_tails_and_all(tracker: Tracker, folder: Folder) -> None:
    path = files.training(folder.dir.tensorboard / NAME, range(5), at=NOW + 10)
    look(tracker, folder)
    assert steps(tracker) == [0, 1, 2, 3, 4]
    rest = b"".join(files.frame(files.scalar(NOW + 20 + step, step, "loss", 1.0)) for step in range(5, 8))
    for cut in range(0, len(rest), 37):
        with path.open("ab") as file:
            file.write(rest[cut : cut + 37])
        assert look(tracker, folder) == []
    assert steps(tracker) == list(range(8))
    version = tracker.version()
    look(tracker, folder)
    assert tracker.version() == version


def test_a_server_that_starts_anew_goes_on_where_the_last_one_was(tmp_path: Path, folder: Folder) -> None:
    path = folder.dir.tensorboard / NAME
    files.training(path, range(5), at=NOW + 10)
    for last in (5, 8, 11):
        with Tracker.open(tmp_path / "onward.db") as tracker:
            look(tracker, folder)
            look(tracker, folder)
            assert steps(tracker) == list(range(last))
        files.training(path, range(last, last + 3), at=NOW + 10, fresh=False)


def test_two_servers_that_look_at_once_store_every_point_once(tmp_path: Path, tracker: Tracker, folder: Folder) -> None:
    path = files.training(folder.dir.tensorboard / NAME, range(5), at=NOW + 10)
    with Tracker.open(tmp_path / "onward.db") as other:
        look(tracker, folder)
        look(other, folder)
        files.training(path, range(5, 9), at=NOW + 10, fresh=False)
        look(other, folder)
        look(tracker, folder)
        files.training(path, range(9, 12), at=NOW + 10, fresh=False)
        look(tracker, folder)
        look(tracker, folder)
    assert steps(tracker) == list(range(12))


def test_files_of_legs_are_stitched_where_the_leg_resumed(tracker: Tracker, folder: Folder) -> None:
    files.training(folder.dir.tensorboard / NAME, range(100), at=NOW + 1.5)
    look(tracker, folder)
    folder.begin(2, resumed=49)
    files.training(folder.dir.tensorboard / "events.out.tfevents.1700000200.node2.9.0", range(50, 120), at=NOW + 2.5)
    look(tracker, folder)
    assert steps(tracker) == list(range(120))
    assert tracker.runs.view(RUN).metrics["loss"].points == 170  # the superseded ones are kept


def test_a_name_that_a_later_leg_used_again_makes_one_curve(tracker: Tracker, folder: Folder) -> None:
    """As the mirror keeps them: in one folder, which TensorBoard shows as one run."""
    files.training(folder.dir.tensorboard / "events.out.tfevents.mine", range(100), at=NOW + 1.5)
    folder.begin(2, resumed=49)
    files.training(folder.dir.tensorboard / "events.out.tfevents.mine.leg-0002", range(50, 120), at=NOW + 2.5)
    look(tracker, folder)
    assert keys(tracker) == ["loss"] and steps(tracker) == list(range(120))
    assert {point.leg for point in tracker.series.points(RUN, "loss")} == {1, 2}


def test_a_file_of_a_leg_nobody_knows_yet_waits_for_the_leg(tracker: Tracker, folder: Folder) -> None:
    folder.event(ev.Ended(leg=1, at=NOW + 50, end="time_limit", reason="its limit came"))
    files.training(folder.dir.tensorboard / NAME, range(3), at=NOW + 90)
    look(tracker, folder)
    assert keys(tracker) == []
    folder.event(ev.Claimed(leg=2, at=NOW + 80, job="102", hosts=["n1"], deadline=None))
    look(tracker, folder)
    assert steps(tracker) == [0, 1, 2]
    assert {point.leg for point in tracker.series.points(RUN, "loss")} == {2}


def test_folders_below_name_their_metrics_but_not_those_that_name_a_start(tracker: Tracker, folder: Folder) -> None:
    files.training(folder.dir.tensorboard / "train" / NAME, range(3), at=NOW + 10)
    files.training(folder.dir.tensorboard / "lightning_logs/version_0" / NAME, range(3), at=NOW + 11)
    files.training(folder.dir.tensorboard / "lightning_logs/version_1" / NAME, range(3), at=NOW + 12)
    look(tracker, folder)
    assert keys(tracker) == ["lightning_logs/version_1/loss", "loss", "train/loss"]


def test_what_the_training_logs_otherwise_too_is_not_counted_twice(tracker: Tracker, folder: Folder) -> None:
    folder.log(1, 0, 1, 2)
    path = files.training(folder.dir.tensorboard / NAME, range(3), at=NOW + 10)
    files.training(path, range(3), at=NOW + 10, tag="only_here", fresh=False)
    look(tracker, folder)
    assert (steps(tracker), steps(tracker, key="only_here")) == ([0, 1, 2], [0, 1, 2])
    assert tracker.runs.view(RUN).metrics["loss"].points == 3
    tracker.ingest.points(RUN, [("only_here", 3, NOW + 40, 1.0)])  # somebody logs it from now on
    files.training(path, range(3, 6), at=NOW + 10, tag="only_here", fresh=False)
    look(tracker, folder)
    assert steps(tracker, key="only_here") == [0, 1, 2, 3]


def test_a_damaged_record_is_told_with_its_place_and_the_rest_is_there(tracker: Tracker, folder: Folder) -> None:
    path = files.training(folder.dir.tensorboard / NAME, range(50), at=NOW + 10)
    data = bytearray(path.read_bytes())
    start = data.index(files.frame(files.scalar(NOW + 31, 20, "loss", 20.5)))
    data[start + 30] ^= 0xFF
    path.write_bytes(data)
    problems = look(tracker, folder)
    assert steps(tracker) == [step for step in range(50) if step != 20]
    assert len(problems) == 1
    assert f"{path}: " in problems[0]
    assert f"at byte {start} are damaged" in problems[0]
    (note,) = tracker.runs.notes(RUN)
    assert NAME in note["text"]
    assert f"at byte {start} are damaged" in note["text"]
    assert look(tracker, folder) == []


def test_a_record_longer_than_a_piece_is_read_and_scalars_after_it_too(tracker: Tracker, folder: Folder) -> None:
    path = folder.dir.tensorboard / NAME
    image = files.event(NOW + 12, 1, files.text(4, b"\x01" * 200_000))
    files.write(path, [files.version(NOW + 10)])
    with path.open("ab") as file:  # a frame whose content's checksum is never asked for
        content = image * 8
        head = len(content).to_bytes(8, "little")
        file.write(head + files.masked(head) + content + b"\0\0\0\0")
    files.training(path, range(3), at=NOW + 20, fresh=False)
    assert look(tracker, folder) == []
    assert steps(tracker) == [0, 1, 2]


def test_a_file_that_became_another_is_read_anew_and_nothing_counts_twice(tracker: Tracker, folder: Folder) -> None:
    path = files.training(folder.dir.tensorboard / NAME, range(5), at=NOW + 10)
    look(tracker, folder)
    path.unlink()
    files.write(path, [files.version(NOW + 11)])
    files.training(path, range(3, 9), at=NOW + 10, fresh=False)
    assert "was replaced" in look(tracker, folder)[0]
    assert steps(tracker) == list(range(9))


def test_artifacts_are_not_read_for_metrics(tracker: Tracker, folder: Folder) -> None:
    files.training(folder.dir.artifacts / "tensorboard_logs" / NAME, range(5), at=NOW + 10)
    look(tracker, folder)
    assert keys(tracker) == []


# ── any folder ────────────────────────────────────────────────────────────────


def imported(tracker: Tracker, folder: Path, **others: str) -> TensorboardImportResult:
    return TensorboardImport(tracker, folder, **others).look()


def names(tracker: Tracker) -> dict[str, str]:
    return {view.info.name: view.info.run_id for view in tracker.runs.search(RunQuery()).runs}


def test_each_folder_with_event_files_is_a_run_and_a_second_import_adds_nothing(tracker: Tracker, tmp_path: Path) -> None:
    top = tmp_path / "logs"
    files.training(top / "a" / NAME, range(10), at=NOW)
    files.training(top / "b/c" / NAME, range(20), at=NOW)
    (top / "b" / "notes.txt").write_text("no event file")
    first = imported(tracker, top)
    assert (first.experiment, first.runs, first.new_runs, first.points) == ("logs", 2, 2, 30)
    version = tracker.runs.search(RunQuery()).runs[0].info.last_step
    again = imported(tracker, top)
    assert (again.runs, again.new_runs, again.points) == (2, 0, 0)
    assert version == tracker.runs.search(RunQuery()).runs[0].info.last_step
    assert sorted(names(tracker)) == ["a", "b/c"]
    run = tracker.runs.get(names(tracker)["a"])
    assert (run.state, run.started, run.ended, run.source) == ("finished", NOW + 1, NOW + 10, "tensorboard")


def test_restarts_in_an_imported_folder_are_legs(tracker: Tracker, tmp_path: Path) -> None:
    top = tmp_path / "logs"
    files.training(top / "events.out.tfevents.1.n.1.0", range(100), at=NOW)
    files.training(top / "events.out.tfevents.2.n.2.0", range(50, 120), at=NOW + 1000)
    assert imported(tracker, top).points == 170
    (run,) = names(tracker).values()
    assert steps(tracker, run) == list(range(120))
    files.training(top / "events.out.tfevents.3.n.3.0", range(90, 130), at=NOW + 2000, purge=80)
    assert imported(tracker, top).points == 40
    assert steps(tracker, run) == [*range(80), *range(90, 130)]
    assert [leg["leg"] for leg in tracker.runs.legs(run)] == [1, 2, 3]


def test_an_import_that_goes_on_knows_the_life_it_was_in(tmp_path: Path) -> None:
    top = tmp_path / "logs"
    path = files.training(top / NAME, [0, 1, 2], at=NOW)
    files.training(path, [0, 1], at=NOW + 100, fresh=False)
    for more, at in (([2], 100), ([3], 100), ([1, 2], 200)):
        with Tracker.open(tmp_path / "onward.db") as tracker:
            imported(tracker, top)
        files.training(path, more, at=NOW + at, fresh=False)
    with Tracker.open(tmp_path / "onward.db") as tracker:
        imported(tracker, top)
        (run,) = names(tracker).values()
        assert len(tracker.runs.legs(run)) == 3
        assert steps(tracker, run) == [0, 1, 2]


def test_what_is_torn_or_damaged_is_said(tracker: Tracker, tmp_path: Path) -> None:
    path = files.training(tmp_path / "logs" / NAME, range(10), at=NOW)
    data = bytearray(path.read_bytes()[:-5])
    data[120] ^= 1
    path.write_bytes(data)
    done = imported(tracker, tmp_path / "logs")
    assert done.points == 8
    assert "damaged" in done.problems[0]
    assert "not a complete record yet" in done.torn[0]


def test_a_file_whose_first_record_is_none_is_said_so_and_an_empty_one_waits(tracker: Tracker, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / NAME).write_bytes(b"\xff" * 1000)
    (tmp_path / "logs" / f"{NAME}.2").write_bytes(b"")
    done = imported(tracker, tmp_path / "logs")
    assert (done.points, len(done.torn)) == (0, 1)
    assert f"{NAME} is read up to byte 0" in done.torn[0]


def test_runs_of_ours_are_left_to_the_server(tracker: Tracker, folder: Folder) -> None:
    files.training(folder.dir.tensorboard / NAME, range(10), at=NOW)
    done = imported(tracker, folder.dir.path.parent)
    assert done.runs == 0
    assert "onward up" in done.problems[0]


def test_following_takes_what_comes_and_leaves_a_finished_run(tracker: Tracker, tmp_path: Path) -> None:
    path = files.training(tmp_path / "logs" / NAME, range(3), at=NOW)
    rounds: list[int] = []

    def tell(done: TensorboardImportResult) -> None:
        rounds.append(done.points)
        (run,) = names(tracker).values()
        assert tracker.runs.get(run).state == "running"
        if len(rounds) == 3:
            raise KeyboardInterrupt
        files.training(path, range(3 * len(rounds), 3 * len(rounds) + 3), at=NOW, fresh=False)

    with pytest.raises(KeyboardInterrupt):
        TensorboardImport(tracker, tmp_path / "logs", experiment="e").follow(tell, every=0)
    assert rounds == [3, 3, 3]
    (run,) = names(tracker).values()
    assert tracker.runs.get(run).state == "finished"


def test_a_folder_that_is_none_is_refused(tracker: Tracker, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        imported(tracker, tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput):
        imported(tracker, tmp_path / "file")
    with pytest.raises(InvalidInput):
        imported(tracker, tmp_path, experiment=" ")
