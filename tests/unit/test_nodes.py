"""Agents on other nodes: here as plain processes, each with a folder of its own, spoken to as through srun."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onward.checkpoints.gather import assemble
from onward.checkpoints.publish import publish
from onward.model.checkpoint import CheckpointName
from onward.model.spec import Cluster, spec_to_json
from onward.rundir.journal import read_spec
from onward.rundir.layout import LegLocal, RunDir
from onward.sdk.ranks import Ranks
from onward.sdk.shares import commit_share, partial_share
from onward.supervisor.nodes import Nodes, NodesFailed, agent_commands, clear_left_behind, own, ready_by
from onward.supervisor.stopping import Crew
from onward.supervisor.surroundings import local_folder
from onward.supervisor.task import Node
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
def start(run: RunDir) -> Iterator[Callable[..., Nodes]]:
    started: list[Nodes] = []

    def begin(*more: str, hosts: tuple[str, ...] = ("g1", "g2", "g3")) -> Nodes:
        agent = [sys.executable, "-c", ENTRY, "node", str(run.path), "1", "--hosts", ",".join(hosts), *more]
        commands = [[*agent, "--host", host] for host in hosts[1:]]
        started.append(Nodes(commands, hosts[1:], env=os.environ, woken=threading.Event()))
        return started[-1]

    yield begin
    for nodes in started:
        nodes.drain(until=time.time() + 30)


def ready(nodes: Nodes) -> list[Node]:
    return sorted(nodes.ready(until=time.time() + 60), key=lambda node: node.host)


def until(holds: Callable[[], object], what: str) -> None:
    give_up = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < give_up, f"{what} did not come"
        time.sleep(0.02)


# ── how they get there ────────────────────────────────────────────────────────


def test_on_slurm_one_step_beside_the_training_starts_all_agents() -> None:
    (command,) = agent_commands("slurm", ["python3", "x"], ["g2", "g3"])
    words = " ".join(command)
    assert "--overlap" in words and "--nodelist=g2,g3" in words and "--ntasks=2" in words and "--input=all" in words
    assert "--kill-on-bad-exit=0" in words and words.endswith("python3 x")


def test_on_grid_engine_each_host_is_reached_within_the_job() -> None:
    commands = agent_commands("gridengine", ["python3", "x"], ["e2", "e3"])
    assert commands[1] == ["qrsh", "-inherit", "e3", "python3", "x", "--host", "e3"]


def test_of_a_single_node_nobody_is_started_and_elsewhere_it_is_said() -> None:
    assert agent_commands("local", ["x"], []) == []
    with pytest.raises(NodesFailed, match="local has no way"):
        agent_commands("local", ["x"], ["other"])


def test_half_of_the_leg_at_most_goes_into_making_nodes_ready() -> None:
    assert ready_by(None, 100.0) == 700.0
    assert ready_by(140.0, 100.0) == 120.0


# ── what they do ──────────────────────────────────────────────────────────────


def test_every_node_has_a_folder_of_its_own_and_the_checkpoint(run: RunDir, start: Callable[..., Nodes], tmp_path: Path) -> None:
    (tmp_path / "w.pt").write_text("weights")
    publish({"w.pt": tmp_path / "w.pt"}, run.checkpoints, CheckpointName(1, 5), created=1.0)
    second, third = ready(start("--restore", "leg-0001.step-00000005"))
    assert (second.host, third.host) == ("g2", "g3") and second.local != third.local
    for node in (second, third):
        assert node.resume and (Path(node.resume) / "w.pt").read_text() == "weights"
        assert Path(node.resume).is_relative_to(node.local)


def test_a_node_that_cannot_be_made_ready_says_why(run: RunDir, start: Callable[..., Nodes], tmp_path: Path) -> None:
    (tmp_path / "w.pt").write_text("weights")
    publish({"w.pt": tmp_path / "w.pt"}, run.checkpoints, CheckpointName(1, 5), created=1.0)
    (run.checkpoints / "leg-0001.step-00000005" / "w.pt").write_text("wEights")
    with pytest.raises(NodesFailed, match=r"node g\d cannot be made ready: .*hash"):
        ready(start("--restore", "leg-0001.step-00000005"))


def test_a_node_that_never_answers_is_named(run: RunDir) -> None:
    nodes = Nodes([[sys.executable, "-c", "print('no agent')"]], ["g2"], env=os.environ, woken=threading.Event())
    with pytest.raises(NodesFailed, match="g2: not ready"):
        nodes.ready(until=time.time() + 60)
    nodes.drain(until=time.time() + 5)


def test_stops_reach_every_node_and_notes_come_back(run: RunDir, start: Callable[..., Nodes], tmp_path: Path) -> None:
    nodes = start()
    second, third = (LegLocal(Path(node.local)) for node in ready(nodes))
    first = LegLocal(tmp_path / "first")
    first.make()
    crew = Crew(first, nodes)
    crew.ask()
    until(second.stop_file.exists, "the stop file on g2")
    for rank, local in enumerate((first, second, third)):
        note = {"rank": rank, "world": 3, "count": 9, "limit": 10 + rank, "interval": 0.1}
        (local.ranks / f"rank-{rank:05d}.json").write_text(json.dumps(note))

    def looked(holds: Callable[[], object]) -> Callable[[], object]:
        def look() -> object:
            crew.look(time.time())
            return holds()

        return look

    until(looked(lambda: first.stop_file.read_text() == "12"), "the agreed number")
    until(lambda: (second.stop_file.read_text(), third.stop_file.read_text()) == ("12", "12"), "the number on the other nodes")
    (third.ranks / "exit-00002.json").write_text(json.dumps({"rank": 2, "code": 3, "at": 1.0, "host": "g3", "last": "words"}))
    until(looked(lambda: crew.ranks.exits), "the exit of rank 2")
    assert crew.ranks.evidence() == "rank 2 of 3 on g3: exit code 3\nwords"


def test_shares_and_logs_of_every_node_are_carried_over_before_it_ends(run: RunDir, start: Callable[..., Nodes]) -> None:
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


def test_every_node_is_sampled_with_its_ranks_and_its_own_gpus(
    run: RunDir, start: Callable[..., Nodes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    told = {host: json.loads(spool.read_text().splitlines()[0])["m"] for host, spool in spools.items()}
    assert told["g2"]["system/node/g2/rss_mib"] >= 64 and told["g3"]["system/node/g3/rss_mib"] == 0.0
    for host, figures in told.items():
        assert figures[f"system/node/{host}/gpu/GPU-b/percent"] == 31.0
        assert not any("GPU-a" in key for key in figures), "the job's GPU on the first node is none of this one's"
    nodes.drain(until=time.time() + 30)
    assert "GPU-b,A100,31.0" in (run.logs / "leg-0001.gpu-n2.csv").read_text()


def test_a_node_that_falls_silent_is_known(start: Callable[..., Nodes]) -> None:
    nodes = start(hosts=("g1", "g2"))
    ready(nodes)
    since = time.time()
    until(lambda: nodes.silent(since=since) == [], "a beat")
    nodes.drain(until=time.time() + 30)
    assert nodes.silent(since=time.time() + 1) == ["g2"]


def test_a_supervisor_that_goes_without_a_word_takes_the_ranks_of_every_node_with_it(start: Callable[..., Nodes]) -> None:
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


def test_folders_of_killed_agents_go_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    for name in ("leg-0001.node-1", "leg-0002.node-1", "leg-0003.node-1", "leg-0002"):
        (tmp_path / name).mkdir()
    own(tmp_path / "leg-0001.node-1")
    dead = {"pid": 2**22 + 1, "machine": socket.gethostname()}
    (tmp_path / "leg-0002.node-1" / "agent.json").write_text(json.dumps(dead))
    (tmp_path / "leg-0003.node-1" / "agent.json").write_text(json.dumps(dead))
    clear_left_behind(tmp_path, leg=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["leg-0001.node-1", "leg-0002", "leg-0003.node-1"]
