"""Looking at a cluster: kept a while, asked by one, the last picture where there is no newer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from onward.clock import ManualClock
from onward.errors import NotFound
from onward.model.cluster import Asked, ClusterJob, ClusterSnapshot, Node, NodeState, Queue
from onward.model.job import JobId, JobState
from onward.model.plain_data import value_from_json, value_to_json
from onward.operations.clusters.snapshot_cache import (
    CachedSnapshot,
    SnapshotCache,
    describe_cluster,
    known_clusters,
    snapshot_once,
    snapshot_record,
)
from onward.operations.hosts.all_hosts import Hosts
from onward.schedulers.cluster_settings import ClusterSettings, Settings
from tests.benches import until
from tests.fakes import FakeScheduler
from tests.sandbox import Sandbox

SETTINGS = Settings(
    default_cluster="lab",
    clusters={
        "lab": ClusterSettings(name="lab", scheduler="slurm"),
        "far": ClusterSettings(name="far", scheduler="gridengine", ssh="login.example"),
    },
)


class Scheduler:
    """Answers at once, or when the test lets it."""

    def __init__(self, clock: ManualClock) -> None:
        self.fake = FakeScheduler(clock)
        self.asked: list[str] = []
        self.open = threading.Event()
        self.open.set()

    def __call__(self, name: str) -> ClusterSnapshot:
        self.asked.append(name)
        assert self.open.wait(60)
        return self.fake.snapshot()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def scheduler(clock: ManualClock) -> Scheduler:
    return Scheduler(clock)


def clusters(scheduler: Scheduler, clock: ManualClock) -> SnapshotCache:
    return SnapshotCache(SETTINGS, scheduler, clock, patience=0.05)


def test_a_picture_is_kept_for_half_a_minute_and_says_its_age(scheduler: Scheduler, clock: ManualClock) -> None:
    kept = clusters(scheduler, clock)
    assert kept.look("lab").age == 0
    clock.sleep(29)
    assert (kept.look("lab").age, len(scheduler.asked)) == (29, 1)
    clock.sleep(1)
    assert (kept.look("auto").age, len(scheduler.asked)) == (0, 2)


def test_a_queue_of_ones_own_is_asked_every_five_seconds(scheduler: Scheduler, clock: ManualClock) -> None:
    kept = clusters(scheduler, clock)
    for _ in range(3):
        kept.look("local")
        clock.sleep(5)
    assert scheduler.asked == ["local"] * 3


def test_many_readers_are_one_question(scheduler: Scheduler, clock: ManualClock) -> None:
    kept = clusters(scheduler, clock)
    scheduler.open.clear()
    found: list[CachedSnapshot] = []
    readers = [threading.Thread(target=lambda: found.append(kept.look("lab"))) for _ in range(8)]
    for reader in readers:
        reader.start()
    until(lambda: bool(scheduler.asked), what="a question")
    scheduler.open.set()
    for reader in readers:
        reader.join(60)
    assert (len(found), scheduler.asked) == (8, ["lab"])


def test_while_a_scheduler_is_slow_the_last_picture_is_shown(scheduler: Scheduler, clock: ManualClock) -> None:
    kept = clusters(scheduler, clock)
    kept.look("lab")
    clock.sleep(40)
    scheduler.open.clear()
    seen = kept.look("lab")
    assert (seen.age, seen.trouble) == (40, "lab has not answered yet")
    assert kept.look("lab").age == 40
    scheduler.open.set()
    until(lambda: kept.look("lab").age == 0, what="the new picture")
    assert len(scheduler.asked) == 2


def test_a_scheduler_that_is_away_leaves_the_last_picture_and_says_why(scheduler: Scheduler, clock: ManualClock) -> None:
    kept = clusters(scheduler, clock)
    kept.look("lab")
    scheduler.fake.down = True
    clock.sleep(30)
    seen = kept.look("lab")
    assert (seen.age, seen.trouble) == (30, "the fake scheduler is down")
    clock.sleep(10)
    assert (kept.look("lab").age, len(scheduler.asked)) == (40, 2)
    scheduler.fake.down = False
    clock.sleep(20)
    assert (kept.look("lab").age, kept.look("lab").trouble) == (0, "")


def test_without_any_picture_the_schedulers_own_error_is_told_and_it_is_not_asked_again_at_once(
    scheduler: Scheduler, clock: ManualClock
) -> None:
    kept = clusters(scheduler, clock)
    scheduler.fake.down = True
    for _ in range(2):
        seen = kept.look("lab")
        assert (seen.heard, seen.trouble, seen.snapshot.nodes) == (False, "the fake scheduler is down", ())
    assert len(scheduler.asked) == 1


def test_a_name_that_nobody_knows_is_not_asked_for(scheduler: Scheduler, clock: ManualClock) -> None:
    with pytest.raises(NotFound, match="no cluster named 'lap'"):
        clusters(scheduler, clock).look("lap")
    assert scheduler.asked == []


def test_built_in_schedulers_are_listed_where_their_programs_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [(one.name, one.auto) for one in known_clusters(SETTINGS)] == [("local", False), ("far", False), ("lab", True)]
    (tmp_path / "sbatch").touch(mode=0o755)
    assert [one.name for one in known_clusters(SETTINGS)] == ["local", "slurm", "far", "lab"]
    assert describe_cluster(SETTINGS, "far").host == "login.example"


def test_a_snapshot_travels_as_json_and_comes_back_the_same(scheduler: Scheduler, tmp_path: Path) -> None:
    job = scheduler.fake.submit(tmp_path / "x", name="a")
    scheduler.fake.start(job)
    taken = scheduler.fake.snapshot()
    again = value_from_json(ClusterSnapshot, value_to_json(taken))
    assert again == taken
    assert again.nodes[0].state is NodeState.PARTLY and again.jobs[0].state is JobState.RUNNING


def test_the_picture_of_a_place_here(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    first = sandbox.scheduler.submit(tmp_path / "x", name="first")
    sandbox.scheduler.submit(tmp_path / "x", name="second", after=first)
    sandbox.scheduler.start(first)
    answer = snapshot_record(snapshot_once(Hosts(sandbox.context, print), "local"))
    assert (answer["schema"], answer["name"], answer["age"], answer["jobs_total"]) == (1, "local", 0.0, 2)
    assert [(queue["name"], queue["running"], queue["waiting"]) for queue in answer["queues"]] == [("all", 1, 1)]
    assert answer["totals"][0] == {"what": "cpus", "used": 1, "total": 16}
    assert [(one["queue"], one["cpus"], one["nodes"]) for one in answer["openings"]] == [("all", 15, 1)]
    assert snapshot_record(snapshot_once(Hosts(sandbox.context, print), "local"), limit=1)["jobs"][0]["name"] == "first"


class Walked(tuple[ClusterJob, ...]):
    """Jobs that count how often somebody went through all of them."""

    walks = 0

    def __iter__(self) -> Iterator[ClusterJob]:
        Walked.walks += 1
        return super().__iter__()


def test_a_cluster_of_many_queues_and_jobs_is_gone_through_a_few_times_whatever_its_queues() -> None:
    """5,000 nodes, 40 queues and 50,000 jobs are common: a pass for each queue would be two million looks for every reader."""
    queues = tuple(Queue(name=f"q{n}", nodes=tuple(f"n{m}" for m in range(50))) for n in range(40))
    nodes = tuple(Node(name=f"n{n}", state=NodeState.FREE, cpus=8) for n in range(50))
    both = "q1,q2"
    jobs = Walked(
        ClusterJob(
            id=JobId(str(n)),
            name=f"j{n}",
            user="ada",
            mine=n < 10,
            state=JobState.RUNNING if n < 200 else JobState.QUEUED,
            queue=both if n >= 4000 else f"q{n % 40}",
            asked=Asked(),
            nodes=("n1",) if n < 200 else (),
            in_line=n >= 200,
        )
        for n in range(4100)
    )
    snapshot = ClusterSnapshot(scheduler="slurm", taken_at=1.0, user="ada", nodes=nodes, queues=queues, jobs=jobs)
    seen = CachedSnapshot(cluster=describe_cluster(Settings(), "local"), snapshot=snapshot, age=0.0)
    Walked.walks = 0
    shown = snapshot_record(seen, limit=100)
    assert Walked.walks <= 4
    assert (len(shown["jobs"]), shown["jobs_total"]) == (100, 4100)
    counts = {queue["name"]: (queue["running"], queue["waiting"]) for queue in shown["queues"]}
    assert (counts["q0"], counts["q1"], counts["q2"]) == ((5, 95), (5, 195), (5, 195))
    assert {opening["queue"]: opening["ahead"] for opening in shown["openings"]}["q1"] == 195
