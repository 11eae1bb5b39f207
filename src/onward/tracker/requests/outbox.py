"""The outbox of the gateway: what is to go back, until the broker has confirmed it; then its history."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, delete, func, select, update

from onward.model.requests.request import Outgoing, OutgoingKind
from onward.model.storable_text import clean
from onward.tracker.db.database import Database
from onward.tracker.requests.rows import insert_new, message_of, message_row
from onward.tracker.requests.schema import messages

_c = messages.c
_DISMISSED = "nobody came for it, and it was removed from the dead letters"
_KEPT = 86_400.0  # seconds
_PUT_ASIDE = (_c.kind == str(OutgoingKind.REPLY), _c.sent.is_(None), _c.due.is_(None), _c.tries > 0)  # as model's is_put_aside
_TO_SEND = _c.due >= 0  # as `due is not null`, for which SQLite reads the whole table and not the index
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 300.0  # seconds between tries; doubled with each


class Outbox:
    def __init__(self, database: Database) -> None:
        self._database = database

    def due(self, *, now: float, limit: int = 100) -> list[Outgoing]:
        """What is to be sent, answers first, then by age."""
        query = select(messages).where(_c.due <= now).order_by(_c.kind != str(OutgoingKind.REPLY), _c.number).limit(limit)
        with self._database.reading() as connection:
            return [message_of(row) for row in connection.execute(query)]

    def sent(self, ids: list[str], *, now: float) -> None:
        """The broker has confirmed them. Many share one commit."""
        with self._database.writing() as connection:
            connection.execute(update(messages).where(_c.id.in_(ids)).values(sent=now, due=None, error="", tries=_c.tries + 1))

    def failed(self, message: Outgoing, error: str, *, now: float) -> None:
        """It is tried again, later and later."""
        wait = min(_FIRST_WAIT * 2.0 ** min(message.tries, 20), _LONGEST_WAIT)
        with self._database.writing() as connection:
            unsent = update(messages).where(_c.id == message.id, _c.sent.is_(None))
            connection.execute(unsent.values(tries=message.tries + 1, due=now + wait, error=clean(error)[:1000]))

    def give_up(self, message: Outgoing, error: str) -> None:
        """Nobody waits for it any more."""
        with self._database.writing() as connection:
            connection.execute(
                update(messages).where(_c.id == message.id).values(tries=message.tries + 1, due=None, error=clean(error)[:1000])
            )

    def post(self, message: Outgoing) -> None:
        """Anything but a request's one answer, which `Requests.settle` and `refuse` write. Of one id there is one."""
        assert message.kind is not OutgoingKind.REPLY
        with self._database.writing() as connection:
            insert_new(connection, messages, message_row(message))

    def of(self, request: str) -> list[Outgoing]:
        """All that was or will be sent for a request, oldest first."""
        with self._database.reading() as connection:
            rows = connection.execute(select(messages).where(_c.request == request).order_by(_c.number))
            return [message_of(row) for row in rows]

    def replies(self, ids: Collection[str]) -> dict[str, Outgoing]:
        """The one answer of each of these requests that has it."""
        query = select(messages).where(_c.id.in_([f"{id}.reply" for id in ids]))
        with self._database.reading() as connection:
            return {message.request: message for message in map(message_of, connection.execute(query))}

    def forget(self, *, now: float) -> None:
        """Words by the way that were sent a day ago. Answers are kept with their requests."""
        with self._database.writing() as connection:
            connection.execute(delete(messages).where(_c.sent < now - _KEPT, _c.kind != str(OutgoingKind.REPLY)))

    def backlog(self) -> tuple[int, float | None]:
        """How many messages are to be sent, and since when the oldest."""
        with self._database.reading() as connection:
            count, oldest = connection.execute(select(func.count(), func.min(_c.made)).where(_TO_SEND)).one()
        return int(count), oldest

    def count_put_aside(self) -> int:
        with self._database.reading() as connection:
            return int(connection.execute(select(func.count()).where(*_PUT_ASIDE)).scalar_one())

    def again(self, id: str, *, now: float) -> bool:
        """Send this reply again, if it was given up. True also if that was asked before, or it was sent since."""
        with self._database.writing() as connection:
            connection.execute(update(messages).where(_c.id == id, *_PUT_ASIDE).values(due=now))
            known = select(_c.id).where(_c.id == id, _c.kind == str(OutgoingKind.REPLY), _c.sent.is_not(None) | _c.due.is_not(None))
            return connection.execute(known).first() is not None

    def dismiss(self, id: str) -> None:
        """Nobody will send this reply, which was given up."""
        with self._database.writing() as connection:
            connection.execute(update(messages).where(_c.id == id, *_PUT_ASIDE).values(tries=0, error=_DISMISSED))

    def next_due(self) -> float | None:
        with self._database.reading() as connection:
            due = connection.execute(select(_c.due).where(_c.due.is_not(None)).order_by(_c.due).limit(1)).scalar()
        return None if due is None else float(due)


def drop_progress(connection: Connection, request: str) -> None:
    """What newer words have overtaken before it was sent."""
    old = (_c.request == request, _c.kind == str(OutgoingKind.PROGRESS), _c.sent.is_(None))
    connection.execute(delete(messages).where(*old))
