"""Standings: a store of before gets them for the runs it has; the mean of the last minutes is one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config

from onward.model.identity import hex_id
from onward.model.standing import Standing, moving_mean
from onward.tracker import migrate
from onward.tracker.db import open_database
from onward.tracker.store import Tracker
from tests.unit.test_tracker_files import Folder


def store_of_before(place: Path) -> None:
    """As the step before standings left it, with a run whose journal was read."""
    database = open_database(place)
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).with_name("migrations")))
    with database.engine.connect().execution_options(onward_writes=True) as connection, connection.begin():
        config.attributes["connection"] = connection
        command.upgrade(config, "0003")
    database.close()


def test_a_store_of_before_tells_of_its_old_runs_once_it_has_looked_again(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    folder = Folder(tmp_path / "runs")
    folder.begin(1)
    place, journal = tmp_path / "onward.db", folder.dir.leg_journal(1)
    store_of_before(place)
    size = journal.stat().st_size
    with sqlite3.connect(place) as connection:
        connection.execute(
            "INSERT INTO runs (id, run_id, hex_id, experiment, name, state, source, folder, created, updated, version)"
            " VALUES (1, ?, ?, 0, 'digits', 'running', 'onward', ?, 1, 1, 1)",
            (folder.spec.id, hex_id(folder.spec.id), str(folder.dir.path)),
        )
        connection.execute("INSERT INTO positions (run, file, offset, size) VALUES (1, ?, ?, ?)", (f"journal/{journal.name}", size, size))
    connection.close()
    with Tracker.open(place) as tracker:
        assert tracker.runs.view(folder.spec.id).standing is None
        tracker.files.look([tmp_path / "runs"])
        held = tracker.runs.view(folder.spec.id).standing
        assert held is not None
        assert held.why == "leg 1 runs on n1"


def test_a_mean_of_the_last_minutes_follows_slowly_and_never_goes_back_in_time() -> None:
    assert moving_mean(None, None, 0.8, 100.0) == 0.8
    assert moving_mean(0.8, 100.0, 0.0, 110.0) == pytest.approx(0.8, abs=0.05)
    assert moving_mean(0.8, 100.0, 0.0, 2000.0) == pytest.approx(0.0, abs=0.01)
    assert moving_mean(0.8, 100.0, 0.0, 90.0) == 0.8


def test_a_wait_is_over_when_the_leg_began_and_none_where_the_run_ended_before() -> None:
    assert Standing(queued_at=10.0, begun_at=25.0).queue_wait(99.0, over=False) == 15.0
    assert Standing(queued_at=10.0).queue_wait(99.0, over=False) == 89.0
    assert Standing(queued_at=10.0).queue_wait(99.0, over=True) is None
    assert Standing().queue_wait(99.0, over=False) is None
