"""Files with fixed names (`model.pt`, `optim.pt`) are written again by each save: a round is over when all have been."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping

from onward.checkpoints.watching import file_names
from onward.checkpoints.watching.listing import FileVersion

_REMEMBERED = 3  # rounds
_SAME_WRITE = 2.0  # seconds: a file that changes again within this is still being written; later it is written anew


class SaveRounds:
    """Follows, from look to look, which files the save that is under way has written."""

    def __init__(self) -> None:
        self._seen: dict[str, FileVersion] = {}
        self._looked_at = 0.0
        self._rounds: deque[frozenset[str]] = deque(maxlen=_REMEMBERED)
        self._resumed: frozenset[str] | None = None
        self._last_files: deque[str] = deque(maxlen=_REMEMBERED)
        self._published: frozenset[str] = frozenset()  # written by the round that was published last, until one is written again
        self._published_at = 0  # its newest write, nanoseconds
        self._unclear = False  # whether the round that is under way is only one
        self.written: frozenset[str] = frozenset()  # by the round that is under way

    def begin_with(self, files: Iterable[FileVersion], *, as_a_round: bool) -> None:
        """What came from a checkpoint, and whether one round here wrote all of it."""
        self._seen = {seen[0]: seen for seen in files}
        if self._seen and as_a_round:
            self._resumed = frozenset(self._seen)
            self._rounds.append(self._resumed)

    def look(self, files: Mapping[str, FileVersion], *, now: float) -> None:
        changed = frozenset(name for name, seen in files.items() if self._seen.get(name) != seen)
        again = [name for name in changed & self.written if self._is_anew(self._seen[name], files[name])]
        if again:  # the round before is over, or was given up
            if self._looked_at - self._newest(self.written) / 1e9 >= _SAME_WRITE:
                self._rounds.append(self.written)
            self.written = self._published = frozenset()
        elif changed & self._published:  # a new one begins; what was written since the last was published still belonged to that
            if self.written and self._rounds:
                self._rounds[-1] |= self.written
            self.written = self._published = frozenset()
        elif self.written and changed & self.written and not changed & self._latest(self.written):
            self._unclear = True  # one that was written before others changes again at once: all at the same time, or a new round?
        if not self.written:
            self._unclear = False
        self._seen, self._looked_at = dict(files), now
        self.written = (self.written | changed) & files.keys()
        self._published &= files.keys()

    @property
    def known(self) -> bool:
        return bool(self._rounds)

    @property
    def only_resumed(self) -> bool:
        """Nothing is known of how this training saves but what the checkpoint held that it started from."""
        return len(self._rounds) == 1 and self._rounds[0] is self._resumed

    @property
    def pause(self) -> float | None:
        """Seconds between the round that was published and what was written since, where nothing of it was written again."""
        if not self._published or not self.written:
            return None
        return (min(self._seen[name][2] for name in self.written) - self._published_at) / 1e9

    def lacking(self) -> list[str]:
        """What this round surely has still to write."""
        counts = Counter(name for earlier in self._rounds for name in earlier if name in self._seen)
        due = {name for name, count in counts.items() if not file_names.may_stay(name) or (count > 1 and not file_names.is_best(name))}
        always_last = set(self._last_files) & self._seen.keys()
        if self._unclear and len(always_last) == 1 and not always_last & self._latest(self.written):
            return sorted((due - self.written) | always_last)
        return sorted(due - self.written)

    def may_lack(self) -> bool:
        """Whether some earlier round wrote something that this one has not; the best so far is not written by each."""
        earlier = {name for written in self._rounds for name in written if not file_names.is_best(name)}
        return bool((earlier & self._seen.keys()) - self.written)

    def seen_before(self) -> bool:
        """Whether one of the last rounds wrote no more than this one."""
        return any(earlier & self._seen.keys() <= self.written for earlier in self._rounds)

    def publish(self, *, continued: bool) -> None:
        """What lies there has been published, with this round; `continued`: as a later version of the one before."""
        if not self.written:
            return
        whole = self.written
        if continued:
            whole |= self._published
            self._rounds.pop()
            self._last_files.pop()
        self._rounds.append(whole)
        self._last_files.append(min(self._latest(whole)))
        self._published, self._published_at, self.written = whole, self._newest(whole), frozenset()

    @staticmethod
    def _is_anew(before: FileVersion, now: FileVersion) -> bool:
        return now[2] - before[2] >= _SAME_WRITE * 1e9 or 2 * now[1] < before[1]

    def _latest(self, written: frozenset[str]) -> set[str]:
        """Those that were written last."""
        newest = self._newest(written)
        return {name for name in written if self._seen[name][2] == newest}

    def _newest(self, written: Iterable[str]) -> int:
        return max((self._seen[name][2] for name in written), default=0)
