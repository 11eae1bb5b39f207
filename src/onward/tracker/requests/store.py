"""Requests: the gateway's store. Thread-safe; several processes may have it open. Whatever a method acknowledges is committed.

requests = Requests.open(place.requests)        # a path, or postgresql://…; create=False: NotFound where there is none
accept(request) / accept_all([…])               Taken: accepted, the same again, another of that id, or no room
refuse(request, reason)                         it never gets a run; its one answer says why
of(id)  find(id)  list(…)  counts()  load(…)    to look
end(id, by=…)                                   ask for its end; whoever serves sees to it
unsettled  plan_run  set_run  put_off  running  tell  settle      for whoever serves
outbox: due sent failed post of                 what goes back
sign  verify                                    addresses of results
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, or_, select, update

from onward.errors import NotAllowed, NotFound
from onward.model.requests.outcome import Outcome, OutcomeFile, refusal
from onward.model.requests.request import (
    OPEN_STATES,
    OutgoingKind,
    Request,
    RequestEnding,
    RequestRecord,
    RequestState,
    account_of,
    make_outgoing,
    make_reply,
)
from onward.model.requests.secrets import redacted
from onward.model.storable_text import clean
from onward.tracker.db.database import Database
from onward.tracker.requests.open_store import open_store
from onward.tracker.requests.outbox import Outbox, drop_progress
from onward.tracker.requests.reply_queues import add_reply_queue, answer_the_others
from onward.tracker.requests.rows import forget_secrets, insert_new, message_row, record_of, request_row
from onward.tracker.requests.schema import messages, requests

_c = requests.c
_IS_OPEN = _c.state.in_([str(state) for state in OPEN_STATES])
_IN_LINE = _c.state == str(RequestState.ACCEPTED)
_STANDING = func.coalesce(_c.outcome_state, _c.state)
_TAKEN = "use an id for one request only: send this one again under another"
_LATER = "send it again later, under another id"


class Acceptance(StrEnum):
    ACCEPTED = "accepted"
    SAME = "same"  # known already: nothing was done, and nothing needs to be
    OTHER = "other"  # its id is another request's: refused, and said so in the outbox
    FULL = "full"  # no room for it: refused, and said so in the outbox


class Requests:
    def __init__(self, database: Database, key: bytes) -> None:
        """Use `open`."""
        self.database = database
        self.outbox = Outbox(database)
        self.id = hashlib.sha256(b"onward store " + key).hexdigest()[:16]  # tells one gateway's store from another's
        self._key = key

    @classmethod
    def open(cls, address: str | Path, *, create: bool = True) -> Requests:
        return cls(*open_store(address, create=create))

    def close(self) -> None:
        self.database.close()

    # ── in ────────────────────────────────────────────────────────────────────

    def accept(self, request: Request, *, quota: int | None = None, most: int | None = None) -> Acceptance:
        return self.accept_all([request], quota=quota, most=most)[0]

    def accept_all(self, given: Sequence[Request], *, quota: int | None = None, most: int | None = None) -> list[Acceptance]:
        """All in one commit. `quota`: open requests that a sender may have; `most`: that there may be at all."""
        with self.database.writing() as connection:
            open_now = _open_by_sender(connection) if quota is not None or most is not None else {}
            return [self._take(connection, request, open_now, quota, most) for request in given]

    def _take(self, connection: Connection, request: Request, open_now: dict[str, int], quota: int | None, most: int | None) -> Acceptance:
        full = _no_room(request, open_now, quota, most)
        if full:
            taken = self._refuse(connection, request, full, _LATER)
            return Acceptance.FULL if taken is Acceptance.ACCEPTED else taken
        if not insert_new(connection, requests, request_row(request) | {"state": str(RequestState.ACCEPTED)}):
            return self._again(connection, request)
        account = account_of(request.sender)
        open_now[account] = open_now.get(account, 0) + 1
        return Acceptance.ACCEPTED

    def refuse(self, request: Request, reason: str, *, next: str = "") -> Acceptance:
        """ACCEPTED here means that the refusal is written; SAME that it, or an acceptance, was before."""
        with self.database.writing() as connection:
            return self._refuse(connection, request, reason, next)

    def _refuse(self, connection: Connection, request: Request, reason: str, next: str) -> Acceptance:
        outcome = refusal(reason, next=next)
        values = _over(RequestState.REFUSED, outcome, request.received)
        if not insert_new(connection, requests, request_row(redacted(request)) | values):
            return self._again(connection, request)
        insert_new(connection, messages, message_row(make_reply(request, outcome, run=None, at=request.received)))
        return Acceptance.ACCEPTED

    def _again(self, connection: Connection, request: Request) -> Acceptance:
        held = connection.execute(select(_c.body_sha256).where(_c.id == request.id)).scalar_one()
        if held == request.body_sha256:
            add_reply_queue(connection, request)
            return Acceptance.SAME
        words = {"reason": f"another request with the id {request.id} already exists", "next": _TAKEN}
        name = f"other.{request.body_sha256[:16]}"
        insert_new(connection, messages, message_row(make_outgoing(request, OutgoingKind.ERROR, words, name=name, at=request.received)))
        return Acceptance.OTHER

    def end(self, id: str, *, by: str, at: float, why: RequestEnding = RequestEnding.CANCELLED) -> RequestRecord:
        """Ask for its end, once: what was asked first stays. How it stands after that."""
        asked = {"ending": str(why), "ending_by": clean(by), "ending_at": at, "due": 0.0}
        with self.database.writing() as connection:
            connection.execute(update(requests).where(_c.id == id, _IS_OPEN, _c.ending.is_(None)).values(**asked))
        return self.of(id)

    # ── to look ───────────────────────────────────────────────────────────────

    def find(self, id: str) -> RequestRecord | None:
        with self.database.reading() as connection:
            row = connection.execute(select(requests).where(_c.id == id)).one_or_none()
        return record_of(row) if row is not None else None

    def of(self, id: str) -> RequestRecord:
        found = self.find(id)
        if found is None:
            raise NotFound(f"there is no request {clean(id)[:100]!r}", hint="`onward request --status ID` asks the gateway it was sent to")
        return found

    def list(self, *, states: Collection[str] = (), text: str = "", limit: int = 100, before: int | None = None) -> list[RequestRecord]:
        """Newest first; `before` is the number of the last one of the page before.

        `states` are words of RequestState while a request is open, of OutcomeState from then on. `text` is part of its id, sender or
        recipe, or the id of its run.
        """
        query = select(requests).order_by(_c.number.desc()).limit(limit)
        query = query.where(_STANDING.in_(states)) if states else query
        if text:
            like = [column.icontains(clean(text), autoescape=True) for column in (_c.id, _c.sender, _c.recipe)]
            query = query.where(or_(*like, _c.run == clean(text)))
        query = query.where(_c.number < before) if before is not None else query
        with self.database.reading() as connection:
            return [record_of(row) for row in connection.execute(query)]

    def counts(self) -> dict[str, int]:
        """How many there are of each of those words."""
        with self.database.reading() as connection:
            held = connection.execute(select(_STANDING, func.count()).group_by(_STANDING))
            return {str(row[0]): int(row[1]) for row in held}

    def oldest_open(self) -> float | None:
        """When it came."""
        with self.database.reading() as connection:
            return connection.execute(select(func.min(_c.received)).where(_IS_OPEN)).scalar()

    def oldest_in_line(self) -> float | None:
        """When the oldest that has no run yet came."""
        with self.database.reading() as connection:
            return connection.execute(select(func.min(_c.received)).where(_IN_LINE)).scalar()

    def load(self, sender: str) -> int:
        """How many requests of a sender are open."""
        with self.database.reading() as connection:
            return int(connection.execute(select(func.count()).where(_IS_OPEN, _c.sender == sender)).scalar_one())

    def unsettled(self) -> Sequence[RequestRecord]:
        """All that are open: the more urgent first, then in the order in which they came."""
        with self.database.reading() as connection:
            rows = connection.execute(select(requests).where(_IS_OPEN).order_by(_c.priority.desc(), _c.number))
            return [record_of(row) for row in rows]

    # ── for whoever serves ────────────────────────────────────────────────────

    def followed(self) -> Sequence[RequestRecord]:
        """Those that have a run, in the order in which they came."""
        with self.database.reading() as connection:
            rows = connection.execute(select(requests).where(_IS_OPEN, _c.folder.is_not(None)).order_by(_c.number))
            return [record_of(row) for row in rows]

    def waiting(self, *, now: float, limit: int, without: Collection[str] = ()) -> Sequence[RequestRecord]:
        """The next that may get one: the more urgent first, then who came first. `without`: recipes that are not to be asked for now."""
        query = select(requests).where(_IN_LINE, _c.due <= now).order_by(_c.priority.desc(), _c.number).limit(limit)
        with self.database.reading() as connection:
            return [record_of(row) for row in connection.execute(query.where(_c.recipe.not_in(without)) if without else query)]

    def line(self) -> dict[str, int]:
        """How many have none yet, of each recipe."""
        with self.database.reading() as connection:
            rows = connection.execute(select(_c.recipe, func.count()).where(_IN_LINE).group_by(_c.recipe))
            return {str(row[0]): int(row[1]) for row in rows}

    def late(self, recipe: str, *, now: float, limit: float | None) -> Sequence[RequestRecord]:
        """Those in the line for this recipe that must wait no longer: to be ended, past their deadline, or there for `limit` seconds."""
        over = [_c.ending.is_not(None), _c.deadline <= now, *([] if limit is None else [_c.received <= now - limit])]
        with self.database.reading() as connection:
            return [record_of(row) for row in connection.execute(select(requests).where(_IN_LINE, _c.recipe == recipe, or_(*over)))]

    def plan_run(self, id: str, run: str) -> None:
        """The id its run will have, before there is one: so that a crash cannot make two."""
        self._change(id, {"run": run}, _c.run.is_(None))

    def set_run(self, id: str, *, run: str, folder: str, at: float) -> None:
        """The run it has: not always the one that was planned here, since another gateway may have made one first."""
        values = {"state": str(RequestState.SUBMITTED), "run": run, "folder": folder, "submitted": at, "words": ""}
        with self.database.writing() as connection:
            connection.execute(update(requests).where(_c.id == id, _c.state == str(RequestState.ACCEPTED)).values(**values))
            forget_secrets(connection, id)

    def has_run_under(self, root: str) -> bool:
        """Whether any request ever had its run in this folder."""
        query = select(_c.id).where(_c.folder.startswith(f"{root.rstrip('/')}/", autoescape=True)).limit(1)
        with self.database.reading() as connection:
            return connection.execute(query).first() is not None

    def put_off(self, id: str, *, until: float, words: str) -> None:
        """It could not be submitted, or ended, now."""
        self._change(id, {"due": until, "words": clean(words)[:2000], "tries": _c.tries + 1}, _IS_OPEN)

    def running(self, id: str) -> None:
        self._change(id, {"state": str(RequestState.RUNNING)}, _c.state == str(RequestState.SUBMITTED))

    def tell(self, record: RequestRecord, payload: Mapping[str, Any], *, at: float, send: bool) -> None:
        """How it gets on: kept with it, and sent to those whose protocol has words for it. What was not sent yet is overtaken."""
        with self.database.writing() as connection:
            values = {"progress": json.dumps(payload), "progress_at": at}
            changed = connection.execute(update(requests).where(_c.id == record.id, _IS_OPEN).values(**values)).rowcount
            if changed and send:
                drop_progress(connection, record.id)
                message = make_outgoing(record.request, OutgoingKind.PROGRESS, payload, name=f"progress.{at:.3f}", at=at)
                insert_new(connection, messages, message_row(message))

    def settle(self, record: RequestRecord, outcome: Outcome, *, at: float, send: bool = True) -> bool:
        """Its end and its one answer, in one commit. False: it had them already. `send` False: another gateway sends the answer."""
        values = _over(RequestState.SETTLED, outcome, at)
        with self.database.writing() as connection:
            if not connection.execute(update(requests).where(_c.id == record.id, _IS_OPEN).values(**values)).rowcount:
                return False
            drop_progress(connection, record.id)
            run = connection.execute(select(_c.run).where(_c.id == record.id, _c.folder.is_not(None))).scalar()
            row = connection.execute(select(requests).where(_c.id == record.id)).one()
            request = record_of(row).request  # its reply queue may be another by now
            reply = make_reply(request, outcome, run=run, at=at)
            insert_new(connection, messages, message_row(reply, send=send))
            answer_the_others(connection, request, reply)
            forget_secrets(connection, record.id)
            return True

    def _change(self, id: str, values: Mapping[str, Any], *only: Any) -> None:
        with self.database.writing() as connection:
            connection.execute(update(requests).where(_c.id == id, *only).values(**values))

    def tidy(self, *, now: float) -> None:
        """What need not be kept: words by the way, and secrets that an older version left here."""
        self.outbox.forget(now=now)
        with self.database.writing() as connection:
            for id in connection.execute(
                select(_c.id).where(
                    _c.folder.is_not(None) | _c.settled.is_not(None),
                    _c.content.contains("?"),
                    ~_c.content.contains("?\\u2026", autoescape=True),
                )
            ).all():
                forget_secrets(connection, id[0])
        if self.database.is_file:
            with self.database.engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")

    # ── addresses of results ──────────────────────────────────────────────────

    def sign(self, id: str, name: str, expires: int) -> str:
        """What lets whoever has the address fetch this one result, until then."""
        text = json.dumps(["onward result", id, name, int(expires)])
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()

    def verify(self, id: str, name: str, expires: int, signature: str, *, now: float) -> OutcomeFile:
        """The result that an address stands for."""
        if not hmac.compare_digest(self.sign(id, name, expires).encode(), signature.encode(errors="replace")):
            raise NotAllowed("this address was not signed by this server", hint="copy it unchanged from the reply")
        if now >= expires:
            raise NotAllowed("this address is no longer valid", hint="the results are in the run's folder, and its page shows them")
        outcome = self.of(id).outcome
        for result in outcome.results if outcome else ():
            if result.name == name:
                return result
        raise NotFound(f"request {id} has no result {name!r}", hint="the reply lists the results")


def _over(state: RequestState, outcome: Outcome, at: float) -> dict[str, Any]:
    values = {"outcome": json.dumps(outcome.to_json()), "outcome_state": str(outcome.state)}
    return {"state": str(state), "settled": at, "words": "", **values}


def _open_by_sender(connection: Connection) -> dict[str, int]:
    found: dict[str, int] = {}
    for sender, count in connection.execute(select(_c.sender, func.count()).where(_IS_OPEN).group_by(_c.sender)):
        found[account_of(sender)] = found.get(account_of(sender), 0) + int(count)
    return found


def _no_room(request: Request, open_now: Mapping[str, int], quota: int | None, most: int | None) -> str:
    if most is not None and sum(open_now.values()) >= most:
        return f"the queue is full: {most} requests are open already"
    account = account_of(request.sender)
    if quota is not None and open_now.get(account, 0) >= quota:
        return f"{account} already has {quota} open requests, the most that one sender may have"
    return ""
