"""Sequence numbers that were taken, as ranges. Pure. Normally one range, growing; a gap only where a writer lost a record."""

from __future__ import annotations

from bisect import bisect_right

_MOST_RANGES = 1000  # beyond, the oldest gaps count as taken: what was lost that long ago does not come any more


class Sequences:
    def __init__(self, text: str = "") -> None:
        pairs = [part.split("-") for part in text.split(",") if part]
        self._firsts = [int(pair[0]) for pair in pairs]
        self._lasts = [int(pair[-1]) for pair in pairs]

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._firsts, number) - 1
        return at >= 0 and number <= self._lasts[at]

    def add(self, number: int) -> bool:
        """Take a number; False if it was taken before."""
        firsts, lasts = self._firsts, self._lasts
        if lasts and number == lasts[-1] + 1:  # the usual case
            lasts[-1] = number
            return True
        if number in self:
            return False
        at = bisect_right(firsts, number)
        joins_left = at > 0 and lasts[at - 1] + 1 == number
        joins_right = at < len(firsts) and firsts[at] - 1 == number
        if joins_left and joins_right:
            lasts[at - 1] = lasts[at]
            del firsts[at], lasts[at]
        elif joins_left:
            lasts[at - 1] = number
        elif joins_right:
            firsts[at] = number
        else:
            firsts.insert(at, number)
            lasts.insert(at, number)
            if len(firsts) > _MOST_RANGES:
                lasts[0] = lasts[1]
                del firsts[1], lasts[1]
        return True

    def __str__(self) -> str:
        return ",".join(f"{a}-{b}" if b > a else str(a) for a, b in zip(self._firsts, self._lasts, strict=True))
