"""Logged models and datasets, as MLflow's clients know them: what a run made, and what it was fed with."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from onward.errors import NotFound
from onward.model.mlflow.records import Dataset, LoggedModelMetric, LoggedModelRecord
from onward.tracker import schema
from onward.tracker.db.database import Database
from onward.tracker.db.writer import Batch, Writer
from onward.tracker.ingest.receive import run_row
from onward.tracker.runs.legs import upsert
from onward.tracker.runs.params import word

_models, _params, _tags, _metrics = schema.models, schema.model_params, schema.model_tags, schema.model_metrics
_inputs, _outputs, _runs = schema.inputs, schema.outputs, schema.runs


class LoggedModels:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    def create(
        self, experiment: int, *, name: str, run: str | None = None, kind: str = "", tags: Mapping[str, str], params: Mapping[str, str]
    ) -> LoggedModelRecord:
        id = f"m-{secrets.token_hex(16)}"

        def job(batch: Batch) -> None:
            if batch.connection.execute(select(_models.c.id).where(_models.c.id == id)).first():
                return
            row = {
                "id": id,
                "experiment": experiment,
                "run": run_row(batch, run)["id"] if run else None,
                "name": name or f"model-{id[2:10]}",
                "kind": kind,
                "status": "PENDING",
                "created": batch.now,
                "updated": batch.now,
            }
            batch.connection.execute(insert(_models), [row])
            _write(batch, _params, id, params)
            _write(batch, _tags, id, tags)

        self._writer.do(job)
        return self.get(id)

    def get(self, id: str) -> LoggedModelRecord:
        """NotFound where there is none, or it was deleted."""
        with self._database.reading() as connection:
            found = _read(connection, _models.c.id == id)
        if not found:
            raise _missing(id)
        return found[0]

    def of(self, experiments: Sequence[int]) -> list[LoggedModelRecord]:
        """Newest first, without the deleted ones."""
        with self._database.reading() as connection:
            return _read(connection, _models.c.experiment.in_(list(experiments)))

    def made_by(self, run: str) -> list[str]:
        """Ids of all models of a run, the deleted ones too: their files are still there."""
        with self._database.reading() as connection:
            mine = select(_models.c.id).join_from(_models, _runs, _models.c.run == _runs.c.id).where(_runs.c.run_id == run)
            return list(connection.execute(mine).scalars())

    def finish(self, id: str, status: str, message: str = "") -> LoggedModelRecord:
        self._change(id, {"status": status, "status_message": message})
        return self.get(id)

    def delete(self, id: str) -> None:
        """Out of every list."""
        self._writer.do(lambda batch: _touch(batch, id, {"archived": batch.now}))

    def is_deleted(self, id: str) -> bool:
        with self._database.reading() as connection:
            return connection.execute(select(_models.c.id).where(_models.c.id == id, _models.c.archived.is_not(None))).first() is not None

    def set_tags(self, id: str, tags: Mapping[str, Any]) -> None:
        self._on(id, lambda batch: _write(batch, _tags, id, tags))

    def set_params(self, id: str, params: Mapping[str, Any]) -> None:
        self._on(id, lambda batch: _write(batch, _params, id, params))

    def delete_tag(self, id: str, key: str) -> None:
        def job(batch: Batch) -> None:
            if not batch.connection.execute(delete(_tags).where(_tags.c.model == id, _tags.c.key == key)).rowcount:
                raise NotFound(f"model {id} has no tag {key!r}")

        self._on(id, job)

    def log(self, run: str, metrics: Sequence[tuple[str, LoggedModelMetric]]) -> None:
        """Values that a run measured of models. A repeated one is one."""

        def job(batch: Batch) -> None:
            inner = run_row(batch, run)["id"]
            c = _metrics.c
            for id, metric in metrics:
                _touch(batch, id, {})
                value = None if math.isnan(metric.value) else metric.value
                at = round(metric.time * 1e6)
                same = (c.model == id, c.key == metric.key, c.step == metric.step, c.time == at, c.run == inner)
                same_value = c.value.is_(None) if value is None else c.value == value
                if batch.connection.execute(select(c.id).where(*same, same_value)).first() is None:
                    row = {"model": id, "key": metric.key, "step": metric.step, "time": at, "value": value, "run": inner}
                    batch.connection.execute(insert(_metrics), [{**row, "dataset": metric.dataset, "dataset_digest": metric.digest}])

        self._writer.do(job)

    # ── what goes into a run, and what comes out ──────────────────────────────

    def add_inputs(self, run: str, datasets: Sequence[Dataset], models: Sequence[str]) -> None:
        """One that was told of before stays as it was told first."""

        def job(batch: Batch) -> None:
            inner = run_row(batch, run)["id"]
            rows = [
                {
                    "run": inner, "kind": "dataset", "name": d.name, "digest": d.digest, "source_type": d.source_type, "source": d.source,
                    "schema": d.schema, "profile": d.profile, "tags": json.dumps(dict(d.tags), separators=(",", ":")),
                }
                for d in datasets
            ]  # fmt: skip
            rows += [
                {
                    "run": inner,
                    "kind": "model",
                    "name": id,
                    "digest": "",
                    "source_type": "",
                    "source": "",
                    "schema": None,
                    "profile": None,
                    "tags": "{}",
                }
                for id in models
            ]
            upsert(batch, _inputs, rows, keys=("run", "kind", "name", "digest"))

        self._writer.do(job)

    def add_outputs(self, run: str, models: Sequence[tuple[str, int]]) -> None:
        def job(batch: Batch) -> None:
            inner = run_row(batch, run)["id"]
            upsert(
                batch, _outputs, [{"run": inner, "model": id, "step": step} for id, step in models], keys=("run", "model"), change=("step",)
            )

        self._writer.do(job)

    def inputs(self, runs: Sequence[int]) -> dict[int, tuple[list[Dataset], list[str]]]:
        """Datasets and models that went into runs, by the runs' inner numbers."""
        found: dict[int, tuple[list[Dataset], list[str]]] = {}
        with self._database.reading() as connection:
            for i in range(0, len(runs), 500):
                for row in connection.execute(
                    select(_inputs).where(_inputs.c.run.in_(runs[i : i + 500])).order_by(_inputs.c.name)
                ).mappings():
                    datasets, models = found.setdefault(row["run"], ([], []))
                    if row["kind"] == "model":
                        models.append(row["name"])
                    else:
                        same = ("name", "digest", "source_type", "source", "schema", "profile")
                        datasets.append(Dataset(**{key: row[key] for key in same}, tags=json.loads(row["tags"])))
        return found

    def outputs(self, runs: Sequence[int]) -> dict[int, list[tuple[str, int]]]:
        found: dict[int, list[tuple[str, int]]] = {}
        with self._database.reading() as connection:
            for i in range(0, len(runs), 500):
                for row in connection.execute(select(_outputs).where(_outputs.c.run.in_(runs[i : i + 500])).order_by(_outputs.c.model)):
                    found.setdefault(row.run, []).append((row.model, row.step))
        return found

    def _change(self, id: str, values: Mapping[str, Any]) -> None:
        self._writer.do(lambda batch: _touch(batch, id, values))

    def _on(self, id: str, job: Any) -> None:
        def whole(batch: Batch) -> None:
            _touch(batch, id, {})
            job(batch)

        self._writer.do(whole)


def _touch(batch: Batch, id: str, values: Mapping[str, Any]) -> None:
    there = update(_models).where(_models.c.id == id, _models.c.archived.is_(None)).values(updated=batch.now, **values)
    if not batch.connection.execute(there).rowcount:
        raise _missing(id)


def _write(batch: Batch, table: Any, id: str, values: Mapping[str, Any]) -> None:
    upsert(batch, table, [{"model": id, "key": k, "value": word(v)} for k, v in values.items()], keys=("model", "key"), change=("value",))


def _read(connection: Connection, term: Any) -> list[LoggedModelRecord]:
    query = select(_models, _runs.c.hex_id).outerjoin(_runs, _runs.c.id == _models.c.run).where(term, _models.c.archived.is_(None))
    rows = list(connection.execute(query.order_by(_models.c.created.desc(), _models.c.id)).mappings())
    ids = [row["id"] for row in rows]
    params: dict[str, dict[str, str]] = {id: {} for id in ids}
    tags: dict[str, dict[str, str]] = {id: {} for id in ids}
    metrics: dict[str, list[LoggedModelMetric]] = {id: [] for id in ids}
    for i in range(0, len(ids), 500):
        some = ids[i : i + 500]
        for table, into in ((_params, params), (_tags, tags)):
            for row in connection.execute(select(table).where(table.c.model.in_(some))):
                into[row.model][row.key] = row.value
        measured = select(_metrics, _runs.c.hex_id).outerjoin(_runs, _runs.c.id == _metrics.c.run).where(_metrics.c.model.in_(some))
        for row in connection.execute(measured.order_by(_metrics.c.id)):
            metrics[row.model].append(
                LoggedModelMetric(
                    key=row.key,
                    value=math.nan if row.value is None else row.value,
                    step=row.step,
                    time=row.time / 1e6,
                    run=row.hex_id,
                    dataset=row.dataset,
                    digest=row.dataset_digest,
                )
            )
    same = ("id", "experiment", "name", "kind", "status", "status_message", "created", "updated")
    return [
        LoggedModelRecord(
            **{key: row[key] for key in same}, run=row["hex_id"], params=params[row["id"]], tags=tags[row["id"]], metrics=metrics[row["id"]]
        )
        for row in rows
    ]


def _missing(id: str) -> NotFound:
    return NotFound(f"there is no logged model {id!r}", hint="it may have been deleted")
