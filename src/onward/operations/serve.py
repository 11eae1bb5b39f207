"""Serve: see to it that every accepted request gets its run, and every one its answer. One step at a time, by one process at a time.

    accepted ─▶ its run is made, or it has failed, or it is put off ─▶ its run is followed ─▶ settled, with its answer in the outbox

All that is remembered is in the store and in the run folders, so whoever serves may be killed at any time, and another goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onward.errors import OnwardError, StorageError, StorageFull, StorageUnavailable
from onward.model.outcome import Outcome, OutcomeState
from onward.model.request import Ending, RequestRecord, deadline_of
from onward.operations.serve_follow import Follower
from onward.operations.serve_parts import KnowsRecipes, Parts, ServeSettings
from onward.operations.serve_progress import Teller
from onward.operations.serve_submit import Submitter, ended_unsubmitted
from onward.operations.tend import tend
from onward.operations.wiring import Desk
from onward.tracker.elect import Office
from onward.tracker.requests import Requests

log = logging.getLogger(__name__)

_AWAY = 15.0  # seconds in which a cluster that did not answer is left alone
_TEND_EVERY = 30.0
_TEND_IDLE = 300.0  # a run that was cancelled while its cluster was away may still have a job
_TIDY_EVERY = 3600.0
_MOST_FAULTS = 5  # of ours, about one request, before it is given up
_FAULT_WAIT, _LONGEST_WAIT = 10.0, 300.0  # seconds between tries


@dataclass(kw_only=True)
class Stepped:
    """What one step did."""

    served: bool = True  # False: another process does
    open: int = 0
    submitted: int = 0
    settled: int = 0

    @property
    def busy(self) -> bool:
        """There may be more to do at once."""
        return bool(self.submitted or self.settled)


class Serve:
    def __init__(self, *, desk: Desk, requests: Requests, recipes: KnowsRecipes, settings: ServeSettings) -> None:
        parts = Parts(desk=desk, requests=requests, recipes=recipes, settings=settings)
        self._parts = parts
        self._office = Office(requests.database)
        self._submitter = Submitter(parts)
        self._follower = Follower(parts)
        self._teller = Teller(parts)
        self._deadlines: dict[str, float | None] = {}
        self._away: dict[str, float] = {}  # by recipe, each of which has one cluster: until when that is left alone
        self._tended = self._tidied = 0.0

    def close(self) -> None:
        self._office.leave()

    def step(self) -> Stepped:
        if not self._office.won():
            return Stepped(served=False)
        records = self._parts.requests.unsettled()
        done = Stepped(open=len(records))
        self._deadlines = {record.id: self._deadline(record) for record in records}
        followed = [record for record in records if record.folder is not None]
        for record in followed:
            done.settled += self._guarded(record, self._follow)
        self._teller.tell([record for record in followed if record.ending is None])
        done.submitted = self._submit([record for record in records if record.folder is None], room=self._room(followed))
        self._look_after(records)
        return done

    # ── those that have a run ─────────────────────────────────────────────────

    def _follow(self, record: RequestRecord) -> bool:
        """Whether it has its answer now."""
        if record.due > self._parts.now():
            return False
        if self._follower.settle_if_over(record):
            return True
        record = self._with_deadline(record)
        if record.ending is None:
            return False
        if not self._follower.end(record, reachable=not self._is_away(record)):
            self._away[record.request.recipe] = self._parts.now() + _AWAY
        return True

    # ── those that have none yet ──────────────────────────────────────────────

    def _room(self, followed: list[RequestRecord]) -> int:
        return min(max(self._parts.settings.runs - len(followed), 0), self._parts.settings.submits)

    def _submit(self, records: list[RequestRecord], *, room: int) -> int:
        """How many got on."""
        count = 0
        for record in records:
            may = count < room and not self._is_away(record) and record.due <= self._parts.now()
            count += self._guarded(record, self._begin if may else self._end_early)
        return count

    def _end_early(self, record: RequestRecord) -> bool:
        """Of one whose turn it is not: whether it is over all the same."""
        record = self._with_deadline(record)
        if record.ending is None or self._submitter.made_before(record):
            return False
        return self._parts.requests.settle(record, ended_unsubmitted(record), at=self._parts.now())

    def _begin(self, record: RequestRecord) -> bool:
        if self._submitter.made_before(record) or self._end_early(record):
            return True
        if not self._submitter.submit(record):
            self._away[record.request.recipe] = self._parts.now() + _AWAY
        return True

    # ── for all ───────────────────────────────────────────────────────────────

    def _is_away(self, record: RequestRecord) -> bool:
        return self._parts.now() < self._away.get(record.request.recipe, 0.0)

    def _deadline(self, record: RequestRecord) -> float | None:
        """Worked out once: a recipe that is changed later does not change it."""
        if record.id in self._deadlines:
            return self._deadlines[record.id]
        limit: float | None = None
        try:
            limit = self._parts.recipes.get(record.request.recipe).deadline
        except OnwardError:
            pass  # told when it is submitted
        return deadline_of(record.request, limit if limit is not None else self._parts.settings.deadline)

    def _with_deadline(self, record: RequestRecord) -> RequestRecord:
        """The request as it stands, now that its deadline may have passed."""
        deadline = self._deadlines.get(record.id)
        if record.ending is None and deadline is not None and self._parts.now() >= deadline:
            return self._parts.requests.end(record.id, by="its deadline", at=deadline, why=Ending.EXPIRED)
        return record

    def _guarded(self, record: RequestRecord, act: Callable[[RequestRecord], bool]) -> bool:
        """A request that we have no answer for must not keep the others from theirs; and gets one in the end."""
        try:
            return act(record)
        except (StorageUnavailable, StorageFull):
            raise
        except Exception as error:
            now, deadline = self._parts.now(), self._deadlines.get(record.id)
            unread = isinstance(error, OSError | StorageError)  # a file system may come back: nothing is known, so nothing is over
            if (not unread and record.tries >= _MOST_FAULTS) or (deadline is not None and now >= deadline):
                log.exception("request %s is given up", record.id)
                reason = f"it could not be served: {error}"
                return self._parts.requests.settle(record, Outcome(state=OutcomeState.FAILED, reason=reason), at=now)
            log.warning("request %s: %s", record.id, error, exc_info=not unread)
            wait = min(_FAULT_WAIT * 2.0 ** min(record.tries, 10), _LONGEST_WAIT)
            self._parts.requests.put_off(record.id, until=now + wait, words=str(error))
            return False

    def _look_after(self, records: Sequence[RequestRecord]) -> None:
        now = self._parts.now()
        if now - self._tended >= (_TEND_EVERY if records else _TEND_IDLE) and self._parts.settings.tends():
            self._tended = now
            for words in tend(self._parts.desk).problems:
                log.warning("%s", words)
        if now - self._tidied >= _TIDY_EVERY:
            self._tidied = now
            self._parts.requests.outbox.forget(now=now)
