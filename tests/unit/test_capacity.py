"""What could start now: arithmetic over snapshots made by hand."""

from __future__ import annotations

from typing import Any

from onward.model.cluster import Asked, ClusterJob, ClusterSnapshot, Gpus, Node, NodeState, Queue
from onward.model.job import JobId, JobState
from onward.planning.capacity import CapacityOpening, totals, what_could_start


def node(name: str, *, state: NodeState = NodeState.PARTLY, cpus: int = 16, used: int = 0, gpus: tuple[Gpus, ...] = ()) -> Node:
    return Node(name=name, state=state, cpus=cpus, cpus_used=used, mem=64_000, mem_used=used * 1000, gpus=gpus)


def snapshot(nodes: list[Node], jobs: tuple[ClusterJob, ...] = (), **queue: Any) -> ClusterSnapshot:
    every = tuple(one.name for one in nodes)
    queues = (Queue(**{"name": "gpu", "nodes": every, "time_limit": 3600, **queue}),)
    return ClusterSnapshot(scheduler="fake", taken_at=0, user="ada", nodes=tuple(nodes), queues=queues, jobs=jobs)


def waiting(*, queue: str = "gpu", in_line: bool = True, tasks: int = 1) -> ClusterJob:
    return ClusterJob(
        id=JobId("1"), name="a", user="bob", mine=False, state=JobState.QUEUED, queue=queue, asked=Asked(), in_line=in_line, tasks=tasks
    )


def a100(total: int, used: int = 0) -> tuple[Gpus, ...]:
    return (Gpus(type="a100", total=total, used=used),)


def test_the_largest_shape_is_the_best_node_and_how_many_are_as_good() -> None:
    found = what_could_start(snapshot([node("a", used=4), node("b"), node("c")]))
    assert found == (CapacityOpening(queue="gpu", nodes=2, cpus=16, mem=64_000, time_limit=3600),)


def test_each_type_of_gpu_has_an_opening_of_its_own() -> None:
    nodes = [node("a", gpus=a100(4, 1), used=8), node("b", gpus=a100(4, 3)), node("c", gpus=(Gpus(type="v100", total=2),))]
    found = what_could_start(snapshot(nodes))
    assert [(one.gpu_type, one.gpus, one.nodes, one.cpus) for one in found] == [("", 0, 2, 16), ("a100", 3, 1, 8), ("v100", 2, 1, 16)]


def test_gpus_on_a_node_without_a_free_cpu_cannot_be_had() -> None:
    assert what_could_start(snapshot([node("a", gpus=a100(4), used=16)])) == ()


def test_nodes_that_take_no_jobs_are_left_out() -> None:
    shut = [NodeState.DRAINED, NodeState.DRAINING, NodeState.DOWN, NodeState.RESERVED, NodeState.UNKNOWN, NodeState.FULL]
    assert what_could_start(snapshot([node(str(state), state=state) for state in shut])) == ()


def test_a_queue_that_is_closed_here_or_altogether_offers_nothing() -> None:
    assert what_could_start(snapshot([node("a")], open=False)) == ()
    assert what_could_start(snapshot([node("a"), node("b", used=8)], closed_on=("a",)))[0].cpus == 8


def test_limits_of_the_queue_bound_what_it_offers() -> None:
    [found] = what_could_start(snapshot([node("a"), node("b")], max_nodes=1, max_cpus=4, max_mem=1000))
    assert (found.nodes, found.cpus, found.mem) == (1, 4, 1000)


def test_jobs_in_line_are_ahead_and_those_that_wait_for_something_else_are_not() -> None:
    jobs = (waiting(), waiting(tasks=3), waiting(in_line=False), waiting(queue="cpu"), waiting(queue="cpu,gpu"), waiting(queue=""))
    assert what_could_start(snapshot([node("a")], jobs))[0].ahead == 6


def test_totals_add_up_by_type() -> None:
    answer = totals([node("a", used=4, gpus=a100(4, 1)), node("b", gpus=a100(2))])
    assert answer == {"cpus": (4, 32), "mem": (4000, 128_000), "gpu:a100": (1, 6)}
