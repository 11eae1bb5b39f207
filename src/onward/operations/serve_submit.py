"""From an accepted request to its run: exactly one, whoever dies and whenever.

The run's id is in the store before the run is made, so that whoever comes after a crash can look whether it was. What is looked for is
a whole run: one that was left half made has no job, and never gets one.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from pathlib import Path

from onward.errors import InvalidInput, NotFound, OnwardError, SchedulerError, StorageError
from onward.model.identity import new_id
from onward.model.outcome import Outcome, OutcomeState
from onward.model.request import Ending, Request, RequestRecord
from onward.model.spec import RunDraft
from onward.operations.find import labels
from onward.operations.serve_parts import Login, Parts
from onward.operations.submit import submit
from onward.pipelines.recipe import Recipe
from onward.rundir.layout import RunDir

log = logging.getLogger(__name__)

_PATIENCE = 10.0  # seconds for a scheduler that does not answer, before other requests have their turn
_FIRST_WAIT, _LONGEST_WAIT = 5.0, 300.0  # seconds between tries


class Submitter:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._mine: set[str] = set()  # ids of runs that this process has tried to make: those it made are known
        self._before: dict[str, Path] | None = None  # runs that were there when this process first looked, as far back as it looked
        self._since = ""
        self._silent: dict[str, tuple[float, OnwardError]] = {}  # by protocol: until when its application is left alone

    def made_before(self, record: RequestRecord) -> bool:
        """Whether its run is there, and was only not written down."""
        if record.run is None or record.run in self._mine:
            return False
        day = time.strftime("%Y-%m-%d", time.localtime(record.accepted - 86_400))  # it was made on this day or later, in every zone
        if self._before is None or day < self._since:
            runs = (dir for dir in self._parts.desk.runs() if dir.path.name >= day)
            self._before, self._since = {labels(dir)[0]: dir.path for dir in runs}, day
        folder = self._before.get(record.run)
        if folder is None:
            self._mine.add(record.run)
            return False
        self._parts.requests.set_run(record.id, folder=str(folder), at=self._parts.now())
        return True

    def submit(self, record: RequestRecord) -> bool:
        """False: its cluster does not answer, and is not to be asked for others now."""
        run = record.run or new_id()
        if record.run is None:
            self._parts.requests.plan_run(record.id, run)
        self._mine.add(run)
        try:
            recipe = self._parts.recipes.get(record.request.recipe)
            draft = self._draft(record, recipe)
        except (InvalidInput, NotFound) as error:  # it was checked when it came: the recipe has changed since
            self._over(record, OutcomeState.REFUSED, error)
            return True
        except OnwardError as error:
            return self._not_now(record, error)
        return self._make(record, draft, recipe.folder, run)

    def _draft(self, record: RequestRecord, recipe: Recipe) -> RunDraft:
        asked, settings = record.request, self._parts.settings
        draft = recipe.fill(settings=asked.settings, inputs=asked.inputs, resources=asked.resources, request=asked.id, hosts=settings.hosts)
        host = self._parts.desk.settings.cluster(draft.cluster)[0].ssh
        if host:
            raise InvalidInput(
                f"the recipe {recipe.name} runs on {draft.cluster}, which is reached through ssh from here",
                hint=f"run the gateway on {host}",
            )
        login = self._login(asked)
        if login is None or draft.inputs is None:
            return draft
        return replace(draft, inputs=replace(draft.inputs, token=login.token, token_for=login.origin))

    def _login(self, asked: Request) -> Login | None:
        """An application that does not answer is left alone for a while, whoever asks: each question would wait for it again."""
        until, trouble = self._silent.get(asked.protocol, (0.0, None))
        if trouble and self._parts.now() < until:
            raise trouble
        try:
            return self._parts.settings.login(asked)
        except OnwardError as error:
            if error.transient:
                self._silent[asked.protocol] = (self._parts.now() + _FIRST_WAIT, error)
            raise

    def _make(self, record: RequestRecord, draft: RunDraft, cwd: Path, run: str) -> bool:
        made: list[RunDir] = []
        answered = True
        try:
            dir = submit(self._parts.desk, draft, cwd=cwd, id=run, begin=made.append, patience=_PATIENCE)
        except Exception as error:
            if made and made[0].is_run():  # whatever it was, the run is there: `tend` sees to its job
                log.warning("request %s: %s", record.id, error)
                dir, answered = made[0], False
            elif isinstance(error, OnwardError | OSError):
                return self._not_now(record, error)
            else:
                raise
        self._parts.requests.set_run(record.id, folder=str(dir.path), at=self._parts.now())
        return answered

    def _not_now(self, record: RequestRecord, error: OnwardError | OSError) -> bool:
        """Try again where that can help; else it has failed. A disk of the site's that takes nothing is no fault of the request's."""
        if isinstance(error, OnwardError) and not error.transient and not isinstance(error, StorageError):
            self._over(record, OutcomeState.FAILED, error)
            return True
        wait = min(_FIRST_WAIT * 2.0 ** min(record.tries, 20), _LONGEST_WAIT)
        words = error.message if isinstance(error, OnwardError) else str(error)
        log.warning("request %s cannot be submitted now: %s", record.id, words)
        self._parts.requests.put_off(record.id, until=self._parts.now() + wait, words=words)
        return not isinstance(error, SchedulerError)

    def _over(self, record: RequestRecord, state: OutcomeState, error: OnwardError) -> None:
        outcome = Outcome(state=state, reason=error.message, next=error.hint)
        self._parts.requests.settle(record, outcome, at=self._parts.now())


def ended_unsubmitted(record: RequestRecord) -> Outcome:
    """Of one that is to end before it has a run."""
    if record.ending is Ending.CANCELLED:
        reason = f"cancelled by {record.ending_by} before its run was submitted"
        return Outcome(state=OutcomeState.CANCELLED, reason=reason)
    if record.tries:
        reason = f"it could not be submitted before its deadline: {record.words}"
        return Outcome(state=OutcomeState.UNREACHABLE, reason=reason, next="send it again when the cluster answers")
    reason = "its deadline passed while it waited for its turn"
    return Outcome(state=OutcomeState.EXPIRED, reason=reason, next="send it again with a later deadline")
