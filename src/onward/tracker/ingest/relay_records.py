"""What a relay was told besides metrics, params and tags: models, inputs and outputs, files; and notes that a training leaves.

    {"kind": "untag", "tags": ["key"]}
    {"kind": "model", "model": {"id": "m-…", "name"?, "kind"?, "status"?, "created"?, "params"?, "tags"?, "untag"?, "deleted"?}}
    {"kind": "model-metrics", "metrics": [{"model", "key", "value", "step", "time", "dataset"?, "digest"?}]}
    {"kind": "inputs", "datasets": [{"name", "digest", …}], "models": ["m-…"]}        {"kind": "outputs", "models": [["m-…", step]]}
    {"kind": "artifact", "path", "type"?, "bytes"?, "sha256"?, "stored"?, "gone"?}
    {"kind": "alert", "title", "text", "level"}        {"kind": "note", "text"}: the same one once, however many legs tell it

Each comes once (records are numbered). What a run tells of changes that run and its own models; of other runs' models it may say that
they went into it, no more. Values are cut to what the tables hold: a record must not keep those after it from being read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence, Set
from typing import Any, TypeGuard

from sqlalchemy import delete, insert, or_, select, update

from onward.model.storable_text import LONGEST_KEY, clean
from onward.tracker import schema
from onward.tracker.db.writer import Batch
from onward.tracker.runs.legs import upsert
from onward.tracker.runs.params import word

KINDS = ("untag", "model", "model-metrics", "inputs", "outputs", "artifact", "alert", "note")

_models, _metrics = schema.models, schema.model_metrics
_MODEL = re.compile(r"m-[0-9a-f]{32}")
_WHOLE = 1 << 63
_MOST = 1 << 1023
_TRAINING = "training"


def take_relay_record(batch: Batch, run: int, at: float, record: Mapping[str, Any]) -> None:
    match record["kind"]:
        case "untag":
            tags = schema.tags
            keys = [_text(key, LONGEST_KEY) for key in _list(record.get("tags"))]
            batch.connection.execute(delete(tags).where(tags.c.run == run, tags.c.key.in_(keys)))
        case "model":
            _take_model(batch, run, at, _map(record.get("model")))
        case "model-metrics":
            _take_metrics(batch, run, at, [_map(metric) for metric in _list(record.get("metrics"))])
        case "inputs":
            _take_inputs(batch, run, _list(record.get("datasets")), _list(record.get("models")))
        case "outputs":
            pairs = [pair for pair in _list(record.get("models")) if isinstance(pair, list) and len(pair) == 2 and _is_model(pair[0])]
            others = _of_other_runs(batch, run, {id for id, _ in pairs})
            pairs = [pair for pair in pairs if pair[0] not in others]
            rows = {id: {"run": run, "model": id, "step": _whole(step) or 0} for id, step in pairs}
            upsert(batch, schema.outputs, list(rows.values()), keys=("run", "model"), change=("step",))
        case "artifact":
            _take_artifact(batch, run, at, record)
        case "alert":
            title, text = _text(record.get("title"), 8000), _text(record.get("text"), 8000)
            level = _text(record.get("level"), 20) or "INFO"
            said = f"{level}: {title}" + (f"\n{text}" if text else "")
            batch.connection.execute(insert(schema.notes), [{"run": run, "at": at, "author": _TRAINING, "text": said, "level": level}])
        case "note":
            _take_note(batch, run, at, _text(record.get("text"), 8000))


def _take_note(batch: Batch, run: int, at: float, text: str) -> None:
    c = schema.notes.c
    same = select(c.run).where(c.run == run, c.author == _TRAINING, c.text == text)
    if text and batch.connection.execute(same).first() is None:
        batch.connection.execute(insert(schema.notes), [{"run": run, "at": at, "author": _TRAINING, "text": text}])


def _take_model(batch: Batch, run: int, at: float, record: Mapping[str, Any]) -> None:
    id = record.get("id")
    if not isinstance(id, str) or not _is_model(id) or _of_other_runs(batch, run, {id}):
        return
    same = _models.c.id == id
    if batch.connection.execute(select(_models.c.id).where(same)).first() is None:
        experiment = batch.connection.execute(select(schema.runs.c.experiment).where(schema.runs.c.id == run)).scalar_one()
        row = {"id": id, "experiment": experiment, "run": run, "name": id, "kind": "", "status": "PENDING", "created": at, "updated": at}
        batch.connection.execute(insert(_models), [row])
    changes: dict[str, Any] = {"updated": at}
    for name, most in (("name", 500), ("kind", 250), ("status", 64)):
        if name in record:
            changes[name] = _text(record[name], most)
    if record.get("deleted"):
        changes["archived"] = at
    batch.connection.execute(update(_models).where(same).values(changes))
    for table, values in ((schema.model_params, record.get("params")), (schema.model_tags, record.get("tags"))):
        rows = [{"model": id, "key": _text(key, LONGEST_KEY), "value": word(value)} for key, value in _map(values).items() if key]
        upsert(batch, table, rows, keys=("model", "key"), change=("value",))
    for key in _list(record.get("untag")):
        tags = schema.model_tags.c
        batch.connection.execute(delete(schema.model_tags).where(tags.model == id, tags.key == _text(key, LONGEST_KEY)))


def _of_other_runs(batch: Batch, run: int, models: Set[str]) -> set[str]:
    """Those that are there and this run did not make. Its records change nothing of them."""
    c = _models.c
    theirs = select(c.id).where(c.id.in_(models), or_(c.run.is_(None), c.run != run))
    return set(batch.connection.execute(theirs).scalars())


def _take_metrics(batch: Batch, run: int, at: float, metrics: Sequence[Mapping[str, Any]]) -> None:
    metrics = [metric for metric in metrics if _is_model(metric.get("model"))]
    asked = {metric["model"] for metric in metrics}
    known = set(batch.connection.execute(select(_models.c.id).where(_models.c.id.in_(asked), _models.c.run == run)).scalars())
    rows = []
    for metric in metrics:
        value, key = metric.get("value"), _text(metric.get("key"), LONGEST_KEY)
        if metric["model"] not in known or not is_number(value) or not key:
            continue
        time = metric.get("time")
        rows.append(
            {
                "model": metric["model"],
                "key": key,
                "step": _whole(metric.get("step")) or 0,
                "time": round((time if isinstance(time, int | float) and 0 <= time < 1e11 else at) * 1e6),
                "value": None if math.isnan(value) else float(value),
                "run": run,
                "dataset": _text(metric.get("dataset"), 500) or None,
                "dataset_digest": _text(metric.get("digest"), 36) or None,
            }
        )
    if rows:
        batch.connection.execute(insert(_metrics), rows)


def _take_inputs(batch: Batch, run: int, datasets: list[Any], models: list[Any]) -> None:
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for dataset in map(_map, datasets):
        name, digest = _text(dataset.get("name"), 500), _text(dataset.get("digest"), 36)
        tags = {_text(key, 255): _text(value, 500) for key, value in _map(dataset.get("tags")).items()}
        rows["dataset", name, digest] = {
            "source_type": _text(dataset.get("source_type"), 250),
            "source": _text(dataset.get("source"), 1 << 20),
            "schema": _text(dataset.get("schema"), 1 << 20) or None,
            "profile": _text(dataset.get("profile"), 1 << 20) or None,
            "tags": json.dumps(tags, separators=(",", ":")),
        }
    for id in models:
        if _is_model(id):
            rows["model", id, ""] = {"source_type": "", "source": "", "schema": None, "profile": None, "tags": "{}"}
    upsert(
        batch,
        schema.inputs,
        [{"run": run, "kind": kind, "name": name, "digest": digest, **row} for (kind, name, digest), row in rows.items() if name],
        keys=("run", "kind", "name", "digest"),
        change=("source_type", "source", "schema", "profile", "tags"),
    )


def _take_artifact(batch: Batch, run: int, at: float, record: Mapping[str, Any]) -> None:
    table, path = schema.artifacts, _text(record.get("path"), 1000)
    if not path:
        return
    if record.get("gone"):
        batch.connection.execute(delete(table).where(table.c.run == run, table.c.path == path))
        return
    size = _whole(record.get("bytes"))
    row = {
        "run": run,
        "path": path,
        "kind": _text(record.get("type"), 64),
        "bytes": size if size is not None and size >= 0 else None,
        "sha256": _text(record.get("sha256"), 64) or None,
        "stored": record.get("stored") is True,
        "created": at,
    }
    upsert(batch, table, [row], keys=("run", "path"), change=("kind", "bytes", "sha256", "stored", "created"))


def is_number(value: object) -> TypeGuard[float]:
    """One that a 64-bit float can be."""
    return type(value) is float or (type(value) is int and -_MOST < value < _MOST)


def _is_model(id: object) -> bool:
    return isinstance(id, str) and _MODEL.fullmatch(id) is not None


def _text(value: object, most: int) -> str:
    return "" if value is None else clean(value if isinstance(value, str) else word(value))[:most]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and -_WHOLE <= value < _WHOLE else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
