"""Tokens over HTTP, for admins."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from onward.api.dependencies import Svc, Who
from onward.tracker.access.tokens import Rights, Scope, Token

router = APIRouter(prefix="/api/v1/tokens", tags=["tokens"])


class TokenIn(BaseModel):
    model_config = ConfigDict(extra="forbid")
    scope: Literal["user", "run", "agent", "webhook"] = Field(default="user", description="What it is for.")
    name: str = Field(default="", max_length=250, description="Whose, or what for: shown in lists.")
    rights: Rights = Field(default=Rights.WRITE, description="For a user's token.")
    run: str | None = Field(default=None, max_length=64, description="The run that a run token may write to.")
    cluster: str | None = Field(default=None, max_length=250, description="The cluster that an agent acts for.")
    expires_in: float | None = Field(
        default=None, gt=0, le=10 * 366 * 86400, description="Seconds from now; none: it is valid until revoked."
    )


class TokenOut(BaseModel):
    id: str
    scope: Scope
    name: str
    rights: Rights
    run: str | None
    cluster: str | None
    created: float
    expires: float | None
    revoked: float | None
    last_used: float | None
    ends: float | None = Field(description="When it stops working: it expires, or its run ended.")
    ends_soon: bool = Field(description="It expires within 14 days.")

    @classmethod
    def of(cls, token: Token, now: float) -> TokenOut:
        kept = {name: value for name, value in vars(token).items() if name in cls.model_fields}
        return cls(**kept, ends=token.ends, ends_soon=token.ends_soon(now))


class NewToken(BaseModel):
    token: TokenOut
    secret: str = Field(description="Shown only once.")


class TokenList(BaseModel):
    tokens: list[TokenOut]


@router.get("", summary="List tokens")
def listed(svc: Svc) -> TokenList:
    """All of them, revoked ones too, oldest first. Secrets are not kept and cannot be shown."""
    return TokenList(tokens=[TokenOut.of(token, svc.clock.now()) for token in svc.tokens.all()])


@router.post("", summary="Create a token", status_code=201)
def create(svc: Svc, who: Who, asked: TokenIn) -> NewToken:
    """Only this answer contains the secret."""
    now = svc.clock.now()
    token, secret = svc.tokens.create(
        Scope(asked.scope),
        name=asked.name or who.name,
        rights=asked.rights,
        run=svc.tracker.runs.get(asked.run).run_id if asked.run else None,
        cluster=asked.cluster,
        expires=now + asked.expires_in if asked.expires_in else None,
        now=now,
    )
    return NewToken(token=TokenOut.of(token, now), secret=secret.text)


@router.delete("/{id}", summary="Revoke a token")
def revoke(svc: Svc, id: Annotated[str, Path(max_length=64, description="Its id.")]) -> TokenOut:
    """It stops working at once. Repeating it changes nothing."""
    svc.tokens.revoke(id, now=svc.clock.now())
    svc.book.forget()
    return TokenOut.of(svc.tokens.named(id), svc.clock.now())
