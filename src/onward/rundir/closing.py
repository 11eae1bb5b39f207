"""The end of a run, written down: the event, and the mark that spares everyone reading its journals again."""

from __future__ import annotations

import json
import logging

from onward.model.event import Closed
from onward.model.lifecycle import Close
from onward.rundir.inputs import forget_addresses
from onward.rundir.journal import Journal
from onward.rundir.layout import RunDir
from onward.sdk.files import write_whole

log = logging.getLogger(__name__)


def close_run(run: RunDir, journal: Journal, action: Close, *, leg: int, at: float) -> None:
    try:
        forget_addresses(run)  # before the run is closed: whoever is killed here, another closes it, and forgets them again
    except (OSError, ValueError) as error:
        log.warning("the addresses of the inputs are still in %s: %s", run.inputs_order, error)
    journal.write(Closed(leg=leg, at=at, state=action.state, cause=action.cause, evidence=action.evidence, next=action.next))
    write_whole(run.done, json.dumps({"state": action.state, "cause": action.cause, "leg": leg, "at": at}))


def reopen_run(run: RunDir) -> None:
    run.done.unlink(missing_ok=True)
    run.stop_request.unlink(missing_ok=True)
