"""What salvage may take of the leg that waits for it: what is left over stays on the node."""

from __future__ import annotations

from dataclasses import dataclass

from onward.clock import Clock
from onward.errors import StorageError
from onward.model.quantity import duration_text

_PART, _MOST = 0.25, 0.5  # of the leg's time
_LEAST = 60.0  # seconds
_WITHOUT_A_LIMIT = 3600.0  # seconds


class ShareSpent(StorageError):
    """Salvage has taken its share of the leg."""

    transient = True


@dataclass(frozen=True, kw_only=True)
class SalvageShare:
    seconds: float
    until: float
    clock: Clock

    @classmethod
    def of_leg(cls, deadline: float | None, clock: Clock) -> SalvageShare:
        now = clock.now()
        left = max(deadline - now, 0.0) if deadline else None
        seconds = _WITHOUT_A_LIMIT if left is None else min(max(_PART * left, _LEAST), _MOST * left)
        return cls(seconds=seconds, until=now + seconds, clock=clock)

    @property
    def spent(self) -> bool:
        return self.clock.now() >= self.until

    def take(self, size: int = 0) -> None:
        """Called all along, with the bytes that were moved. Raises ShareSpent, which ends a copy at once."""
        if self.spent:
            raise ShareSpent(f"it took longer than {duration_text(self.seconds)}, its share of this leg")
