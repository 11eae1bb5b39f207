"""`onward cluster` as a person sees it, from what a real Slurm said; and as a program reads it."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from onward.cli import output
from onward.cli.clusters import snapshot_text
from onward.model.cluster import ClusterSnapshot, Node, NodeState, in_order
from onward.model.job import JobId
from onward.operations.clusters.snapshot_cache import CachedSnapshot, KnownCluster, snapshot_record
from onward.schedulers.slurm.snapshot import parse_asked, parse_jobs, parse_nodes, parse_partitions

RECORDED = Path(__file__).parents[1] / "recorded" / "slurm"
LAB = KnownCluster(name="lab", scheduler="slurm", host="login.example", auto=True)


def recorded() -> ClusterSnapshot:
    said = {name: (RECORDED / f"{name}.txt").read_text() for name in ("nodes", "partitions", "jobs", "asked")}
    return ClusterSnapshot(
        scheduler="slurm",
        taken_at=1794783468.0,
        user="alice",
        nodes=tuple(parse_nodes(said["nodes"])),
        queues=tuple(parse_partitions(said["partitions"])),
        jobs=in_order(list(parse_jobs(said["jobs"], parse_asked(said["asked"]), user="alice"))),
    )


class Screen:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        for room in (output, snapshot_text):
            monkeypatch.setattr(room, "terminal_width", lambda: 80)
        monkeypatch.setattr(snapshot_text, "time_text", lambda moment: time.strftime("%H:%M", time.gmtime(moment)))

    def show(self, snapshot: ClusterSnapshot, *, jobs: str = "mine") -> str:
        snapshot_text.show_snapshot(
            snapshot_record(CachedSnapshot(cluster=LAB, snapshot=snapshot, age=0.0), jobs=jobs), mine=jobs == "mine"
        )
        return self._capsys.readouterr().out


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Screen:
    return Screen(monkeypatch, capsys)


def test_the_page_of_a_cluster(screen: Screen) -> None:
    assert screen.show(recorded()) == PAGE


def test_everybodys_jobs_come_with_their_users_mine_first(screen: Screen) -> None:
    lines = screen.show(recorded(), jobs="all").splitlines()
    start = lines.index("Jobs, mine first")
    assert lines[start + 1].split() == ["JOB", "NAME", "USER", "STATE", "QUEUE", "ASKS", "WHEN"]
    users = [line.split()[2] for line in lines[start + 2 :] if re.match(r"\d+\S* +(?:run\.\S+|bobs) ", line)]
    assert users == ["alice"] * (len(users) - 1) + ["bob"]


def test_priorities_of_waiting_jobs_are_a_column_and_mine_say_what_they_are_made_of(screen: Screen) -> None:
    taken = recorded()
    factors = {"2221": (20_500.0, "fair share 20000, age 500"), "2220": (0.555, "")}
    ranked = [replace(job, priority=factors[job.id][0], factors=factors[job.id][1]) if job.id in factors else job for job in taken.jobs]
    lines = screen.show(replace(taken, jobs=tuple(ranked))).splitlines()
    row = next(number for number, line in enumerate(lines) if "run.prio" in line)
    assert "20500" in lines[row].split() and lines[row + 2].strip() == "priority: fair share 20000, age 500"
    assert "PRIO" in next(line for line in lines if line.startswith("JOB")).split()
    assert "0.555" in next(line for line in lines if "a big|name" in line).split()
    long = [replace(job, name="x" * 60) for job in ranked]
    wide = screen.show(replace(taken, jobs=tuple(long)), jobs="all").splitlines()
    assert [line for line in wide if len(line) > 80] == []


def test_no_line_is_wider_than_the_screen_whatever_a_job_is_called(screen: Screen) -> None:
    taken = recorded()
    odd = replace(taken.jobs[0], name="x" * 300 + "\x1b[31m\n<script>", id=JobId("12345_[1,3,5,7,9,11,13,15,17]"), reason="why " * 60)
    shown = screen.show(replace(taken, jobs=(odd,)))
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_many_nodes_are_a_map_by_make_and_those_that_take_no_jobs_are_told_by_why(screen: Screen) -> None:
    gpu = recorded().nodes[2].gpus
    free = [Node(name=f"c{n:03d}", state=NodeState.FREE, cpus=64, mem=256 * 1024) for n in range(70)]
    busy = [Node(name=f"g{n}", state=NodeState.PARTLY, cpus=16, cpus_used=4, mem=65536, gpus=gpu) for n in range(2)]
    full = [Node(name="c900", state=NodeState.FULL, cpus=64, cpus_used=64, mem=256 * 1024)]
    shut = [Node(name=f"d{n}", state=NodeState.DRAINED, why="new disks", cpus=64, mem=256 * 1024) for n in range(8)]
    shown = screen.show(replace(recorded(), nodes=(*free, *busy, *full, *shut)))
    assert "  2 nodes of 16 CPUs, 64 GiB, 2 a100\n    ##  g0\n" in shown
    assert f"  79 nodes of 64 CPUs, 256 GiB\n    {'.' * 60}  c000\n    {'.' * 10}#xxxxxxxx  c060\n" in shown
    assert "  drained (new disks): d0, d1, d2, d3, d4, d5 and 2 more\n" in shown


def test_bars_never_hide_that_something_is_used_or_free() -> None:
    full, empty = snapshot_text._signs()
    assert [snapshot_text._bar(used, 1000, 10).count(full) for used in (0, 1, 500, 999, 1000)] == [0, 1, 5, 9, 10]
    assert snapshot_text._bar(0, 0, 3) == empty * 3


def test_where_nothing_is_free_that_is_said(screen: Screen) -> None:
    nodes = tuple(replace(node, state=NodeState.DOWN) for node in recorded().nodes)
    shown = screen.show(replace(recorded(), nodes=nodes, jobs=()))
    assert "  none; --jobs all shows everyone's\n" in shown
    assert "  nothing: no queue has a free CPU\n" in shown


PAGE = """\
lab  slurm through login.example, 5 nodes, as of 22:57
  CPUs          ███░░░░░░░░░░░░░░░░░░░░░░░░░░░  9 of 80
  memory        █░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  14 GiB of 320 GiB
  a100          ███████████████░░░░░░░░░░░░░░░  2 of 4
  v100          ██████████████████████████████  2 of 2

Nodes
NODE  STATE    CPUS           MEMORY      GPUS      WHY
c1    partly   █░░░░░░░ 2/16  1/64 GiB    –
c2    drained  ░░░░░░░░ 0/16  0/64 GiB    –         bad DIMM, ticket 12
g1    partly   ██░░░░░░ 4/16  8/64 GiB    a100 2/2
g2    free     ░░░░░░░░ 0/16  0/64 GiB    a100 0/2
g3    partly   ██░░░░░░ 3/16  4.5/64 GiB  v100 2/2

Queues
QUEUE  TIME LIMIT  NODES  RUNNING  WAITING
cpu    1-00:00:00  2      2        6        default
gpu    2-00:00:00  3      2        2
debug  00:30:00    2      0        0
spot   7-00:00:00  5      1        0        may be preempted

My jobs
JOB           NAME        STATE    QUEUE  ASKS          WHEN
2224_1        run.array   running  cpu    1c 0.5G       until 23:02
2224_2        run.array   running  cpu    1c 0.5G       until 23:02
2218          run.gpu     running  gpu    4c 8G 2×a100  until 23:57
2219          run.gres    running  gpu    2c 4G 1×v100  until 23:27
2225          run.begin   queued   cpu    1c 0.5G       start ~23:57
    may not start before a set time
2220          a big|name  queued   gpu    3n 3c 1.5G    start ~23:57
    next in the queue: waits until enough nodes, CPUs, memory or GPUs are free
2221          run.prio    queued   gpu    3n 3c 1.5G    start ~01:57
    other jobs are ahead in the queue
2224_[3-5%2]  run.array   queued   cpu    1c 0.5G
    its array already runs its maximum number of tasks
2222          run.dep     held     cpu    1c 0.5G
    waits for the previous job
2223          run.held    held     cpu    1c 0.5G
    held by its owner; scontrol release releases it

Could start now
  cpu    1 node: 14 CPUs, 63 GiB, for at most 24 h
  gpu    1 node: 16 CPUs, 64 GiB, for at most 2 d; 2 jobs ahead in the queue
         1 node: 16 CPUs, 64 GiB, 2 a100
  debug  1 node: 14 CPUs, 63 GiB, for at most 30 min
  spot   1 node: 16 CPUs, 64 GiB, for at most 7 d
         1 node: 16 CPUs, 64 GiB, 2 a100
"""
