"""What the notes of the ranks say while they train and when they end: one failed, one left alone, a node fell silent."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from onward.clock import Clock
from onward.supervisor.ranks.rank_group import RankGroup

log = logging.getLogger(__name__)

_LEFT_ALONE = 60.0  # seconds for which other ranks go on after one has ended well, before it is said
_LAUNCHER_REACTS = 10.0  # seconds: a launcher ends the others when one rank has failed; one that does not is ended
_SILENCE = 4.0  # seconds: a node whose agent says nothing for so long, after the training failed, is lost
_LAST_NOTES = 3.0  # seconds for the exit codes of ranks on other nodes to arrive
_HEARD_LATER = 2.0  # seconds: ranks are told to end; that another failed before is heard from its node within this


@dataclass
class RankWatch:
    rank_group: RankGroup
    clock: Clock
    _told_of_leaving: bool = False
    _failed_since: float | None = None
    _termed_at: float | None = None

    def launcher_is_late(self, now: float) -> bool:
        """A rank has failed, and its launcher should have ended the others by now."""
        failed = self.rank_group.ranks.first_failure()
        if failed is None:
            return False
        if self._failed_since is None:
            self._failed_since = now
            log.warning("rank %d has failed with code %d", failed.rank, failed.code)
        return now - self._failed_since >= _LAUNCHER_REACTS

    def left_alone(self, now: float) -> str:
        """Said once: others may wait for ranks that left for ever, in a collective operation."""
        words = "" if self._told_of_leaving else self.rank_group.ranks.left_alone(before=now - _LEFT_ALONE)
        self._told_of_leaving = self._told_of_leaving or bool(words)
        return words

    def were_told_to_end(self, now: float) -> bool:
        """And not by their launcher because one of them failed: word of that may come from another node a moment later."""
        if not self.rank_group.ranks.termed or self.rank_group.ranks.first_failure():
            return False
        self._termed_at = self._termed_at or now
        return now - self._termed_at >= _HEARD_LATER

    def wait_for_last_notes(self) -> None:
        until = self.clock.now() + _LAST_NOTES
        self.rank_group.look(self.clock.now())
        ranks = self.rank_group.ranks
        while ranks.exits and len(ranks.exits) < ranks.world and self.rank_group.hears_all and self.clock.now() < until:
            self.clock.sleep(0.05)
            self.rank_group.look(self.clock.now())

    def lost_nodes(self, *, in_a_hurry: Callable[[], bool]) -> tuple[str, ...]:
        """A node that dies takes the training with it at once; the scheduler notices half a minute later."""
        since = self.clock.now()
        while self.rank_group.silent_nodes(since=since) and self.clock.now() < since + _SILENCE and not in_a_hurry():
            self.clock.sleep(0.05)
        lost = self.rank_group.silent_nodes(since=since)
        if lost:
            log.warning("no more messages from %s", ", ".join(lost))
        return tuple(lost)
