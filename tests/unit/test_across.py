"""Files that ranks write by themselves on several nodes: one checkpoint of all of them, or none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from onward.checkpoints.manifest import verify
from onward.checkpoints.publishing.publisher import CheckpointPublisher
from onward.checkpoints.restoring.newest import published_names_of
from onward.checkpoints.shares.gather import put_share, shares
from onward.checkpoints.shares.node_files import NodeFiles, make_share, read_node_notes, state_files, write_node_note
from onward.checkpoints.watching.watcher import SaveWatcher
from onward.clock import ManualClock
from onward.model.spec import CheckpointRule

LATER = 10_000_000_000.0  # every file has been quiet by then


class Job:
    """Nodes with a folder each, and the publisher of the first."""

    def __init__(self, folder: Path, *, nodes: int = 3) -> None:
        self.store = folder / "store"
        self.nodes = [folder / f"node-{number}" for number in range(nodes)]
        for node in self.nodes:
            node.mkdir()
        self.watchers = [SaveWatcher(node, part=number > 0) for number, node in enumerate(self.nodes)]
        self.clock = ManualClock(LATER)
        self.publisher = CheckpointPublisher(
            self.watchers[0],
            self.store,
            leg=1,
            rule=CheckpointRule(),
            resumed_step=None,
            progress=lambda: (None, {"loss": 0.5}),
            clock=self.clock,
            shares=self.nodes[0],
            nodes=nodes,
        )

    def write(self, node: int, name: str, content: str = "") -> None:
        path = self.nodes[node] / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content or f"{name} of node {node}")

    def agent(self, number: int, *, closed: bool = False, put_it: bool = True) -> None:
        """As the agent on another node does."""
        watcher, node = self.watchers[number], self.nodes[number]
        ready = watcher.ready(now=self.clock.now(), closed=closed)
        plain = state_files(watcher.new_plain)
        if watcher.new_steps or plain:
            write_node_note(self.store, 1, NodeFiles(node=number, host=f"g{number}", numbered=bool(watcher.new_steps), plain=plain))
        for candidate in ready:
            if candidate.step is not None:
                make_share(candidate, candidate.step, node, node=number, nodes=len(self.nodes))
                watcher.done_with(candidate)
        for share in shares(node) if put_it else ():
            put_share(share, self.store, leg=1)

    def work(self, *, closed: bool = False) -> list[tuple[str, int]]:
        self.reports = list(self.publisher.work(closed=closed))
        if not self.reports and not closed:
            self.clock.sleep(60)  # that other nodes get to begin
            self.reports = list(self.publisher.work())
        return [(report.kind, report.step) for report in self.reports]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_the_files_of_all_nodes_make_one_checkpoint(job: Job) -> None:
    for node in range(3):
        job.write(node, f"step-100/shard-{node}.pt")
    job.write(0, "config.json")
    job.agent(1)
    job.agent(2, put_it=False)
    assert job.work() == [] and published_names_of(job.store) == [], "what the last node has is not in the store yet"
    job.agent(2)
    assert job.work() == [("published", 100)]
    manifest = verify(job.store / "leg-0001.step-00000100")
    assert sorted(manifest.files) == ["config.json", "step-100/shard-0.pt", "step-100/shard-1.pt", "step-100/shard-2.pt"]
    assert (manifest.made_by, dict(manifest.metrics)) == ("files", {"loss": 0.5})
    for node in range(3):
        assert (job.nodes[node] / f"step-100/shard-{node}.pt").exists(), "a training's own files stay its own"
        assert shares(job.nodes[node]) == []


def test_where_only_the_first_node_writes_its_files_are_the_whole(job: Job) -> None:
    job.write(0, "model_100.pt")
    job.agent(1)
    job.agent(2)
    assert job.work() == [("published", 100)]
    assert not read_node_notes(job.store, 1)


def test_other_nodes_get_a_while_to_begin_before_the_first_checkpoint_of_a_leg(job: Job) -> None:
    job.write(0, "step-100/shard-0.pt")
    assert list(job.publisher.work()) == []
    job.clock.sleep(59)
    assert list(job.publisher.work()) == []
    for node in (1, 2):
        job.write(node, f"step-100/shard-{node}.pt")
        job.agent(node)
    job.clock.sleep(1)
    assert job.work() == [("published", 100)]
    assert len(verify(job.store / "leg-0001.step-00000100").files) == 3
    for node in range(3):
        job.write(node, f"step-200/shard-{node}.pt")
        if node:
            job.agent(node)
    assert [report.step for report in job.publisher.work()] == [200], "and not before the next"


def test_in_the_end_no_node_is_waited_for(job: Job) -> None:
    job.write(0, "model_100.pt")
    assert job.work(closed=True) == [("published", 100)]


def test_where_some_nodes_write_nothing_the_others_are_the_whole(job: Job) -> None:
    job.write(0, "model_100.pt")
    job.write(2, "optim_100.pt")
    job.agent(1)
    job.agent(2)
    assert job.work() == [("published", 100)]
    assert sorted(verify(job.store / "leg-0001.step-00000100").files) == ["model_100.pt", "optim_100.pt"]


def test_a_checkpoint_that_only_another_node_writes_is_published_after_a_while(job: Job) -> None:
    job.write(1, "model_100.pt")
    job.agent(1)
    notes = next(job.store.glob(".leg-0001.step-*/.shares/rank-00001.json"))
    os.utime(notes, (LATER, LATER))
    assert list(job.publisher.work()) == []
    job.clock.sleep(61)
    assert job.work() == [("published", 100)]


def test_a_node_whose_files_are_missing_in_the_end_makes_it_no_checkpoint_and_is_named(job: Job) -> None:
    for node in range(3):
        job.write(node, f"step-100/shard-{node}.pt")
    job.agent(1)
    job.agent(2, put_it=False)
    assert job.work(closed=True) == []
    [report] = job.publisher.last_words()
    assert (report.kind, report.reason) == ("refused", "the checkpoint of step 100: the files of node 3 are missing")
    assert published_names_of(job.store) == []


def test_nodes_that_write_different_files_under_one_name_are_refused_with_the_name(job: Job) -> None:
    for node in range(3):
        job.write(node, "model_100.pt")
    job.agent(1)
    job.agent(2)
    assert job.work() == [("refused", 100)]
    assert "nodes 1 and 2 wrote different versions of model_100.pt" in job.reports[0].reason


def test_nodes_that_write_the_same_file_are_one_checkpoint(job: Job) -> None:
    for node in range(3):
        job.write(node, "model_100.pt", content="the same")
    job.agent(1)
    job.agent(2)
    assert job.work() == [("published", 100)]


def test_files_of_another_node_that_name_no_step_are_refused_and_not_left_out(job: Job) -> None:
    job.write(0, "model_100.pt")
    job.write(1, "optim_rank8.pt")
    job.agent(1)
    assert job.work() == [("refused", 100)]
    assert "node g1 writes optim_rank8.pt, and its name does not contain the step; put the step into" in job.reports[0].reason
    assert job.work() == [] and published_names_of(job.store) == []


def test_settings_and_records_on_other_nodes_are_in_nobodys_way(job: Job) -> None:
    job.write(0, "model_100.pt")
    for name in ("config.json", "metrics.jsonl", "train.log"):
        job.write(1, name)
    job.agent(1)
    assert job.work() == [("published", 100)]


def test_every_node_may_write_the_same_fixed_names(job: Job) -> None:
    for node in range(3):
        job.write(node, "model.pt")
    job.agent(1)
    job.agent(2)
    assert job.work() == [("published", 0)]


def test_what_changes_after_all_nodes_published_it_is_said_and_stays(job: Job) -> None:
    for node in range(3):
        job.write(node, f"step-100/shard-{node}.pt")
    job.agent(1)
    job.agent(2)
    assert job.work() == [("published", 100)]
    job.write(0, "step-100/late.pt")
    assert job.work() == [("refused", 100)]
    assert "changed after it was published" in job.reports[0].reason
    assert len(verify(job.store / "leg-0001.step-00000100").files) == 3


def test_what_nodes_said_in_earlier_legs_is_forgotten(tmp_path: Path) -> None:
    write_node_note(tmp_path / "store", 0, NodeFiles(node=1, host="g1", numbered=True))
    job = Job(tmp_path)
    assert os.listdir(job.store) == []
