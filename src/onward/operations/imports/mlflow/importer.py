"""Taking an MLflow store over: experiments, runs with params, tags and every point, datasets, logged models, files.

Repeating it adds what is new; interrupted, it goes on. Ids of runs and models stay, so that links and scripts that name them still work.
Files are copied only from where MLflow keeps them beside the store, or from folders that were named: what a store's addresses point at
elsewhere is not for us to open.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from onward.errors import InvalidInput, NotFound, OnwardError
from onward.model.mlflow.wire import STATES
from onward.operations.imports.mlflow.source import MlflowSource, SourceExperiment, SourceModel, SourceRun

if TYPE_CHECKING:
    from onward.tracker.db.writer import Batch
    from onward.tracker.runs.artifact_files import ArtifactFiles
    from onward.tracker.store import Tracker

_LONGEST_KEY = 250
_AT_ONCE = 20_000  # points in a transaction
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(kw_only=True)
class MlflowImportResult:
    source: str = ""
    experiments: int = 0
    runs: int = 0
    new_runs: int = 0
    points: int = 0
    models: int = 0
    files: int = 0
    bytes: int = 0
    problems: list[str] = field(default_factory=list)


def open_source(address: str) -> MlflowSource:
    """A folder (mlruns, or the one that it or mlflow.db lies in), a database file, or their addresses."""
    from onward.operations.imports.mlflow.file_source import MlflowFileSource
    from onward.operations.imports.mlflow.sqlite_source import MlflowSqliteSource

    path = _path(address)
    if path.is_file():
        return MlflowSqliteSource(path)
    if not path.exists():
        raise NotFound(f"{address} does not exist", hint="name MLflow's mlruns folder or its database file")
    if (path / "mlflow.db").is_file():
        return MlflowSqliteSource(path / "mlflow.db")
    inner = path / "mlruns"
    return MlflowFileSource(inner if inner.is_dir() and not any(path.glob("*/meta.yaml")) else path)


def import_mlflow(
    tracker: Tracker, files: Path, address: str, *, artifacts: Sequence[Path] = (), experiments: Sequence[str] = ()
) -> MlflowImportResult:
    """`files`: where the tracker keeps files. `artifacts`: folders that MLflow's own server kept files in. `experiments`: only these."""
    for folder in artifacts:
        if not folder.is_dir():
            raise NotFound(f"--artifacts {folder} is not a folder", hint="name the folder that MLflow kept artifacts in")
    source = open_source(address)
    done = MlflowImportResult(source=source.words, problems=source.problems)
    try:
        wanted = [one for one in source.experiments() if not experiments or one.name in experiments]
        missing = sorted(set(experiments) - {one.name for one in wanted})
        if missing:
            raise NotFound(f"{source.words} has no experiment {missing[0]!r}", hint="leave --experiment out to import all of them")
        taking = _Taking(tracker=tracker, files=files, source=source, artifacts=artifacts, done=done)
        for experiment in wanted:
            taking.experiment(experiment)
    finally:
        source.close()
    return done


@dataclass(kw_only=True)
class _Taking:
    tracker: Tracker
    files: Path
    source: MlflowSource
    artifacts: Sequence[Path]
    done: MlflowImportResult

    def experiment(self, experiment: SourceExperiment) -> None:
        try:
            made = self.tracker.experiments.ensure(experiment.name)
        except InvalidInput as error:
            self.done.problems.append(f"experiment {experiment.id}: {error.message}; skipped")
            return
        new = made.tags.get("onward.imported_from") is None
        tags = {**experiment.tags, "onward.imported_from": self.source.words}
        if made.id != 0:
            self.tracker.experiments.update(made.id, tags=tags)
        self.done.experiments += 1
        for run in self.source.runs(experiment):
            self.run(run, made.id)
        for model in self.source.models(experiment):
            self.model(model, made.id)
        if experiment.deleted and new and made.id != 0 and made.archived is None:
            self.tracker.experiments.update(made.id, archived=True)

    def run(self, run: SourceRun, experiment: int) -> None:
        if not _ID.fullmatch(run.id):
            self.done.problems.append(f"{run.id[:80]!r} is not a valid run id; skipped")
            return
        self.done.runs += 1
        held = self._held(run.id)
        if held is not None and held.source != "import":
            self.done.problems.append(f"run {run.id} already exists, logged by {held.source}; left unchanged")
            return
        self.done.new_runs += held is None
        self.tracker.write(lambda batch: _write_run(batch, run, experiment))
        if run.datasets:
            self.tracker.models.add_inputs(run.id, run.datasets, [])
        if run.outputs:
            self.tracker.models.add_outputs(run.id, list(run.outputs))
        before = held.details.get("imported", {}).get("mark") if held is not None else None
        if run.mark != before:
            points = self.source.points(run)
            while some := list(itertools.islice(points, _AT_ONCE)):
                good = [point for point in some if 0 < len(point[0]) <= _LONGEST_KEY and "\x00" not in point[0]]
                if len(good) < len(some):
                    self.done.problems.append(f"run {run.id}: {len(some) - len(good)} points were skipped: invalid metric name")
                for key, step, at, _ in itertools.filterfalse(_fits, good):
                    self.done.problems.append(f"run {run.id}: {key!r} at step {step}, time {at:g} s: invalid time or step; skipped")
                good = list(filter(_fits, good))
                self.done.points += self.tracker.ingest.points(run.id, good).points
        self._copy(run.artifact_uri, [run.experiment, run.id, "artifacts"], self.files / run.id, f"run {run.id}", run.id)
        self.tracker.runs.update(run.id, details={"imported": {"from": self.source.words, "mark": run.mark}})

    def model(self, model: SourceModel, experiment: int) -> None:
        if not _ID.fullmatch(model.id):
            self.done.problems.append(f"{model.id[:80]!r} is not a valid model id; skipped")
            return
        self.done.models += 1
        if not self.tracker.write(lambda batch: _write_model(batch, model, experiment)):
            return
        for metric in model.metrics:
            if not _fits((metric.key, metric.step, metric.time, metric.value)):
                self.done.problems.append(f"model {model.id}: {metric.key!r} at step {metric.step}: invalid time or step; skipped")
                continue
            try:
                self.tracker.models.log(metric.run or "", [(model.id, metric)])
            except NotFound as error:
                self.done.problems.append(f"model {model.id}: {error.message}; its {metric.key!r} is skipped")
        self._copy(
            model.artifact_uri, [model.experiment, "models", model.id, "artifacts"], self.files / "models" / model.id, model.id, None
        )

    def _held(self, run: str) -> Any:
        with contextlib.suppress(NotFound):
            return self.tracker.runs.get(run)
        return None

    # ── files ─────────────────────────────────────────────────────────────────

    def _copy(self, uri: str, ids: Sequence[str], target: Path, words: str, run: str | None) -> None:
        """What is not here yet, told by size and time."""
        from onward.tracker.runs.artifact_files import ArtifactFiles
        from onward.tracker.runs.artifacts import ArtifactRecord, artifacts_of, put_artifact

        folder = self._folder(uri, ids)
        if folder is None:
            if self._lies_elsewhere(uri):
                self.done.problems.append(f"{words}: its files, at {uri[:200]}, are not copied; --artifacts FOLDER says where they are")
            return
        held = {one.path: one for one in artifacts_of(self.tracker, run)} if run else {}
        source, into = ArtifactFiles(folder, root=folder), ArtifactFiles(target, root=target, private=True)
        there = list(_walk(folder))
        others = {name for name, _, _ in there}
        for name, size, modified in there:
            path = _kept_as(name, others)
            others.add(path)
            known = held.get(path)
            if known is not None and (known.bytes, known.created) == (size, modified) and known.stored:
                continue
            if run is None and (target / path).is_file() and (target / path).stat().st_size == size:
                continue
            try:
                stored = _copy_one(source, into, name, path)
                if run:
                    artifact = ArtifactRecord(path=path, kind="", bytes=stored.size, sha256=stored.sha256, stored=True, created=modified)
                    put_artifact(self.tracker, run, artifact)
            except (OnwardError, OSError) as error:
                self.done.problems.append(f"{words}: {name[:200]} is not copied: {error}")
                continue
            if path != name:
                self.done.problems.append(f"{words}: {name[:200]} is stored as {path[:200]}, because its name cannot be part of an address")
            self.done.files += 1
            self.done.bytes += stored.size

    def _folder(self, uri: str, ids: Sequence[str]) -> Path | None:
        """Where the files lie, if that is among the store's own files or in a folder that was named. It may have moved meanwhile."""
        roots = [*self.source.roots, *(folder.resolve() for folder in self.artifacts)]
        scheme, path = _split(uri)
        candidates: list[Path] = []
        if scheme == "mlflow-artifacts" and ".." not in path.split("/"):
            candidates += [root / path.lstrip("/") for root in roots]
        elif scheme == "file" and path:
            candidates.append(self.source.home / path)
        candidates += [root.joinpath(*ids) for root in roots]
        for candidate in candidates:
            real = candidate.resolve()
            if real.is_dir() and any(root in real.parents for root in roots):
                return real
        return None

    def _lies_elsewhere(self, uri: str) -> bool:
        """Else there is nothing: a run without files has an address too."""
        scheme, path = _split(uri)
        if scheme == "mlflow-artifacts":
            return not self.artifacts and not any(root.is_dir() for root in self.source.roots)
        if scheme != "file":
            return True
        try:
            return bool(path) and any(Path(path).iterdir())
        except OSError:
            return False


def _write_run(batch: Batch, run: SourceRun, experiment: int) -> None:
    from sqlalchemy import update

    from onward.tracker import schema
    from onward.tracker.ingest.receive import run_row
    from onward.tracker.runs.params import write_params, write_tags
    from onward.tracker.runs.registry import NewRun, create_run

    create_run(
        batch, NewRun(experiment=experiment, name=run.name, source="import", state=STATES.get(run.status, "finished"), leg=1), run.id
    )
    row = run_row(batch, run.id)
    write_params(batch, row["id"], 1, _plain(run.params))
    write_tags(batch, row["id"], _plain(run.tags))
    values: dict[str, Any] = {
        "name": run.name or run.id[:8],
        "state": STATES.get(run.status, "finished"),
        "user": (run.tags.get("mlflow.user") or run.user)[:250],
        "started": run.started,
        "ended": run.ended,
        "updated": batch.now,
        "version": batch.version,
    }
    if run.started:
        values["created"] = run.started
    if run.deleted:
        values["archived"] = batch.now
    batch.connection.execute(update(schema.runs).where(schema.runs.c.id == row["id"]).values(values))
    leg = {"state": STATES.get(run.status, "finished"), "started": run.started, "ended": run.ended}
    batch.connection.execute(update(schema.legs).where(schema.legs.c.run == row["id"], schema.legs.c.leg == 1).values(leg))


def _write_model(batch: Batch, model: SourceModel, experiment: int) -> bool:
    """False where it was deleted."""
    from sqlalchemy import select

    from onward.tracker import schema
    from onward.tracker.runs.legs import upsert

    c = schema.runs.c
    run = batch.connection.execute(select(c.id).where(c.run_id == model.run)).scalar() if model.run else None
    row = {
        "id": model.id,
        "experiment": experiment,
        "run": run,
        "name": model.name[:500],
        "kind": model.kind[:250],
        "status": model.status,
        "status_message": model.status_message,
        "created": model.created,
        "updated": model.updated,
        "archived": batch.now if model.deleted else None,
    }
    upsert(batch, schema.models, [row], keys=("id",), change=("run", "name", "status", "status_message", "updated", "archived"))
    for table, pairs in ((schema.model_params, model.params), (schema.model_tags, model.tags)):
        rows = [{"model": model.id, "key": key, "value": value} for key, value in _plain(pairs).items()]
        upsert(batch, table, rows, keys=("model", "key"), change=("value",))
    return not model.deleted


def _fits(point: tuple[str, int, float, float]) -> bool:
    """Step and time, in microseconds, are kept in 64 bits."""
    return abs(point[1]) < 1 << 63 and abs(point[2]) * 1e6 < 1 << 62


def _plain(pairs: Mapping[str, str]) -> dict[str, str]:
    """As every database takes it: without NUL, keys not too long."""
    return {key.replace("\x00", "")[:_LONGEST_KEY]: value.replace("\x00", "") for key, value in pairs.items() if key.strip("\x00")}


def _walk(folder: Path) -> Iterator[tuple[str, int, float]]:
    """Files below a folder: path, size, time. Links are not followed, nor told of."""
    for inside, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(inside) / name
            seen = path.lstat()
            if not path.is_symlink():
                yield path.relative_to(folder).as_posix(), seen.st_size, seen.st_mtime


def _copy_one(source: ArtifactFiles, target: ArtifactFiles, name: str, path: str) -> Any:
    file, _ = source.open(name, found=True)
    with file:
        return target.put(path, iter(lambda: file.read(1 << 20), b""))


def _kept_as(name: str, others: set[str]) -> str:
    """A path that can be asked for over HTTP, and is no other file's."""
    from onward.tracker.runs.artifact_files import servable

    path = servable(name)
    while path != name and path in others:
        path += "_"
    return path


def _split(uri: str) -> tuple[str, str]:
    """`file` and a path, or another scheme and what follows."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return "file", unquote(parts.path) if parts.scheme else uri
    return parts.scheme, unquote(parts.path)


def _path(address: str) -> Path:
    """Of a path, `file:…` or `sqlite:///…` (four slashes for an absolute one). Other addresses cannot be read."""
    if address.startswith("sqlite:///"):
        return Path(address[len("sqlite:///") :].partition("?")[0])
    parts = urlsplit(address)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    if "://" in address:
        raise InvalidInput(
            f"{parts.scheme}:// stores cannot be read",
            hint="use a folder or an SQLite file; from a server, export one with `mlflow db` tools, or log to Onward from now on",
        )
    return Path(address).expanduser()
