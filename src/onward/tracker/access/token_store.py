"""Tokens in the database: made, checked, used up, revoked. Only digests are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, Update, delete, insert, or_, select, update

from onward.errors import InvalidInput, NotFound
from onward.tracker.access.tokens import Rights, Scope, Secret, Token, fits, mint, parse, run_token_until
from onward.tracker.db.writer import Batch
from onward.tracker.schema import runs, tokens

if TYPE_CHECKING:
    from onward.tracker.store import Tracker

_USED_EVERY = 60.0  # seconds: how exactly `last_used` is kept
_FORGET_AFTER = 7 * 86400.0  # login codes and sessions that are over
_OVER = ("finished", "failed", "cancelled")
_OF_RUN = (runs.c.state.label("run_state"), runs.c.ended.label("run_ended"), runs.c.archived.label("run_archived"))
_SELECT = select(tokens, *_OF_RUN, runs.c.updated.label("run_updated")).join_from(tokens, runs, tokens.c.run == runs.c.run_id, isouter=True)


class TokenStore:
    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker

    def create(
        self,
        scope: Scope,
        *,
        name: str = "",
        rights: Rights = Rights.WRITE,
        run: str | None = None,
        cluster: str | None = None,
        expires: float | None = None,
        parent: str | None = None,
        now: float,
    ) -> tuple[Token, Secret]:
        """A new one. Its secret is in this answer and nowhere else."""
        if scope is Scope.RUN and not run:
            raise InvalidInput("a run token needs a run", hint="name the run it may write to")
        if scope is Scope.AGENT and not cluster:
            raise InvalidInput("an agent token needs a cluster", hint="name the cluster that it acts for")
        if len(name) > 250 or "\x00" in name:
            raise InvalidInput("a token's name may have at most 250 characters, without NUL")
        id, secret, digest = mint(scope)
        token = Token(
            id=id,
            scope=scope,
            digest=digest,
            name=name,
            rights=rights,
            run=run,
            cluster=cluster,
            created=now,
            expires=expires,
            parent=parent,
        )

        def job(batch: Batch) -> None:
            old = now - _FORGET_AFTER
            brief = tokens.c.scope.in_([Scope.LOGIN, Scope.SESSION])
            batch.connection.execute(delete(tokens).where(brief, or_(tokens.c.expires < old, tokens.c.revoked < old)))
            batch.connection.execute(insert(tokens).values({name: getattr(token, name) for name in tokens.c.keys()}))  # noqa: SIM118

        self._tracker.write(job)
        return token, secret

    def check(self, text: str, *, now: float) -> Token | None:
        """The token, if it is one of ours and stands."""
        token = self._find(text)
        if token is None or not token.stands(now) or not self._parent_stands(token, now):
            return None
        if token.last_used is None or now - token.last_used > _USED_EVERY:
            self._tracker.submit(lambda batch: _run(batch, _set(token.id, last_used=now)))  # nobody waits for it
        return token

    def redeem(self, text: str, *, now: float) -> Token | None:
        """Use up a login code: of two who try at once, one gets in."""
        token = self._find(text)
        if token is None or token.scope is not Scope.LOGIN or not token.stands(now):
            return None

        used = _set(token.id, revoked=now, last_used=now).where(tokens.c.revoked.is_(None))
        return token if self._tracker.write(lambda batch: _run(batch, used)) else None

    def revoke(self, id: str, *, now: float) -> Token:
        """By its id, or the beginning of one. Twice is once."""
        token = self.named(id)

        self._tracker.write(lambda batch: _run(batch, _set(token.id, revoked=now).where(tokens.c.revoked.is_(None))))
        return token

    def named(self, id: str) -> Token:
        start = id.split("_")[1] if id.startswith("ow") and id.count("_") else id  # a whole token, or its shown part, also names it
        found = [token for token in self.all() if start and token.id.startswith(start)]
        if len(found) != 1:
            what = f"{len(found)} tokens begin with" if found else "there is no token"
            raise NotFound(f"{what} {start[:32]!r}", hint="`onward token list --all` shows their ids")
        return found[0]

    def all(self) -> list[Token]:
        with self._tracker.reading() as connection:
            return [_token(row) for row in connection.execute(_SELECT.order_by(tokens.c.created, tokens.c.id))]

    def _parent_stands(self, token: Token, now: float) -> bool:
        if token.parent is None:
            return True
        with self._tracker.reading() as connection:
            row = connection.execute(_SELECT.where(tokens.c.id == token.parent)).one_or_none()
        return row is not None and _token(row).stands(now)

    def _find(self, text: str) -> Token | None:
        parsed = parse(text)
        if parsed is None:
            return None
        scope, id = parsed
        with self._tracker.reading() as connection:
            row = connection.execute(_SELECT.where(tokens.c.id == id)).one_or_none()
        token = _token(row) if row is not None else None
        return token if token is not None and token.scope is scope and fits(token, text) else None


def _set(id: str, **values: Any) -> Update:
    return update(tokens).where(tokens.c.id == id).values(**values)


def _run(batch: Batch, statement: Update) -> int:
    """How many rows it changed."""
    return int(batch.connection.execute(statement).rowcount)


def _token(row: Row[Any]) -> Token:
    data = row._asdict()
    kept = {name: data[name] for name in tokens.c.keys()}  # noqa: SIM118
    kept |= {"scope": Scope(data["scope"]), "rights": Rights(data["rights"])}
    return Token(**kept, **_of_run(data)) if kept["scope"] is Scope.RUN else Token(**kept)


def _of_run(data: dict[str, Any]) -> dict[str, Any]:
    if data["run_state"] is None:  # there is no such run any more
        return {"run_over": True, "run_until": 0.0}
    over = data["run_state"] in _OVER
    ended = data["run_ended"] if data["run_ended"] is not None else data["run_updated"]
    return {"run_over": over, "run_until": run_token_until(data["created"], over=over, ended=ended, archived=data["run_archived"])}
