"""Event files and MLflow's stores go into PostgreSQL as into a file."""

from __future__ import annotations

from pathlib import Path

from onward.operations.imports.mlflow.importer import import_mlflow
from onward.operations.imports.tensorboard import TensorboardImport
from onward.tracker.runs.registry import RunQuery
from onward.tracker.store import Tracker
from tests import event_files as files
from tests.unit.test_import_mlflow import database, unpack

NOW = 1_700_000_000.0


def test_folders_of_event_files_are_taken_once(address: str, tmp_path: Path) -> None:
    files.training(tmp_path / "logs/events.out.tfevents.1.n.1", range(100), at=NOW)
    files.training(tmp_path / "logs/events.out.tfevents.2.n.2", range(50, 120), at=NOW + 1000, purge=50)
    for expected in (170, 0):
        with Tracker.open(address) as tracker:
            assert TensorboardImport(tracker, tmp_path / "logs").look().points == expected
            (run,) = tracker.runs.search(RunQuery()).runs
            assert [point.step for point in tracker.series.points(run.info.run_id, "loss")] == list(range(120))


def test_stores_of_mlflow_are_taken_once(address: str, tmp_path: Path) -> None:
    for store in (unpack(tmp_path / "mlruns"), database(tmp_path / "old")):
        for new in (6, 0):
            with Tracker.open(address) as tracker:
                done = import_mlflow(tracker, tmp_path / "files", str(store))
                assert (done.runs, done.new_runs, done.models, done.problems) == (6, new, 1, [])
