"""The server's chores: read what runs wrote, tell listeners what changed, send alerts, tend runs. Of several, one sends and tends."""

from __future__ import annotations

import logging
import time

from sqlalchemy import select

from onward.api.background.chore_threads import Chore
from onward.api.extensions import server_extensions
from onward.api.run_folders.pushed import read_events
from onward.api.server_log import note
from onward.api.services import Services
from onward.operations.repair.tend import tend
from onward.tracker import schema

_TEND_EVERY = 30.0
_TEND_GAP = 5.0  # schedulers are not asked more often than this, however many jobs end
_READ_EVERY = 1.0
_TELL_EVERY = 0.25
_ALERT_EVERY = 5.0
_WAIT = 1.0  # seconds for a commit of ours; others' are asked for as often
_AT_ONCE = 1000


def server_chores(svc: Services, *, tend: bool) -> list[Chore]:
    telling = ChangeFeed(svc)
    reading = Chore(name="read", every=_READ_EVERY, do=lambda: read_folders(svc))
    alerting = Chore(name="alert", every=_ALERT_EVERY, do=lambda: send_alerts(svc))
    chores = [reading, Chore(name="tell", every=_TELL_EVERY, do=telling.tell), alerting]
    return [*chores, Chore(name="tend", every=_TEND_EVERY, gap=_TEND_GAP, do=lambda: tend_runs(svc))] if tend else chores


def read_folders(svc: Services) -> None:
    """Journals, spools and event files of the runs under our roots; event files of those that were sent."""
    if not svc.tracker.election.won():
        return
    for problem in [*svc.tracker.files.look(svc.context.roots).problems, *read_events(svc)]:
        note(logging.WARNING, "read", problem)


def send_alerts(svc: Services) -> None:
    """Nothing is loaded for it while there are no channels: most servers have none."""
    if not svc.tracker.election.won() or not svc.tracker.alerts.channels():
        return
    svc.alerting.look()
    svc.alerting.send()


def tend_runs(svc: Services) -> None:
    if not svc.tracker.election.won():
        return
    done = tend(svc.context, among=svc.tracker.files.open_folders())
    svc.tracker.standings.say_why(done.said)
    done.problems += [words for one in server_extensions() for words in one.tend(svc)]
    svc.last_tended, svc.tend_problems = svc.clock.now(), done.problems
    for words in done.acted:
        note(logging.INFO, "tend", words)
    for words in done.problems:
        note(logging.WARNING, "tend", words)


class ChangeFeed:
    """From commits to events: whoever made them, this server or another of the same database."""

    def __init__(self, svc: Services) -> None:
        self._svc = svc
        self._seen = -1
        self._states: dict[str, str] = {}

    def tell(self) -> None:
        tracker = self._svc.tracker
        if self._seen < 0:
            self._begin()
        if tracker.database.is_file:
            tracker.wait_beyond(self._seen, _WAIT)
        now = tracker.version()
        if now <= self._seen:
            if not tracker.database.is_file:
                time.sleep(_WAIT)
            return
        changed = tracker.runs.changes(self._seen, limit=_AT_ONCE)
        for run in changed:
            if self._states.get(run.run_id) != run.state:
                self._states[run.run_id] = run.state
                self._svc.live.status_changed(run.run_id, run.state)
            else:
                self._svc.live.tell("run_changed", run.run_id, state=run.state, last_step=run.last_step)
        newest = max((run.version for run in changed), default=0)
        self._seen = newest if len(changed) == _AT_ONCE else max(newest, now)

    def _begin(self) -> None:
        tracker = self._svc.tracker
        self._seen = tracker.version()
        with tracker.reading() as connection:
            rows = connection.execute(select(schema.runs.c.run_id, schema.runs.c.state))
            self._states = {row.run_id: row.state for row in rows}
