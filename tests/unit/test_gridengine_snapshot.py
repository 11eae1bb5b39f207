"""A Grid Engine cluster from what its programs printed: recorded on a real 8.1.9, a queue disabled on one host, jobs of every kind."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from onward.errors import SchedulerUnavailable
from onward.model.cluster import ClusterJob, Gpus, Node, NodeState
from onward.model.job import JobState
from onward.schedulers.command import Answer
from onward.schedulers.gridengine.advice import scheduling_info
from onward.schedulers.gridengine.snapshot import ConsumableNames, parse_hosts, parse_jobs, parse_queues, read_xml, take_snapshot
from onward.schedulers.gridengine.wait_reasons import plain_reason

RECORDED = Path(__file__).parents[1] / "recorded" / "gridengine"
WORDS = ConsumableNames.of({})


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


def root() -> ElementTree.Element:
    return read_xml(recorded("qstat.xml"))


def jobs() -> dict[str, ClusterJob]:
    why = scheduling_info(recorded("qstat-j.txt"))
    return {str(job.id): job for job in parse_jobs(root(), WORDS, user="alice", why=why)}


def host(instances: str, *, words: ConsumableNames = WORDS) -> Node:
    [found] = parse_hosts(read_xml(f"<job_info><queue_info>{instances}</queue_info></job_info>"), words)
    return found


def instance(queue: str = "all.q", *, state: str = "", used: int = 0, resources: str = "") -> str:
    said = f"<state>{state}</state>" if state else ""
    counts = f"<slots_used>{used}</slots_used><slots_total>8</slots_total>"
    return f"<Queue-List><name>{queue}@e1</name>{counts}{said}{resources}</Queue-List>"


# ── hosts ─────────────────────────────────────────────────────────────────────


def test_what_a_host_has_is_what_is_free_and_what_its_jobs_hold() -> None:
    found = {node.name: node for node in parse_hosts(root(), WORDS)}
    assert {name: (node.cpus, node.cpus_used) for name, node in found.items()} == {"e1": (8, 8), "e2": (8, 8), "e3": (8, 4)}
    assert {node.mem for node in found.values()} == {256 * 1024}
    assert found["e3"].mem_used == 4 * 1024
    assert found["e1"].gpus == (Gpus(total=2, used=1),)
    assert (found["e1"].state, found["e3"].state) == (NodeState.FULL, NodeState.PARTLY)


@pytest.mark.parametrize(
    ("letters", "state", "words"),
    [
        ("", NodeState.FREE, ""),
        ("d", NodeState.DRAINED, "disabled by an administrator"),
        ("au", NodeState.DOWN, "does not answer"),
        ("E", NodeState.DRAINED, "qmod -cq enables it"),
        ("a", NodeState.FULL, "too busy"),
        ("Z", NodeState.UNKNOWN, "Grid Engine says Z"),
    ],
)
def test_the_letters_of_a_hosts_queue(letters: str, state: NodeState, words: str) -> None:
    found = host(instance(state=letters))
    assert found.state is state
    assert words in found.why


def test_a_host_takes_jobs_while_one_of_its_queues_does() -> None:
    assert host(instance("all.q", state="d") + instance("short.q")).state is NodeState.FREE
    assert host(instance("all.q", state="d", used=2) + instance("short.q", state="d")).state is NodeState.DRAINING


def test_memory_that_the_site_does_not_count_is_the_hosts_own() -> None:
    resources = '<resource name="mem_total" type="hl">16.000G</resource><resource name="mem_used" type="hl">2.000G</resource>'
    found = host(instance(resources=resources))
    assert (found.mem, found.mem_used) == (16 * 1024, 2 * 1024)


def test_gpus_by_the_names_and_the_type_of_the_site() -> None:
    resources = '<resource name="ngpu" type="hc">2.000000</resource><resource name="card" type="hf">a100</resource>'
    job = '<job_list state="running"><JB_job_number>1</JB_job_number><slots>2</slots><hard_request name="ngpu">1</hard_request></job_list>'
    words = ConsumableNames.of({"gpus": "ngpu/slot", "gpu-type": "card"})
    assert host(instance(used=2, resources=resources + job), words=words).gpus == (Gpus(type="a100", total=4, used=2),)


# ── queues ────────────────────────────────────────────────────────────────────


def test_queues_with_their_hosts_and_limits() -> None:
    found = {queue.name: queue for queue in parse_queues(root(), recorded("queues.txt"))}
    assert found["short.q"].nodes == ("e1", "e2")
    assert (found["short.q"].time_limit, found["all.q"].time_limit) == (120, None)
    assert (found["short.q"].open, found["short.q"].closed_on) == (True, ("e2",))


def test_a_queue_that_is_shut_on_every_host_is_closed_and_says_why() -> None:
    text = f"<job_info><queue_info>{instance(state='d')}</queue_info></job_info>"
    [queue] = parse_queues(read_xml(text), "")
    assert (queue.open, queue.why) == (False, "disabled by an administrator")


# ── jobs ──────────────────────────────────────────────────────────────────────


def test_a_running_job_says_where_with_what_and_until_when() -> None:
    job = jobs()["1994"]
    assert (job.state, job.mine, job.queue, job.nodes) == (JobState.RUNNING, True, "all.q", ("e1",))
    assert (job.asked.cpus, job.asked.mem, job.asked.gpus, job.asked.time) == (2, 4096, (Gpus(total=1),), 3600)
    assert job.started is not None and job.ends == job.started + 3600


def test_a_job_over_several_hosts_is_one() -> None:
    job = jobs()["1995"]
    assert (job.nodes, job.asked.nodes, job.asked.cpus, job.asked.mem) == (("e1", "e2", "e3"), 3, 12, 12 * 1024)


def test_tasks_of_an_array_that_run_are_lines_and_those_that_wait_are_one() -> None:
    found = jobs()
    assert found["1999.3"].nodes == ("e2",)
    assert (found["1999.7-40:1"].tasks, found["1999.7-40:1"].in_line) == (34, True)


def test_why_each_job_waits() -> None:
    found = {job.name: job for job in jobs().values() if job.nodes == ()}
    assert {name: job.reason for name, job in found.items()} == {
        "run.never": "not enough free: slots: e2 0, e1 0; gpus (requests 99): e3 2",
        "run.arr": "not enough free: slots: e1 0",
        "run.err": "in the error state: qstat -j shows why, qmod -cj retries it",
        "run.hold": "on hold; qrls releases it",
        "run.dep": "waits for the previous job",
        "run.later": "may not start before a set time",
    }
    assert [name for name, job in found.items() if job.in_line] == ["run.never", "run.arr"]


def test_others_jobs_are_told_by_their_state_alone() -> None:
    found = {job.name: job.reason for job in parse_jobs(root(), WORDS, user="bob") if job.nodes == ()}
    assert (found["run.dep"], found["run.hold"], found["run.never"]) == (
        "waits for the previous job",
        "on hold; qrls releases it",
        "waits in the queue",
    )


# ── the whole ─────────────────────────────────────────────────────────────────


def test_three_calls_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "alice")
    calls: list[str] = []

    def ask(program: str, *arguments: str, timeout: float = 0) -> Answer:
        calls.append(f"{program} {arguments[0]}")
        text = {"-f": "qstat.xml", "-j": "qstat-j.txt", "-sq": "queues.txt"}[arguments[0]]
        return Answer(code=0, out=recorded(text), err="")

    snapshot = take_snapshot(ask, {})
    assert calls == ["qstat -f", "qstat -j", "qconf -sq"]
    assert (len(snapshot.nodes), len(snapshot.queues), snapshot.user) == (3, 3, "alice")
    assert [job.waiting for job in snapshot.jobs] == sorted(job.waiting for job in snapshot.jobs)


def test_a_qmaster_that_does_not_answer_is_said_to_be_away() -> None:
    with pytest.raises(SchedulerUnavailable, match="commlib error"):
        take_snapshot(lambda *_words, **_more: Answer(code=1, out="", err="error: commlib error"), {})
    with pytest.raises(SchedulerUnavailable, match="did not print XML"):
        read_xml("no xml")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            ['cannot run because it exceeds limit "alice/////" in rule "max/2"'],
            "a quota of the site is reached: rule max/2, limit alice/////",
        ),
        (['cannot run in PE "smp" because it only offers 4 slots'], "not enough slots are free in smp: 4 now"),
        (['queue instance "all.q@e1" dropped because it is full'], "all queues that it may use are full"),
        (['queue instance "all.q@e1" dropped because it is temporarily not available'], "hosts that it could use do not answer"),
        (["something nobody listed"], "Grid Engine says: something nobody listed"),
        ([], "waits in the queue"),
    ],
)
def test_a_reason_in_plain_words(lines: list[str], words: str) -> None:
    assert plain_reason(lines) == words
