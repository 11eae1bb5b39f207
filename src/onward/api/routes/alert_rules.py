"""Alerts: rules, what they told, and the training's own words. Channels are in `alert_channels`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.schemas.base import In, Text
from onward.model.alerts.rules import AlertKind, AlertRule, NoticeLevel

router = APIRouter(prefix="/api/v1/alerts", tags=["alerts"])

RuleId = Annotated[str, Path(max_length=32, pattern=r"^[0-9a-f]+$", description="The rule's id.")]


class RuleIn(In):
    name: Annotated[Text, Field(min_length=1, max_length=250)]
    kind: AlertKind = Field(description="What it reports.")
    filter: Annotated[Text, Field(max_length=10_000)] = Field(default="", description="Which runs; for `metric`, the condition itself.")
    after: float | None = Field(
        default=None, ge=0, le=1e9, description="Seconds of waiting, of silence, or without a checkpoint; for `quota`, the share used."
    )
    channels: list[Annotated[str, Field(max_length=32)]] = Field(default_factory=list, max_length=50, description="Ids of channels.")
    lines: bool = Field(default=False, description="Whether to send the last lines that a failed program printed, too.")
    enabled: bool = True


class RuleOut(BaseModel):
    id: str
    name: str
    kind: AlertKind
    filter: str
    after: float | None
    limit: float = Field(description="`after`, or the default.")
    channels: list[str]
    lines: bool
    enabled: bool
    since: float

    @classmethod
    def of(cls, rule: AlertRule) -> RuleOut:
        return cls(**{**asdict(rule), "channels": list(rule.channels)}, limit=rule.limit)


class RuleList(BaseModel):
    rules: list[RuleOut]


class NoticeOut(BaseModel):
    id: int
    rule: str
    channel: str
    run_id: str | None
    level: NoticeLevel
    title: str
    text: str
    at: float
    due: float | None = Field(description="When it is sent or retried; none: it was sent, or will not be retried.")
    tries: int
    sent: float | None
    error: str


class NoticeList(BaseModel):
    notices: list[NoticeOut]


@router.get("/rules", summary="List alert rules")
def rules(svc: Svc) -> RuleList:
    """By name."""
    return RuleList(rules=[RuleOut.of(rule) for rule in svc.tracker.alerts.rules()])


@router.post("/rules", summary="Create a rule", status_code=201)
def make_rule(svc: Svc, asked: RuleIn) -> RuleOut:
    """It applies to what happens from now on."""
    return RuleOut.of(svc.tracker.alerts.save_rule(_rule("", asked), now=svc.clock.now()))


@router.put("/rules/{rule}", summary="Change a rule")
def change_rule(svc: Svc, rule: RuleId, asked: RuleIn) -> RuleOut:
    """Replaces the whole rule. It applies to what happens from now on."""
    svc.tracker.alerts.rule(rule)
    return RuleOut.of(svc.tracker.alerts.save_rule(_rule(rule, asked), now=svc.clock.now()))


@router.delete("/rules/{rule}", summary="Delete a rule", status_code=204)
def delete_rule(svc: Svc, rule: RuleId) -> None:
    """Its notices stay in the history."""
    svc.tracker.alerts.delete_rule(rule)


@router.get("/history", summary="List sent notices")
def history(
    svc: Svc,
    limit: Annotated[int, Query(ge=1, le=500, description="The most to return.")] = 50,
    before: Annotated[int | None, Query(ge=0, le=1 << 53, description="Only those older than the one with this number.")] = None,
) -> NoticeList:
    """Newest first, including pending ones: one row per notice and channel."""
    return NoticeList(notices=[NoticeOut(**asdict(entry)) for entry in svc.tracker.notices.history(limit=limit, before=before)])


def _rule(id: str, asked: RuleIn) -> AlertRule:
    return AlertRule(id=id, **{**asked.model_dump(), "channels": tuple(dict.fromkeys(asked.channels))})
