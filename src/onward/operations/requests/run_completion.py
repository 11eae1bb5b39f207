"""From a request's run to its answer: for every way the run can end, and for those in which we end it."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from onward.errors import Conflict, NotFound, OnwardError, SchedulerError, StorageError
from onward.model.requests.outcome import Outcome, OutcomeState, outcome_of, with_reason
from onward.model.requests.request import RequestEnding, RequestRecord
from onward.model.run import Run
from onward.operations.requests.answers import RequestAnswers
from onward.operations.requests.context import RequestContext
from onward.operations.runs.control import ask_to_cancel, cancel
from onward.operations.runs.record import InspectedRun, progress, read_folder
from onward.rundir.layout import RunDir
from onward.rundir.request_inputs import forget_addresses, read_inputs
from onward.rundir.root.layout import RootDir
from onward.rundir.root.once_per_request import RequestMark, mark_request
from onward.rundir.root.presence import Presence, presence_of
from onward.rundir.run_end import is_over

log = logging.getLogger(__name__)

_GONE_FOR = 60.0  # seconds that a folder must be missing before it counts as deleted: file systems have hiccups
_LATE = 60.0  # seconds until everything that a node wrote is seen by other machines
_TAIL_LINES, _TAIL_BYTES = 40, 8 << 10


class RunFollower:
    def __init__(self, parts: RequestContext, answers: RequestAnswers) -> None:
        self._parts = parts
        self._answers = answers
        self._missing: dict[str, float] = {}
        self._marked: set[str] = set()  # requests whose runs are known to have their mark

    def settle_if_over(self, record: RequestRecord) -> bool:
        """Whether its run is over, so that it has its answer now."""
        dir = _dir(record)
        if is_over(dir):
            self._missing.pop(record.id, None)
            run = read_folder(dir)
            if run.closed:
                with suppress(OSError, ValueError):  # a token that came while the run was being closed
                    forget_addresses(dir)
                self._settle(record, self.outcome(record, dir, run))
                return True
        elif self._is_deleted(record, dir):
            reason = f"the folder of its run {record.run} is gone"
            self._settle(record, Outcome(state=OutcomeState.FAILED, reason=reason, next="send it again under another id"))
            return True
        return False

    def _is_deleted(self, record: RequestRecord, dir: RunDir) -> bool:
        """Seen so for a while, since file systems have hiccups. A root that cannot be seen says nothing of what is in it."""
        mark = RootDir(dir.path.parent).request(record.id)
        presence = presence_of(dir, mark=mark)
        if presence is Presence.GONE:
            return self._parts.now() - self._missing.setdefault(record.id, self._parts.now()) >= _GONE_FOR
        self._missing.pop(record.id, None)
        if presence is Presence.THERE:
            self._ensure_marked(record, dir)
        return False

    def _ensure_marked(self, record: RequestRecord, dir: RunDir) -> None:
        """Runs that an older version made have no mark, without which nobody could tell later that they were deleted."""
        if record.id in self._marked:
            return
        assert record.run is not None
        mark = RequestMark(request=record.id, body_sha256=record.request.body_sha256, run=record.run, folder=str(dir.path))
        with suppress(OSError, StorageError):  # tried again when it is looked at next
            mark_request(dir.path.parent, mark)
            self._marked.add(record.id)

    def end(self, record: RequestRecord, *, reachable: bool) -> bool:
        """Have its run end, as was asked. False: the cluster did not answer; the run will not go on all the same."""
        dir = _dir(record)
        try:
            run = cancel(self._parts.context, dir) if reachable else ask_to_cancel(self._parts.context, dir)
        except Conflict:  # it has ended by itself in this moment
            run = read_folder(dir)
        except SchedulerError as error:
            log.warning("request %s: %s", record.id, error)
            self._settle(record, _unheard(record, error.message))
            return False
        outcome = self.outcome(record, dir, run) if run.closed else _unheard(record, "the cluster does not answer")
        self._settle(record, outcome)
        return run.closed is not None

    def refused(self, record: RequestRecord, words: str) -> bool:
        """Of one whose run is made, and whose first job the scheduler does not take: so it may be after a crash or an unclear answer."""
        with suppress(SchedulerError, Conflict):
            cancel(self._parts.context, _dir(record))
        self._settle(record, Outcome(state=OutcomeState.FAILED, reason=words, next="send it again with settings that the cluster accepts"))
        return True

    def outcome(self, record: RequestRecord, dir: RunDir, run: Run) -> Outcome:
        seen = InspectedRun(dir=dir, run=run, answers=None, at=self._parts.now())
        outcome = _with_notes(outcome_of(run, log_tail=_tail(dir, run), metrics=progress(seen)["metrics"]), dir)
        if outcome.state is OutcomeState.CANCELLED and record.ending:
            return with_reason(outcome, _STATES[record.ending], _why(record), next=_NEXT[record.ending])
        if outcome.state is not OutcomeState.DONE:
            return outcome
        try:
            recipe = self._parts.recipes.get(record.request.recipe)
            names = [one.name for one in record.request.inputs]
            return replace(outcome, results=tuple(self._parts.settings.collect(dir, recipe, names)))
        except (OnwardError, OSError) as error:
            if isinstance(error, OSError) or error.transient:
                raise
            if isinstance(error, NotFound) and run.spec.cluster.scheduler != "local" and seen.at - _closed_at(run) < _LATE:
                raise StorageError(f"{error.message}, yet") from error  # what a node wrote may be seen here only later: look again
            return with_reason(outcome, OutcomeState.FAILED, f"the training finished, but {error.message}", next=error.hint)

    def _settle(self, record: RequestRecord, outcome: Outcome) -> None:
        self._answers.settle(record, outcome)
        self._missing.pop(record.id, None)
        self._marked.discard(record.id)


_STATES = {RequestEnding.CANCELLED: OutcomeState.CANCELLED, RequestEnding.EXPIRED: OutcomeState.EXPIRED}
_NEXT = {RequestEnding.CANCELLED: "", RequestEnding.EXPIRED: "send it again with a later deadline"}


def _why(record: RequestRecord) -> str:
    if record.ending is RequestEnding.CANCELLED:
        return f"cancelled by {record.ending_by}"
    passed = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(record.ending_at or 0.0))
    return f"its deadline passed before its run was done ({passed})"


def _unheard(record: RequestRecord, words: str) -> Outcome:
    """The run will not go on, whatever its cluster knows of that by now."""
    if record.ending is RequestEnding.CANCELLED:
        return Outcome(state=OutcomeState.CANCELLED, reason=f"{_why(record)}; its job will be ended as soon as the cluster answers")
    reason = f"its deadline passed, and the cluster could not be reached: {words}"
    return Outcome(state=OutcomeState.UNREACHABLE, reason=reason, next="send it again when the cluster answers")


def _closed_at(run: Run) -> float:
    return run.closed.at if run.closed else 0.0


def _dir(record: RequestRecord) -> RunDir:
    assert record.folder is not None
    return RunDir(Path(record.folder))


def _tail(dir: RunDir, run: Run) -> str:
    """The last lines that its last leg printed: errors, where there are any."""
    last = run.last_leg
    if last is None:
        return ""
    for stream in ("err", "out"):
        try:
            with dir.log(last.number, stream).open("rb") as file:
                file.seek(max(file.seek(0, 2) - _TAIL_BYTES, 0))
                lines = file.read(_TAIL_BYTES).decode(errors="replace").splitlines()
        except OSError:
            continue
        if any(line.strip() for line in lines):
            return "\n".join(lines[-_TAIL_LINES:])
    return ""


def _with_notes(outcome: Outcome, dir: RunDir) -> Outcome:
    """What it got less of than was asked for."""
    try:
        given = read_inputs(dir)
    except (OSError, ValueError):
        return outcome
    return replace(outcome, reason=f"{outcome.reason} ({'; '.join(given.notes)})") if given and given.notes else outcome
