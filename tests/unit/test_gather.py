"""A checkpoint that all ranks write is published once all shares are there, and never less."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onward.checkpoints.manifest import Manifest, verify
from onward.checkpoints.publishing.publish import publish, remove_partials, restore
from onward.checkpoints.restoring.newest import published_names_of
from onward.checkpoints.shares.gather import GatheredCheckpoint, NotGathered, assemble, incomplete, lacking, next_shares, put_share, shares
from onward.clock import ManualClock
from onward.errors import StorageError, StorageFull
from onward.model.checkpoint import CheckpointName
from onward.sdk.rank_shares import commit_share, partial_share
from onward.sdk.ranks import Ranks
from onward.sdk.run import TrainingRun
from tests.disks import refuse_room


def write(node: Path, step: int, rank: int, files: dict[str, str], *, world: int = 4) -> None:
    """As run.checkpoint(step, written_by="all") does on the node of a rank."""
    partial = partial_share(node, step, rank)
    partial.mkdir(parents=True)
    for name, text in files.items():
        (partial / name).parent.mkdir(parents=True, exist_ok=True)
        (partial / name).write_text(text)
    commit_share(partial, node, step, Ranks(rank, world), {"seconds": 0.5 + rank, "metrics": {"loss": 0.25}})


def put_all(node: Path, store: Path, leg: int = 1) -> None:
    for share in shares(node):
        put_share(share, store, leg=leg)


def gathered(store: Path, leg: int = 1) -> list[GatheredCheckpoint]:
    return [found for found in assemble(store, leg=leg, created=1.0) if isinstance(found, GatheredCheckpoint)]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    made = tmp_path / "store"
    made.mkdir()
    return made


def test_the_next_shares_are_the_oldest_and_in_a_hurry_the_newest(tmp_path: Path) -> None:
    for step in (3, 5, 7):
        for rank in (0, 1):
            write(tmp_path, step, rank, {"w": "x"})
    found = shares(tmp_path)
    assert [(share.step, share.rank) for share in next_shares(found, hurry=False)] == [(3, 0), (3, 1)]
    assert [(share.step, share.rank) for share in next_shares(found, hurry=True)] == [(7, 0), (7, 1)]
    assert next_shares([], hurry=True) == []


def test_shares_of_two_nodes_make_one_checkpoint_that_verifies(tmp_path: Path, store: Path) -> None:
    for rank in range(4):
        write(tmp_path / f"n{rank // 2}", 99, rank, {f"optimizer-{rank}.pt": f"o{rank}", "shared/config.json": "{}"})
    put_all(tmp_path / "n0", store)
    assert gathered(store) == [] and published_names_of(store) == [] and incomplete(store, leg=1)
    put_all(tmp_path / "n1", store)
    (found,) = gathered(store)
    assert found.save_seconds == 3.5 and found.manifest.metrics == {"loss": 0.25}
    assert [str(name) for name in published_names_of(store)] == ["leg-0001.step-00000099"]
    published = store / "leg-0001.step-00000099"
    assert sorted(verify(published).files) == ["optimizer-0.pt", "optimizer-1.pt", "optimizer-2.pt", "optimizer-3.pt", "shared/config.json"]
    assert not incomplete(store, leg=1) and [p.name for p in store.iterdir()] == [published.name]
    assert not shares(tmp_path / "n0") and not shares(tmp_path / "n1"), "what has been put is taken off the node"
    restore(published, tmp_path / "restored")
    assert (tmp_path / "restored" / "optimizer-3.pt").read_text() == "o3"


@settings(max_examples=60, deadline=None)
@given(st.permutations(range(4)), st.integers(0, 3), st.booleans())
def test_in_whatever_order_shares_come_nothing_is_visible_before_the_last(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], again: int, twice: bool
) -> None:
    base = tmp_path_factory.mktemp("gather")
    store = base / "store"
    store.mkdir()
    for index, rank in enumerate(order):
        assert gathered(store) == [] and published_names_of(store) == []
        write(base / "node", 7, rank, {f"{rank}.pt": str(rank)})
        put_all(base / "node", store)
        if twice and index == again:  # saved and put once more: done twice is done once
            write(base / "node", 7, rank, {f"{rank}.pt": str(rank)})
            put_all(base / "node", store)
    assert len(gathered(store)) == 1
    assert gathered(store) == []
    assert sorted(verify(store / "leg-0001.step-00000007").files) == ["0.pt", "1.pt", "2.pt", "3.pt"]


def test_two_ranks_that_write_the_same_name_differently_are_told_apart(tmp_path: Path, store: Path) -> None:
    for rank in range(2):
        write(tmp_path / "n", 5, rank, {"model.pt": f"of rank {rank}"}, world=2)
    put_all(tmp_path / "n", store)
    (entries,) = list(assemble(store, leg=1, created=1.0))
    assert isinstance(entries, NotGathered) and "ranks 0 and 1 wrote different versions of model.pt" in entries.reason and not entries.later
    assert published_names_of(store) == [] and not incomplete(store, leg=1)


def test_a_step_that_never_was_completed_goes_when_a_newer_one_is(tmp_path: Path, store: Path) -> None:
    write(tmp_path / "n", 5, 0, {"0.pt": "x"}, world=2)
    for rank in range(2):
        write(tmp_path / "n", 9, rank, {f"{rank}.pt": "x"}, world=2)
    put_all(tmp_path / "n", store)
    assert [found.manifest.step for found in gathered(store)] == [9]
    assert [path.name for path in store.iterdir()] == ["leg-0001.step-00000009"]


def entries(store: Path) -> list[str]:
    return [found.reason for found in assemble(store, leg=1, created=1.0) if isinstance(found, NotGathered)]


def test_a_rank_that_saves_no_more_is_named_once_others_are_two_steps_ahead(tmp_path: Path, store: Path) -> None:
    for step in (9, 19, 29):
        for rank in (0, 1, 2):
            write(tmp_path / "n", step, rank, {f"{rank}.pt": "x"})
        put_all(tmp_path / "n", store)
        assert entries(store) == ([] if step < 29 else ["the checkpoint of step 9: the share of rank 3 is missing"])
    assert [found.step for found in lacking(store, leg=1)] == [9, 19, 29]


def test_a_step_that_a_newer_one_overtook_is_told_with_the_ranks_that_it_lacked(tmp_path: Path, store: Path) -> None:
    write(tmp_path / "n", 5, 1, {"1.pt": "x"}, world=3)
    for rank in range(3):
        write(tmp_path / "n", 9, rank, {f"{rank}.pt": "x"}, world=3)
    put_all(tmp_path / "n", store)
    assert entries(store) == ["the checkpoint of step 5: the shares of ranks 0, 2 are missing"]
    assert entries(store) == []


def test_what_a_killed_leg_gathered_of_a_step_stays_until_a_newer_checkpoint_is_published(tmp_path: Path, store: Path) -> None:
    """The other shares may lie on their nodes still: the next leg there puts them beside these."""
    write(tmp_path / "n", 5, 0, {"0.pt": "x"}, world=2)
    put_all(tmp_path / "n", store)
    assert incomplete(store, leg=1) and not incomplete(store, leg=2)
    remove_partials(store, before_leg=2)
    assert incomplete(store, leg=1)
    (tmp_path / "w").write_text("w")
    publish({"w": tmp_path / "w"}, store, CheckpointName(2, 1), created=1.0)
    remove_partials(store, before_leg=2)
    assert [path.name for path in store.iterdir()] == ["leg-0002.step-00000001"]


def test_a_partial_without_a_whole_share_goes_with_its_leg(tmp_path: Path, store: Path) -> None:
    half = store / ".leg-0001.step-00000005.partial"
    (half / ".shares").mkdir(parents=True)
    (half / ".0.pt.0.tmp").write_text("half")
    remove_partials(store, before_leg=2)
    assert list(store.iterdir()) == []


def test_shares_killed_while_being_put_are_put_again(tmp_path: Path, store: Path) -> None:
    for rank in range(2):
        write(tmp_path / "n", 5, rank, {f"{rank}.pt": "whole"}, world=2)
    half = store / ".leg-0001.step-00000005.partial"
    half.mkdir()
    (half / "0.pt").write_text("ha")
    (half / ".1.pt.1.tmp").write_text("wh")
    put_all(tmp_path / "n", store)
    assert len(gathered(store)) == 1
    assert (store / "leg-0001.step-00000005" / "0.pt").read_text() == "whole"


def test_a_share_that_is_not_committed_is_none(tmp_path: Path) -> None:
    folder = tmp_path / ".shares" / "step-00000005" / "rank-00000"
    folder.mkdir(parents=True)
    (folder / "0.pt").write_text("x")
    assert shares(tmp_path) == []
    (folder / ".onward-checkpoint.json").write_text("{")
    assert shares(tmp_path) == []


def test_the_name_of_our_own_manifest_is_refused_in_a_share(tmp_path: Path, store: Path) -> None:
    write(tmp_path / "n", 5, 0, {"manifest.json": "{}"}, world=1)
    with pytest.raises(StorageError, match=r"manifest\.json"):
        put_all(tmp_path / "n", store)


# ── in a training ─────────────────────────────────────────────────────────────


def rank_in(folder: Path, monkeypatch: pytest.MonkeyPatch, rank: int, world: int = 2, *, log_from: str = "first") -> TrainingRun:
    for name, value in (("RANK", rank), ("WORLD_SIZE", world), ("LOCAL_RANK", rank)):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("ONWARD_RUN_DIR", str(folder / "run"))
    monkeypatch.setenv("ONWARD_CHECKPOINT_DIR", str(folder / "ckpt"))
    monkeypatch.setenv("ONWARD_SPOOL_DIR", str(folder / "spool"))
    return TrainingRun.of_environment(name=None, log_from=log_from)


def test_only_rank_0_writes_a_checkpoint_and_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in (1, 0):
        run = rank_in(tmp_path, monkeypatch, rank)
        run.announce(total_steps=5, params=None)
        run.log({"loss": 1.0})
        with run.checkpoint(3) as folder:
            (folder / "state.pt").write_text(f"of rank {rank}")
        run.finish()
    assert [path.name for path in (tmp_path / "ckpt").iterdir()] == ["step-00000003"]
    assert (tmp_path / "ckpt" / "step-00000003" / "state.pt").read_text() == "of rank 0"
    (spool,) = (tmp_path / "spool").iterdir()
    assert ".train-r0-" in spool.name


def test_all_ranks_log_where_they_are_asked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in (0, 1):
        rank_in(tmp_path, monkeypatch, rank, log_from="all").log({"loss": 1.0})
    assert sorted(path.name.split("-")[2] for path in (tmp_path / "spool").iterdir()) == ["r0", "r1"]


def test_each_rank_commits_its_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in range(2):
        with rank_in(tmp_path, monkeypatch, rank).checkpoint(3, written_by="all") as folder:
            (folder / f"{rank}.pt").write_text("x")
    found = shares(tmp_path / "ckpt")
    assert [(share.step, share.rank, share.world) for share in found] == [(3, 0, 2), (3, 1, 2)]


def test_a_share_whose_writing_raises_is_not_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = rank_in(tmp_path, monkeypatch, 0)
    with pytest.raises(ValueError, match="half"), run.checkpoint(3, written_by="all") as folder:
        (folder / "0.pt").write_text("x")
        raise ValueError("half")
    assert shares(tmp_path / "ckpt") == []
    assert not list((tmp_path / "ckpt" / ".shares").iterdir())


def test_by_hand_the_last_rank_joins_the_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONWARD_CHECKPOINT_DIR", raising=False)
    monkeypatch.setenv("ONWARD_RUN_DIR", str(tmp_path / "run"))
    for rank in (1, 0):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", "2")
        run = TrainingRun.of_environment(name=None)
        assert run.by_hand and (run.rank, run.world_size) == (rank, 2)
        with run.checkpoint(4, written_by="all") as folder:
            (folder / f"{rank}.pt").write_text(str(rank))
    resumed = TrainingRun.of_environment(name=None).resume()
    assert resumed is not None and resumed.name == "step-00000004"
    assert sorted(path.name for path in resumed.iterdir()) == [".onward-checkpoint.json", "0.pt", "1.pt"]
    assert json.loads((resumed / ".onward-checkpoint.json").read_text())["step"] == 4


def test_a_single_process_writes_all_of_it_either_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with rank_in(tmp_path, monkeypatch, 0, world=1).checkpoint(3, written_by="all") as folder:
        (folder / "state.pt").write_text("x")
    assert [path.name for path in (tmp_path / "ckpt").iterdir()] == ["step-00000003"]


def test_a_word_that_is_not_known_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = rank_in(tmp_path, monkeypatch, 0)
    with pytest.raises(ValueError, match="expected 'first'"), run.checkpoint(3, written_by="rank0"):
        pass


class TickingClock(ManualClock):
    """Each look at it takes ten seconds."""

    def now(self) -> float:
        self.sleep(10.0)
        return super().now()


def test_the_time_a_sharded_checkpoint_took_is_that_of_the_slowest_node(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in range(3):
        write(tmp_path / "n", 9, rank, {f"{rank}.pt": "x"}, world=3)
    for share, host in zip(shares(tmp_path / "n"), ("a", "b", "b"), strict=True):
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        put_share(share, store, leg=1, clock=TickingClock())
    (found,) = gathered(store)
    assert found.stage_seconds == 20.0, "two shares of node b, one after the other, while a put its own"


def test_a_share_that_finds_no_room_leaves_no_half_in_the_store(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "n", 9, 0, {"a.pt": "x", "b.pt": "y"}, world=2)
    with monkeypatch.context() as full:
        refuse_room(full)
        with pytest.raises(StorageFull):
            put_all(tmp_path / "n", store)
    assert not [path for path in store.rglob("*") if path.is_file()]
    put_all(tmp_path / "n", store)
    assert (store / ".leg-0001.step-00000009.partial" / "b.pt").read_text() == "y"


def test_a_step_that_another_node_publishes_at_the_same_moment_is_no_failure(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in range(2):
        write(tmp_path / "n", 9, rank, {f"{rank}.pt": "x"}, world=2)
    put_all(tmp_path / "n", store)

    def overtaken(folder: Path, manifest: Manifest) -> None:
        monkeypatch.undo()
        assert len(gathered(store)) == 1

    monkeypatch.setattr("onward.checkpoints.shares.gather.check_sizes", overtaken)
    assert list(assemble(store, leg=1, created=1.0)) == []
    assert sorted(verify(store / "leg-0001.step-00000009").files) == ["0.pt", "1.pt"]
