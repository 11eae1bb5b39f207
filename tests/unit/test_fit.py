"""What a request gets of a cluster that is smaller than it asks for, and a GPU where there is one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from onward.inputs.recipes.catalog import read_recipes
from onward.model.cluster import ClusterSnapshot, Gpus, Node, NodeState, Queue
from onward.model.run import LegEnd
from onward.model.spec import Resources
from onward.planning.fit import fit_to_cluster
from tests.serving import Gateway

GIB = 1024


def node(name: str, cpus: int, gib: int, gpus: int = 0, state: NodeState = NodeState.FREE) -> Node:
    return Node(name=name, state=state, cpus=cpus, mem=gib * GIB, gpus=(Gpus(type="a100", total=gpus),) if gpus else ())


def cluster(*nodes: Node) -> ClusterSnapshot:
    queues = (Queue(name="all", nodes=tuple(one.name for one in nodes)), Queue(name="small", nodes=("n1",)))
    return ClusterSnapshot(scheduler="slurm", taken_at=0.0, user="ada", nodes=nodes, queues=queues, jobs=())


LAB = cluster(node("n1", 4, 16), node("n2", 64, 256), node("g1", 16, 64, 2), node("g2", 8, 128, 1, NodeState.DOWN))


@pytest.mark.parametrize(
    ("asked", "got"),
    [
        (Resources(), Resources(gpus="1")),
        (Resources(mem=257_000, cpus_per_task=6), Resources(mem=128 * GIB, cpus_per_task=6, gpus="1")),  # a node that is down will be back
        (Resources(mem=100 * GIB, cpus_per_task=16), Resources(mem=100 * GIB, cpus_per_task=8, gpus="1")),
        (Resources(gpus="0", mem=300 * GIB, cpus_per_task=99), Resources(gpus="0", mem=256 * GIB, cpus_per_task=64)),
        (Resources(gpus="2", mem=100 * GIB), Resources(gpus="2", mem=64 * GIB)),
        (Resources(gres="gpu:1", mem=4 * GIB), Resources(gres="gpu:1", mem=4 * GIB)),
        (Resources(gpus="9", mem=400 * GIB), Resources(gpus="9", mem=400 * GIB)),  # nothing that fits: the scheduler says so
        (Resources(partition="small", mem=64 * GIB, cpus_per_task=8), Resources(partition="small", mem=16 * GIB, cpus_per_task=4)),
    ],
)
def test_memory_and_cpus_are_those_of_the_largest_node_that_can_run_it(asked: Resources, got: Resources) -> None:
    assert fit_to_cluster(asked, LAB, gpus=1).resources == got


def test_where_there_are_no_gpus_none_is_asked_for_and_what_is_not_known_changes_nothing() -> None:
    asked = Resources(mem=8 * GIB, cpus_per_task=2)
    assert fit_to_cluster(asked, cluster(node("n1", 4, 16)), gpus=1).resources == asked
    assert fit_to_cluster(asked, cluster(), gpus=1).resources == asked
    assert fit_to_cluster(asked, cluster(node("n1", 4, 0)), gpus=1).resources == asked


def test_a_gpu_that_only_another_queue_than_the_default_one_has_is_not_asked_for() -> None:
    queues = (Queue(name="cpu", nodes=("n1",), default=True), Queue(name="gpu", nodes=("g1",)))
    lab = replace(LAB, queues=queues)
    assert fit_to_cluster(Resources(mem=64 * GIB), lab, gpus=1).resources == Resources(mem=16 * GIB)
    assert fit_to_cluster(Resources(partition="gpu"), lab, gpus=1).resources == Resources(partition="gpu", gpus="1")


def test_what_is_less_than_was_asked_for_is_told() -> None:
    found = fit_to_cluster(Resources(mem=257_000, cpus_per_task=70), cluster(node("n1", 4, 16)), gpus=1)
    assert found.notes == (
        "it got 16G of memory instead of 257000M: no node has more",
        "it got 4 CPUs instead of 70: no node with its memory has more",
    )
    assert fit_to_cluster(Resources(), LAB, gpus=1).notes == ()


def test_the_shipped_recipe_asks_for_a_gpu_where_there_is_one() -> None:
    assert read_recipes(None).get("patchwise").fit_gpus == 1


def test_the_answer_says_what_its_run_got_less_of(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path)
    gateway.recipe(fit_gpus=1, draft={"resources": Resources(time=3600, mem=257_000, cpus_per_task=6)})
    gateway.ask()
    gateway.until(lambda: gateway.of().folder)
    run = gateway.played()
    assert (run.spec.resources.mem, run.spec.resources.cpus_per_task, run.spec.resources.gpus) == (64 * GIB, 6, None)
    run.begin(1).end(1, LegEnd.DONE)
    gateway.until(lambda: gateway.of().outcome)
    outcome = gateway.of().outcome
    assert outcome is not None and outcome.reason.endswith("(it got 64G of memory instead of 257000M: no node has more)")
    gateway.close()


def test_a_request_waits_where_its_cluster_does_not_say_what_it_has(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path)
    gateway.recipe(fit_gpus=1)
    gateway.sandbox.scheduler.down = True
    gateway.ask()
    gateway.step(31.0, times=2)
    assert gateway.of().folder is None and gateway.of().outcome is None
    gateway.sandbox.scheduler.down = False
    gateway.until(lambda: gateway.of().folder)
    gateway.close()
