"""Tokens: what one looks like, what it may do, and how it is kept. Pure; `token_store` keeps them.

`owu_3f9a1c02_<43 characters>`: a letter for the scope, an id that may be shown and logged, and 256 random bits that may not. The
database holds the SHA-256 of the secret, so reading it opens nothing.

    user     a person: read, write or admin          `onward token create`
    run      appends to one run and reads it; ends    made at submit, delivered in a 0600 file
             when the run does
    agent    what one cluster tells: records of its   for a machine without shared storage
             own runs, hints
    webhook  hints of a scheduler's epilog, nothing else
    login    once, within minutes: turned into a session
    session  what the login cookie holds: a user's
    link     none that is made or kept: who came by the signed address of a result
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    USER = "user"
    RUN = "run"
    AGENT = "agent"
    WEBHOOK = "webhook"
    LOGIN = "login"
    SESSION = "session"
    LINK = "link"


class Rights(StrEnum):
    """What a user's token may do; each holds the one before."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def include(self, wanted: Rights) -> bool:
        return _ORDER[self] >= _ORDER[wanted]


_ORDER = {rights: index for index, rights in enumerate(Rights)}

SOON = 14 * 86400.0  # seconds: who will lose a token is told this long before
AFTER_END = 3600.0  # seconds in which the last job of a run may send what is left
AFTER_ARCHIVE = 30 * 86400.0
UNTIL_RESUMED = 30 * 86400.0  # seconds in which a token that was made for a run's next leg waits for that leg


_LETTERS = {Scope.USER: "u", Scope.RUN: "r", Scope.AGENT: "a", Scope.WEBHOOK: "w", Scope.LOGIN: "l", Scope.SESSION: "s"}
_SCOPES = {letter: scope for scope, letter in _LETTERS.items()}
_FORM = re.compile(r"ow([uarwls])_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
_LOOKS_LIKE_ONE = re.compile(r"(ow[a-z]_[0-9a-f]{8})_[A-Za-z0-9_-]{8,}")


@dataclass(frozen=True, kw_only=True)
class Token:
    """One that is kept. `run` and `cluster` say what a narrow one is for."""

    id: str
    scope: Scope
    digest: str
    name: str = ""
    rights: Rights = Rights.WRITE
    run: str | None = None
    cluster: str | None = None
    created: float = 0.0
    expires: float | None = None
    revoked: float | None = None
    last_used: float | None = None
    parent: str | None = None  # of a session: the token that it was made from, and dies with
    run_over: bool = False  # of a run's token: its run has ended, so it may only send the rest. Not stored, as the next
    run_until: float | None = None  # of a run's token: when it ends because of its run

    @property
    def ends(self) -> float | None:
        """When it will end by itself; None: not that we know."""
        return min((at for at in (self.expires, self.run_until) if at is not None), default=None)

    def stands(self, now: float) -> bool:
        return self.revoked is None and (self.ends is None or now < self.ends)

    def ends_soon(self, now: float) -> bool:
        """Worth telling its owner: a long-lived token that has days left. Sessions and login codes are short by design."""
        lasting = self.scope in (Scope.USER, Scope.RUN, Scope.AGENT, Scope.WEBHOOK)
        brief = self.expires is not None and self.expires - self.created <= SOON
        return lasting and not brief and self.stands(now) and self.expires is not None and self.expires - now <= SOON


def run_token_until(created: float, *, over: bool, ended: float, archived: float | None) -> float | None:
    """When a run's token ends because of its run; None while the run goes on. `created`: of the token; `archived`: when the run was.

    One that was made after the run's end was made for a leg that is to come (`onward resume`): it waits for that longer. A run that was
    archived while it goes on still needs its token; but nobody may ever tell how it ends."""
    if over:
        return created + UNTIL_RESUMED if created > ended else ended + AFTER_END
    return archived + AFTER_ARCHIVE if archived is not None else None


@dataclass(frozen=True)
class Secret:
    """A token as its holder has it. Printed once, by whoever asked for it; never shown by accident."""

    text: str

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__


def mint(scope: Scope) -> tuple[str, Secret, str]:
    """A new id, the text for its holder, and the digest to keep."""
    id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    text = f"ow{_LETTERS[scope]}_{id}_{secret}"
    return id, Secret(text), digest(text)


def parse(text: str) -> tuple[Scope, str] | None:
    """Scope and id of what has the form of a token; None for anything else."""
    match = _FORM.fullmatch(text)
    return (_SCOPES[match[1]], match[2]) if match else None


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def fits(token: Token, text: str) -> bool:
    """In the same time whatever is wrong with it."""
    return hmac.compare_digest(token.digest, digest(text))


def redact(text: str) -> str:
    """The text with every secret part of a token in it blotted out."""
    return _LOOKS_LIKE_ONE.sub(r"\1_…", text) if "ow" in text else text
