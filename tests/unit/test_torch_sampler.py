"""The sampler's position is what the training has trained on, whatever was fetched ahead and however many ranks there are."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset

from onward.torch import ResumableSampler


class Numbers(Dataset[int]):
    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> int:
        return index


def seen(sampler: ResumableSampler, batches: int, workers: int = 0) -> list[list[int]]:
    """What a training sees in so many batches, across epochs."""
    loader: Any = DataLoader(Numbers(sampler._length), batch_sampler=sampler, num_workers=workers)
    found: list[list[int]] = []
    while len(found) < batches:
        for batch in sampler.count(loader):
            found.append(batch.tolist())
            if len(found) == batches:
                break
    return found


@settings(max_examples=60, deadline=None)
@given(length=st.integers(4, 40), batch=st.integers(1, 4), before=st.integers(0, 25), drop=st.booleans(), shuffle=st.booleans())
def test_a_resumed_training_sees_what_the_unbroken_one_sees(length: int, batch: int, before: int, drop: bool, shuffle: bool) -> None:
    def sampler() -> ResumableSampler:
        return ResumableSampler(length, batch_size=batch, seed=3, drop_last=drop, shuffle=shuffle)

    unbroken = seen(sampler(), before + 10)
    first = sampler()
    assert seen(first, before) == unbroken[:before]
    second = sampler()
    second.load_state_dict(first.state_dict())
    assert seen(second, 10) == unbroken[before:]


def test_batches_that_workers_fetched_ahead_are_not_counted() -> None:
    unbroken = seen(ResumableSampler(64, batch_size=2), 20)
    first, second = ResumableSampler(64, batch_size=2), ResumableSampler(64, batch_size=2)
    assert seen(first, 5, workers=2) == unbroken[:5]
    second.load_state_dict(first.state_dict())
    assert seen(second, 15, workers=2) == unbroken[5:]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_any_number_of_ranks_goes_through_the_same_order(ranks: int) -> None:
    """Global batch 8: saved after 3 of them on 4 ranks, and resumed."""
    four = [ResumableSampler(100, batch_size=2, rank=rank, ranks=4) for rank in range(4)]
    for sampler in four:
        seen(sampler, 3)
    others = [ResumableSampler(100, batch_size=2, rank=rank, ranks=ranks) for rank in range(ranks)]
    for sampler in others:
        sampler.load_state_dict(four[0].state_dict())
    micro_batches = 4 // ranks
    of_ranks = [seen(sampler, 5 * micro_batches) for sampler in others]
    for step in range(5):
        trained = {i for rank in of_ranks for batch in rank[step * micro_batches : (step + 1) * micro_batches] for i in batch}
        assert trained == set(ResumableSampler(100, batch_size=8)._order()[(3 + step) * 8 : (4 + step) * 8])


def test_resuming_within_an_epoch_draws_no_random_number_more_than_the_unbroken_training() -> None:
    def noise(sampler: ResumableSampler, batches: int) -> list[float]:
        loader: Any = DataLoader(Numbers(40), batch_sampler=sampler)
        found: list[float] = []
        for _ in sampler.count(loader):
            found.append(torch.rand(()).item())
            if len(found) == batches:
                break
        return found

    torch.manual_seed(1)
    sampler = ResumableSampler(40, batch_size=4)
    unbroken = noise(sampler, 10)
    torch.manual_seed(1)
    first = ResumableSampler(40, batch_size=4)
    noise(first, 4)
    state, rng = first.state_dict(), torch.get_rng_state()
    torch.manual_seed(99)
    second = ResumableSampler(40, batch_size=4)
    second.load_state_dict(state)
    torch.set_rng_state(rng)
    assert noise(second, 6) == unbroken[4:]


def test_epochs_differ_and_those_done_are_not_repeated() -> None:
    sampler = ResumableSampler(8, batch_size=2)
    orders = [[index for batch in sampler.count(list(sampler)) for index in batch] for _ in sampler.epochs(3)]
    assert [sorted(order) for order in orders] == [list(range(8))] * 3 and orders[0] != orders[1]
    resumed = ResumableSampler(8, batch_size=2)
    resumed.load_state_dict(sampler.state_dict())
    assert list(resumed.epochs(3)) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [({"length": 9}, "9 samples, and this one has 8"), ({"taken": 3}, "no multiple of 2")],
)
def test_a_position_that_does_not_fit_is_refused(changed: dict[str, int], words: str) -> None:
    sampler = ResumableSampler(8, batch_size=2)
    with pytest.raises(ValueError, match=words):
        sampler.load_state_dict({**sampler.state_dict(), **changed})


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"batch_size": 2, "rank": 2, "ranks": 2}, {"batch_size": 9}])
def test_a_sampler_without_a_batch_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="ResumableSampler"):
        ResumableSampler(8, **wrong)
