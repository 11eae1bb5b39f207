"""Message: what a channel is sent, made of the notices of one rule and group; and when it may be sent. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo

from onward.errors import InvalidInput
from onward.model.alerts.rules import Notice, NoticeLevel

GATHER = 20.0  # seconds that a notice waits for others like it
SPACING = 300.0  # seconds between two messages of one rule and group
FIRST_WAIT = 30.0  # seconds after a first failure; doubled with each
LONGEST_WAIT = 3600.0
MOST_TRIES = 14  # about eight hours
_LISTED = 20  # notices in a digest
_LONGEST = 3000  # characters of one notice's text
_TITLE = 150
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_RANK = {NoticeLevel.INFO: 0, NoticeLevel.WARNING: 1, NoticeLevel.ERROR: 2}


@dataclass(frozen=True, kw_only=True)
class AlertMessage:
    id: str  # the same whenever it is sent again, so that a receiver can tell
    rule: str
    level: NoticeLevel
    title: str
    text: str
    link: str
    runs: tuple[str, ...]
    at: float


@dataclass(frozen=True, kw_only=True)
class QuietHours:
    """Hours of the day in which nothing is sent; what comes then waits."""

    begins: str  # 22:00
    ends: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        for text in (self.begins, self.ends):
            if not _CLOCK.fullmatch(text):
                raise InvalidInput(f"{text!r} is not a time of day", hint="write it like 22:00")
        if self.begins == self.ends:
            raise InvalidInput(f"quiet hours from {self.begins} to {self.ends} cover the whole day", hint="switch the channel off instead")
        try:
            self._zone()
        except (KeyError, ValueError, OSError) as error:
            raise InvalidInput(f"{self.zone!r} is not a time zone", hint="write it like Europe/Berlin, or UTC") from error

    def over(self, now: float) -> float:
        """When something that is there now may be sent: at once, or when the quiet hours end."""
        here = datetime.fromtimestamp(now, self._zone())
        begins, ends = _of_day(self.begins), _of_day(self.ends)
        at = here.time()
        if not (begins <= at < ends if begins < ends else at >= begins or at < ends):
            return now
        day = here.date() + timedelta(days=1 if at >= ends else 0)
        return datetime.combine(day, ends, here.tzinfo).timestamp()

    def _zone(self) -> tzinfo:
        from zoneinfo import ZoneInfo  # brings what is no part of a job's archive, and no job asks for the hour

        return ZoneInfo(self.zone)


def send_time(now: float, *, last: float | None, quiet: QuietHours | None) -> float:
    """When a new notice is to be sent, after the last message of its rule and group."""
    at = max(now + GATHER, (last or 0.0) + SPACING)
    return quiet.over(at) if quiet else at


def retry_time(now: float, tries: int) -> float | None:
    """When to try again after so many failures; None: never."""
    return now + min(FIRST_WAIT * 2.0 ** (tries - 1), LONGEST_WAIT) if tries < MOST_TRIES else None


def compose(rule: str, group: str, notices: Sequence[Notice], *, channel: str, url: str) -> AlertMessage:
    """One message of one notice or of many. Every text is a single line or plain lines; nothing in it is markup."""
    first = notices[0]
    key = hashlib.sha256("\n".join([channel, *sorted(notice.key for notice in notices)]).encode(errors="replace")).hexdigest()[:32]
    runs = tuple(dict.fromkeys(notice.run_id for notice in notices if notice.run_id))
    level = max((notice.level for notice in notices), key=lambda level: _RANK[level])
    if len(notices) == 1:
        title, text = first.title, first.text[:_LONGEST]
    else:
        title = f"{rule}: {len(notices)} notices of {group}"
        listed = [_short(notice) for notice in notices[:_LISTED]]
        text = "\n".join([*listed, *([f"and {len(notices) - _LISTED} more"] if len(notices) > _LISTED else [])])
    return AlertMessage(
        id=f"msg_{key}",
        rule=rule,
        level=level,
        title=one_line(title)[:_TITLE],
        text=text,
        link=_link(url, runs),
        runs=runs,
        at=max(notice.at for notice in notices),
    )


def one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _short(notice: Notice) -> str:
    text = one_line(notice.text)
    return one_line(notice.title)[:_TITLE] + (f": {text[:200]}" if text else "")


def _link(url: str, runs: tuple[str, ...]) -> str:
    if not url:
        return ""
    return f"{url}/runs/{runs[0]}" if len(runs) == 1 else f"{url}/alerts" if not runs else f"{url}/"


def _of_day(text: str) -> time:
    return time(int(text[:2]), int(text[3:]))
