"""Agents on other nodes: here as plain processes, each with a folder of its own, spoken to as through srun."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onward.checkpoints.manifest import verify
from onward.checkpoints.publishing.publish import publish
from onward.checkpoints.publishing.publisher import CheckpointPublisher
from onward.checkpoints.shares import node_files
from onward.checkpoints.shares.gather import assemble, incomplete, shares
from onward.checkpoints.watching.watcher import SaveWatcher
from onward.clock import SystemClock
from onward.errors import CheckpointDamaged
from onward.model.checkpoint import CheckpointName
from onward.model.events import Published
from onward.model.job import Allocation, JobId
from onward.model.spec import CheckpointRule, Cluster, spec_to_json
from onward.rundir.journal import Journal, read_spec
from onward.rundir.layout import LegLocal, RunDir
from onward.schedulers.gridengine.scheduler import GridEngineScheduler
from onward.schedulers.slurm.scheduler import SlurmScheduler
from onward.sdk.rank_shares import commit_share, partial_share
from onward.sdk.ranks import Ranks
from onward.supervisor.disk.owner import OWNER
from onward.supervisor.leg.context import LegContext
from onward.supervisor.preparation.environment import local_folder
from onward.supervisor.ranks.other_nodes import NodePatience, NodesFailed, OtherNodes, measured_rate, patience_for, start_node_agents
from onward.supervisor.ranks.rank_group import RankGroup
from onward.supervisor.ranks.rank_wrapper import LegNode
from tests.fakes import FakeScheduler
from tests.histories import make_spec

ENTRY = "import sys; from onward.supervisor.entry import main; sys.exit(main(sys.argv[1:]))"
BALLAST = "import sys; ballast = bytearray(b'x') * (64 << 20); print('there', flush=True); sys.stdin.read()"


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    made = RunDir(tmp_path / "run")
    made.make()
    spec = make_spec(cluster=Cluster(name="slurm", scheduler="slurm", local_disk=str(tmp_path / "disk")))
    made.spec.write_text(json.dumps(spec_to_json(spec)))
    return made


@pytest.fixture
def start(run: RunDir) -> Iterator[Callable[..., OtherNodes]]:
    started: list[OtherNodes] = []

    def begin(*, hosts: tuple[str, ...] = ("g1", "g2", "g3"), leg: int = 1) -> OtherNodes:
        agent = [sys.executable, "-c", ENTRY, "node", str(run.path), str(leg), "--hosts", ",".join(hosts)]
        commands = [[*agent, "--host", host] for host in hosts[1:]]
        started.append(OtherNodes(commands, hosts[1:], env=os.environ, woken=threading.Event()))
        return started[-1]

    yield begin
    for nodes in started:
        nodes.drain(until=time.time() + 30)


PATIENCE = NodePatience(until=0.0, silence=60.0)


def ready(nodes: OtherNodes, checkpoint: str = "") -> list[LegNode]:
    nodes.here(PATIENCE)
    nodes.say(restore=checkpoint)
    return sorted(nodes.ready(checkpoint, PATIENCE), key=lambda node: node.host)


def until(holds: Callable[[], object], what: str) -> None:
    give_up = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < give_up, f"{what} did not come"
        time.sleep(0.02)


# ── how they get there ────────────────────────────────────────────────────────


def test_on_slurm_one_step_beside_the_training_starts_all_agents() -> None:
    (command,) = SlurmScheduler().node_commands(["python3", "x"], ["g2", "g3"])
    words = " ".join(command)
    assert "--overlap" in words and "--nodelist=g2,g3" in words and "--ntasks=2" in words and "--input=all" in words
    assert "--kill-on-bad-exit=0" in words and words.endswith("python3 x")


def test_on_grid_engine_each_host_is_reached_within_the_job() -> None:
    commands = GridEngineScheduler().node_commands(["python3", "x"], ["e2", "e3"])
    assert commands[1] == ["qrsh", "-inherit", "e3", "python3", "x", "--host", "e3"]


def on_hosts(run: RunDir, *hosts: str) -> LegContext:
    """A leg on these, by a scheduler that cannot start processes on other nodes of a job."""
    spec = make_spec(launcher="mpirun", cluster=Cluster(name="lab", scheduler="lab"))
    job = Allocation(job=JobId("7"), hosts=hosts, deadline=None)
    clock = SystemClock()
    return LegContext(
        dir=run, spec=spec, leg=1, scheduler=FakeScheduler(clock), allocation=job, clock=clock, journal=Journal(run.leg_journal(1))
    )


def test_no_agent_is_started_for_a_single_node(run: RunDir) -> None:
    assert start_node_agents(on_hosts(run, "g1"), env=os.environ, woken=threading.Event()) is None


def test_a_scheduler_that_cannot_start_processes_on_other_nodes_is_named(run: RunDir) -> None:
    with pytest.raises(NodesFailed, match="lab cannot start"):
        start_node_agents(on_hosts(run, "g1", "g2"), env=os.environ, woken=threading.Event())


# ── how long they are waited for ──────────────────────────────────────────────


def test_patience_comes_from_the_checkpoints_size_and_the_stores_rate() -> None:
    assert patience_for(0, 50e6, deadline=None, now=100.0) == NodePatience(until=700.0, silence=600.0)
    large = patience_for(500 * 10**9, 50e6, deadline=None, now=0.0)
    assert large.until == 30_000.0, "500 GB at 50 MB/s are 10,000 s"
    assert patience_for(500 * 10**9, 5e9, deadline=None, now=0.0).until == 600.0


def test_half_of_the_leg_at_most_goes_into_making_nodes_ready() -> None:
    assert patience_for(10**12, 1e6, deadline=140.0, now=100.0) == NodePatience(until=120.0, silence=20.0)


def test_a_node_that_gets_on_is_never_given_up_and_a_silent_one_is() -> None:
    patience = NodePatience(until=1000.0, silence=600.0)
    assert not patience.ends(999.0, progress=0.0), "not before its time"
    assert not patience.ends(50_000.0, progress=49_500.0)
    assert patience.ends(50_000.0, progress=49_399.0)


def test_the_rate_is_that_of_the_slowest_of_the_newest_checkpoints_or_a_pessimistic_one() -> None:
    def published(bytes: int, seconds: float) -> Published:
        return Published(leg=1, at=1.0, step=1, bytes=bytes, save_seconds=0.0, stage_seconds=seconds)

    assert measured_rate([]) == measured_rate([published(100, 0.0), published(0, 5.0)]) == 50e6
    assert measured_rate([published(10, 10.0), *[published(1000, 10.0)] * 9, published(5000, 10.0)]) == 100.0


def test_a_node_that_says_how_far_it_is_is_waited_for(tmp_path: Path) -> None:
    """Its time is over from the start; only what it says keeps it from being given up."""
    says = """
import json, sys, time
for moved in range(4):
    print(json.dumps({"host": "g2", "moved": moved}), flush=True)
    time.sleep(0.5)
print(json.dumps({"host": "g2", "local": "/x", "resume": "/x/resume", "restored": "c"}), flush=True)
sys.stdin.read()
"""
    nodes = OtherNodes([[sys.executable, "-c", says]], ["g2"], env=os.environ, woken=threading.Event())
    try:
        [node] = nodes.ready("c", NodePatience(until=0.0, silence=10.0))
        assert node.resume == "/x/resume"
        with pytest.raises(NodesFailed, match="g2: not ready"):
            nodes.ready("another", NodePatience(until=0.0, silence=0.5))
    finally:
        nodes.drain(until=time.time() + 10)


# ── what they do ──────────────────────────────────────────────────────────────


def test_every_node_has_a_folder_of_its_own_and_the_checkpoint(run: RunDir, start: Callable[..., OtherNodes], tmp_path: Path) -> None:
    (tmp_path / "w.pt").write_text("weights")
    publish({"w.pt": tmp_path / "w.pt"}, run.checkpoints, CheckpointName(1, 5), created=1.0)
    second, third = ready(start(), "leg-0001.step-00000005")
    assert (second.host, third.host) == ("g2", "g3") and second.local != third.local
    for node in (second, third):
        assert node.resume and (Path(node.resume) / "w.pt").read_text() == "weights"
        assert Path(node.resume).is_relative_to(node.local)


def test_a_node_that_finds_its_checkpoint_damaged_says_so(run: RunDir, start: Callable[..., OtherNodes], tmp_path: Path) -> None:
    (tmp_path / "w.pt").write_text("weights")
    publish({"w.pt": tmp_path / "w.pt"}, run.checkpoints, CheckpointName(1, 5), created=1.0)
    (run.checkpoints / "leg-0001.step-00000005" / "w.pt").write_text("wEights")
    with pytest.raises(CheckpointDamaged, match=r"its hash in the manifest \(seen on g\d\)"):
        ready(start(), "leg-0001.step-00000005")


def test_a_node_that_never_answers_is_named(run: RunDir) -> None:
    nodes = OtherNodes([[sys.executable, "-c", "print('no agent')"]], ["g2"], env=os.environ, woken=threading.Event())
    with pytest.raises(NodesFailed, match="g2: not ready"):
        nodes.here(PATIENCE)
    nodes.drain(until=time.time() + 5)


def test_stops_reach_every_node_and_notes_come_back(run: RunDir, start: Callable[..., OtherNodes], tmp_path: Path) -> None:
    nodes = start()
    second, third = (LegLocal(Path(node.local)) for node in ready(nodes))
    first = LegLocal(tmp_path / "first")
    first.make()
    rank_group = RankGroup(first, nodes)
    rank_group.ask()
    until(second.stop_file.exists, "the stop file on g2")
    for rank, local in enumerate((first, second, third)):
        note = {"rank": rank, "world": 3, "count": 9, "limit": 10 + rank, "interval": 0.1}
        (local.ranks / f"rank-{rank:05d}.json").write_text(json.dumps(note))

    def looked(holds: Callable[[], object]) -> Callable[[], object]:
        def look() -> object:
            rank_group.look(time.time())
            return holds()

        return look

    until(looked(lambda: first.stop_file.read_text() == "12"), "the agreed number")
    until(lambda: (second.stop_file.read_text(), third.stop_file.read_text()) == ("12", "12"), "the number on the other nodes")
    (third.ranks / "exit-00002.json").write_text(json.dumps({"rank": 2, "code": 3, "at": 1.0, "host": "g3", "last": "words"}))
    until(looked(lambda: rank_group.ranks.exits), "the exit of rank 2")
    assert rank_group.ranks.evidence() == "rank 2 of 3 on g3: exit code 3\nwords"


def test_shares_and_logs_of_every_node_are_carried_over_before_it_ends(run: RunDir, start: Callable[..., OtherNodes]) -> None:
    nodes = start(hosts=("g1", "g2"))
    (node,) = ready(nodes)
    local = LegLocal(Path(node.local))
    for rank in range(2):
        partial = partial_share(local.checkpoints, 7, rank)
        partial.mkdir(parents=True)
        (partial / f"{rank}.pt").write_text("x")
        commit_share(partial, local.checkpoints, 7, Ranks(rank, 2), {"seconds": 0.1, "metrics": {}})
    (local.spool / "leg-0001.train-r1-77.jsonl").write_text('{"n": 0}\n')
    nodes.drain(until=time.time() + 60)
    assert len(list(assemble(run.checkpoints, leg=1, created=1.0))) == 1
    assert (run.spool / "leg-0001.train-r1-77.jsonl").read_text() == '{"n": 0}\n'
    assert not local.path.exists()


def test_files_that_ranks_write_by_themselves_on_another_node_are_part_of_the_checkpoint(
    run: RunDir, start: Callable[..., OtherNodes], tmp_path: Path
) -> None:
    nodes = start(hosts=("g1", "g2"))
    (node,) = ready(nodes)
    first, second = tmp_path / "first", LegLocal(Path(node.local))
    for number, folder in enumerate((first, second.checkpoints)):
        (folder / "step-100").mkdir(parents=True)
        (folder / "step-100" / f"shard-{number}.pt").write_text("x")
    until(lambda: node_files.read_node_notes(run.checkpoints, 1), "word of the files on g2")
    assert node_files.read_node_notes(run.checkpoints, 1) == [node_files.NodeFiles(node=1, host="g2", numbered=True)]
    nodes.drain(until=time.time() + 60)
    assert not second.path.exists()
    publisher = CheckpointPublisher(
        SaveWatcher(first),
        run.checkpoints,
        leg=1,
        rule=CheckpointRule(),
        resumed_step=None,
        progress=lambda: (None, {}),
        clock=SystemClock(),
        shares=first,
        nodes=2,
    )
    assert [(report.kind, report.step) for report in publisher.work(closed=True)] == [("published", 100)]
    assert sorted(verify(run.checkpoints / "leg-0001.step-00000100").files) == ["step-100/shard-0.pt", "step-100/shard-1.pt"]


def test_files_that_ranks_on_another_node_were_writing_when_they_were_killed_are_no_part_of_a_checkpoint(
    run: RunDir, start: Callable[..., OtherNodes]
) -> None:
    nodes = start(hosts=("g1", "g2"))
    (node,) = ready(nodes)
    (LegLocal(Path(node.local)).checkpoints / "model_7.bin").write_text("half")
    until(lambda: node_files.read_node_notes(run.checkpoints, 1), "word of the files on g2")
    nodes.drain(until=time.time() + 60, cut=True)
    [(step, reason)] = nodes.refused
    assert step == 7 and "killed or failed while it was being written" in reason
    assert not incomplete(run.checkpoints, leg=1)


def test_files_that_cannot_be_put_into_the_store_stay_on_their_node(run: RunDir, start: Callable[..., OtherNodes]) -> None:
    nodes = start(hosts=("g1", "g2"))
    (node,) = ready(nodes)
    local = LegLocal(Path(node.local))
    run.checkpoints.rmdir()
    run.checkpoints.write_text("no folder: nothing can be written here")
    (local.checkpoints / "model_7.pt").write_text("weights")
    nodes.drain(until=time.time() + 60)
    assert (local.checkpoints / "model_7.pt").read_text() == "weights"
    assert [share.step for share in shares(local.checkpoints)] == [7]


def test_files_that_a_node_got_from_the_checkpoint_are_not_new_there(run: RunDir, start: Callable[..., OtherNodes], tmp_path: Path) -> None:
    (tmp_path / "model_5.pt").write_text("weights")
    publish({"model_5.pt": tmp_path / "model_5.pt"}, run.checkpoints, CheckpointName(1, 5), created=1.0, made_by="files")
    nodes = start(hosts=("g1", "g2"))
    (node,) = ready(nodes, "leg-0001.step-00000005")
    assert (LegLocal(Path(node.local)).checkpoints / "model_5.pt").exists()
    nodes.drain(until=time.time() + 60)
    assert node_files.read_node_notes(run.checkpoints, 1) == [] and os.listdir(run.checkpoints) == ["leg-0001.step-00000005"]


def test_files_that_come_after_the_checkpoint_was_published_are_said(run: RunDir, start: Callable[..., OtherNodes], tmp_path: Path) -> None:
    (tmp_path / "w.pt").write_text("weights")
    publish({"w.pt": tmp_path / "w.pt"}, run.checkpoints, CheckpointName(1, 7), created=1.0, made_by="files")
    nodes = start(hosts=("g1", "g2"))
    (node,) = ready(nodes)
    (LegLocal(Path(node.local)).checkpoints / "model_7.pt").write_text("late")
    nodes.drain(until=time.time() + 60)
    [(step, reason)] = RankGroup(LegLocal(tmp_path), nodes).refused()
    assert step == 7 and reason.startswith("g2: the checkpoint of step 7 was published before its files here were complete")


def test_every_node_is_sampled_with_its_ranks_and_its_own_gpus(
    run: RunDir, start: Callable[..., OtherNodes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first sample is taken at once, so the rank is there before the agents."""
    smi = "0, GPU-a, A100, 97, 1000, 40960, 301.5, 65\\n1, GPU-b, A100, 31, 9, 40960, 80.0, 40\\n"
    (tmp_path / "pynvml.py").write_text("raise ImportError('no NVML here')")
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\nprintf '{smi}'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("SLURM_JOB_GPUS", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    rank = subprocess.Popen([sys.executable, "-c", BALLAST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert rank.stdout and rank.stdout.readline()
        note = {"rank": 1, "world": 3, "pid": rank.pid, "host": "g2"}
        (local_folder(read_spec(run), 1, node=1).ranks / "task-00001.json").write_text(json.dumps(note))
        nodes = start()
        ready(nodes)
        spools = {host: run.spool / f"leg-0001.system-n{number}.jsonl" for number, host in ((1, "g2"), (2, "g3"))}
        until(lambda: all(spool.exists() and spool.read_text() for spool in spools.values()), "a sample of each node")
    finally:
        rank.kill()
        rank.communicate()
    body = {host: json.loads(spool.read_text().splitlines()[0])["m"] for host, spool in spools.items()}
    assert body["g2"]["system/node/g2/rss_mib"] >= 64 and body["g3"]["system/node/g3/rss_mib"] == 0.0
    for host, figures in body.items():
        assert figures[f"system/node/{host}/gpu/GPU-b/percent"] == 31.0
        assert not any("GPU-a" in key for key in figures), "the job's GPU on the first node is none of this one's"
    nodes.drain(until=time.time() + 30)
    assert "GPU-b,A100,31.0" in (run.logs / "leg-0001.gpu-n2.csv").read_text()


def test_a_node_that_falls_silent_is_known(start: Callable[..., OtherNodes]) -> None:
    nodes = start(hosts=("g1", "g2"))
    ready(nodes)
    since = time.time()
    until(lambda: nodes.silent(since=since) == [], "a beat")
    nodes.drain(until=time.time() + 30)
    assert nodes.silent(since=time.time() + 1) == ["g2"]


def test_a_supervisor_that_goes_without_a_word_takes_the_ranks_of_every_node_with_it(start: Callable[..., OtherNodes]) -> None:
    """At once: whatever else the agent has to do, and however that hangs, comes after."""
    nodes = start(hosts=("g1", "g2"))
    (node,) = ready(nodes)
    local = LegLocal(Path(node.local))
    rank = subprocess.Popen(["sleep", "600"], start_new_session=True)
    (local.ranks / "task-00001.json").write_text(json.dumps({"rank": 1, "world": 2, "pid": rank.pid, "host": "g2"}))
    with local.mirror_lock.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        [agent] = nodes._processes
        assert agent.stdin
        agent.stdin.close()
        try:
            assert rank.wait(timeout=40) == -signal.SIGKILL
        finally:
            rank.kill()


# ── what killed agents leave ──────────────────────────────────────────────────


def committed_share(local: LegLocal, step: int, rank: int, *, world: int = 2) -> None:
    partial = partial_share(local.checkpoints, step, rank)
    partial.mkdir(parents=True)
    (partial / f"{rank}.pt").write_text("x")
    commit_share(partial, local.checkpoints, step, Ranks(rank, world), {"seconds": 0.1, "metrics": {}})


def left_by_the_dead(run: RunDir, node: int, leg: int = 1) -> LegLocal:
    local = local_folder(read_spec(run), leg, node=node, run=run)
    mark = json.loads((local.path / OWNER).read_bytes())
    (local.path / OWNER).write_text(json.dumps({**mark, "pid": 2**22 + 1}))
    return local


def test_an_agent_of_the_next_leg_puts_the_shares_that_a_killed_one_left(run: RunDir, start: Callable[..., OtherNodes]) -> None:
    first, second = left_by_the_dead(run, 1), left_by_the_dead(run, 2)
    for rank, local in enumerate((first, second)):
        committed_share(local, 7, rank)
        (local.spool / f"leg-0001.train-r{rank}-77.jsonl").write_text('{"n": 0}\n')
    nodes = start(leg=2)
    nodes.here(PATIENCE)
    list(assemble(run.checkpoints, leg=1, created=1.0))  # unless the agent that found the last of them did
    assert [path.name for path in run.checkpoints.iterdir()] == ["leg-0001.step-00000007"]
    assert not first.path.exists() and not second.path.exists()
    assert (run.spool / "leg-0001.train-r1-77.jsonl").exists(), "and what the ranks there logged"


def test_a_node_that_finds_the_first_choice_damaged_brings_the_one_it_is_told_next(
    run: RunDir, start: Callable[..., OtherNodes], tmp_path: Path
) -> None:
    (tmp_path / "w.pt").write_text("weights")
    for step in (5, 6):
        publish({"w.pt": tmp_path / "w.pt"}, run.checkpoints, CheckpointName(1, step), created=1.0)
    (run.checkpoints / "leg-0001.step-00000006" / "w.pt").write_text("wEights")
    nodes = start(hosts=("g1", "g2"))
    nodes.here(PATIENCE)
    nodes.say(restore="leg-0001.step-00000006")
    nodes.say(restore="leg-0001.step-00000005")
    [node] = nodes.ready("leg-0001.step-00000005", PATIENCE)
    assert node.resume and (Path(node.resume) / "w.pt").read_text() == "weights"
