"""Rights: which tokens a route accepts. Pure.

A person's token (a user's or a session's) has read, write or admin. The other kinds are narrow: a route that does not name one of them
refuses it. A run's token is also held to its run: by the gate where the address names the run, by the route where only the body does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from onward.api.access.caller import ApiCaller
from onward.tracker.access.tokens import Rights, Scope


class RunAccess(StrEnum):
    """What a route does with a run's token."""

    NO = "no"
    ANY = "any"  # the route concerns no run
    PATH = "path"  # `run_id` of the address must be the token's run: the gate checks
    BODY = "body"  # the request names runs, models or experiments elsewhere: the route checks each of them
    OWN = "own"  # whatever it names, the answer concerns the token's own run and nothing else


@dataclass(frozen=True, kw_only=True)
class Right:
    user: Rights | None  # the least that a person's token must have; None: no token is needed
    run: RunAccess = RunAccess.NO
    agent: bool = False  # held to the runs of its cluster by the route
    webhook: bool = False
    link: bool = False  # a signed address, which opens only itself
    after_end: bool = False  # a run's token may do this for a while after its run has ended: its last job still sends


PUBLIC = Right(user=None)
READ = Right(user=Rights.READ)
WRITE = Right(user=Rights.WRITE)
ADMIN = Right(user=Rights.ADMIN)
READ_RUN = Right(user=Rights.READ, run=RunAccess.PATH)
WRITE_RUN = Right(user=Rights.WRITE, run=RunAccess.PATH)
SEND_RUN = Right(user=Rights.WRITE, run=RunAccess.PATH, after_end=True)
READ_NAMED = Right(user=Rights.READ, run=RunAccess.BODY)
WRITE_NAMED = Right(user=Rights.WRITE, run=RunAccess.BODY)
READ_OWN = Right(user=Rights.READ, run=RunAccess.OWN)
WRITE_OWN = Right(user=Rights.WRITE, run=RunAccess.OWN)
SEND_NAMED = Right(user=Rights.WRITE, run=RunAccess.BODY, agent=True, after_end=True)
ABOUT = Right(user=Rights.READ, run=RunAccess.ANY)
HEALTH = Right(user=Rights.READ, run=RunAccess.ANY, agent=True)
HINT = Right(user=Rights.WRITE, agent=True, webhook=True)
RESULT = Right(user=Rights.READ, link=True)


def refusal(caller: ApiCaller, right: Right, run: str | None) -> str | None:
    """Why this caller may not do this; None: it may. `run`: the one that the address names."""
    if right.user is None:
        return None
    match caller.scope:
        case Scope.USER | Scope.SESSION:
            return None if caller.rights.include(right.user) else _TOO_LITTLE[right.user]
        case Scope.RUN if right.run is not RunAccess.NO:
            if right.run is RunAccess.PATH and (run is None or not caller.is_mine(run)):
                return "this token is for another run"
            if caller.run_ended and not right.after_end:
                return f"run {caller.run} has ended, so its token is no longer valid"
            return None
        case Scope.AGENT if right.agent:
            return None
        case Scope.WEBHOOK if right.webhook:
            return None
        case Scope.LINK if right.link:
            return None
        case _:
            return f"a {caller.scope} token may not do this"


_TOO_LITTLE = {
    Rights.READ: "this token may not read",
    Rights.WRITE: "this token may only read",
    Rights.ADMIN: "only an admin's token may do this",
}
