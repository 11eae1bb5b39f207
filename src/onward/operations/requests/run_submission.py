"""From an accepted request to its run: exactly one, whoever dies and whenever, and however many gateways have the request.

Which run a request has is marked in the root (`rundir.root.request_marks`). The mark is looked up before every try to make a run. It is
made by exclusive create, when the whole folder is there and before any job is asked for. So a store that fails after the job was queued,
or another gateway with its own store, finds the run that was made.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from onward.errors import Conflict, InputRefused, InvalidInput, NotFound, OnwardError, SchedulerError, StorageError, TokenRefused
from onward.inputs.recipes.definition import Recipe
from onward.model.identity import new_id
from onward.model.requests.outcome import Outcome, OutcomeState
from onward.model.requests.request import RequestEnding, RequestRecord
from onward.model.spec import RunDraft
from onward.operations.requests.answers import RequestAnswers
from onward.operations.requests.cluster_fit import ClusterFit
from onward.operations.requests.context import RequestContext
from onward.operations.requests.input_checks import InputChecks
from onward.operations.requests.input_logins import InputLogins
from onward.operations.submit.new_run import submit
from onward.rundir.layout import RunDir
from onward.rundir.root.layout import RootDir
from onward.rundir.root.once_per_request import RequestMark, find_request, mark_request, publish_spec
from onward.rundir.root.presence import is_seen

log = logging.getLogger(__name__)

_PATIENCE = 10.0  # seconds for a scheduler that does not answer, before other requests have their turn
_FIRST_WAIT, _LONGEST_WAIT = 5.0, 300.0  # seconds between tries


class RequestSubmitter:
    def __init__(self, parts: RequestContext, answers: RequestAnswers, logins: InputLogins, checks: InputChecks) -> None:
        self._parts = parts
        self._answers = answers
        self._logins = logins
        self._fit = ClusterFit(parts.context)
        self._checks = checks
        self._checked: set[str] = set()  # requests whose inputs were looked at
        self._renewed: set[str] = set()  # requests for whose inputs we logged in again

    def made_before(self, record: RequestRecord) -> bool:
        """Whether its run is there, or was answered for, and that was only not written down in this store. It is now."""
        if self._answers.settled_elsewhere(record):
            return True
        mark = find_request(self._parts.context.roots, record.id)
        if self._answers.is_of_another(record) or (mark is not None and mark.body_sha256 != record.request.body_sha256):
            reason = f"another gateway already received a request with the id {record.id}"
            outcome = Outcome(state=OutcomeState.REFUSED, reason=reason, next="use an id for one request only")
            self._parts.requests.settle(record, outcome, at=self._parts.now())  # the answer in the root is the other one's
            return True
        if mark is None:
            return False
        with suppress(FileNotFoundError):  # its folder was deleted since: whoever follows the run says so
            publish_spec(RunDir(Path(mark.folder)))
        self._parts.requests.set_run(record.id, run=mark.run, folder=mark.folder, at=self._parts.now())
        self._forget(record)
        return True

    def has_good_inputs(self, record: RequestRecord) -> bool:
        """False: they are being looked at, or the request has its answer."""
        if record.id in self._checked or not record.request.inputs:
            return True
        try:
            recipe = self._parts.recipes.get(record.request.recipe)
            if not self._looked_at(record, recipe):
                return False
        except InputRefused as error:
            self._over(record, OutcomeState.REFUSED, error)
            return False
        except (OnwardError, OSError):  # told by `submit`
            pass
        self._checked.add(record.id)
        return True

    def _looked_at(self, record: RequestRecord, recipe: Recipe) -> bool:
        order = self._draft(record, recipe).inputs
        assert order is not None
        try:
            return self._checks.is_done(order)
        except TokenRefused:
            if record.id in self._renewed:
                raise
            self._renewed.add(record.id)
            self._draft(record, recipe, refused=order.token)  # logs in again
            return False

    def submit(self, record: RequestRecord) -> bool:
        """False: its cluster does not answer, and is not to be asked for others now."""
        try:
            recipe = self._parts.recipes.get(record.request.recipe)
            draft = self._draft(record, recipe)
            root = self._parts.root_for(draft.cluster)
            run = self._planned(record, root)
        except (InvalidInput, NotFound) as error:  # it was checked when it came: the recipe has changed since
            self._over(record, OutcomeState.REFUSED, error)
            return True
        except (OnwardError, OSError) as error:
            return self._not_now(record, error)
        return self._make(record, draft, recipe.folder, root=root, run=run)

    def _planned(self, record: RequestRecord, root: Path) -> str:
        """The id its run will have. A root that had runs and cannot be seen now gets none: nobody knows what is in it."""
        if not is_seen(root):
            if record.run is not None or self._parts.requests.has_run_under(str(root)):
                raise StorageError(
                    f"the runs folder {root} does not exist, or is empty",
                    hint=f"is its file system mounted? If you emptied it yourself: mkdir -p {RootDir(root).own}",
                )
            RootDir(root).make()
        if record.run is not None:
            return record.run
        run = new_id()
        self._parts.requests.plan_run(record.id, run)
        return run

    def _draft(self, record: RequestRecord, recipe: Recipe, *, refused: str = "") -> RunDraft:
        asked, settings = record.request, self._parts.settings
        draft = recipe.fill(settings=asked.settings, inputs=asked.inputs, resources=asked.resources, request=asked.id, hosts=settings.hosts)
        host = self._parts.context.settings.cluster(draft.cluster)[0].ssh
        if host:
            raise InvalidInput(
                f"the recipe {recipe.name} runs on {draft.cluster}, which this gateway reaches through ssh",
                hint=f"run the gateway on {host}",
            )
        draft = self._fit.fitted(recipe, draft)
        login = self._logins.login(asked, refused=refused)
        if login is None or draft.inputs is None:
            return draft
        return replace(draft, inputs=replace(draft.inputs, token=login.token, token_for=login.origin))

    def _make(self, record: RequestRecord, draft: RunDraft, cwd: Path, *, root: Path, run: str) -> bool:
        def admit(dir: RunDir) -> bool:
            mark = RequestMark(request=record.id, body_sha256=record.request.body_sha256, run=run, folder=str(dir.path))
            return mark_request(root, mark) == mark

        answered = True
        try:
            submit(self._parts.context, draft, cwd=cwd, id=run, admit=admit, patience=_PATIENCE)
        except Exception as error:
            mark = find_request([root], record.id)
            if mark is not None and RunDir(Path(mark.folder)).is_run():  # whatever it was, the run is there: `tend` sees to its job
                log.warning("request %s: %s", record.id, error)
                answered = isinstance(error, Conflict)  # another gateway made it: the cluster is well as far as we know
            elif isinstance(error, OnwardError | OSError):
                return self._not_now(record, error)
            else:
                raise
        self.made_before(record)
        return answered

    def _not_now(self, record: RequestRecord, error: OnwardError | OSError) -> bool:
        """Try again where that can help; else it has failed. A disk of the site's that takes nothing is no fault of the request's."""
        if isinstance(error, OnwardError) and not error.transient and not isinstance(error, StorageError | Conflict):
            self._over(record, OutcomeState.FAILED, error)
            return True
        wait = min(_FIRST_WAIT * 2.0 ** min(record.tries, 20), _LONGEST_WAIT)
        words = error.message if isinstance(error, OnwardError) else str(error)
        log.warning("request %s cannot be submitted now: %s", record.id, words)
        self._parts.requests.put_off(record.id, until=self._parts.now() + wait, words=words)
        return not isinstance(error, SchedulerError)

    def _over(self, record: RequestRecord, state: OutcomeState, error: OnwardError) -> None:
        outcome = Outcome(state=state, reason=error.message, next=error.hint)
        self._answers.settle(record, outcome)
        self._forget(record)

    def _forget(self, record: RequestRecord) -> None:
        self._checked.discard(record.id)
        self._renewed.discard(record.id)


def ended_unsubmitted(record: RequestRecord) -> Outcome:
    """Of one that is to end before it has a run."""
    if record.ending is RequestEnding.CANCELLED:
        reason = f"cancelled by {record.ending_by} before its run was submitted"
        return Outcome(state=OutcomeState.CANCELLED, reason=reason)
    if record.tries:
        reason = f"it could not be submitted before its deadline: {record.words}"
        return Outcome(state=OutcomeState.UNREACHABLE, reason=reason, next="send it again when the cluster answers")
    reason = "its deadline passed while it waited for its turn"
    return Outcome(state=OutcomeState.EXPIRED, reason=reason, next="send it again with a later deadline")
