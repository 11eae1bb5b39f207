"""An MLflow store in SQLite, read as it is, without MLflow: only reading, and only what this version of it has."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from onward.errors import InvalidInput, StorageError
from onward.model.metric import Point
from onward.model.mlflow.records import Dataset, LoggedModelMetric
from onward.operations.imports.mlflow.source import (
    MODEL_STATES,
    SourceExperiment,
    SourceModel,
    SourceRun,
    seconds,
)

_LARGEST = 1.7976931348623157e308  # how MLflow stores an infinity
_NEEDED = ("experiments", "runs", "metrics", "params", "tags")


class MlflowSqliteSource:
    def __init__(self, path: Path) -> None:
        self.home = path.resolve().parent
        self.roots = [(self.home / name).resolve() for name in ("mlruns", "mlartifacts")]  # not all that lies beside a database is its own
        self.words = f"MLflow's database {path}"
        self.problems: list[str] = []
        try:
            self._db = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True, timeout=30)
            self._db.row_factory = sqlite3.Row
            self._db.text_factory = lambda data: data.decode("utf-8", "replace")
            found = self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        except sqlite3.DatabaseError as error:
            raise InvalidInput(
                f"{path} is not an SQLite database: {error}", hint="name MLflow's database file, or its mlruns folder"
            ) from error
        self._tables = {row[0] for row in found}
        missing = [name for name in _NEEDED if name not in self._tables]
        if missing:
            self._db.close()
            raise InvalidInput(
                f"{path} is not an MLflow store: it has no table {missing[0]!r}", hint="name MLflow's database file, or its mlruns folder"
            )

    def close(self) -> None:
        self._db.close()

    def experiments(self) -> list[SourceExperiment]:
        tags: dict[Any, dict[str, str]] = {}
        for row in self._rows("SELECT * FROM experiment_tags") if "experiment_tags" in self._tables else ():
            tags.setdefault(row["experiment_id"], {})[row["key"]] = row["value"] or ""
        found = []
        for row in self._rows("SELECT * FROM experiments ORDER BY experiment_id"):
            had = row.keys()
            space = row["workspace"] if "workspace" in had else "default"
            found.append(
                SourceExperiment(
                    id=str(row["experiment_id"]),
                    name=row["name"] if space in (None, "", "default") else f"{space}/{row['name']}",
                    deleted=row["lifecycle_stage"] == "deleted",
                    created=seconds(row["creation_time"]) if "creation_time" in had else None,
                    tags=tags.get(row["experiment_id"], {}),
                )
            )
        return found

    def runs(self, experiment: SourceExperiment) -> Iterator[SourceRun]:
        for row in list(self._rows("SELECT * FROM runs WHERE experiment_id = ? ORDER BY start_time", int(experiment.id))):
            id, had = row["run_uuid"], row.keys()
            tags = self._pairs("tags", id)
            yield SourceRun(
                id=id,
                experiment=experiment.id,
                name=tags.get("mlflow.runName") or (row["name"] if "name" in had else "") or "",
                status=row["status"] or "FINISHED",
                user=row["user_id"] or "",
                started=seconds(row["start_time"]),
                ended=seconds(row["end_time"]),
                deleted=row["lifecycle_stage"] == "deleted",
                artifact_uri=row["artifact_uri"] or "",
                params=self._pairs("params", id),
                tags=tags,
                datasets=self._datasets(id),
                outputs=self._outputs(id),
                mark=self._mark(id),
            )

    def points(self, run: SourceRun) -> Iterator[Point]:
        query = "SELECT key, step, timestamp, value, is_nan FROM metrics WHERE run_uuid = ? ORDER BY key, step, timestamp"
        for key, step, time, value, is_nan in self._rows(query, run.id):
            yield key, int(step or 0), (time or 0) / 1000, math.nan if is_nan else _real(value)

    def models(self, experiment: SourceExperiment) -> Iterator[SourceModel]:
        if "logged_models" not in self._tables:
            return
        for row in list(self._rows("SELECT * FROM logged_models WHERE experiment_id = ?", int(experiment.id))):
            id = row["model_id"]
            params = self._rows("SELECT param_key, param_value FROM logged_model_params WHERE model_id = ?", id)
            tags = self._rows("SELECT tag_key, tag_value FROM logged_model_tags WHERE model_id = ?", id)
            measured = self._rows("SELECT * FROM logged_model_metrics WHERE model_id = ?", id)
            yield SourceModel(
                id=id,
                experiment=experiment.id,
                run=row["source_run_id"],
                name=row["name"],
                kind=row["model_type"] or "",
                status=MODEL_STATES.get(row["status"], "UNSPECIFIED"),
                status_message=row["status_message"] or "",
                artifact_uri=row["artifact_location"] or "",
                created=seconds(row["creation_timestamp_ms"]) or 0.0,
                updated=seconds(row["last_updated_timestamp_ms"]) or 0.0,
                deleted=row["lifecycle_stage"] == "deleted",
                params={key: value or "" for key, value in params},
                tags={key: value or "" for key, value in tags},
                metrics=[
                    LoggedModelMetric(
                        key=one["metric_name"],
                        value=math.nan if one["metric_value"] is None else _real(one["metric_value"]),
                        step=one["metric_step"],
                        time=one["metric_timestamp_ms"] / 1000,
                        run=one["run_id"],
                        dataset=one["dataset_name"],
                        digest=one["dataset_digest"],
                    )
                    for one in measured
                ],
            )

    def _mark(self, run: str) -> str:
        count, newest = next(self._rows("SELECT count(*), max(timestamp) FROM metrics WHERE run_uuid = ?", run))
        return f"{count}:{newest}"

    def _pairs(self, table: str, run: str) -> dict[str, str]:
        return {row["key"]: row["value"] or "" for row in self._rows(f"SELECT key, value FROM {table} WHERE run_uuid = ?", run)}

    def _datasets(self, run: str) -> list[Dataset]:
        if not {"inputs", "datasets", "input_tags"} <= self._tables:
            return []
        query = """SELECT inputs.input_uuid, datasets.* FROM inputs JOIN datasets ON datasets.dataset_uuid = inputs.source_id
                   WHERE inputs.source_type = 'DATASET' AND inputs.destination_type = 'RUN' AND inputs.destination_id = ?"""
        found = []
        for row in list(self._rows(query, run)):
            tags = {tag["name"]: tag["value"] for tag in self._rows("SELECT * FROM input_tags WHERE input_uuid = ?", row["input_uuid"])}
            found.append(
                Dataset(
                    name=row["name"],
                    digest=row["digest"],
                    source_type=row["dataset_source_type"] or "",
                    source=row["dataset_source"] or "",
                    schema=row["dataset_schema"],
                    profile=row["dataset_profile"],
                    tags=tags,
                )
            )
        return found

    def _outputs(self, run: str) -> list[tuple[str, int]]:
        if "inputs" not in self._tables or "logged_models" not in self._tables:
            return []
        query = "SELECT destination_id, step FROM inputs WHERE source_type = 'RUN_OUTPUT' AND source_id = ?"
        return [(row["destination_id"], int(row["step"] or 0)) for row in self._rows(query, run)]

    def _rows(self, query: str, *values: Any) -> Iterator[Any]:
        try:
            yield from self._db.execute(query, values)
        except sqlite3.DatabaseError as error:
            raise StorageError(f"{self.words} cannot be read: {error}", hint="is it complete, and from MLflow 1.0 or later?") from error


def _real(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= _LARGEST else float(value)
