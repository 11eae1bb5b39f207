"""A Slurm cluster from what its programs printed: recorded on a real 22.05, one node drained, jobs of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from onward.model.cluster import ClusterJob, Gpus, Node, NodeState
from onward.model.job import JobState
from onward.schedulers.slurm.snapshot import parse_asked, parse_jobs, parse_nodes, parse_partitions
from onward.schedulers.slurm.wait_reasons import plain_reason

RECORDED = Path(__file__).parents[1] / "recorded" / "slurm"


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


def node(name: str, *, text: str | None = None) -> Node:
    return next(found for found in parse_nodes(text or recorded("nodes")) if found.name == name)


def jobs() -> dict[str, ClusterJob]:
    return {job.name: job for job in parse_jobs(recorded("jobs"), parse_asked(recorded("asked")), user="alice")}


# ── nodes ─────────────────────────────────────────────────────────────────────


def test_a_node_says_what_it_has_and_what_is_handed_out() -> None:
    found = node("g1")
    assert (found.state, found.cpus, found.cpus_used, found.mem, found.mem_used) == (NodeState.PARTLY, 16, 4, 65536, 8192)
    assert found.gpus == (Gpus(type="a100", total=2, used=2),)
    assert node("g2").state is NodeState.FREE
    assert node("g3").gpus == (Gpus(type="v100", total=2, used=2),)


def test_a_drained_node_says_why_in_its_administrators_words() -> None:
    assert (node("c2").state, node("c2").why) == (NodeState.DRAINED, "bad DIMM, ticket 12")


@pytest.mark.parametrize(
    ("native", "state", "why"),
    [
        ("IDLE", NodeState.FREE, ""),
        ("IDLE+CLOUD+POWERED_DOWN", NodeState.FREE, ""),
        ("IDLE+PLANNED", NodeState.FREE, ""),
        ("DOWN*", NodeState.DOWN, "does not answer"),
        ("IDLE+NOT_RESPONDING", NodeState.DOWN, "does not answer"),
        ("IDLE+DRAIN", NodeState.DRAINED, ""),
        ("DOWN+DRAIN", NodeState.DOWN, ""),
        ("IDLE+MAINT+DRAIN", NodeState.DRAINED, "reserved for maintenance"),
        ("RESERVED", NodeState.RESERVED, "reserved"),
        ("IDLE+SOMETHING_NEW", NodeState.UNKNOWN, "Slurm says IDLE+SOMETHING_NEW"),
        ("", NodeState.UNKNOWN, "Slurm says "),
    ],
)
def test_the_states_of_a_node(native: str, state: NodeState, why: str) -> None:
    found = node("n", text=f"NodeName=n CPUTot=8 CPUAlloc=0 State={native} RealMemory=100")
    assert (found.state, found.why) == (state, why)


def test_a_drained_node_with_jobs_is_draining() -> None:
    found = node("n", text="NodeName=n CPUTot=8 CPUAlloc=2 State=MIXED+DRAIN RealMemory=100 Reason=to be mended [root@1794783000]")
    assert (found.state, found.why) == (NodeState.DRAINING, "to be mended")


def test_gpus_are_counted_by_type_whatever_stands_in_brackets() -> None:
    there, used = "gpu:3090:4(S:0-1),gpu:a100_3g.20gb:2,shard:16", "gpu:3090:3(IDX:0,2-3),gpu:a100_3g.20gb:0"
    text = f"NodeName=n CPUTot=8 State=MIXED Gres={there} GresUsed={used}"
    assert node("n", text=text).gpus == (Gpus(type="3090", total=4, used=3), Gpus(type="a100_3g.20gb", total=2, used=0))
    assert node("n", text="NodeName=n State=IDLE Gres=gpu:4 GresUsed=gpu:1").gpus == (Gpus(total=4, used=1),)
    assert node("n", text="NodeName=n State=IDLE Gres=gpu:a100:4 GresUsed=gpu:1").gpus == (Gpus(type="a100", total=4, used=1),)


def test_a_node_whose_cpus_are_all_handed_out_is_full() -> None:
    assert node("n", text="NodeName=n CPUTot=8 CPUAlloc=8 State=ALLOCATED RealMemory=100").state is NodeState.FULL


# ── partitions ────────────────────────────────────────────────────────────────


def test_partitions_with_their_limits() -> None:
    found = {queue.name: queue for queue in parse_partitions(recorded("partitions"))}
    assert {name: queue.time_limit for name, queue in found.items()} == {"cpu": 86400, "gpu": 172800, "debug": 1800, "spot": 604800}
    assert [name for name, queue in found.items() if queue.default] == ["cpu"]
    assert [name for name, queue in found.items() if queue.preemptible] == ["spot"]
    assert found["spot"].nodes == ("c1", "c2", "g1", "g2", "g3")
    assert all(queue.open and queue.max_nodes is None for queue in found.values())


@pytest.mark.parametrize(("state", "words"), [("DOWN", "starts none"), ("DRAIN", "no new jobs"), ("ODD", "Slurm says ODD")])
def test_a_partition_that_starts_no_jobs_says_so(state: str, words: str) -> None:
    [queue] = parse_partitions(f"PartitionName=p Nodes=n1 State={state} MaxTime=UNLIMITED MaxNodes=4 MaxMemPerNode=1024")
    assert not queue.open and words in queue.why
    assert (queue.time_limit, queue.max_nodes, queue.max_mem) == (None, 4, 1024)


# ── jobs ──────────────────────────────────────────────────────────────────────


def test_a_running_job_says_where_with_what_and_until_when() -> None:
    job = jobs()["run.gpu"]
    assert (job.state, job.user, job.mine, job.queue, job.nodes) == (JobState.RUNNING, "alice", True, "gpu", ("g1",))
    assert (job.asked.cpus, job.asked.mem, job.asked.gpus, job.asked.time) == (4, 8192, (Gpus(type="a100", total=2),), 3600)
    assert job.started is not None and job.ends == job.started + 3600
    assert job.expected_start is None and job.reason == ""


def test_a_waiting_job_says_why_and_when_it_is_expected_to_start() -> None:
    job = jobs()["a big|name"]
    assert (job.state, job.native, job.in_line, job.started) == (JobState.QUEUED, "Resources", True, None)
    assert job.reason.startswith("next in the queue")
    assert job.expected_start is not None and job.submitted is not None and job.expected_start > job.submitted
    assert jobs()["run.prio"].in_line


def test_jobs_that_wait_for_something_else_than_room_are_not_in_line() -> None:
    found = jobs()
    assert (found["run.dep"].state, found["run.dep"].reason) == (JobState.HELD, "waits for the previous job")
    assert found["run.held"].state is JobState.HELD
    assert [found[name].in_line for name in ("run.dep", "run.held", "run.begin")] == [False, False, False]


def test_the_waiting_tasks_of_an_array_are_one_line() -> None:
    rows = [job for job in parse_jobs(recorded("jobs"), {}, user="alice") if job.name == "run.array"]
    assert sorted((job.state, job.tasks) for job in rows) == [("queued", 3), ("running", 1), ("running", 1)]
    assert [(job.id, job.native) for job in rows if job.waiting] == [("2224_[3-5%2]", "JobArrayTaskLimit")]


def test_another_users_job_is_not_mine() -> None:
    assert not jobs()["bobs"].mine


def test_gpus_that_the_site_does_not_count_are_those_asked_for_a_node() -> None:
    line = "\x1f".join(
        ("7", "7", "alice", "PENDING", "gpu", "2", "8", "gres:gpu:a100:4", "1:00:00", "1", "N/A", "N/A", "", "Priority", "n")
    )
    [job] = parse_jobs(line, {}, user="alice")
    assert (job.asked.gpus, job.asked.mem, job.asked.time) == ((Gpus(type="a100", total=8),), None, 3600)


def test_a_line_that_is_cut_short_is_passed_over() -> None:
    assert list(parse_jobs("7\x1fhalf a line\n\n", {}, user="alice")) == []


# ── reasons ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("native", "words"),
    [
        ("Priority", "other jobs are ahead in the queue"),
        ("AssocGrpGRES", "its account has reached its limit on GPUs (or other devices) in total"),
        ("QOSMaxCpuPerUserLimit", "its quality of service has reached its limit on CPUs for one user"),
        ("QOSMaxJobsPerUserLimit", "its quality of service has reached its limit on running jobs for one user"),
        ("AssocGrpCPUMinutesLimit", "its account has reached its limit on CPU minutes in total"),
        ("QOSGrpNodeLimit", "its quality of service has reached its limit on nodes in total"),
        ("ReqNodeNotAvail, UnavailableNodes:g3", "a node that it needs is down or drained: g3"),
        (
            "ReqNodeNotAvail, Reserved for maintenance",
            "it would overlap a maintenance reservation; a shorter time limit may fit before it",
        ),
        ("ReqNodeNotAvail", "a node that it needs is not available"),
        (
            "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved",
            "the nodes that it needs are down, drained or reserved for higher-priority queues",
        ),
        ("SomethingNew", "Slurm says 'SomethingNew'"),
        ("QOSMaxFrobsLimit", "Slurm says 'QOSMaxFrobsLimit'"),
        ("", ""),
    ],
)
def test_a_reason_in_plain_words(native: str, words: str) -> None:
    assert plain_reason(native) == words
