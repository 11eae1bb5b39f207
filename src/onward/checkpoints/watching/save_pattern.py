"""What earlier saves of a training tell about the next: which files belong to one, and how long it pauses between them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from itertools import pairwise

LONGEST = 600.0  # seconds: after so long without a sign, what is there is all there will be
_FIRST = 30.0  # seconds of quiet before anything is known of how this training saves
_LONGEST_KNOWN = 60.0  # seconds of quiet for a save that has all its files, however late some came in earlier ones
_REMEMBERED = 3  # saves
_MARGIN = 1.5


class SavePattern:
    def __init__(self, quiet: float) -> None:
        self.base = quiet  # seconds: the least
        self._sets: deque[Counter[str]] = deque(maxlen=_REMEMBERED)
        self._gaps: deque[float] = deque(maxlen=8)
        self._late: deque[float] = deque(maxlen=8)

    @property
    def known(self) -> bool:
        return bool(self._sets)

    @property
    def quiet(self) -> float:
        """Seconds without a write after which a save that has all its files is over."""
        return max(self.base, min(_LONGEST_KNOWN, _MARGIN * max(self._late, default=0.0)))

    @property
    def unsure_quiet(self) -> float:
        """The same where it is not known which files belong to it."""
        return max(self.base, min(LONGEST, max(_FIRST, _MARGIN * max((*self._gaps, *self._late), default=0.0))))

    def learn(self, kinds: Counter[str], times: Iterable[float]) -> None:
        """A save is over; `times` are those of its files' last writes."""
        self._sets.append(kinds)
        self.learn_gaps(times)

    def learn_gaps(self, times: Iterable[float]) -> None:
        ordered = sorted(times)
        self._gaps.append(max((later - earlier for earlier, later in pairwise(ordered)), default=0.0))

    def learn_late(self, kinds: Counter[str] | None, gap: float) -> None:
        """A save was thought to be over, and so long afterwards more of it came."""
        if 0.0 < gap <= LONGEST:
            self._late.append(gap)
        if kinds is not None and self._sets:
            self._sets[-1] = kinds

    def lacking(self, kinds: Counter[str]) -> list[str]:
        """What each of the last saves, or some of them, had and this one has not."""
        expected: Counter[str] = Counter()
        for earlier in self._sets:
            expected |= earlier
        return sorted((expected - kinds).keys())

    def seen_before(self, kinds: Counter[str]) -> bool:
        """Whether one of the last saves had no more than this."""
        return any(not earlier - kinds for earlier in self._sets)
