"""Serve: see to it that every accepted request gets its run, and every one its answer. One step at a time, by one process at a time.

    accepted ─▶ its run is made, or it has failed, or it is put off ─▶ its run is followed ─▶ settled, with its answer in the outbox

All that is remembered is in the store and in the run folders, so whoever serves may be killed at any time, and another goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from onward.errors import OnwardError, StorageError, StorageFull, StorageUnavailable
from onward.model.requests.outcome import Outcome, OutcomeState
from onward.model.requests.request import RequestEnding, RequestRecord, deadline_of
from onward.operations.context import OperationsContext
from onward.operations.repair.tend import tend
from onward.operations.requests.answers import RequestAnswers
from onward.operations.requests.context import RecipeLookup, RequestContext, RequestSettings
from onward.operations.requests.input_checks import InputChecks
from onward.operations.requests.input_logins import InputLogins
from onward.operations.requests.progress import ProgressReporter
from onward.operations.requests.run_completion import RunFollower
from onward.operations.requests.run_submission import RequestSubmitter, ended_unsubmitted
from onward.tracker.db.election import RequestServerElection
from onward.tracker.requests.store import Requests

log = logging.getLogger(__name__)

_AWAY = 15.0  # seconds in which a cluster that did not answer is left alone
_TEND_EVERY = 30.0
_TEND_IDLE = 300.0  # a run that was cancelled while its cluster was away may still have a job
_TIDY_EVERY = 3600.0
_LIMIT_EVERY = 10.0
_MOST_FAULTS = 5  # of ours, about one request, before it is given up
_FAULT_WAIT, _LONGEST_WAIT = 10.0, 300.0  # seconds between tries


@dataclass(kw_only=True)
class ServiceStep:
    """What one step did."""

    served: bool = True  # False: another process does
    open: int = 0
    submitted: int = 0
    settled: int = 0
    checking: int = 0  # whose inputs are being looked at

    @property
    def busy(self) -> bool:
        """There may be more to do at once."""
        return bool(self.submitted or self.settled)


class RequestService:
    def __init__(self, *, context: OperationsContext, requests: Requests, recipes: RecipeLookup, settings: RequestSettings) -> None:
        parts = RequestContext(context=context, requests=requests, recipes=recipes, settings=settings)
        self._parts = parts
        self._office = RequestServerElection(requests.database)
        self._answers = RequestAnswers(parts)
        self._logins = InputLogins(parts)
        self._checks = InputChecks(parts.context.clock, parts.context.env)
        self._submitter = RequestSubmitter(parts, self._answers, self._logins, self._checks)
        self._follower = RunFollower(parts, self._answers)
        self._teller = ProgressReporter(parts)
        self._limits: dict[str, tuple[float, float | None]] = {}  # by recipe: when it was read, and what it said
        self._away: dict[str, float] = {}  # by recipe, each of which has one cluster: until when that is left alone
        self._tended = self._tidied = 0.0

    def close(self) -> None:
        self._checks.close()
        self._office.leave()

    def step(self) -> ServiceStep:
        if not self._office.won():
            return ServiceStep(served=False)
        followed = self._parts.requests.followed()
        settled = sum(self._guarded(record, self._follow) for record in followed)
        self._logins.renew(followed)
        for record, words in self._teller.tell([record for record in followed if record.ending is None]):
            settled += self._guarded(record, partial(self._follower.refused, words=words))
        room = min(self._parts.settings.runs - len(followed) + settled, self._parts.settings.submits)
        next_ones = self._parts.requests.waiting(now=self._parts.now(), limit=max(room, 0), without=self._left_alone())
        submitted = sum(self._guarded(record, self._begin) for record in next_ones)
        line = self._parts.requests.line()
        settled += sum(self._guarded(record, self._end_early) for recipe in line for record in self._late(recipe))
        done = ServiceStep(open=len(followed) + sum(line.values()), submitted=submitted, settled=settled, checking=self._checks.running)
        self._look_after(idle=not done.open)
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
        if not self._follower.end(record, reachable=record.request.recipe not in self._left_alone()):
            self._away[record.request.recipe] = self._parts.now() + _AWAY
        return True

    # ── those that have none yet ──────────────────────────────────────────────

    def _begin(self, record: RequestRecord) -> bool:
        """Whether it got on."""
        if record.request.recipe in self._left_alone():  # since a moment ago
            return False
        if self._submitter.made_before(record) or self._end_early(record):
            return True
        if not self._submitter.has_good_inputs(record):
            return False
        if not self._submitter.submit(record):
            self._away[record.request.recipe] = self._parts.now() + _AWAY
        return True

    def _end_early(self, record: RequestRecord) -> bool:
        """Whether it is over before it had a run."""
        record = self._with_deadline(record)
        if record.ending is None or self._submitter.made_before(record):
            return False
        return self._answers.settle(record, ended_unsubmitted(record))

    def _late(self, recipe: str) -> Sequence[RequestRecord]:
        return self._parts.requests.late(recipe, now=self._parts.now(), limit=self._limit(recipe))

    # ── for all ───────────────────────────────────────────────────────────────

    def _left_alone(self) -> list[str]:
        """Recipes whose cluster did not answer lately."""
        return [recipe for recipe, until in self._away.items() if self._parts.now() < until]

    def _with_deadline(self, record: RequestRecord) -> RequestRecord:
        """The request as it stands, now that its deadline may have passed."""
        if record.ending is None and self._is_late(record):
            return self._parts.requests.end(record.id, by="its deadline", at=self._parts.now(), why=RequestEnding.EXPIRED)
        return record

    def _is_late(self, record: RequestRecord) -> bool:
        limit = self._limit(record.request.recipe)
        deadline = deadline_of(received=record.accepted, own=record.request.deadline, limit=limit)
        return deadline is not None and self._parts.now() >= deadline

    def _limit(self, recipe: str) -> float | None:
        """Seconds that a request for it has, as the recipe says. Looked up now and then: there may be thousands of them."""
        read_at, limit = self._limits.get(recipe, (-_LIMIT_EVERY, None))
        if self._parts.now() - read_at >= _LIMIT_EVERY:
            limit = self._parts.settings.deadline
            with suppress(OnwardError):  # told when one is submitted
                own = self._parts.recipes.get(recipe).deadline
                limit = limit if own is None else own
            self._limits[recipe] = (self._parts.now(), limit)
        return limit

    def _guarded(self, record: RequestRecord, act: Callable[[RequestRecord], bool]) -> bool:
        """A request that we have no answer for must not keep the others from theirs; and gets one in the end."""
        try:
            return act(record)
        except (StorageUnavailable, StorageFull):
            raise
        except Exception as error:
            now = self._parts.now()
            unread = isinstance(error, OSError | StorageError)  # a file system may come back: nothing is known, so nothing is over
            if (not unread and record.tries >= _MOST_FAULTS) or self._is_late(record):
                log.exception("gave up on request %s", record.id)
                reason = f"it could not be processed: {error}"
                return self._answers.settle(record, Outcome(state=OutcomeState.FAILED, reason=reason))
            log.warning("request %s: %s", record.id, error, exc_info=not unread)
            wait = min(_FAULT_WAIT * 2.0 ** min(record.tries, 10), _LONGEST_WAIT)
            self._parts.requests.put_off(record.id, until=now + wait, words=str(error))
            return False

    def _look_after(self, *, idle: bool) -> None:
        now = self._parts.now()
        if now - self._tended >= (_TEND_IDLE if idle else _TEND_EVERY) and self._parts.settings.tends():
            self._tended = now
            try:
                for words in tend(self._parts.context).problems:
                    log.warning("%s", words)
            except (OnwardError, OSError) as error:
                log.warning("cannot tend runs: %s", error)
        if now - self._tidied >= _TIDY_EVERY:
            self._tidied = now
            self._parts.requests.tidy(now=now)
