"""Runs as the rules of alerts see them: those that changed, and those at work, whose silence may mean something."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, func, or_, select

from onward.model.alerts.rules import AlertRule, TrainingAlert, WatchedRun
from onward.model.run import LegEnd
from onward.tracker import schema
from onward.tracker.alerts.outbox import AlertCursor
from onward.tracker.runs.rows import RunInfo, run_info, run_query
from onward.tracker.runs.summaries import summaries_of
from onward.tracker.search.filter import filter_condition
from onward.tracker.series.stitch import SYSTEM_PREFIX

_runs, _series, _notes, _legs = schema.runs, schema.series, schema.notes, schema.legs
_AT_ONCE = 1000  # changed runs in a look
_SOME = 500  # ids in a statement
_LINES = 20


def changed_or_open(connection: Connection, cursor: AlertCursor) -> tuple[list[RunInfo], AlertCursor]:
    """And the cursor for the next look."""
    c = _runs.c
    query = run_query().where(c.version > cursor.version, c.archived.is_(None)).order_by(c.version, c.id).limit(_AT_ONCE)
    changed = [run_info(row) for row in connection.execute(query).mappings()]
    found = {info.inner: info for info in changed}
    for row in connection.execute(run_query().where(c.state == schema.RUNNING, c.archived.is_(None))).mappings():
        found.setdefault(row["id"], run_info(row))
    whole = len(changed) < _AT_ONCE  # else notes of runs that come in the next look would be passed over
    note = (connection.execute(select(func.max(_notes.c.id))).scalar() or 0) if whole else 0
    version = max((info.version for info in changed), default=cursor.version)
    return list(found.values()), AlertCursor(version=version, note=max(cursor.note, note))


def snapshot_runs(connection: Connection, infos: Sequence[RunInfo], cursor: AlertCursor) -> dict[int, WatchedRun]:
    """By inner id. `cursor`: notes up to there were told before."""
    ids = [info.inner for info in infos]
    standings = summaries_of(connection, ids)
    heard, nans, alert, ends = (
        _heard(connection, ids),
        _nans(connection, ids),
        _told(connection, ids, cursor.note),
        _ends(connection, infos),
    )
    sights = {}
    for info in infos:
        standing = standings.get(info.inner)
        sights[info.inner] = WatchedRun(
            run_id=info.run_id,
            name=info.name or info.run_id,
            experiment=info.experiment_name,
            state=info.state,
            leg=info.leg,
            reason=_reason(info, ends.get(info.inner)),
            next=standing.next if standing else "",
            lines="\n".join(str(info.details.get("evidence") or "").splitlines()[-_LINES:]),
            ended=info.ended if info.ended is not None or info.state in ("submitted", "running", "waiting") else info.updated,
            queued=standing.queued_at if standing else None,
            begun=(standing.begun_at if standing else None) or info.started,
            saved=standing.saved_at if standing else None,
            heard=heard.get(info.inner),
            step=info.last_step,
            nans=tuple(nans.get(info.inner, ())),
            alerts=tuple(alert.get(info.inner, ())),
        )
    return sights


def matching_runs(connection: Connection, rule: AlertRule, ids: Sequence[int], *, now: float) -> Iterable[int]:
    """Those of the runs that the rule's filter takes."""
    term = filter_condition(rule.filter, now=now)
    if term is None:
        return ids
    found: list[int] = []
    for some in _in_pieces(ids):
        found += connection.execute(select(_runs.c.id).where(_runs.c.id.in_(some), term)).scalars()
    return found


def _reason(info: RunInfo, end: str | None) -> str:
    """Our own words. Those about a crash quote the program, and those of runs that others made may quote anything."""
    if info.source != "onward":
        return ""
    return f"leg {info.leg} crashed" if end == LegEnd.CRASHED else info.reason


def _heard(connection: Connection, ids: Sequence[int]) -> dict[int, float]:
    c, found = _series.c, {}
    for some in _in_pieces(ids):
        query = (
            select(c.run, func.max(c.top_time)).where(c.run.in_(some), ~c.key.startswith(SYSTEM_PREFIX, autoescape=True)).group_by(c.run)
        )
        found.update({run: time / 1e6 for run, time in connection.execute(query)})
    return found


def _nans(connection: Connection, ids: Sequence[int]) -> dict[int, list[str]]:
    c, found = _series.c, dict[int, list[str]]()
    for some in _in_pieces(ids):
        bad = or_(c.last_value.is_(None), c.last_value == float("inf"), c.last_value == float("-inf"))
        query = select(c.run, c.key).where(
            c.run.in_(some), c.last_step.is_not(None), bad, ~c.key.startswith(SYSTEM_PREFIX, autoescape=True)
        )
        for run, key in connection.execute(query.order_by(c.key)):
            found.setdefault(run, []).append(key)
    return found


def _told(connection: Connection, ids: Sequence[int], after: int) -> dict[int, list[TrainingAlert]]:
    c, found = _notes.c, dict[int, list[TrainingAlert]]()
    for some in _in_pieces(ids):
        query = select(_notes).where(c.run.in_(some), c.id > after, c.level.is_not(None))
        for row in connection.execute(query.order_by(c.id)):
            alert = TrainingAlert(at=row.at, level=row.level, text=row.text.removeprefix(f"{row.level}: "))
            found.setdefault(row.run, []).append(alert)
    return found


def _ends(connection: Connection, infos: Sequence[RunInfo]) -> dict[int, str]:
    newest = {info.inner: info.leg for info in infos if info.state == "failed"}
    found: dict[int, str] = {}
    for some in _in_pieces(list(newest)):
        for row in connection.execute(select(_legs.c.run, _legs.c.leg, _legs.c.end).where(_legs.c.run.in_(some))):
            if row.end and row.leg == newest[row.run]:
                found[row.run] = row.end
    return found


def _in_pieces(ids: Sequence[int]) -> list[Any]:
    return [ids[i : i + _SOME] for i in range(0, len(ids), _SOME)]
