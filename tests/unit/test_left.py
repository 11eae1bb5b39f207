"""The one rule: nothing committed goes unless it is published, or a newer one is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.checkpoints.unpublished import may_be_deleted, unpublished
from onward.model.checkpoint import CheckpointName
from onward.sdk.rank_shares import commit_share, partial_share
from onward.sdk.ranks import Ranks
from onward.sdk.run import TrainingRun

name_of = st.builds(CheckpointName, st.integers(1, 4), st.integers(0, 5))


@given(name_of, st.lists(name_of))
def test_a_checkpoint_may_go_exactly_when_it_or_a_newer_one_is_published(name: CheckpointName, published: list[CheckpointName]) -> None:
    assert may_be_deleted(name, published) == (name in published or bool(published and max(published) > name))


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Two checkpoints by run.checkpoint(), and the shares of two ranks of a third."""
    folder = tmp_path / "checkpoints"
    run = TrainingRun(folder=tmp_path, leg=2, checkpoints=folder, spool=tmp_path / "spool", resume=None, by_hand=False)
    for step in (10, 20):
        with run.checkpoint(step) as made:
            (made / "w").write_bytes(b"w" * 100)
    for rank in range(2):
        partial = partial_share(folder, 30, rank)
        partial.mkdir(parents=True)
        commit_share(partial, folder, 30, Ranks(rank, 4), {"seconds": 0.1, "metrics": {}})
    (folder / ".partial-step-00000040-1").mkdir()
    return folder


@pytest.mark.parametrize(
    ("published", "left"),
    [
        ([], [10, 20, 30, 30]),
        (["leg-0001.step-00000999"], [10, 20, 30, 30]),
        (["leg-0002.step-00000010"], [20, 30, 30]),
        (["leg-0002.step-00000020"], [30, 30]),
        (["leg-0002.step-00000030"], []),
        (["leg-0003.step-00000001"], []),
    ],
)
def test_what_is_left_is_what_no_published_one_supersedes(node: Path, tmp_path: Path, published: list[str], left: list[int]) -> None:
    for name in published:
        (tmp_path / "store" / name).mkdir(parents=True)
    found = unpublished(node, tmp_path / "store", leg=2)
    assert [one.name.step for one in found] == left
    assert all(one.bytes > 0 for one in found)


def test_where_the_store_cannot_be_read_everything_is_unpublished(node: Path, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("no folder")
    assert len(unpublished(node, tmp_path / "store", leg=2)) == 4
