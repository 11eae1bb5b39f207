"""A node copies its checkpoint only where that is of use; else it is read, verified, where it lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from onward.checkpoints.disk_space import is_in_memory
from onward.checkpoints.manifest import read_manifest
from onward.checkpoints.publishing.delete_old import delete
from onward.checkpoints.publishing.publish import publish
from onward.checkpoints.restoring.newest import likely_newest, take_newest
from onward.checkpoints.restoring.node_copy import NodeCheckpoint, NodeDisk, bring_to_node, why_in_place
from onward.checkpoints.shares.gather import GatheredCheckpoint, assemble, put_share, shares
from onward.errors import CheckpointDamaged
from onward.model.checkpoint import CheckpointName
from onward.sdk.rank_shares import commit_share, partial_share
from onward.sdk.ranks import Ranks
from tests.disks import refuse_room, small_disk

NAME = CheckpointName(1, 7)
ROOMY = NodeDisk(free=10**12, same_as_store=False, in_memory=False)
GB = 10**9


class Node:
    def __init__(self, folder: Path, *, made_by: str = "sdk") -> None:
        self.store, self.resume, self.writes = folder / "store", folder / "local" / "resume", folder / "local" / "checkpoints"
        self.writes.mkdir(parents=True)
        (folder / "w").write_bytes(b"w" * 1000)
        publish({"w": folder / "w", "deep/er": folder / "w"}, self.store, NAME, created=1.0, made_by=made_by)
        self.there = self.store / str(NAME)

    def bring(self, disk: NodeDisk = ROOMY) -> NodeCheckpoint:
        return bring_to_node(self.there, resume=self.resume, writes=self.writes, look=lambda _local, _store: disk)


@pytest.mark.parametrize(
    ("disk", "words"),
    [
        (NodeDisk(free=300 * GB, same_as_store=False, in_memory=False), ""),
        (NodeDisk(free=None, same_as_store=False, in_memory=False), ""),
        (NodeDisk(free=299 * GB, same_as_store=False, in_memory=False), "a copy and 2 new checkpoints take 300"),
        (NodeDisk(free=150 * GB, same_as_store=False, in_memory=False), "150.0 GB free"),
        (NodeDisk(free=300 * GB, same_as_store=True, in_memory=False), "the storage itself"),
        (NodeDisk(free=300 * GB, same_as_store=False, in_memory=True), "the job's"),
    ],
)
def test_a_copy_is_made_only_where_two_more_checkpoints_find_room_beside_it(disk: NodeDisk, words: str) -> None:
    why = why_in_place(100 * GB, disk)
    assert words in why and bool(why) == bool(words)


def test_where_there_is_room_it_is_copied(tmp_path: Path) -> None:
    node = Node(tmp_path)
    brought = node.bring()
    assert (brought.folder, brought.in_place) == (node.resume, "")
    assert (node.resume / "deep" / "er").read_bytes() == b"w" * 1000


def test_where_there_is_none_it_is_read_in_the_store_and_the_disk_stays_free_for_new_ones(tmp_path: Path) -> None:
    node = Node(tmp_path)
    brought = node.bring(NodeDisk(free=3000, same_as_store=False, in_memory=False))
    assert brought.folder == node.there and "3.0 kB free" in brought.in_place
    assert not node.resume.exists()


def test_where_the_room_is_gone_all_the_same_it_is_read_in_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(tmp_path)
    refuse_room(monkeypatch)
    brought = node.bring()
    assert brought.folder == node.there and "is full" in brought.in_place and not node.resume.exists()


@pytest.mark.parametrize("disk", [ROOMY, NodeDisk(free=0, same_as_store=False, in_memory=False)])
def test_it_is_verified_wherever_it_is_read(tmp_path: Path, disk: NodeDisk) -> None:
    node = Node(tmp_path)
    (node.there / "w").write_bytes(b"v" * 1000)
    with pytest.raises(CheckpointDamaged, match="hash"):
        node.bring(disk)


def test_on_the_stores_own_disk_nothing_is_copied_and_it_stays_when_the_store_lets_it_go(tmp_path: Path) -> None:
    node = Node(tmp_path)
    brought = bring_to_node(node.there, resume=node.resume, writes=node.writes)
    assert brought.folder == node.resume and "the storage itself" in brought.in_place
    assert os.path.samefile(node.resume / "w", node.there / "w")
    assert not (node.resume / "manifest.json").exists()
    delete(node.store, NAME)
    assert (node.resume / "deep" / "er").read_bytes() == b"w" * 1000


def test_files_of_a_trainings_own_are_put_where_it_writes_once(tmp_path: Path) -> None:
    """It may write to them there: they are no links to the published ones."""
    node = Node(tmp_path, made_by="files")
    brought = node.bring()
    assert (node.writes / "w").read_bytes() == (node.writes / "deep" / "er").read_bytes() == b"w" * 1000
    assert sorted(os.listdir(node.writes)) == ["deep", "w"]
    assert brought.folder == node.there and not node.resume.exists(), "the only copy is the one where it writes"
    (node.writes / "w").write_bytes(b"new")
    assert (brought.folder / "w").read_bytes() == b"w" * 1000


def test_files_on_the_stores_own_disk_are_copied_where_the_training_writes_and_linked_where_it_reads(tmp_path: Path) -> None:
    node = Node(tmp_path, made_by="files")
    brought = bring_to_node(node.there, resume=node.resume, writes=node.writes)
    assert brought.folder == node.resume and not os.path.samefile(node.writes / "w", node.there / "w")


def test_files_that_find_no_room_where_the_training_writes_are_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(tmp_path, made_by="files")
    refuse_room(monkeypatch)
    brought = node.bring()
    assert brought.folder == node.there and os.listdir(node.writes) == []
    assert "{checkpoints.read}" in brought.warning and "2.0 kB" in brought.warning


def test_which_one_all_nodes_bring_is_known_by_the_sizes_alone(tmp_path: Path) -> None:
    node = Node(tmp_path)
    publish({"w": tmp_path / "w"}, node.store, CheckpointName(1, 8), created=1.0)
    publish({"w": tmp_path / "w"}, node.store, CheckpointName(1, 9), created=1.0)
    os.truncate(node.store / "leg-0001.step-00000009" / "w", 3)
    (node.store / "leg-0001.step-00000008" / "w").write_bytes(b"v" * 1000)
    likely = likely_newest(node.store)
    assert likely and likely.name == CheckpointName(1, 8)
    found = take_newest(node.store, lambda folder: bring_to_node(folder, resume=node.resume, writes=node.writes))
    assert found and found.taken.manifest.name == NAME and len(found.fell_back) == 2


def test_a_memory_disk_is_known_by_its_type(tmp_path: Path) -> None:
    assert not is_in_memory(Path("/proc"))
    with small_disk(tmp_path / "disk", kilobytes=100) as disk:
        assert is_in_memory(disk) and is_in_memory(disk / "not" / "there" / "yet")


def test_the_type_of_a_disk_is_read_from_the_kernels_list(tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    line = f"36 25 {os.major(device)}:{os.minor(device)} / {tmp_path} rw,noatime shared:1 - %s none rw,size=10k\n"
    for kind, memory in (("tmpfs", True), ("ramfs", True), ("ext4", False)):
        mounts.write_text("1 1 0:1 / /else rw - tmpfs x rw\n" + line % kind)
        assert is_in_memory(tmp_path, mounts=mounts) is memory
    assert not is_in_memory(tmp_path, mounts=tmp_path / "missing")


# ── a checkpoint that all ranks wrote ─────────────────────────────────────────


class Sharded:
    """Four ranks on two nodes, a file each, and one file that all of them wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store, shares_of = folder, folder / "store", folder / "shares"
        for rank in range(4):
            partial = partial_share(shares_of, 7, rank)
            partial.mkdir(parents=True)
            (partial / f"r{rank}").write_bytes(bytes([rank]) * 1000)
            (partial / "config").write_text("the same")
            commit_share(partial, shares_of, 7, Ranks(rank, 4), {"seconds": 0.1, "metrics": {}})
        for share in shares(shares_of):
            put_share(share, self.store, leg=1)
        assert [type(found) for found in assemble(self.store, leg=1, created=1.0)] == [GatheredCheckpoint]
        self.there = self.store / str(NAME)

    def bring(self, node: int, disk: NodeDisk = ROOMY) -> Path:
        local = self.folder / f"node-{node}"
        local.mkdir(exist_ok=True)
        return bring_to_node(self.there, resume=local / "resume", writes=local, part=(node, 2), look=lambda _local, _store: disk).folder


def test_each_node_copies_what_its_own_ranks_wrote_and_finds_the_rest_through_links(tmp_path: Path) -> None:
    made = Sharded(tmp_path)
    for node, own in enumerate([{"r0", "r1"}, {"r2", "r3", "config"}]):
        resume = made.bring(node)
        assert {name for name in os.listdir(resume) if not (resume / name).is_symlink()} == own
        assert all((resume / f"r{rank}").read_bytes() == bytes([rank]) * 1000 for rank in range(4))


@pytest.mark.parametrize("disk", [ROOMY, NodeDisk(free=0, same_as_store=False, in_memory=False)], ids=["copied", "in place"])
def test_each_file_is_verified_by_one_node(tmp_path: Path, disk: NodeDisk) -> None:
    made = Sharded(tmp_path)
    (made.there / "r2").write_bytes(b"x" * 1000)
    made.bring(0, disk)
    with pytest.raises(CheckpointDamaged, match="r2 does not match its hash"):
        made.bring(1, disk)


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 7, 16])
def test_every_file_has_exactly_one_node_whatever_their_number(tmp_path: Path, nodes: int) -> None:
    manifest = read_manifest(Sharded(tmp_path).there)
    parts = [manifest.part(node, nodes) for node in range(nodes)]
    assert sorted(name for part in parts for name in part) == sorted(manifest.files)
