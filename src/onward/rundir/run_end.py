"""The end of a run, written down: the event, and the mark that spares everyone reading its journals again.

Marks carry their leg. Whoever closes or stops a run may be slow, and the run may have been resumed meanwhile: a mark of a leg before
the one that it was resumed with does not stand.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onward.model.events import Closed
from onward.model.policy.lifecycle import Close
from onward.model.run import RunState
from onward.rundir.journal import Journal
from onward.rundir.layout import RunDir
from onward.rundir.request_inputs import forget_addresses
from onward.sdk.atomic_files import write_whole

log = logging.getLogger(__name__)


def close_run(run: RunDir, journal: Journal, action: Close, *, leg: int, at: float) -> None:
    try:
        forget_addresses(run)  # before the run is closed: whoever is killed here, another closes it, and forgets them again
    except (OSError, ValueError) as error:
        log.warning("the addresses of the inputs are still in %s: %s", run.inputs_order, error)
    closed = Closed(leg=leg, at=at, state=action.state, cause=action.cause, evidence=action.evidence, next=action.next)
    journal.write(closed)
    journal.flush()
    mark_over(run, closed)


def mark_over(run: RunDir, closed: Closed) -> None:
    """The last stroke of closing. Whoever finds a run closed in its journals makes it where it is missing: he who closed it may have died,
    or the storage took no more."""
    if not is_over(run):
        write_whole(run.done, json.dumps({"state": closed.state, "cause": closed.cause, "leg": closed.leg, "at": closed.at}))


def ask_to_stop(run: RunDir, *, leg: int, at: float, by: str) -> None:
    """For the leg at work: have it save and end."""
    write_whole(run.stop_request, json.dumps({"leg": leg, "at": at, "by": by}))


def reopen_run(run: RunDir, *, leg: int, at: float) -> None:
    """From this leg on the run is open again."""
    write_whole(run.resumed, json.dumps({"leg": leg, "at": at}))  # first: from here on, older marks say nothing
    run.done.unlink(missing_ok=True)
    run.stop_request.unlink(missing_ok=True)


def is_over(run: RunDir) -> bool:
    return _stands(run, run.done)


def end_of(run: RunDir) -> Mapping[str, Any] | None:
    """What the mark of its end says; None where there is none that stands. Raises OSError and ValueError where it cannot be read."""
    return _read(run.done) if is_over(run) else None


def is_finished(run: RunDir) -> bool:
    """By the mark of its end; False where that cannot be read."""
    try:
        return (end_of(run) or {}).get("state") == RunState.FINISHED
    except (OSError, ValueError, KeyError, TypeError):
        return False


def is_to_stop(run: RunDir) -> bool:
    return _stands(run, run.stop_request)


def _stands(run: RunDir, mark: Path) -> bool:
    """One look where there is no mark, two where the run was never resumed: lists look at many runs."""
    if not mark.exists():
        return False
    if not run.resumed.exists():
        return True
    mark_time, since = _read(mark), _read(run.resumed)
    if "leg" in mark_time:
        return bool(mark_time["leg"] >= since.get("leg", 0))
    return bool(mark_time.get("at", 0.0) >= since.get("at", 0.0))  # of an older version


def _read(mark: Path) -> Mapping[str, Any]:
    found = json.loads(mark.read_bytes())
    if not isinstance(found, dict):
        raise ValueError(f"{mark} contains no mark")
    return found
