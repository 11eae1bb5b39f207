"""Asking a training to stop, on every node: the stop file appears, the ranks promise, the call at which all leave is written into it."""

from __future__ import annotations

import logging

from onward.checkpoints.watching.save_in_progress import is_being_saved
from onward.rundir.layout import LegLocal
from onward.sdk.atomic_files import write_whole
from onward.supervisor.ranks.other_nodes import OtherNodes
from onward.supervisor.ranks.rank_states import RankNotes, RankStates, signal_ranks
from onward.supervisor.ranks.stop_agreement import RankReport, agreed_call, allowed_call, uneven_calls_warning

log = logging.getLogger(__name__)

_SHORT_WAIT = 0.5  # seconds: others on their way to the same call arrive by then


class RankGroup:
    """All ranks of a leg. A training of one process is a group of one that leaves no notes: only the stop file is for it."""

    def __init__(self, local: LegLocal, nodes: OtherNodes | None = None) -> None:
        self._local = local
        self._nodes = nodes
        self._notes = RankNotes(local.ranks)
        self._asked = False
        self._agreed = False
        self._first_promise: float | None = None
        self._promises: dict[int, RankReport] = {}  # of each rank the first
        self.remark = ""  # on how they stopped: for whoever looks at the run
        self._waiting_since: float | None = None
        self._allowed = 0
        self.ranks = RankStates()

    def ask(self) -> None:
        """A stop is wanted. Each rank sees it at its next call of should_stop(), and promises."""
        if not self._asked:
            self._asked = True
            self._tell("")

    def look(self, now: float) -> None:
        """Hear what the ranks have noted; once all have promised, tell them the call at which they leave."""
        self.ranks.take(self._notes.new())
        if self._nodes:
            self.ranks.take(self._nodes.notes())
        if not self._asked or self._agreed:
            return
        reports = list(self.ranks.reports.values())
        for report in reports:
            if report.limit is not None:
                self._promises.setdefault(report.rank, report)
        if self._first_promise is None and any(report.limit is not None for report in reports):
            self._first_promise = now
        waited = now - (self._first_promise or now)
        agreed = agreed_call(reports, waited=waited, allowed=self._allowed, gone=self.ranks.exits)
        if agreed:
            self._agreed = True
            if agreed.without:
                log.warning("ranks %s did not report how far they are; the others stop", ", ".join(map(str, agreed.without)))
            log.info("all ranks stop at their call %d of should_stop()", agreed.number)
            self._tell(str(agreed.number))
            self.remark = uneven_calls_warning(self._promises.values())
            return
        further = allowed_call(reports, allowed=self._allowed)
        if further is None:
            self._waiting_since = None
        elif self._waiting_since is None:
            self._waiting_since = now
        elif now - self._waiting_since >= _SHORT_WAIT:
            self._allowed, self._waiting_since = further, None  # remembered before it is told: nobody goes further than we know
            self._tell(f"to {further}")

    @property
    def hears_all(self) -> bool:
        """Whether notes of every node can still arrive."""
        return self._nodes is None or not self._nodes.lost

    def saving(self, now: float) -> bool:
        """Some rank, on any node, is in the middle of a save."""
        return is_being_saved(self._local.checkpoints, now=now) or bool(self._nodes and self._nodes.saving)

    def silent_nodes(self, *, since: float) -> list[str]:
        return self._nodes.silent(since=since) if self._nodes else []

    def signal(self, number: int) -> bool:
        """To each rank's own process, on every node. False where there are none that we started: then the child is meant."""
        started = any(self._local.ranks.glob("task-*.json")) or self._nodes is not None
        signal_ranks(self._local.ranks, number, all_they_started=False)
        if self._nodes:
            self._nodes.say(signal=number)
        return started

    def kill(self, number: int) -> None:
        """To the ranks and everything they started, on every node."""
        signal_ranks(self._local.ranks, number, all_they_started=True)
        if self._nodes:
            self._nodes.say(signal=number, all=True)

    def drain(self, *, until: float, cut: bool = False) -> None:
        if self._nodes:
            self._nodes.drain(until=until, cut=cut)

    def missed(self) -> list[tuple[int, str]]:
        """Shares that another node could not put into the store: step and reason."""
        if not self._nodes:
            return []
        found, self._nodes.missed = self._nodes.missed, []
        return found

    def refused(self) -> list[tuple[int, str]]:
        """Files on another node that make no whole checkpoint: step and reason."""
        if not self._nodes:
            return []
        found, self._nodes.refused = self._nodes.refused, []
        return found

    def _tell(self, text: str) -> None:
        try:
            write_whole(self._local.stop_file, text)
        except OSError as error:  # a full disk has room for an empty file
            log.warning("the stop file cannot be written: %s", error)
            self._local.stop_file.touch()
        if self._nodes:
            self._nodes.say(stop=text)
