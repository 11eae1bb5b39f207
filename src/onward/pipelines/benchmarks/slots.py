"""How many tasks a worker has room for at once, which GPUs each gets, and whether there is time for one more."""

from __future__ import annotations

from dataclasses import dataclass

_SPARE = 1.2  # a task may take so much longer than the longest like it


@dataclass(frozen=True, kw_only=True)
class Slot:
    cpus: int
    gpus: tuple[str, ...] = ()


class Slots:
    """The CPUs and GPUs of one allocation, shared out."""

    def __init__(self, *, cpus: int, gpus: tuple[str, ...] = ()) -> None:
        self._cpus = max(cpus, 1)
        self._gpus = gpus
        self._taken: list[Slot] = []

    @property
    def free(self) -> int:
        return self._cpus - sum(slot.cpus for slot in self._taken)

    def fits(self, cpus: int | None) -> bool:
        return self._wanted(cpus) <= self.free

    def take(self, cpus: int | None) -> Slot:
        """`None`: all there are. Of the GPUs each gets its share, those that fewest others use."""
        wanted = self._wanted(cpus)
        share = max(1, len(self._gpus) * wanted // self._cpus) if self._gpus else 0
        used = [gpu for slot in self._taken for gpu in slot.gpus]
        slot = Slot(cpus=wanted, gpus=tuple(sorted(self._gpus, key=lambda gpu: (used.count(gpu), self._gpus.index(gpu)))[:share]))
        self._taken.append(slot)
        return slot

    def give_back(self, slot: Slot) -> None:
        self._taken.remove(slot)

    def _wanted(self, cpus: int | None) -> int:
        return self._cpus if cpus is None else min(max(cpus, 1), self._cpus)


def worth_beginning(deadline: float | None, now: float, longest: float | None) -> bool:
    """`longest`: seconds of the longest task like it, of those that keep nothing when they are stopped; None: they do, or none is known."""
    return deadline is None or longest is None or deadline - now > longest * _SPARE
