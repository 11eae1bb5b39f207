"""Experiments: a named question that groups runs. Number 0 is `Default`, where runs go that name none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from onward.errors import Conflict, InvalidInput, NotFound
from onward.model.experiment import Experiment
from onward.model.storable_text import clean, is_plain
from onward.tracker import schema
from onward.tracker.db.database import Database
from onward.tracker.db.writer import Batch, Writer
from onward.tracker.runs.legs import upsert
from onward.tracker.runs.params import word

DEFAULT = 0
_table, _tags, _runs = schema.experiments, schema.experiment_tags, schema.runs


class Experiments:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    def create(self, name: str, *, artifact_location: str = "", tags: Mapping[str, Any] | None = None) -> Experiment:
        """A new one. Conflict where the name is taken, by an archived one too."""
        check_name(name)

        def job(batch: Batch) -> int:
            if batch.connection.execute(select(_table.c.id).where(_table.c.name == name)).first():
                raise Conflict(f"there is already an experiment {name!r}", hint="use it, or choose another name")
            id = _insert(batch, name, artifact_location)
            _set_tags(batch, id, tags or {})
            return id

        return self.get(self._writer.do(job))

    def ensure(self, name: str) -> Experiment:
        """The one of this name, made where there is none."""
        check_name(name)
        return self.get(self._writer.do(lambda batch: ensure_experiment(batch, name)))

    def get(self, id: int) -> Experiment:
        return self._one(_table.c.id == id, f"number {id}")

    def by_name(self, name: str) -> Experiment:
        return self._one(_table.c.name == name, repr(name))

    def all(self, *, archived: bool | None = False) -> list[Experiment]:
        """Newest first. `archived`: only those, only the others, or (None) all."""
        query = select(_table).order_by(_table.c.created.desc(), _table.c.id.desc())
        if archived is not None:
            query = query.where(_table.c.archived.is_not(None) if archived else _table.c.archived.is_(None))
        with self._database.reading() as connection:
            return _with_tags(connection, list(connection.execute(query).mappings()))

    def counts(self) -> dict[int, int]:
        """How many runs that are not archived each experiment has."""
        query = select(_runs.c.experiment, func.count().label("runs")).where(_runs.c.archived.is_(None)).group_by(_runs.c.experiment)
        with self._database.reading() as connection:
            return {row.experiment: row.runs for row in connection.execute(query)}

    def update(
        self, id: int, *, name: str | None = None, archived: bool | None = None, tags: Mapping[str, Any] | None = None
    ) -> Experiment:
        """Rename, archive or bring back (its runs too), set tags."""
        if name is not None:
            check_name(name)

        def job(batch: Batch) -> None:
            held = batch.connection.execute(select(_table.c.id, _table.c.archived).where(_table.c.id == id)).first()
            if held is None:
                raise _missing(f"number {id}")
            changes: dict[str, Any] = {"updated": batch.now}
            if name is not None:
                if batch.connection.execute(select(_table.c.id).where(_table.c.name == name, _table.c.id != id)).first():
                    raise Conflict(f"there is already an experiment {name!r}", hint="choose another name")
                changes["name"] = name
            if archived is not None:
                changes["archived"] = (held.archived or batch.now) if archived else None
                mine = _runs.c.experiment == id
                if archived and held.archived is None:
                    batch.connection.execute(
                        update(_runs).where(mine, _runs.c.archived.is_(None)).values(archived=batch.now, version=batch.version)
                    )
                elif not archived and held.archived is not None:  # those that were archived with it
                    batch.connection.execute(
                        update(_runs).where(mine, _runs.c.archived == held.archived).values(archived=None, version=batch.version)
                    )
            batch.connection.execute(update(_table).where(_table.c.id == id).values(changes))
            _set_tags(batch, id, tags or {})

        self._writer.do(job)
        return self.get(id)

    def delete_tag(self, id: int, key: str) -> None:
        def job(batch: Batch) -> None:
            if not batch.connection.execute(delete(_tags).where(_tags.c.experiment == id, _tags.c.key == key)).rowcount:
                raise NotFound(f"experiment {id} has no tag {key!r}")

        self._writer.do(job)

    def _one(self, term: Any, words: str) -> Experiment:
        with self._database.reading() as connection:
            rows = list(connection.execute(select(_table).where(term)).mappings())
            if not rows:
                raise _missing(words)
            return _with_tags(connection, rows)[0]


def check_name(name: str) -> None:
    if not name.strip() or len(name) > 500 or not is_plain(name):
        raise InvalidInput(f"{clean(name)[:60]!r} is not a valid name for an experiment", hint="use 1 to 500 characters")


def must_take_runs(connection: Connection, name: str) -> None:
    """Conflict where somebody has archived the experiment of this name."""
    found = connection.execute(select(_table.c.id, _table.c.archived).where(_table.c.name == name)).first()
    if found is not None and found.archived is not None:
        raise Conflict(
            f"experiment {name!r} is archived and cannot get new runs",
            hint=f'restore it first (PATCH /api/v1/experiments/{found.id} {{"archived": false}}), or name another one',
        )


def ensure_experiment(batch: Batch, name: str) -> int:
    found = batch.connection.execute(select(_table.c.id).where(_table.c.name == name)).first()
    return found.id if found else _insert(batch, name, "")


def _insert(batch: Batch, name: str, artifact_location: str) -> int:
    values = {"name": name, "artifact_location": artifact_location, "created": batch.now, "updated": batch.now}
    return int(batch.connection.execute(insert(_table).returning(_table.c.id), values).scalar_one())


def _set_tags(batch: Batch, id: int, tags: Mapping[str, Any]) -> None:
    rows = [{"experiment": id, "key": k, "value": word(v)} for k, v in tags.items()]
    upsert(batch, _tags, rows, keys=("experiment", "key"), change=("value",))


def _with_tags(connection: Connection, rows: list[Any]) -> list[Experiment]:
    found: dict[int, dict[str, str]] = {row["id"]: {} for row in rows}
    for tag in connection.execute(select(_tags).where(_tags.c.experiment.in_(list(found)))).mappings() if rows else ():
        found[tag["experiment"]][tag["key"]] = tag["value"]
    return [Experiment(**row, tags=found[row["id"]]) for row in rows]


def _missing(words: str) -> NotFound:
    return NotFound(f"there is no experiment {words}", hint="create it first")
