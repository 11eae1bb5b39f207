"""The notice that a job will be killed, where a scheduler sends one: was the job deleted, or had its host been given up?

Grid Engine starts the jobs of a host that fell silent elsewhere. When the host is heard of again, what still runs there is
killed, with the very notice that comes before a deletion. Nobody wanted that run to end.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

from onward.errors import SchedulerError
from onward.model.events import AskedToStop
from onward.model.job import Allocation, JobState, JobStatus
from onward.model.stop_reason import StopReason
from onward.rundir.journal import desk_journal
from onward.supervisor.leg.context import LegContext

log = logging.getLogger(__name__)

PATIENCE = 5.0  # seconds for the scheduler's answer; without one the job counts as deleted
_SAME_START = 2.0  # seconds by which the scheduler's start of a job and the job's own may differ


class KillNotice:
    def __init__(self, context: LegContext) -> None:
        self._context = context
        self._answered = threading.Event()
        self._thread: threading.Thread | None = None
        self.given_up = False

    @property
    def deleted(self) -> bool:
        """Asks nothing, and waits for nothing: true once it is sure, or the scheduler was silent for too long."""
        return self._answered.is_set() and not self.given_up

    def came(self) -> None:
        """Called from the signal's handler, so wherever we are. Written at once: the kill may come before anything else is.
        After the limit it says nothing new."""
        context, now = self._context, self._context.clock.now()
        if context.allocation.deadline is None or now < context.allocation.deadline:
            asked = AskedToStop(leg=context.leg, at=now, why=StopReason.DELETED)
            desk_journal(context.dir, patient=True).write(asked)  # no error may leave a handler
        self._thread = threading.Thread(target=self._ask, name="notice", daemon=True)
        self._thread.start()
        patience = threading.Timer(PATIENCE, self._answered.set)
        patience.daemon = True
        patience.start()

    def settle(self) -> None:
        """Wait until it is known what the notice meant, if one came."""
        if self._thread:
            self._answered.wait(PATIENCE)

    def _ask(self) -> None:
        context = self._context
        try:
            status = context.scheduler.status([context.allocation.job]).get(context.allocation.job)
            if not self._answered.is_set():
                self.given_up = was_given_up(status, context.allocation)
        except SchedulerError as error:
            log.warning("the scheduler announced that it will kill this job, and does not say why: %s", error)
        finally:
            self._answered.set()


def was_given_up(status: JobStatus | None, allocation: Allocation) -> bool:
    """Whether the scheduler has queued this job anew or started it elsewhere, while this life of it goes on here."""
    if status is None:
        return False
    if status.state in (JobState.QUEUED, JobState.HELD):
        return True
    if status.state is not JobState.RUNNING:
        return False
    elsewhere = bool(status.nodes) and not _short(status.nodes) & _short(allocation.hosts)
    began = allocation.started
    return elsewhere or (began is not None and status.started is not None and status.started > began + _SAME_START)


def _short(hosts: Iterable[str]) -> set[str]:
    return {host.partition(".")[0] for host in hosts}
