from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from onward.model.checkpoint import Checkpoint, CheckpointName, best_of
from onward.model.checkpoint_retention import to_delete, why_kept
from onward.model.spec import BestRule, CheckpointRule


def checkpoint(step: int, *, leg: int = 1, **metrics: float) -> Checkpoint:
    return Checkpoint(name=CheckpointName(leg, step), bytes=1, created=1.0, metrics=metrics)


def left(found: list[Checkpoint], rule: CheckpointRule) -> list[int]:
    doomed = to_delete(found, rule)
    return [c.name.step for c in found if c not in doomed]


TEN = [checkpoint(step) for step in range(10, 110, 10)]


def test_as_many_are_kept_as_the_rule_says() -> None:
    assert left(TEN, CheckpointRule(keep=3)) == [80, 90, 100]
    assert left(TEN, CheckpointRule(keep=100)) == [c.name.step for c in TEN]


def test_the_last_two_are_never_deleted() -> None:
    for keep in (-1, 0, 1, 2):
        assert left(TEN, CheckpointRule(keep=keep)) == [90, 100]
    assert left(TEN[:2], CheckpointRule(keep=1)) == [10, 20]
    assert left(TEN[:1], CheckpointRule(keep=1)) == [10]


def test_every_nth_step_is_kept_for_good() -> None:
    assert left(TEN, CheckpointRule(keep=2, keep_every=40)) == [40, 80, 90, 100]


def test_the_best_is_kept_by_either_measure() -> None:
    found = [checkpoint(step, loss=loss) for step, loss in ((1, 0.5), (2, 0.1), (3, 0.9), (4, 0.4), (5, 0.3))]
    assert left(found, CheckpointRule(keep=2, best=BestRule(metric="loss", mode="min"))) == [2, 4, 5]
    assert left(found, CheckpointRule(keep=2, best=BestRule(metric="loss", mode="max"))) == [3, 4, 5]


def test_the_earlier_of_two_equally_good_ones_is_the_best() -> None:
    found = [checkpoint(1, accuracy=0.9), checkpoint(2, accuracy=0.9)]
    best = best_of(reversed(found), "accuracy", "max")
    assert best is not None and best.name.step == 1


def test_nan_is_never_the_best() -> None:
    found = [checkpoint(1, loss=math.nan), checkpoint(2, loss=0.7), checkpoint(3, loss=math.nan), checkpoint(4), checkpoint(5)]
    for mode in ("min", "max"):
        best = best_of(found, "loss", mode)
        assert best is not None and best.name.step == 2
        assert left(found, CheckpointRule(keep=2, best=BestRule(metric="loss", mode=mode))) == [2, 4, 5]
    assert best_of([found[0]], "loss", "min") is None


def test_a_metric_nobody_logged_keeps_nothing_more() -> None:
    assert left(TEN, CheckpointRule(keep=2, best=BestRule(metric="no such", mode="min"))) == [90, 100]


@given(
    names=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 100)), unique=True),
    keep=st.integers(0, 5),
    keep_every=st.none() | st.integers(1, 30),
)
def test_whatever_the_rule_the_newest_two_the_best_and_the_nth_stay(
    names: list[tuple[int, int]], keep: int, keep_every: int | None
) -> None:
    found = [checkpoint(step, leg=leg, loss=((leg * 31 + step * 17) % 23) / 7) for leg, step in names]
    rule = CheckpointRule(keep=keep, keep_every=keep_every, best=BestRule(metric="loss", mode="min"))
    doomed = {c.name for c in to_delete(found, rule)}
    ordered = sorted(c.name for c in found)
    assert not doomed & set(ordered[-max(keep, 2) :])
    assert not doomed & {name for name in ordered if keep_every and name.step % keep_every == 0}
    best = best_of(found, "loss", "min")
    assert best is None or best.name not in doomed
    assert doomed <= set(ordered)


def test_each_that_is_kept_has_a_reason_and_each_that_goes_says_so() -> None:
    found = [checkpoint(step, loss=abs(step - 40)) for step in range(10, 110, 10)]
    rule = CheckpointRule(keep=3, keep_every=50, best=BestRule(metric="loss", mode="min"))
    fields = {name.step: words for name, words in why_kept(found, rule).items()}
    assert fields[100] == "the newest, one of every 50 steps"
    assert fields[80] == fields[90] == "one of the last 3"
    assert (fields[40], fields[50]) == ("best by loss", "one of every 50 steps")
    gone = {step for step, words in fields.items() if words.startswith("deleted when")}
    assert gone == {c.name.step for c in to_delete(found, rule)}
