"""Channels of alerts: Slack, mail, signed webhooks. An admin's to make; what they keep secret goes in and never comes out."""

from __future__ import annotations

import base64
import re
import secrets
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.schemas.base import In, Text
from onward.api.services import Services
from onward.errors import InvalidInput, NotDelivered
from onward.model.alerts.message import QuietHours
from onward.operations.alerts.webhooks import PREFIX, check_webhook_url
from onward.tracker.alerts.rules import Channel

router = APIRouter(prefix="/api/v1/alerts/channels", tags=["alerts"])

ChannelId = Annotated[str, Path(max_length=32, pattern=r"^[0-9a-f]+$", description="The channel's id.")]
Host = Annotated[str, Field(pattern=r"^[A-Za-z0-9.:_-]+$", max_length=250)]
Mail = Annotated[str, Field(pattern=r"^[^\s@<>,;:\"\\\x00-\x1f]+@[^\s@<>,;:\"\\\x00-\x1f]+$", max_length=250)]
_KEY = re.compile(rf"(?:{PREFIX})?[A-Za-z0-9+/]{{32,200}}={{0,2}}")


class QuietIn(In):
    begins: str = Field(max_length=5, description="A time of day: 22:00.")
    ends: str = Field(max_length=5, description="A time of day: 07:00.")
    zone: str = Field(default="UTC", max_length=100, description="A time zone: Europe/Berlin.")


class _Named(In):
    name: Annotated[Text, Field(min_length=1, max_length=250)]
    quiet: QuietIn | None = Field(default=None, description="Hours in which nothing is sent; notices wait until they are over.")
    enabled: bool = True


class SlackIn(_Named):
    kind: Literal["slack"]
    url: Annotated[Text, Field(max_length=2000)] | None = Field(default=None, description="An incoming webhook; left out: unchanged.")


class WebhookIn(_Named):
    kind: Literal["webhook"]
    url: Annotated[Text, Field(max_length=2000)] | None = Field(default=None, description="Where to post; left out: unchanged.")
    key: Annotated[Text, Field(max_length=250)] | None = Field(
        default=None, description="Signs messages (whsec_…, base64); left out: unchanged, or generated."
    )


class EmailIn(_Named):
    kind: Literal["email"]
    host: Host = Field(description="The SMTP server.")
    port: int = Field(default=587, ge=1, le=65535)
    security: Literal["tls", "starttls", "none"] = "starttls"
    user: Annotated[Text, Field(max_length=250)] = ""
    password: Annotated[Text, Field(max_length=1000)] | None = Field(default=None, description="Left out: unchanged.")
    sender: Mail
    to: list[Mail] = Field(min_length=1, max_length=50)


ChannelIn = Annotated[SlackIn | WebhookIn | EmailIn, Field(discriminator="kind")]


class QuietOut(BaseModel):
    begins: str
    ends: str
    zone: str


class ChannelOut(BaseModel):
    id: str
    name: str
    kind: Literal["slack", "webhook", "email"]
    target: dict[str, Any] = Field(description="Where it sends, without secrets.")
    quiet: QuietOut | None
    enabled: bool
    created: float
    ready: bool = Field(description="Whether this server has the secrets that it needs.")


class ChannelList(BaseModel):
    channels: list[ChannelOut]


class NewChannel(BaseModel):
    channel: ChannelOut
    key: str | None = Field(description="The key that signs a webhook's messages, if it was generated now: shown only once.")


class ChannelTestResult(BaseModel):
    delivered: bool
    words: str = Field(description="Why it did not arrive, and what to do.")


@router.get("", summary="List alert channels")
def listed(svc: Svc) -> ChannelList:
    """By name."""
    return ChannelList(channels=[_told(svc, channel) for channel in svc.tracker.alerts.channels()])


@router.post("", summary="Create a channel", status_code=201)
def make(svc: Svc, asked: ChannelIn) -> NewChannel:
    """Needs an admin's token. Its secrets are kept in a file that only the server reads, and are never returned."""
    return _save(svc, None, asked)


@router.put("/{channel}", summary="Change a channel")
def change(svc: Svc, channel: ChannelId, asked: ChannelIn) -> NewChannel:
    """Needs an admin's token. Secrets that are left out stay unchanged."""
    return _save(svc, svc.tracker.alerts.channel(channel), asked)


@router.delete("/{channel}", summary="Delete a channel", status_code=204)
def delete(svc: Svc, channel: ChannelId) -> None:
    """Needs an admin's token. Its rules continue without it."""
    svc.tracker.alerts.delete_channel(channel)
    svc.alerting.secrets.forget(channel)


@router.post("/{channel}/test", summary="Send a test to a channel")
def test(svc: Svc, channel: ChannelId) -> ChannelTestResult:
    """Needs an admin's token. Sends at once, even in quiet hours, and says whether it was accepted."""
    try:
        svc.alerting.test(svc.tracker.alerts.channel(channel))
    except NotDelivered as error:
        return ChannelTestResult(delivered=False, words=error.message)
    return ChannelTestResult(delivered=True, words="")


def _save(svc: Services, held: Channel | None, asked: SlackIn | WebhookIn | EmailIn) -> NewChannel:
    if held and held.kind != asked.kind:
        raise InvalidInput(f"channel {held.name!r} is for {held.kind}", hint=f"create a new one for {asked.kind}")
    before = dict(svc.alerting.secrets.of(held.id)) if held else {}
    secret, target, made = _parts(asked, before)
    kept = Channel(
        id=held.id if held else "",
        name=asked.name,
        kind=asked.kind,
        target=target,
        quiet=QuietHours(**asked.quiet.model_dump()) if asked.quiet else None,
        enabled=asked.enabled,
        created=held.created if held else 0.0,
    )
    saved = svc.tracker.alerts.save_channel(kept, now=svc.clock.now())
    if secret != before:
        svc.alerting.secrets.keep(saved.id, secret)
    return NewChannel(channel=_told(svc, saved), key=made)


def _parts(asked: SlackIn | WebhookIn | EmailIn, before: dict[str, str]) -> tuple[dict[str, str], dict[str, Any], str | None]:
    """The secrets, what may be told, and a key that was made."""
    if isinstance(asked, EmailIn):
        if asked.user and asked.security == "none":
            raise InvalidInput("a password would be sent unencrypted", hint="choose tls or starttls, or no user")
        password = asked.password if asked.password is not None else before.get("password")
        target = asked.model_dump(include={"host", "port", "security", "user", "sender", "to"})
        return ({"password": password} if password else {}), target, None
    url = asked.url or before.get("url")
    if not url:
        raise InvalidInput("the channel has no address", hint="set url to the receiver's address")
    secret, made = {"url": url}, None
    if isinstance(asked, WebhookIn):
        if asked.key is not None and not _KEY.fullmatch(asked.key):
            raise InvalidInput("the key must be at least 24 bytes, in base64", hint="leave it out to generate one")
        key = asked.key or before.get("key")
        made = None if key else PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
        secret["key"] = key or made or ""
    return secret, {"host": check_webhook_url(url).hostname or ""}, made


def _told(svc: Services, channel: Channel) -> ChannelOut:
    ready = (channel.kind == "email" and not channel.target.get("user")) or bool(svc.alerting.secrets.of(channel.id))
    quiet = QuietOut(begins=channel.quiet.begins, ends=channel.quiet.ends, zone=channel.quiet.zone) if channel.quiet else None
    return ChannelOut(
        id=channel.id,
        name=channel.name,
        kind=channel.kind,  # type: ignore[arg-type]
        target=dict(channel.target),
        quiet=quiet,
        enabled=channel.enabled,
        created=channel.created,
        ready=ready,
    )
