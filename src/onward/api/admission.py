"""Who may knock where: a table over method and path. What is not in it is not allowed; users alone may go everywhere their rights reach.

A run's token is held to its run here wherever the address names one. Where only the body does (MLflow's calls, pushed records), the
route asks `caller.must_write(run)` itself; those rows say so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from onward.errors import NotAllowed
from onward.model.identity import hex_id
from onward.tracker.tokens import Rights, Scope, Token

SAFE: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who is asking, as the routes know them."""

    token: str  # its id, never the secret
    scope: Scope
    name: str = ""
    rights: Rights = Rights.READ
    run: str | None = None
    cluster: str | None = None

    @classmethod
    def of(cls, token: Token) -> Caller:
        return cls(token=token.id, scope=token.scope, name=token.name, rights=token.rights, run=token.run, cluster=token.cluster)

    @property
    def person(self) -> bool:
        return self.scope in (Scope.USER, Scope.SESSION)

    def must_read(self, run: str) -> None:
        if not self.person and not self.is_mine(run):
            raise NotAllowed(f"this token is for another run than {run}", hint="`onward token create` makes one for all runs")

    def is_mine(self, run: str) -> bool:
        """By either of a run's ids; the run of an agent is any of its cluster's, which the route knows."""
        return self.run is None or run in (self.run, hex_id(self.run))

    def must_own(self, run: str | None, what: str) -> None:
        """For a thing that some run made, or none did."""
        if not self.person and self.run is not None and (run is None or not self.is_mine(run)):
            raise NotAllowed(f"this token is for another run than that of {what}", hint="`onward token create` makes one for all runs")

    def must_write(self, run: str) -> None:
        self.must_read(run)
        if self.person and not self.rights.include(Rights.WRITE):
            raise NotAllowed("this token may only read", hint="`onward token create --rights write` makes one that may write")


_HEALTH = ("GET|HEAD", r"/(?:healthz|readyz)")
_APPEND = "metrics(?:/batch)?|artifacts(?:/.*)?|params|tags|records|(?:packed-)?pieces"
_NOT_TO_APPEND = "experiments/|runs/(?:delete|restore|delete-tag)$"  # MLflow's; nor does a run's token take anything away

_TABLE: Final[dict[Scope, tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]]] = {
    scope: tuple((re.compile(methods), re.compile(path)) for methods, path in rows)
    for scope, rows in {
        Scope.RUN: (
            _HEALTH,
            ("GET|HEAD", r"(?:/api/v1)?/runs/(?P<run>[^/]+)(?:/.*)?"),
            ("POST|PUT", rf"(?:/api/v1)?/runs/(?P<run>[^/]+)/(?:{_APPEND})"),
            ("PATCH", r"/runs/(?P<run>[^/]+)"),
            ("POST", r"/experiments/.+/runs"),  # asked for by body: answers with the token's own run
            ("POST", r"/api/v1/records"),  # held to the run inside
            ("GET|HEAD|POST", r"/api/2\.0/mlflow/experiments/(?:get|get-by-name|search|create)"),  # held to the run's own inside
            ("GET|HEAD|POST|PUT|PATCH", rf"/api/2\.0/mlflow(?:-artifacts)?/(?!{_NOT_TO_APPEND}).*"),  # held to the run inside
            ("GET|HEAD", r"/api/3\.0/mlflow/.*"),
        ),
        Scope.AGENT: (
            _HEALTH,
            ("POST", r"/api/v1/records"),
            ("POST", r"/webhooks/[a-z-]+"),
        ),
        Scope.WEBHOOK: (("POST", r"/webhooks/[a-z-]+"),),
        Scope.LOGIN: (),
        Scope.LINK: (("GET|HEAD", r"/api/v1/requests/[^/]+/results/.+"),),  # the one that was signed: `links` has looked
    }.items()
}
_READING_BY_POST: Final = re.compile(r"/api/(?:v1|2\.0/mlflow)/(?:.*/)?search")
_ADMIN: Final = {"tokens": re.compile(r"/api/v1/tokens(?:/.*)?"), "channels": re.compile(r"/api/v1/alerts/channels(?:/.*)?")}


def refusal(caller: Caller, method: str, path: str) -> str | None:
    """Why this caller may not do this here; None: come in."""
    if caller.person:
        managed = next((what for what, pattern in _ADMIN.items() if pattern.fullmatch(path)), None)
        if managed and not caller.rights.include(Rights.ADMIN) and not (managed == "channels" and method in SAFE):
            return f"only an admin's token may manage {managed}"
        if method not in SAFE and not caller.rights.include(Rights.WRITE) and not _READING_BY_POST.fullmatch(path):
            return "this token may only read"
        return None
    for methods, pattern in _TABLE[caller.scope]:
        match = pattern.fullmatch(path)
        if match is None or not methods.fullmatch(method):
            continue
        named = match.groupdict().get("run")
        return None if named is None or caller.is_mine(named) else "this token is for another run"
    return f"a {caller.scope} token may not do this"
