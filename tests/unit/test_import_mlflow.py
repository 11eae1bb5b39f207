"""MLflow's stores, made by MLflow itself, are taken over whole, once, and only from where they lie."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.errors import InvalidInput, NotFound
from onward.operations.imports.mlflow.importer import MlflowImportResult, import_mlflow
from onward.tracker.runs.artifact_files import ArtifactFiles
from onward.tracker.runs.artifacts import artifacts_of
from onward.tracker.runs.registry import NewRun, RunQuery
from onward.tracker.runs.rows import RunView
from onward.tracker.store import Tracker
from tests.databases import new_database

STORES = Path(__file__).parents[1] / "mlflow_stores"


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[Tracker]:
    with Tracker.open(new_database(tmp_path / "onward.db")) as opened:
        yield opened


def unpack(folder: Path, name: str = "mlruns.json") -> Path:
    for path, text in json.loads((STORES / name).read_text()).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def database(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(folder / "mlflow.db") as db:
        db.executescript((STORES / "sqlite.sql").read_text())
    (run,) = db.execute("SELECT run_uuid FROM runs WHERE name = 'first'").fetchone()
    db.close()
    files = folder / "mlruns/1" / run / "artifacts"
    (files / "notes").mkdir(parents=True)
    (files / "notes/readme.txt").write_text("hello\n")
    (files / "weights.bin").write_text("x" * 100)
    return folder / "mlflow.db"


@pytest.fixture(params=["files", "files of 2.x", "database"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    match request.param:
        case "files":
            return unpack(tmp_path / "old/mlruns")
        case "files of 2.x":
            return unpack(tmp_path / "old/mlruns", "mlruns-2.json")
        case _:
            return database(tmp_path / "old")


def take(tracker: Tracker, address: Path | str, *others: Path) -> MlflowImportResult:
    assert tracker.database.path is not None
    return import_mlflow(tracker, tracker.database.path.parent / "files", str(address), artifacts=others)


def runs(tracker: Tracker) -> dict[str, RunView]:
    return {view.info.name: view for view in tracker.runs.search(RunQuery(archived=None)).runs}


def test_everything_is_taken_over(tracker: Tracker, tmp_path: Path, store: Path) -> None:
    done = take(tracker, store)
    assert (done.experiments, done.runs, done.new_runs, done.problems) == (3, 6, 6, [])
    found = runs(tracker)
    first = found["first"]
    assert (first.info.experiment_name, first.info.state, first.info.source) == ("digits", "finished", "import")
    assert (first.info.created, first.info.started, first.info.ended) == (1_700_000_000.0, 1_700_000_000.0, 1_700_000_300.0)
    assert first.params == {"lr": "0.1", "model/depth": "12", "words": "ü – ok"}
    assert (first.tags["note"], first.tags["mlflow.runName"]) == ("a tag\nof two lines", "first")
    loss = tracker.series.points(first.info.run_id, "loss")
    assert [(p.step, p.time, p.value) for p in loss] == [(step, 1_700_000_000.0 + step, 2 / (step + 1)) for step in range(20)]
    odd = [p.value for p in tracker.series.points(first.info.run_id, "val/acc")]
    assert math.isnan(odd[0])
    assert odd[1:] == [math.inf, -math.inf, 0.5]
    assert found["second"].metrics["loss"].value == 1.5  # of one step, the later one
    assert {name: view.info.state for name, view in found.items()} == {
        "first": "finished",
        "second": "failed",
        "deleted": "cancelled",
        "in gone": "finished",
        "running": "running",
        "with data": "finished",
    }
    assert sorted(name for name, view in found.items() if view.info.archived) == ["deleted", "in gone"]
    assert tracker.experiments.by_name("gone").archived
    assert tracker.experiments.by_name("digits").tags["team"] == "vision"
    datasets, _ = tracker.models.inputs([found["with data"].info.inner])[found["with data"].info.inner]
    assert [(d.name, d.tags) for d in datasets] == [("zeros", {"mlflow.data.context": "training"})]
    files = ArtifactFiles(tmp_path / "files" / first.info.run_id, root=tmp_path)
    file, _ = files.open("notes/readme.txt")
    with file:
        assert file.read() == b"hello\n"
    assert [(one.path, one.bytes) for one in artifacts_of(tracker, first.info.run_id)] == [("notes/readme.txt", 6), ("weights.bin", 100)]


def test_logged_models_come_with_their_values(tracker: Tracker, tmp_path: Path) -> None:
    for address in (unpack(tmp_path / "a"), database(tmp_path / "b")):
        assert take(tracker, address).models == 1
    models = tracker.models.of([tracker.experiments.by_name("digits").id])
    assert {(m.name, m.kind, m.status, m.params["p"], m.tags["k"]) for m in models} == {("net", "toy", "READY", "1", "v")}
    assert [(m.metrics[0].key, m.metrics[0].value, m.metrics[0].step) for m in models] == [("acc", 0.7, 2)] * 2
    outputs = tracker.models.outputs([tracker.runs.get(m.run or "").inner for m in models])
    assert sorted(one for some in outputs.values() for one in some) == sorted((m.id, 2) for m in models)


def test_taken_again_it_adds_nothing_and_what_came_meanwhile_is_added(tracker: Tracker, tmp_path: Path, store: Path) -> None:
    take(tracker, store)
    again = take(tracker, store)
    assert (again.runs, again.new_runs, again.points, again.files, again.problems) == (6, 0, 0, 0, [])
    run = runs(tracker)["running"].info.run_id
    if store.is_dir():
        with (store / "0" / run / "metrics/m").open("a") as file:
            file.write("1700000009000 4.0 2\n")
    else:
        with sqlite3.connect(store) as db:
            db.execute("INSERT INTO metrics VALUES ('m', 4.0, 1700000009000, ?, 2, 0)", (run,))
        db.close()
    assert take(tracker, store).points == 1
    assert [p.value for p in tracker.series.points(run, "m")] == [3.0, 4.0]


def test_an_import_that_was_cut_goes_on(tracker: Tracker, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    points = tracker.ingest.points

    def cut(*args: object, **others: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return points(*args, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(tracker.ingest, "points", cut)
    with pytest.raises(KeyboardInterrupt):
        take(tracker, store)
    monkeypatch.undo()
    take(tracker, store)
    found = runs(tracker)
    assert len(found) == 6
    assert found["first"].metrics["loss"].points == 20
    assert sum(metric.points for view in found.values() for metric in view.metrics.values()) in (28, 29)


def test_an_older_database_without_models_is_read(tracker: Tracker, tmp_path: Path) -> None:
    address = database(tmp_path / "old")
    with sqlite3.connect(address) as db:
        for table in ("logged_models", "logged_model_params", "logged_model_tags", "logged_model_metrics", "inputs", "datasets"):
            db.execute(f"DROP TABLE {table}")
        db.execute("ALTER TABLE experiments DROP COLUMN creation_time")
        db.execute("ALTER TABLE runs DROP COLUMN name")
    db.close()
    done = take(tracker, f"sqlite:///{address}")
    assert (done.runs, done.models, done.problems) == (6, 0, [])
    assert "first" in runs(tracker)


def test_a_folder_that_holds_a_store_will_do(tracker: Tracker, tmp_path: Path) -> None:
    unpack(tmp_path / "a/mlruns")
    assert take(tracker, tmp_path / "a").runs == 6
    database(tmp_path / "b")
    assert take(tracker, f"file:{tmp_path / 'b'}").runs == 6


@pytest.mark.parametrize("address", ["nowhere", "http://tracker:5000", "postgresql://host/mlflow", "empty", "text.db", "other.db"])
def test_what_is_no_store_is_refused(tracker: Tracker, tmp_path: Path, address: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.db").write_text("no database, but long enough to be looked at as one " * 10)
    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE runs (id)")
    db.close()
    with pytest.raises((InvalidInput, NotFound)) as caught:
        take(tracker, address if "://" in address else tmp_path / address)
    assert caught.value.hint
    assert runs(tracker) == {}


def test_only_the_wanted_experiments_are_taken(tracker: Tracker, tmp_path: Path) -> None:
    address = str(unpack(tmp_path / "mlruns"))
    assert import_mlflow(tracker, tmp_path / "files", address, experiments=["gone"]).runs == 1
    with pytest.raises(NotFound, match="nobody"):
        import_mlflow(tracker, tmp_path / "files", address, experiments=["nobody"])


# ── a store need not be a friend's ────────────────────────────────────────────


def test_files_outside_the_store_are_not_copied(tracker: Tracker, tmp_path: Path) -> None:
    secret = tmp_path / "home/secrets"
    secret.mkdir(parents=True)
    (secret / "key").write_text("secret")
    address = database(tmp_path / "old")
    with sqlite3.connect(address) as db:
        db.execute("UPDATE runs SET artifact_uri = ? WHERE name = 'second'", (f"file://{secret}",))
        db.execute("UPDATE runs SET artifact_uri = 's3://bucket/x' WHERE name = 'deleted'")
        db.execute("UPDATE runs SET artifact_uri = 'mlflow-artifacts:/../../home/secrets' WHERE name = 'running'")
    db.close()
    done = take(tracker, address)
    assert not list((tmp_path / "files").rglob("key"))
    assert len(done.problems) == 2
    assert any(str(secret) in words for words in done.problems)
    assert take(tracker, address, secret.parent).files == 1  # now it was named


def test_links_stay_behind_and_odd_names_come_as_they_can_be_asked_for(tracker: Tracker, tmp_path: Path) -> None:
    address = database(tmp_path / "old")
    (tmp_path / "secret").write_text("secret")
    files = next((tmp_path / "old/mlruns/1").iterdir()) / "artifacts"
    (files / "link").symlink_to(tmp_path / "secret")
    (files / "folder").symlink_to(tmp_path)
    for name in ("a#b", "a_b", "c%2Fd"):
        (files / name).write_text(name)
    done = take(tracker, address)
    assert done.files == 5
    assert [words.split(": ")[1] for words in done.problems] == [
        "a#b is stored as a_b_, because its name cannot be part of an address",
        "c%2Fd is stored as c_d, because its name cannot be part of an address",
    ]
    run = runs(tracker)["first"].info.run_id
    kept = {path.name: path for path in (tmp_path / "files" / run).rglob("*")}
    assert sorted(kept) == ["a_b", "a_b_", "c_d", "notes", "readme.txt", "weights.bin"]
    assert [kept[name].read_text() for name in ("a_b", "a_b_", "c_d")] == ["a_b", "a#b", "c%2Fd"]
    assert take(tracker, address).files == 0


def test_files_that_a_server_kept_elsewhere_are_found_by_their_folder(tracker: Tracker, tmp_path: Path) -> None:
    address = database(tmp_path / "old")
    shutil.move(tmp_path / "old/mlruns", tmp_path / "kept")
    with sqlite3.connect(address) as db:
        db.execute("UPDATE runs SET artifact_uri = 'mlflow-artifacts:/1/' || run_uuid || '/artifacts'")
    db.close()
    assert take(tracker, address).files == 0
    assert take(tracker, address, tmp_path / "kept").files == 2


def test_a_run_that_was_logged_here_is_left_as_it_is(tracker: Tracker, tmp_path: Path, store: Path) -> None:
    id = next(path.name for path in (tmp_path / "old").rglob("*") if len(path.name) == 32)
    tracker.runs.create(NewRun(run_id=id, name="mine", source="mlflow"))
    done = take(tracker, store)
    assert any("already exists" in words for words in done.problems)
    assert tracker.runs.get(id).name == "mine"


def test_damaged_lines_and_files_are_told_and_the_rest_is_taken(tracker: Tracker, tmp_path: Path) -> None:
    address = unpack(tmp_path / "mlruns")
    loss = next(path for path in address.rglob("metrics/loss") if len(path.read_text().splitlines()) == 20)
    loss.write_text("nonsense\n" + loss.read_text())
    next(path for path in address.rglob("meta.yaml") if "run_name: second" in path.read_text()).write_text("a: [")
    done = take(tracker, address)
    assert done.runs == 5
    assert len(done.problems) == 2
    assert runs(tracker)["first"].metrics["loss"].points == 20


def test_a_point_of_an_impossible_time_is_told_and_the_rest_is_taken(tracker: Tracker, tmp_path: Path) -> None:
    address = unpack(tmp_path / "mlruns")
    loss = next(path for path in address.rglob("metrics/loss") if len(path.read_text().splitlines()) == 20)
    loss.write_text(loss.read_text() + f"{2**63 - 1} 0.5 77\n1700000000000 0.5 {2**63}\n")
    done = take(tracker, address)
    assert len(done.problems) == 2 and "'loss' at step 77" in done.problems[0], done.problems
    assert runs(tracker)["first"].metrics["loss"].points == 20
