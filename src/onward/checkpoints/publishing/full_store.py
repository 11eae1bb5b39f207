"""When to try a full store again: once there is room for what failed, or after ever longer pauses. Pure.

A store without reservations (NFS) is written to until it is full: trying every few seconds wrote terabytes for nothing.
"""

from __future__ import annotations

_FIRST_WAIT = 5.0  # seconds
_LONGEST_WAIT = 600.0


class FullStoreRetry:
    def __init__(self) -> None:
        self._wait = _FIRST_WAIT
        self._try_at: float | None = None  # None: nothing has failed
        self._short_of: int | None = None  # bytes needed where the disk itself was too full; None: a quota, which it does not tell of

    @property
    def waiting(self) -> bool:
        """The last try failed."""
        return self._try_at is not None

    def may_try(self, now: float, *, free: int | None) -> bool:
        """`free` bytes on the store as it tells them; None where it does not."""
        if self._try_at is None or now >= self._try_at:
            return True
        return self._short_of is not None and free is not None and free >= self._short_of

    def failed(self, now: float, *, need: int, free: int | None) -> None:
        self._try_at = now + self._wait
        self._wait = min(2 * self._wait, _LONGEST_WAIT)
        self._short_of = need if free is not None and free < need else None

    def succeeded(self) -> None:
        self._wait = _FIRST_WAIT
        self._try_at = self._short_of = None
