"""Alerts: rules over what is known of runs, and the notices that follow from them. Pure.

A notice has a key, which names the occasion: the same key comes to the same channel once. It tells names, states and our own sentences;
what a program printed goes along only where the rule allows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from onward.model.quantity import duration_text

FRESH = 7 * 86400.0  # seconds: of what happened longer ago nobody is told any more
MOST_TRAINING_ALERTS = 20  # of what a training tells, at a time
_NAMED = 5  # metrics in a sentence
_AT_ONCE = 600.0  # seconds within which the same words of a training count as one


class AlertKind(StrEnum):
    STARTED = "started"  # after a wait in the queue
    FAILED = "failed"
    STALLED = "stalled"  # runs, and logs nothing
    OVERDUE = "checkpoint_overdue"
    NAN = "nan"
    METRIC = "metric"  # the rule's filter has come true
    FINISHED = "finished"
    QUOTA = "quota"  # a disk that runs are kept on
    TOLD = "told"  # the training said so itself: run.alert()


class NoticeLevel(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


USUAL_LIMITS: Mapping[AlertKind, float] = {
    AlertKind.STARTED: 600.0,
    AlertKind.STALLED: 1800.0,
    AlertKind.OVERDUE: 7200.0,
    AlertKind.QUOTA: 0.9,
}


@dataclass(frozen=True, kw_only=True)
class AlertRule:
    id: str
    name: str
    kind: AlertKind
    filter: str = ""  # which runs; of a metric rule, the condition itself
    after: float | None = None  # seconds; of a quota, the share that is used; None: the usual
    channels: tuple[str, ...] = ()
    lines: bool = False  # whether last lines of a program may be told
    enabled: bool = True
    since: float = 0.0  # what was over before then is not told

    @property
    def limit(self) -> float:
        return self.after if self.after is not None else USUAL_LIMITS.get(self.kind, 0.0)


@dataclass(frozen=True, kw_only=True)
class TrainingAlert:
    """A training's own words."""

    at: float
    level: str
    text: str


@dataclass(frozen=True, kw_only=True)
class WatchedRun:
    """A run, as far as rules ask."""

    run_id: str
    name: str
    experiment: str
    state: str
    leg: int = 0
    reason: str = ""  # in our own words
    next: str = ""
    lines: str = ""  # a program's last words
    ended: float | None = None
    queued: float | None = None
    begun: float | None = None  # when this leg's wait was over
    saved: float | None = None
    heard: float | None = None  # when it last logged anything
    step: int | None = None
    nans: tuple[str, ...] = ()  # metrics whose newest value is NaN or infinite
    alerts: tuple[TrainingAlert, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Notice:
    key: str
    title: str
    text: str
    at: float
    group: str  # notices of one group become one message
    level: NoticeLevel = NoticeLevel.INFO
    run_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class DiskUsage:
    path: str
    used: float  # 0 to 1


def notices_for(rule: AlertRule, run: WatchedRun, now: float) -> list[Notice]:
    """What a rule has to say of a run that its filter takes."""
    found = _JUDGES[rule.kind](rule, run, now)
    return [notice for notice in found if notice.at >= now - FRESH]


def notices_for_disk(rule: AlertRule, disk: DiskUsage, now: float) -> list[Notice]:
    if rule.kind is not AlertKind.QUOTA or disk.used < rule.limit:
        return []
    title = f"the disk of {disk.path} is {disk.used:.0%} full"
    text = "when it is full, checkpoints can no longer be stored and runs end"
    return [
        Notice(key=f"quota:{disk.path}:{int(now // 86400)}", title=title, text=text, at=now, group=disk.path, level=_full(disk)),
    ]


def _full(disk: DiskUsage) -> NoticeLevel:
    return NoticeLevel.ERROR if disk.used >= 0.98 else NoticeLevel.WARNING


def _started(rule: AlertRule, run: WatchedRun, now: float) -> list[Notice]:
    if run.state != "running" or run.begun is None or run.queued is None or run.begun < rule.since:
        return []
    waited = run.begun - run.queued
    if waited < rule.limit:
        return []
    return [_of(run, f"started:{run.leg}", f"started after {duration_text(waited)} in the queue", f"leg {run.leg} runs", at=run.begun)]


def _failed(rule: AlertRule, run: WatchedRun, now: float) -> list[Notice]:
    if run.state != "failed" or run.ended is None or run.ended < rule.since:
        return []
    text = "\n".join(line for line in (run.reason, f"next: {run.next}" if run.next else "") if line)
    if rule.lines and run.lines:
        text = f"{text}\n\n{run.lines}".strip()
    return [_of(run, f"failed:{run.leg}", "failed", text, at=run.ended, level=NoticeLevel.ERROR)]


def _finished(rule: AlertRule, run: WatchedRun, now: float) -> list[Notice]:
    if run.state != "finished" or run.ended is None or run.ended < rule.since:
        return []
    where = f"after {run.leg} legs" if run.leg > 1 else ""
    step = f"at step {run.step}" if run.step is not None else ""
    return [_of(run, f"finished:{run.leg}", "finished", " ".join(word for word in (where, step) if word), at=run.ended)]


def _stalled(rule: AlertRule, run: WatchedRun, now: float) -> list[Notice]:
    last = max((time for time in (run.heard, run.begun, run.saved) if time is not None), default=None)
    if run.state != "running" or last is None or now - last < rule.limit:
        return []
    at = f", since step {run.step}" if run.step is not None else ""
    text = f"running, but has logged nothing for {duration_text(now - last)}{at}"
    return [_of(run, f"stalled:{run.leg}:{run.step}", "shows no progress", text, at=last + rule.limit, level=NoticeLevel.WARNING)]


def _overdue(rule: AlertRule, run: WatchedRun, now: float) -> list[Notice]:
    last = max((time for time in (run.begun, run.saved) if time is not None), default=None)
    if run.state != "running" or last is None or now - last < rule.limit:
        return []
    since = "the last checkpoint" if run.saved == last else f"leg {run.leg} began"
    text = f"{duration_text(now - last)} of work since {since} would be lost if it died now"
    return [_of(run, f"overdue:{run.leg}:{run.saved}", "has saved no checkpoint", text, at=last + rule.limit, level=NoticeLevel.WARNING)]


def _nan(rule: AlertRule, run: WatchedRun, now: float) -> list[Notice]:
    if not run.nans or (run.ended is not None and run.ended < rule.since):
        return []
    named = ", ".join(run.nans[:_NAMED]) + (f" and {len(run.nans) - _NAMED} more" if len(run.nans) > _NAMED else "")
    at = f" at step {run.step}" if run.step is not None else ""
    return [_of(run, f"nan:{run.leg}", "logs NaN or infinity", f"{named}{at}", at=run.heard or now, level=NoticeLevel.WARNING)]


def _metric(rule: AlertRule, run: WatchedRun, now: float) -> list[Notice]:
    if run.ended is not None and run.ended < rule.since:
        return []
    return [_of(run, "metric", f"meets {rule.name}", rule.filter, at=run.heard or now, level=NoticeLevel.WARNING)]


def _told(rule: AlertRule, run: WatchedRun, now: float) -> list[Notice]:
    found = []
    for alert in run.alerts[:MOST_TRAINING_ALERTS]:
        if alert.at < rule.since:
            continue
        title, _, text = alert.text.partition("\n")
        level = {"ERROR": NoticeLevel.ERROR, "WARN": NoticeLevel.WARNING}.get(alert.level, NoticeLevel.INFO)
        found.append(_of(run, f"told:{int(alert.at // _AT_ONCE)}:{alert.text[:150]}", f"says: {title}", text, at=alert.at, level=level))
    return found


def _quota(rule: AlertRule, run: WatchedRun, now: float) -> list[Notice]:
    return []


def _of(run: WatchedRun, key: str, title: str, text: str, *, at: float, level: NoticeLevel = NoticeLevel.INFO) -> Notice:
    return Notice(
        key=f"{run.run_id}:{key}", title=f"{run.name} {title}", text=text, at=at, group=run.experiment, level=level, run_id=run.run_id
    )


_JUDGES: Mapping[AlertKind, Callable[[AlertRule, WatchedRun, float], list[Notice]]] = {
    AlertKind.STARTED: _started,
    AlertKind.FAILED: _failed,
    AlertKind.STALLED: _stalled,
    AlertKind.OVERDUE: _overdue,
    AlertKind.NAN: _nan,
    AlertKind.METRIC: _metric,
    AlertKind.FINISHED: _finished,
    AlertKind.QUOTA: _quota,
    AlertKind.TOLD: _told,
}
