"""Look at runs by the rules of alerts, and send what there is to tell. One server of a database does this, in its background."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onward.clock import Clock
from onward.errors import NotDelivered, StorageError
from onward.model.alerts.message import AlertMessage, compose
from onward.model.alerts.rules import AlertKind, AlertRule, DiskUsage, Notice, NoticeLevel, notices_for, notices_for_disk
from onward.operations.alerts.channel_secrets import ChannelSecrets
from onward.operations.alerts.webhooks import deliver
from onward.tracker.alerts.rules import Channel
from onward.tracker.alerts.run_snapshots import changed_or_open, matching_runs, snapshot_runs
from onward.tracker.store import Tracker

log = logging.getLogger(__name__)

_DISKS_EVERY = 60.0  # seconds
_REMEMBERED = 100_000

DueAlert = tuple[AlertRule, Channel, Notice]


@dataclass(kw_only=True)
class AlertService:
    tracker: Tracker
    secrets: ChannelSecrets
    clock: Clock
    roots: Callable[[], Sequence[Path]]
    url: str = ""  # of this server, for links
    carry: Callable[..., None] = deliver
    _known: set[tuple[str, str, str]] = field(default_factory=set)  # put into the outbox before, as far as remembered
    _disks_at: float = 0.0

    def look(self) -> int:
        """Put what the rules find into the outbox; how many notices were new."""
        now = self.clock.now()
        channels = {channel.id: channel for channel in self.tracker.alerts.channels() if channel.enabled}
        rules = [rule for rule in self.tracker.alerts.rules() if rule.enabled and any(id in channels for id in rule.channels)]
        if not rules:
            return 0
        cursor = self.tracker.notices.cursor()
        found = self._disks(rules, channels, now)
        with self.tracker.reading_points() as connection:
            infos, reached = changed_or_open(connection, cursor)
            sights = snapshot_runs(connection, infos, cursor)
            for rule in rules:
                for id in matching_runs(connection, rule, list(sights), now=now):
                    found += _for_all(rule, channels, notices_for(rule, sights[id], now))
        new = [one for one in found if _name(one) not in self._known]
        if not new and reached == cursor:
            return 0
        count = self.tracker.notices.put(new, reached, now=now)
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        self._known.update(map(_name, new))
        return count

    def send(self) -> int:
        """Send what is due; how many messages went out. A channel that failed is left alone until the next time."""
        now, sent, troubled = self.clock.now(), 0, set[str]()
        channels = {channel.id: channel for channel in self.tracker.alerts.channels()}
        for parcel in self.tracker.notices.due(now):
            if parcel.channel in troubled:
                continue
            channel = channels.get(parcel.channel)
            if channel is None or not channel.enabled:
                self.tracker.notices.failed(parcel, "the channel is switched off", now=now, for_good=True)
                continue
            message = compose(parcel.rule, parcel.group, parcel.notices, channel=parcel.channel, url=self.url)
            self.tracker.notices.bundle(parcel, message.id)
            try:
                self.carry(channel, self.secrets.of(channel.id), message, now=self.clock.now())
            except (NotDelivered, StorageError) as error:
                troubled.add(channel.id)
                log.warning("an alert could not be sent to %s: %s", channel.name, error.message)
                self.tracker.notices.failed(parcel, error.message, now=self.clock.now(), for_good=not error.transient)
            else:
                sent += 1
                self.tracker.notices.sent(parcel, now=self.clock.now())
        self.tracker.notices.forget(now=now)
        return sent

    def test(self, channel: Channel) -> None:
        """A message for the channel alone, at once. Raises what keeps it from arriving."""
        now = self.clock.now()
        title, text = "Onward can reach this channel", "A test: alerts of the rules that use this channel will arrive here."
        notice = Notice(key=f"test:{channel.id}:{now}", title=title, text=text, at=now, group="", level=NoticeLevel.INFO)
        message: AlertMessage = compose("test", "", [notice], channel=channel.id, url=self.url)
        self.carry(channel, self.secrets.of(channel.id), message, now=now)

    def _disks(self, rules: Sequence[AlertRule], channels: Mapping[str, Channel], now: float) -> list[DueAlert]:
        asked = [rule for rule in rules if rule.kind is AlertKind.QUOTA]
        if not asked or now < self._disks_at + _DISKS_EVERY:
            return []
        self._disks_at = now
        disks = [disk for disk in map(disk_use, self.roots()) if disk]
        return [one for rule in asked for disk in disks for one in _for_all(rule, channels, notices_for_disk(rule, disk, now))]


def disk_use(path: Path) -> DiskUsage | None:
    """How full the disk of a folder, be it made yet or not, is for its user, as df says it; file counts too. None where it does not say."""
    there = next((folder for folder in (path, *path.parents) if folder.exists()), path)
    try:
        seen = os.statvfs(there)
    except OSError:
        return None
    shares = []
    for total, free, open_to_us in ((seen.f_blocks, seen.f_bfree, seen.f_bavail), (seen.f_files, seen.f_ffree, seen.f_favail)):
        if total > 0 and total - free + open_to_us > 0:
            shares.append((total - free) / (total - free + open_to_us))
    return DiskUsage(path=str(path), used=max(shares)) if shares else None


def _for_all(rule: AlertRule, channels: Mapping[str, Channel], notices: Sequence[Notice]) -> list[DueAlert]:
    return [(rule, channels[id], notice) for notice in notices for id in rule.channels if id in channels]


def _name(one: DueAlert) -> tuple[str, str, str]:
    rule, channel, notice = one
    return rule.id, channel.id, notice.key
