"""Who is asking, and which runs that caller may read and write. Which calls it may make at all is in `rights`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from onward.errors import NotAllowed
from onward.model.identity import hex_id
from onward.tracker.access.tokens import Rights, Scope, Token

SAFE: Final = frozenset({"GET", "HEAD"})
_HINT: Final = "`onward token create` creates one for all runs"


@dataclass(frozen=True, kw_only=True)
class ApiCaller:
    """Who is asking, as the routes know them. Whatever is not a person's token may touch nothing but what it is for."""

    token: str  # its id, never the secret
    scope: Scope
    name: str = ""
    rights: Rights = Rights.READ
    run: str | None = None
    run_ended: bool = False
    cluster: str | None = None

    @classmethod
    def of(cls, token: Token) -> ApiCaller:
        return cls(
            token=token.id,
            scope=token.scope,
            name=token.name,
            rights=token.rights,
            run=token.run,
            run_ended=token.run_over,
            cluster=token.cluster,
        )

    @property
    def person(self) -> bool:
        return self.scope in (Scope.USER, Scope.SESSION)

    def is_mine(self, run: str) -> bool:
        """Whether a run's token is for this one, by either of its ids."""
        return self.scope is Scope.RUN and self.run is not None and run in (self.run, hex_id(self.run))

    def must_read(self, run: str) -> None:
        if not self.person and not self.is_mine(run):
            raise NotAllowed(f"this token is for another run than {run}", hint=_HINT)

    def must_write(self, run: str, *, cluster: str | None = None) -> None:
        """`cluster`: that of the run, where agents may write too."""
        if self.scope is Scope.AGENT and self.cluster is not None and cluster == self.cluster:
            return
        self.must_read(run)
        if self.person and not self.rights.include(Rights.WRITE):
            raise NotAllowed("this token may only read", hint="`onward token create --rights write` creates one that may write")

    def must_own(self, run: str | None, what: str) -> None:
        """For a thing that some run made, or none did."""
        if not self.person and (run is None or not self.is_mine(run)):
            raise NotAllowed(f"this token is for another run than that of {what}", hint=_HINT)
