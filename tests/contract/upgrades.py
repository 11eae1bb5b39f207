"""What a store of before keeps when it is brought up to date, on whatever database. `bare` is the place of one without tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from onward.model.identity import hex_id
from onward.tracker.db import migrate
from onward.tracker.db.database import open_database
from onward.tracker.ingest.receive import to_columns
from onward.tracker.runs.registry import NewRun, RunQuery
from onward.tracker.schema import metadata
from onward.tracker.series.point_writer import PointBatch, write_points
from onward.tracker.store import Tracker
from tests.unit.test_tracker_files import Folder

BEFORE = [f"{step:04d}" for step in range(1, int(migrate.HEAD))]
_RUN = (
    "INSERT INTO runs (id, run_id, hex_id, experiment, name, state, source, folder, created, updated, version)"
    " VALUES (1, :id, :hex, 0, 'digits', 'running', 'onward', :folder, 1, 1, 1)"
)
_WITH_DETAILS = (
    "INSERT INTO runs (id, run_id, hex_id, experiment, name, state, source, created, updated, version, details)"
    " VALUES (:id, :run, :hex, 0, 'digits', 'running', 'onward', 1, 1, 1, :details)"
)


def made_at(address: str | Path, step: str) -> Tracker:
    """A store as that step left it, opened without being brought up."""
    database = open_database(address)
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parents[1] / "migrations"))
    with database.engine.connect().execution_options(onward_writes=True) as connection, connection.begin():
        config.attributes["connection"] = connection
        command.upgrade(config, step)
    return Tracker(database)


class UpgradeContract:
    def test_the_steps_of_upgrading_lead_to_the_tables_of_the_schema(self, bare: str | Path) -> None:
        with Tracker.open(bare) as tracker, tracker.reading() as connection:
            assert compare_metadata(MigrationContext.configure(connection), metadata) == []
            assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == migrate.HEAD
            assert set(metadata.tables) <= set(inspect(connection).get_table_names())

    @pytest.mark.parametrize("step", BEFORE)
    def test_a_store_of_any_step_before_is_brought_up_with_all_that_is_in_it(self, bare: str | Path, step: str) -> None:
        with made_at(bare, step) as old:
            run = old.runs.create(NewRun(experiment="night", name="old", params={"lr": 0.1}, tags={"team": "x"})).run_id
            columns, _ = to_columns([("loss", at, 1e9 + at, 1.0 / (at + 1)) for at in range(50)])
            inner = old.runs.get(run).inner  # chunks are written as ever; what else ingest asks may be of tables of a later step
            old.write(lambda batch: write_points(batch, [PointBatch(inner, 1, 1, columns, True)]))
            note = "INSERT INTO notes (run, at, author, text) SELECT id, 1, 'ada', 'seen' FROM runs"
            old.write(lambda batch: batch.connection.execute(text(note)))
        with Tracker.open(bare) as tracker:
            asked = RunQuery(filter="metrics.loss < 0.5 and params.lr = 0.1 and tags.team = 'x'", order=["gpu_use desc"], standings=True)
            assert [(view.info.name, view.info.experiment_name) for view in tracker.runs.search(asked).runs] == [("old", "night")]
            assert [point.step for point in tracker.series.points(run, "loss")] == list(range(50))
            assert [(note["author"], note["text"]) for note in tracker.runs.notes(run)] == [("ada", "seen")]
            tracker.ingest.points(run, [("loss", 50, 2e9, 0.0)])
            tracker.views.save("ada", page="runs", name="mine", query="?q=x", shared=False)
            assert tracker.runs.view(run).metrics["loss"].points == 51
            with tracker.reading() as connection:
                assert compare_metadata(MigrationContext.configure(connection), metadata) == []

    def test_a_store_of_before_knows_which_of_its_runs_a_pipeline_queued(self, bare: str | Path) -> None:
        entries = [
            {"spec": {"member": {"pipeline": "/runs/2026-11-15_A_digits"}}},
            {"spec": {"member": None}},
            {"spec": {"member": {"x": 1}}},
        ]
        with made_at(bare, "0008") as old:
            rows = [{"id": n + 1, "run": f"run{n}", "hex": hex_id(f"run{n}"), "details": json.dumps(one)} for n, one in enumerate(entries)]
            old.write(lambda batch: batch.connection.execute(text(_WITH_DETAILS), rows))
        with Tracker.open(bare) as tracker:
            page = tracker.runs.search(RunQuery(fold=True, standings=True))
            assert {view.info.run_id: view.pipeline for view in page.runs} == {
                "run0": "/runs/2026-11-15_A_digits",
                "run1": None,
                "run2": None,
            }

    def test_a_store_of_before_tells_of_its_old_runs_once_it_has_looked_again(self, bare: str | Path, tmp_path: Path) -> None:
        (tmp_path / "runs").mkdir()
        folder = Folder(tmp_path / "runs")
        folder.begin(1)
        journal = folder.dir.leg_journal(1)
        size = journal.stat().st_size
        with made_at(bare, "0003") as old:
            fields = {"id": folder.spec.id, "hex": hex_id(folder.spec.id), "folder": str(folder.dir.path)}
            old.write(lambda batch: batch.connection.execute(text(_RUN), fields))
            position = 'INSERT INTO positions (run, file, "offset", size) VALUES (1, :file, :size, :size)'
            old.write(lambda batch: batch.connection.execute(text(position), {"file": f"journal/{journal.name}", "size": size}))
        with Tracker.open(bare) as tracker:
            assert tracker.runs.view(folder.spec.id).standing is None
            tracker.files.look([tmp_path / "runs"])
            held = tracker.runs.view(folder.spec.id).standing
            assert held is not None
            assert held.why == "leg 1 runs on n1"
