"""Rules and channels of alerts, as rows. What a channel keeps secret is not here."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import RowMapping, Table, delete, exc, func, insert, select, update

from onward.errors import Conflict, InvalidInput, NotFound
from onward.model.alerts.message import QuietHours
from onward.model.alerts.rules import AlertKind, AlertRule
from onward.model.storable_text import check_text
from onward.tracker import schema
from onward.tracker.db.database import Database
from onward.tracker.db.writer import Batch, Writer
from onward.tracker.search.filter import filter_condition

MOST = 200  # rules, and channels

_rules, _channels = schema.alert_rules, schema.alert_channels


@dataclass(frozen=True, kw_only=True)
class Channel:
    id: str
    name: str
    kind: str  # slack, email, webhook
    target: Mapping[str, Any]  # where to
    quiet: QuietHours | None = None
    enabled: bool = True
    created: float = 0.0


class Alerts:
    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    # ── rules ─────────────────────────────────────────────────────────────────

    def rules(self) -> list[AlertRule]:
        with self._database.reading() as connection:
            return [_rule(row) for row in connection.execute(select(_rules).order_by(_rules.c.name)).mappings()]

    def rule(self, id: str) -> AlertRule:
        with self._database.reading() as connection:
            row = connection.execute(select(_rules).where(_rules.c.id == id)).mappings().first()
        if row is None:
            raise NotFound(f"there is no rule {id[:60]!r}", hint="GET /api/v1/alerts/rules lists them")
        return _rule(row)

    def save_rule(self, rule: AlertRule, *, now: float) -> AlertRule:
        """Make it (`id` empty), or replace it. From now on: what was over before is not told."""
        self._check(rule, now)
        values = {**asdict(rule), "id": rule.id or secrets.token_hex(8), "channels": json.dumps(rule.channels), "since": now}
        self._save(_rules, values, new=not rule.id, what="rule")
        return self.rule(values["id"])

    def delete_rule(self, id: str) -> None:
        """What it told stays in the history; what waits is not sent any more."""
        self.rule(id)

        def job(batch: Batch) -> None:
            batch.connection.execute(delete(_rules).where(_rules.c.id == id))
            _drop_waiting(batch, schema.notices.c.rule == id, "its rule was deleted")

        self._writer.do(job)

    def _check(self, rule: AlertRule, now: float) -> None:
        check_text(rule.name, rule.filter)
        if rule.kind is AlertKind.METRIC and not rule.filter.strip():
            raise InvalidInput("a rule about a metric needs a condition", hint="write it as a filter: metrics.loss > 10")
        if rule.kind is AlertKind.QUOTA and not 0 < rule.limit <= 1:
            raise InvalidInput(f"a disk is never {rule.limit} full", hint="write the share that is used: 0.9 for 90 %")
        filter_condition(rule.filter, now=now)  # says what is wrong with it
        known = {channel.id for channel in self.channels()}
        for id in rule.channels:
            if id not in known:
                raise InvalidInput(f"there is no channel {id[:60]!r}", hint="GET /api/v1/alerts/channels lists them")

    # ── channels ──────────────────────────────────────────────────────────────

    def channels(self) -> list[Channel]:
        with self._database.reading() as connection:
            return [_channel(row) for row in connection.execute(select(_channels).order_by(_channels.c.name)).mappings()]

    def channel(self, id: str) -> Channel:
        found = next((channel for channel in self.channels() if channel.id == id), None)
        if found is None:
            raise NotFound(f"there is no channel {id[:60]!r}", hint="GET /api/v1/alerts/channels lists them")
        return found

    def save_channel(self, channel: Channel, *, now: float) -> Channel:
        """Make it (`id` empty), or replace it."""
        check_text(channel.name, json.dumps(dict(channel.target)))
        values: dict[str, Any] = {
            "id": channel.id or secrets.token_hex(8),
            "name": channel.name,
            "kind": channel.kind,
            "target": json.dumps(dict(channel.target)),
            "quiet": json.dumps(asdict(channel.quiet)) if channel.quiet else None,
            "enabled": channel.enabled,
            "created": channel.created if channel.id else now,
        }
        self._save(_channels, values, new=not channel.id, what="channel")
        return self.channel(values["id"])

    def delete_channel(self, id: str) -> None:
        """Rules go on without it."""
        self.channel(id)

        def job(batch: Batch) -> None:
            batch.connection.execute(delete(_channels).where(_channels.c.id == id))
            for row in batch.connection.execute(select(_rules.c.id, _rules.c.channels)).all():
                left = [channel for channel in json.loads(row.channels) if channel != id]
                batch.connection.execute(update(_rules).where(_rules.c.id == row.id).values(channels=json.dumps(left)))
            _drop_waiting(batch, schema.notices.c.channel == id, "its channel was deleted")

        self._writer.do(job)

    def _save(self, table: Table, values: dict[str, Any], *, new: bool, what: str) -> None:
        def job(batch: Batch) -> None:
            c = table.c
            if batch.connection.execute(select(c.id).where(c.name == values["name"], c.id != values["id"])).first():
                raise Conflict(f"there is already a {what} named {values['name'][:60]!r}", hint="use another name")
            if new and batch.connection.execute(select(func.count()).select_from(table)).scalar_one() >= MOST:
                raise InvalidInput(f"there are already {MOST} {what}s", hint="delete some first")
            if new:
                batch.connection.execute(insert(table).values(values))
            else:
                batch.connection.execute(update(table).where(c.id == values["id"]).values(values))

        try:
            self._writer.do(job)
        except exc.IntegrityError as error:
            raise Conflict(f"there is already a {what} named {values['name'][:60]!r}", hint="use another name") from error


def _drop_waiting(batch: Batch, of: Any, why: str) -> None:
    table = schema.notices
    batch.connection.execute(update(table).where(of, table.c.due.is_not(None)).values(due=None, error=why))


def _rule(row: RowMapping) -> AlertRule:
    return AlertRule(**{**row, "kind": AlertKind(row["kind"]), "channels": tuple(json.loads(row["channels"]))})


def _channel(row: RowMapping) -> Channel:
    quiet = QuietHours(**json.loads(row["quiet"])) if row["quiet"] else None
    return Channel(**{**row, "target": json.loads(row["target"]), "quiet": quiet})
