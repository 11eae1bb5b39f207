from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from onward.model.job import JobId, JobState
from onward.schedulers.local import job_queue
from onward.schedulers.local.job_queue import ENDED, INCOMING, LIVE, JobRecord, LocalJob, LocalQueue
from onward.schedulers.local.resource_request import ResourceRequest


@pytest.fixture
def queue(tmp_path: Path) -> LocalQueue:
    made = LocalQueue(tmp_path / "state")
    made.make()
    return made


def add(queue: LocalQueue, name: str = "job", after: JobId | None = None) -> JobId:
    job = LocalJob(
        id=JobId(""), name=name, after=after, submitted=1.0, request=ResourceRequest(cpus=2), folder="/", umask=0o22, environment={"A": "b"}
    )
    return queue.add(job, b"echo hi\n", machine={"cpus": 4})


def end(queue: LocalQueue, job: LocalJob, record: JobRecord) -> None:
    queue.save(job, record)
    queue.close(job)


def test_a_job_comes_out_as_it_went_in(queue: LocalQueue) -> None:
    first = add(queue)
    second = add(queue, "other.1.x", after=first)
    taken = queue.take()
    assert [job.id for job in taken] == [first, second]
    assert taken[1] == LocalJob(
        id=second,
        name="other.1.x",
        after=first,
        submitted=1.0,
        request=ResourceRequest(cpus=2),
        folder="/",
        umask=0o22,
        environment={"A": "b"},
    )
    assert (queue.folder(LIVE, taken[1]) / "script").read_bytes() == b"echo hi\n"


def test_a_job_is_known_in_every_stage(queue: LocalQueue) -> None:
    id_ = add(queue)
    before = queue.read(id_, "job")
    [job] = queue.take()
    between = queue.read(id_, "job")
    end(queue, job, JobRecord(state=JobState.FAILED, exit_code=3, gpus=("1",)))
    after = queue.read(id_, "job")
    assert before == (job, None)
    assert between == (job, JobRecord())
    assert after == (job, JobRecord(state=JobState.FAILED, exit_code=3, gpus=("1",)))
    assert queue.listing(INCOMING, LIVE, ENDED) == {id_: "job"}
    assert queue.unfinished() == {}


def test_numbers_rise_and_are_not_given_again(queue: LocalQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_queue, "KEPT", 0)
    ids = [add(queue) for _ in range(3)]
    for job in queue.take():
        end(queue, job, JobRecord(state=JobState.FINISHED))
    queue.prune(time.time() + 100_000)
    assert queue.listing(ENDED) == {}
    assert [*ids, add(queue)] == ["1", "2", "3", "4"]


def test_numbers_go_on_where_the_count_was_lost(queue: LocalQueue) -> None:
    add(queue)
    add(queue)
    os.truncate(queue.state / "ids.lock", 0)
    assert add(queue) == "3"


def test_what_a_killed_submitter_left_is_no_job(queue: LocalQueue) -> None:
    (queue.state / "partial").mkdir()
    (queue.state / "partial" / "script").write_text("half")
    add(queue)
    [job] = queue.take()
    assert (queue.folder(LIVE, job) / "script").read_bytes() == b"echo hi\n"


def test_a_job_that_cannot_be_read_stops_no_other(queue: LocalQueue) -> None:
    torn = add(queue, "torn")
    add(queue, "whole")
    (queue.state / INCOMING / f"{torn}.torn" / "job.json").write_text("")
    assert [job.name for job in queue.take()] == ["whole"]
    assert torn not in queue.listing(INCOMING, LIVE, ENDED)


def test_keys_of_a_newer_version_are_ignored(queue: LocalQueue) -> None:
    id_ = add(queue)
    path = queue.state / INCOMING / f"{id_}.job" / "job.json"
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 2, "colour": "red"'))
    assert [job.id for job in queue.take()] == [id_]


def test_the_oldest_ended_jobs_are_let_go_but_none_of_the_last_day(queue: LocalQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_queue, "KEPT", 2)
    ids = [add(queue) for _ in range(5)]
    for job in queue.take():
        end(queue, job, JobRecord(state=JobState.FINISHED))
    now = time.time()
    for id_ in ids[:2]:
        os.utime(queue.state / ENDED / f"{id_}.job", (now - 90_000, now - 90_000))
    queue.prune(now)
    assert list(queue.listing(ENDED)) == ids[2:]


def test_nobody_else_can_look_into_the_queue(queue: LocalQueue) -> None:
    assert queue.state.stat().st_mode & 0o777 == 0o700
