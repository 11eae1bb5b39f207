"""Runs: create, find, search, change. A run is named by its id, of eight letters or of 32 hex digits."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Select, delete, func, insert, or_, select, update

from onward.errors import Conflict, InvalidInput, NotFound
from onward.model.identity import hex_id
from onward.model.job import JobState
from onward.model.run import RunState
from onward.model.storable_text import check_key, check_text
from onward.tracker import schema
from onward.tracker.db.database import Database
from onward.tracker.db.writer import Batch, Writer
from onward.tracker.ingest.receive import no_run, run_row
from onward.tracker.runs.experiments import DEFAULT, ensure_experiment
from onward.tracker.runs.legs import legs_of, upsert
from onward.tracker.runs.memberships import FoldedPipeline, folded, one_of_each
from onward.tracker.runs.params import write_params, write_tags
from onward.tracker.runs.rows import RunInfo, RunView, run_info, run_query, views
from onward.tracker.search.filter import filter_condition
from onward.tracker.search.run_order import apply_order, parse_orders, walk_index
from onward.tracker.search.text_search import mentions
from onward.tracker.series.last_and_best import recompute_run
from onward.tracker.unmanaged.legs import follow_state

_runs, _legs, _params, _tags, _notes = schema.runs, schema.legs, schema.params, schema.tags, schema.notes
_CHANGES = ("name", "state", "reason", "user", "started", "ended", "cluster", "total_steps", "details", "experiment")
_NOT_YET = (JobState.QUEUED, JobState.HELD, JobState.CANCELLED)
_LEG_CHANGES = ("job", "cluster", "state", "end", "reason", "submitted", "started", "ended", "resumed_step", "details")


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """What to create. `identity`: a second start with the same one finds the first's run again (a job that was restarted)."""

    experiment: int | str = DEFAULT  # its number, or a name, made where there is none
    name: str = ""
    run_id: str = ""  # given by who knows it; else one is made, of 32 hex digits
    source: str = "mlflow"
    state: str = "running"
    user: str = ""
    identity: str | None = None
    folder: str | None = None
    cluster: str | None = None
    started: float | None = None
    leg: int = 0
    tags: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunQuery:
    """`filter` in the language of `filter.py`; `order` such as ("metrics.loss asc", "created desc"); `archived` None: both."""

    experiments: Sequence[int] | None = None
    filter: str = ""
    text: str = ""  # words that a run must mention: see `text_search`
    order: Sequence[str] = ()
    archived: bool | None = False
    limit: int = 100
    offset: int = 0
    metrics: bool = True  # whether the answer holds them
    keys: Sequence[str] | None = None  # of the metrics, only these
    params: bool = True
    standings: bool = False
    count: bool = False
    fold: bool = False  # one run for each pipeline: its newest that is asked for


@dataclass(frozen=True, kw_only=True)
class RunSearchPage:
    runs: list[RunView]
    next: int | None  # the offset of the next page
    total: int | None  # where it was asked for
    folded: Mapping[str, FoldedPipeline] = field(default_factory=dict)  # by the pipeline's folder, where it was asked for


class Runs:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    # ── making and finding ────────────────────────────────────────────────────

    def create(self, new: NewRun) -> RunInfo:
        """The new run; the old one where its identity, or its id, is there already."""
        _check_keys(new.params, "a param")
        _check_keys(new.tags, "a tag")
        check_text(new.name, new.run_id, new.user, new.identity, new.folder, new.cluster)
        run_id = new.run_id or secrets.token_hex(16)
        self._writer.do(lambda batch: create_run(batch, new, run_id))
        found = self.by_identity(new.identity) if new.identity is not None else None
        return found or self.get(run_id)

    def get(self, run: str) -> RunInfo:
        """By id, of either form. NotFound where there is none."""
        with self._database.reading() as connection:
            return one_run(connection, run)

    def find(self, text: str) -> RunInfo:
        """By id, or by the beginning of one where that is unique."""
        with self._database.reading() as connection:
            pattern = text.replace("%", "").replace("_", "\\_") + "%"
            query = run_query().where(or_(_runs.c.run_id == text, _runs.c.hex_id == text, _runs.c.run_id.like(pattern, escape="\\")))
            rows = list(connection.execute(query.limit(9)).mappings()) if text else []
        exact = [row for row in rows if text in (row["run_id"], row["hex_id"])] or rows
        if len(exact) > 1:
            names = ", ".join(row["run_id"] for row in exact[:8])
            raise Conflict(f"{text!r} may mean several runs", hint=f"use an id: {names}")
        if not exact:
            raise no_run(text)
        return run_info(exact[0])

    def by_identity(self, identity: str) -> RunInfo | None:
        with self._database.reading() as connection:
            row = connection.execute(run_query().where(_runs.c.identity == identity)).mappings().first()
        return run_info(row) if row else None

    def by_job(self, job: str, *, cluster: str | None = None) -> list[RunInfo]:
        """Runs one of whose legs is this job, newest first."""
        mine = select(_legs.c.run).where(_legs.c.job == job, *([_legs.c.cluster == cluster] if cluster else []))
        with self._database.reading() as connection:
            rows = connection.execute(run_query().where(_runs.c.id.in_(mine)).order_by(_runs.c.id.desc())).mappings()
            return [run_info(row) for row in rows]

    def view(self, run: str, *, metrics: bool = True) -> RunView:
        """With params and tags; and metrics, of which there may be thousands."""
        with self._database.reading_points() if metrics else self._database.reading() as connection:
            return views(connection, [one_run(connection, run)], metrics=metrics, standings=True)[0]

    def search(self, query: RunQuery) -> RunSearchPage:
        if not 0 < query.limit <= 50_000 or query.offset < 0:
            raise InvalidInput(f"a page can have 1 to 50000 runs from offset 0 on, not {query.limit} from {query.offset}")
        terms: list[Any] = [] if query.experiments is None else [_runs.c.experiment.in_(list(query.experiments))]
        if query.archived is not None:
            terms.append(_runs.c.archived.is_not(None) if query.archived else _runs.c.archived.is_(None))
        condition = filter_condition(query.filter, now=time.time())
        terms += [term for term in (condition, mentions(query.text)) if term is not None]
        targets = parse_orders(query.order)
        chosen = [one_of_each(terms), *terms] if query.fold else terms
        base = select(_runs.c.id).where(*chosen)
        plain = not (query.metrics or query.keys or query.filter or query.order)
        with self._database.reading() if plain else self._database.reading_points() as connection:
            ids = _ids(connection, walk_index(base, targets), query)
            if len(ids) <= query.limit:  # fewer have the metric than are asked for: those without it come too
                ids = _ids(connection, apply_order(base, targets), query)
            more = len(ids) > query.limit
            ids = ids[: query.limit]
            rows: dict[int, RunInfo] = {}
            for i in range(0, len(ids), 500):
                for row in connection.execute(run_query().where(_runs.c.id.in_(ids[i : i + 500]))).mappings():
                    rows[row["id"]] = run_info(row)
            total = connection.execute(select(func.count()).select_from(_runs).where(*chosen)).scalar_one() if query.count else None
            asked = {"metrics": query.metrics, "keys": query.keys, "params": query.params, "standings": query.standings}
            found = views(connection, [rows[id] for id in ids if id in rows], **asked)  # type: ignore[arg-type]
            pipelines = sorted({view.pipeline for view in found if view.pipeline}) if query.fold else []
            counted = folded(connection, pipelines, terms)
        return RunSearchPage(runs=found, next=query.offset + query.limit if more else None, total=total, folded=counted)

    def changes(self, after: int, *, limit: int = 1000) -> list[RunInfo]:
        """Runs that changed after a version, in that order: what a live stream tells."""
        with self._database.reading() as connection:
            query = run_query().where(_runs.c.version > after).order_by(_runs.c.version, _runs.c.id).limit(limit)
            return [run_info(row) for row in connection.execute(query).mappings()]

    # ── changing ──────────────────────────────────────────────────────────────

    def update(self, run: str, **changes: Any) -> RunInfo:
        """Set any of name, state, reason, user, started, ended, cluster, total_steps, details, experiment."""
        unknown = changes.keys() - set(_CHANGES)
        if unknown:
            raise InvalidInput(f"a run has no {', '.join(sorted(unknown))}", hint=f"it has {', '.join(_CHANGES)}")
        check_text(*changes.values())
        if "state" in changes:
            changes["state"] = _state(changes["state"])
        if "details" in changes:
            changes["details"] = json.dumps(changes["details"])
        self._writer.do(lambda batch: _change(batch, run, changes))
        return self.get(run)

    def archive(self, run: str, *, archived: bool = True) -> None:
        """Out of the lists, or back. Nothing is lost by it."""
        self._writer.do(lambda batch: _change(batch, run, {"archived": batch.now if archived else None}))

    def delete(self, run: str) -> None:
        """For good, with all points. A run's folder, if it has one, is left alone."""

        def job(batch: Batch) -> None:
            batch.connection.execute(delete(_runs).where(_runs.c.id == run_row(batch, run)["id"]))

        self._writer.do(job)

    def set_params(self, run: str, params: Mapping[str, Any], *, leg: int | None = None) -> None:
        """Of a leg; None: the newest. One that changed is kept beside the old: no error."""
        _check_keys(params, "a param")
        self._on_run(run, lambda batch, row: write_params(batch, row["id"], leg or max(row["leg"], 1), params))

    def set_tags(self, run: str, tags: Mapping[str, Any]) -> None:
        _check_keys(tags, "a tag")
        self._on_run(run, lambda batch, row: write_tags(batch, row["id"], tags))

    def delete_tag(self, run: str, key: str) -> None:
        def job(batch: Batch, row: Mapping[str, Any]) -> None:
            if not batch.connection.execute(delete(_tags).where(_tags.c.run == row["id"], _tags.c.key == key)).rowcount:
                raise NotFound(f"run {run} has no tag {key!r}")

        self._on_run(run, job)

    def param_history(self, run: str) -> dict[str, dict[int, str]]:
        """Every param by leg."""
        with self._database.reading() as connection:
            inner = one_run(connection, run).inner
            found: dict[str, dict[int, str]] = {}
            for row in connection.execute(select(_params).where(_params.c.run == inner).order_by(_params.c.key, _params.c.leg)):
                found.setdefault(row.key, {})[row.leg] = row.value
            return found

    # ── legs ──────────────────────────────────────────────────────────────────

    def legs(self, run: str) -> list[dict[str, Any]]:
        with self._database.reading() as connection:
            rows = legs_of(connection, one_run(connection, run).inner)
        return [{**row, "details": json.loads(row["details"])} for row in rows]

    def set_leg(self, run: str, leg: int, **changes: Any) -> None:
        """Make or change a leg: job, cluster, state, end, reason, submitted, started, ended, resumed_step, details."""
        unknown = changes.keys() - set(_LEG_CHANGES)
        if unknown or leg < 1:
            raise InvalidInput(f"a leg has no {', '.join(sorted(unknown))}" if unknown else f"{leg} is not a leg number")
        if "details" in changes:
            changes["details"] = json.dumps(changes["details"])
        self._on_run(run, lambda batch, row: write_legs(batch, row, [{"leg": leg, **changes}]))

    # ── notes ─────────────────────────────────────────────────────────────────

    def notes(self, run: str) -> list[dict[str, Any]]:
        with self._database.reading() as connection:
            inner = one_run(connection, run).inner
            return [dict(row) for row in connection.execute(select(_notes).where(_notes.c.run == inner).order_by(_notes.c.id)).mappings()]

    def add_note(self, run: str, text: str, *, author: str = "") -> int:
        check_text(text, author)

        def job(batch: Batch, row: Mapping[str, Any]) -> int:
            values = {"run": row["id"], "at": batch.now, "author": author, "text": text}
            return int(batch.connection.execute(insert(_notes).returning(_notes.c.id), values).scalar_one())

        return int(self._on_run(run, job))

    def delete_note(self, run: str, note: int) -> None:
        def job(batch: Batch, row: Mapping[str, Any]) -> None:
            if not batch.connection.execute(delete(_notes).where(_notes.c.run == row["id"], _notes.c.id == note)).rowcount:
                raise NotFound(f"run {run} has no note {note}")

        self._on_run(run, job)

    def _on_run(self, run: str, job: Any) -> Any:
        def whole(batch: Batch) -> Any:
            row = run_row(batch, run)
            answer = job(batch, row)
            batch.connection.execute(update(_runs).where(_runs.c.id == row["id"]).values(version=batch.version, updated=batch.now))
            return answer

        return self._writer.do(whole)


# ── inside a transaction ──────────────────────────────────────────────────────


def create_run(batch: Batch, new: NewRun, run_id: str) -> None:
    known = [_runs.c.run_id == run_id]
    if new.identity is not None:
        known.append(_runs.c.identity == new.identity)
    if batch.connection.execute(select(_runs.c.id).where(or_(*known))).first():
        return
    experiment = ensure_experiment(batch, new.experiment) if isinstance(new.experiment, str) else new.experiment
    found = batch.connection.execute(select(schema.experiments.c.id).where(schema.experiments.c.id == experiment)).first()
    if found is None:
        raise NotFound(f"there is no experiment number {experiment}", hint="create it first")
    row = {
        "run_id": run_id,
        "hex_id": hex_id(run_id),
        "experiment": experiment,
        "name": new.name or run_id[:8],
        "state": _state(new.state),
        "user": new.user,
        "source": new.source,
        "identity": new.identity,
        "folder": new.folder,
        "cluster": new.cluster,
        "created": batch.now,
        "started": new.started,
        "updated": batch.now,
        "details": json.dumps(new.details),
        "version": batch.version,
    }
    inner = batch.connection.execute(insert(_runs).returning(_runs.c.id), row).scalar_one()
    if new.leg:
        write_legs(batch, {"id": inner, "leg": 0}, [{"leg": new.leg, "started": new.started or batch.now}])
    write_params(batch, inner, max(new.leg, 1), new.params)
    write_tags(batch, inner, new.tags)


def write_legs(batch: Batch, row: Mapping[str, Any], legs: Sequence[Mapping[str, Any]]) -> None:
    """Make or change legs; where one tells anew at which step it went on, what shows is worked out again."""
    c = _legs.c
    before = {leg.leg: leg.resumed_step for leg in batch.connection.execute(select(c.leg, c.resumed_step).where(c.run == row["id"]))}
    for leg in legs:
        values = {"run": row["id"], **leg}
        upsert(batch, _legs, [values], keys=("run", "leg"), change=tuple(leg.keys() - {"leg"}))
    newest = max((leg["leg"] for leg in legs if not _waits(leg)), default=0)
    if newest > row["leg"]:
        batch.connection.execute(update(_runs).where(_runs.c.id == row["id"], _runs.c.leg < newest).values(leg=newest))
    if any("resumed_step" in leg and leg["resumed_step"] != before.get(leg["leg"]) for leg in legs):
        recompute_run(batch, row["id"])


def _waits(leg: Mapping[str, Any]) -> bool:
    """A successor that is queued, or was cancelled before it began: the run has not come to it."""
    return leg.get("state") in _NOT_YET and leg.get("started") is None


def _ids(connection: Connection, chosen: Select[Any] | None, query: RunQuery) -> list[int]:
    """One more than a page has, to know whether there is another."""
    if chosen is None:
        return []
    chosen = chosen.order_by(_runs.c.created.desc(), _runs.c.id.desc()).limit(query.limit + 1).offset(query.offset)
    return list(connection.execute(chosen).scalars())


def one_run(connection: Connection, run: str) -> RunInfo:
    row = connection.execute(run_query().where(or_(_runs.c.run_id == run, _runs.c.hex_id == run))).mappings().first()
    if row is None:
        raise no_run(run)
    return run_info(row)


def _change(batch: Batch, run: str, changes: Mapping[str, Any]) -> None:
    row = run_row(batch, run)
    if (
        "experiment" in changes
        and not batch.connection.execute(select(schema.experiments.c.id).where(schema.experiments.c.id == changes["experiment"])).first()
    ):
        raise NotFound(f"there is no experiment number {changes['experiment']}", hint="create it first")
    if "state" in changes:
        follow_state(batch, row, changes["state"], changes.get("ended"))
    values = {**changes, "version": batch.version, "updated": batch.now}
    batch.connection.execute(update(_runs).where(_runs.c.id == row["id"]).values(values))


def _check_keys(record: Mapping[str, Any], what: str) -> None:
    for key in record:
        check_key(key, what)


def _state(text: str) -> str:
    try:
        return str(RunState(text))
    except ValueError:
        raise InvalidInput(f"{text!r} is not a run state", hint=f"it is one of {', '.join(RunState)}") from None
