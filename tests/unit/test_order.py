from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onward.checkpoints.publishing.order import may_go_unpublished, may_skip, next_to_publish
from onward.model.spec import BestRule, CheckpointRule

RULE = CheckpointRule(keep=3)
steps = st.lists(st.integers(0, 50), max_size=8, unique=True).map(sorted)
rules = st.builds(
    CheckpointRule,
    keep=st.integers(2, 5),
    keep_every=st.none() | st.integers(1, 10),
    best=st.none() | st.just(BestRule(metric="loss", mode="min")),
)


def test_while_the_store_keeps_up_the_oldest_is_published_first() -> None:
    assert next_to_publish([1, 2, 3], RULE, closed=False) == 0


def test_once_the_training_has_gone_the_newest_is_published_first() -> None:
    assert next_to_publish([1, 2, 3], RULE, closed=True) == 2


def test_when_saves_outrun_the_store_the_newest_is_published_first() -> None:
    assert next_to_publish([1, 2, 3, 4], RULE, closed=False) == 3
    assert next_to_publish([1, 2, 3, 4], CheckpointRule(best=BestRule(metric="loss")), closed=False) == 0


@given(waiting=steps, rule=rules, closed=st.booleans(), newest=st.integers(-1, 50), published=st.integers(0, 9))
def test_none_is_skipped_unless_a_newer_one_is_published_and_the_rule_lets_it_go(
    waiting: list[int], rule: CheckpointRule, closed: bool, newest: int, published: int
) -> None:
    for at in may_skip(waiting, rule, closed=closed, newest=newest, published=published):
        assert waiting[at] < newest
        assert rule.best is None and not (rule.keep_every and waiting[at] % rule.keep_every == 0)


def test_at_the_end_older_ones_are_published_only_as_far_as_they_are_kept() -> None:
    assert may_skip([1, 2], RULE, closed=True, newest=9, published=3) == [0, 1]
    assert may_skip([1, 2], RULE, closed=True, newest=9, published=1) == []


@given(committed=steps, rule=rules)
def test_the_two_newest_and_what_the_rule_keeps_never_go_unpublished(committed: list[int], rule: CheckpointRule) -> None:
    gone = may_go_unpublished(committed, rule)
    assert not set(gone) & set(committed[-2:])
    assert not gone or rule.best is None
    assert not [step for step in gone if rule.keep_every and step % rule.keep_every == 0]
