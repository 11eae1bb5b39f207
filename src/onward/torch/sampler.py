"""The order of a data set's samples, and a training's position in it: exact within an epoch, for any number of ranks and workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

import torch
from torch.utils.data import Sampler

Batch = TypeVar("Batch")


class ResumableSampler(Sampler[list[int]]):
    """Batches of indices, for `DataLoader(data, batch_sampler=…)`.

        sampler = ResumableSampler(data, batch_size=32)
        loader = DataLoader(data, batch_sampler=sampler, num_workers=4)
        for epoch in sampler.epochs(10):
            for batch in sampler.count(loader):
                ...

    The ranks of a training take turns: together they take `batch_size` × ranks samples of one order at a time. Resumed on
    another number of ranks, with `batch_size` × ranks × accumulated batches as before, each optimizer step sees the same samples.
    """

    def __init__(
        self,
        data: Sized | int,
        *,
        batch_size: int,
        seed: int = 0,
        shuffle: bool = True,
        drop_last: bool = True,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        self._length = data if isinstance(data, int) else len(data)
        if batch_size < 1 or not 0 <= rank < ranks:
            asked = f"batch_size={batch_size}, rank={rank}, ranks={ranks}"
            raise ValueError(f"ResumableSampler({asked}): expected a batch of 1 or more, and a rank below `ranks`")
        self._batch_size = batch_size
        self._seed = seed
        self._shuffle = shuffle
        self._drop_last = drop_last
        self._rank = rank
        self._ranks = ranks
        self.epoch = 0
        self._taken = 0  # samples of this epoch, by all ranks
        if not len(self):
            raise ValueError(f"ResumableSampler: {self._length} samples make no batch of {batch_size} for each of {ranks} ranks")

    def __len__(self) -> int:
        """Batches of a whole epoch, for each rank."""
        together = self._batch_size * self._ranks
        return self._length // together if self._drop_last else -(-self._length // together)

    def __iter__(self) -> Iterator[list[int]]:
        """The rest of this epoch. The position counts what `count()` has handed out, not what workers have fetched ahead."""
        order = self._order()
        together = self._batch_size * self._ranks
        for start in range(self._taken, self._end, together):
            first = start + self._rank * self._batch_size
            yield [order[index % self._length] for index in range(first, first + self._batch_size)]

    @property
    def _end(self) -> int:
        return len(self) * self._batch_size * self._ranks

    def epochs(self, count: int) -> Iterator[int]:
        """The numbers of the epochs that are left of `count`."""
        while self.epoch < count:
            yield self.epoch

    def count(self, loader: Iterable[Batch]) -> Iterator[Batch]:
        """The loader's batches, counted as they are handed out. After the last one the next epoch begins.

        Starting a loader draws a random number. In the middle of an epoch that is taken back, as the unbroken training drew none there.
        """
        before = torch.get_rng_state() if self._taken else None
        batches = iter(loader)
        if before is not None:
            torch.set_rng_state(before)
        for batch in batches:
            self._taken += self._batch_size * self._ranks
            yield batch
        self.epoch, self._taken = self.epoch + 1, 0

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "taken": self._taken, "seed": self._seed, "length": self._length}

    def load_state_dict(self, state: dict[str, int]) -> None:
        if state["length"] != self._length:
            raise ValueError(f"the checkpoint is of a data set with {state['length']} samples, and this one has {self._length}")
        together = self._batch_size * self._ranks
        if state["taken"] % together:
            raise ValueError(
                f"the checkpoint is after {state['taken']} samples of an epoch: no multiple of {together}, which ranks take together"
            )
        self.epoch, self._taken, self._seed = state["epoch"], state["taken"], state["seed"]

    def _order(self) -> list[int]:
        if not self._shuffle:
            return list(range(self._length))
        generator = torch.Generator().manual_seed((self._seed << 20) + self.epoch)
        return [int(index) for index in torch.randperm(self._length, generator=generator)]
