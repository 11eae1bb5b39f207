"""The outbox of alerts, which is their history too: a row for every notice and channel, tried until it was sent or given up.

A notice is put in together with the cursor that says how far was looked, so that none is missed and none comes twice. Notices that were
once tried in one message stay one message, which carries the same id whenever it is sent again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import delete, func, select, update

from onward.model.alerts.message import retry_time, send_time
from onward.model.alerts.rules import AlertRule, Notice, NoticeLevel
from onward.model.storable_text import clean
from onward.tracker import schema
from onward.tracker.alerts.rules import Channel
from onward.tracker.db.database import Database
from onward.tracker.db.writer import Batch, Writer
from onward.tracker.runs.legs import upsert

KEPT = 90 * 86400.0  # seconds that the history goes back
_MOST_IN_ONE = 500
_CURSOR = "alerts.cursor"
_notices = schema.notices


@dataclass(frozen=True, kw_only=True)
class AlertCursor:
    version: int = -1  # -1: nobody has looked yet
    note: int = 0


@dataclass(frozen=True, kw_only=True)
class NoticeBundle:
    """Notices that make one message."""

    rule: str  # its name
    channel: str  # its id
    group: str
    notices: tuple[Notice, ...]
    rows: tuple[int, ...]
    tries: int


@dataclass(frozen=True, kw_only=True)
class NoticeRecord:
    id: int
    rule: str
    channel: str
    run_id: str | None
    level: str
    title: str
    text: str
    at: float
    due: float | None
    tries: int
    sent: float | None
    error: str


class Notices:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    def cursor(self) -> AlertCursor:
        with self._database.reading() as connection:
            held = connection.execute(select(schema.settings.c.value).where(schema.settings.c.key == _CURSOR)).scalar()
        return AlertCursor(**json.loads(held)) if held else AlertCursor()

    def put(self, found: Sequence[tuple[AlertRule, Channel, Notice]], cursor: AlertCursor, *, now: float) -> int:
        """Those that are new, and how far was looked; how many were new."""

        def job(batch: Batch) -> int:
            before = batch.connection.execute(select(func.count()).select_from(_notices)).scalar_one()
            rows = []
            for rule, channel, notice in found:
                due = send_time(now, last=_last(batch, rule, channel, notice.group[:500]), quiet=channel.quiet)
                rows.append(_row(rule, channel, notice) | {"due": due})
            upsert(batch, _notices, rows, keys=("rule", "channel", "key"))
            upsert(batch, schema.settings, [{"key": _CURSOR, "value": json.dumps(asdict(cursor))}], keys=("key",), change=("value",))
            return int(batch.connection.execute(select(func.count()).select_from(_notices)).scalar_one() - before)

        return self._writer.do(job)

    def due(self, now: float) -> list[NoticeBundle]:
        """Where one notice of a rule, channel and group is due, those that wait beside it go along."""
        c = _notices.c
        with self._database.reading() as connection:
            if connection.execute(select(c.id).where(c.due <= now).limit(1)).first() is None:
                return []
            rows = connection.execute(select(_notices).where(c.due.is_not(None)).order_by(c.id)).mappings().all()
        parcels: dict[tuple[Any, ...], list[Any]] = {}
        for row in rows:
            parcels.setdefault((row["rule"], row["channel"], row["group"], row["bundle"]), []).append(row)
        return [_parcel(held[:_MOST_IN_ONE]) for held in parcels.values() if min(row["due"] for row in held) <= now]

    def bundle(self, parcel: NoticeBundle, id: str) -> None:
        """Before it is first sent: from now on these are one message."""
        self._change(parcel, {"bundle": id})

    def sent(self, parcel: NoticeBundle, *, now: float) -> None:
        self._change(parcel, {"sent": now, "due": None, "error": "", "tries": parcel.tries + 1})

    def failed(self, parcel: NoticeBundle, error: str, *, now: float, for_good: bool) -> None:
        due = None if for_good else retry_time(now, parcel.tries + 1)
        self._change(parcel, {"tries": parcel.tries + 1, "due": due, "error": clean(error)[:1000]})

    def history(self, *, limit: int, before: int | None = None) -> list[NoticeRecord]:
        """Newest first."""
        c = _notices.c
        query = select(_notices).order_by(c.id.desc()).limit(limit)
        with self._database.reading() as connection:
            rows = connection.execute(query if before is None else query.where(c.id < before)).mappings().all()
        names = {"rule": "rule_name", "channel": "channel_name"}
        return [NoticeRecord(**{field: row[names.get(field, field)] for field in NoticeRecord.__dataclass_fields__}) for row in rows]

    def forget(self, *, now: float) -> None:
        """What is too old. Rules tell of nothing that is as old, so none of it comes again."""
        c = _notices.c
        with self._database.reading() as connection:
            if connection.execute(select(c.id).order_by(c.id).where(c.at < now - KEPT, c.due.is_(None)).limit(1)).first() is None:
                return
        self._writer.do(lambda batch: batch.connection.execute(delete(_notices).where(c.at < now - KEPT, c.due.is_(None))))

    def _change(self, parcel: NoticeBundle, values: dict[str, Any]) -> None:
        self._writer.do(lambda batch: batch.connection.execute(update(_notices).where(_notices.c.id.in_(parcel.rows)).values(values)))


def _last(batch: Batch, rule: AlertRule, channel: Channel, group: str) -> float | None:
    c = _notices.c
    query = select(func.max(c.sent)).where(c.rule == rule.id, c.channel == channel.id, c.group == clean(group))
    last = batch.connection.execute(query).scalar()
    return None if last is None else float(last)


def _row(rule: AlertRule, channel: Channel, notice: Notice) -> dict[str, Any]:
    return {
        "rule": rule.id,
        "rule_name": rule.name,
        "channel": channel.id,
        "channel_name": channel.name,
        "key": clean(notice.key)[:500],
        "group": clean(notice.group)[:500],
        "run_id": notice.run_id,
        "level": str(notice.level),
        "title": clean(notice.title),
        "text": clean(notice.text),
        "at": notice.at,
    }


def _parcel(rows: Sequence[Any]) -> NoticeBundle:
    first = rows[0]
    return NoticeBundle(
        rule=first["rule_name"],
        channel=first["channel"],
        group=first["group"],
        notices=tuple(
            Notice(**{name: row[name] for name in ("key", "title", "text", "at", "group", "run_id")}, level=NoticeLevel(row["level"]))
            for row in rows
        ),
        rows=tuple(row["id"] for row in rows),
        tries=max(row["tries"] for row in rows),
    )
