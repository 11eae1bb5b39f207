"""Keepers killed at any moment, again and again: every job still runs once, and its end is known."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from onward.model.job import JobId, JobState
from tests.benches import LocalBench, until


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_however_often_the_keeper_is_killed_every_job_runs_exactly_once(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    bench = LocalBench(tmp_path, cpus=6)
    jobs: list[JobId] = []
    try:
        script = bench.shell(f"echo ran >> {tmp_path}/ran-$ONWARD_JOB_ID; sleep 0.{seed}; exit $((ONWARD_JOB_ID % 5))")
        for _ in range(40):
            after = chance.choice(jobs) if jobs and chance.random() < 0.3 else None
            jobs.append(bench.scheduler.submit(script, name="job", after=after))
            if chance.random() < 0.4:
                time.sleep(chance.random() * 0.15)
                if keeper := bench.keeper():
                    keeper.send(signal.SIGKILL)
        until(lambda: not any(status.state.live for status in bench.scheduler.status(jobs).values()), what="the end of all jobs")
        ends = {job: (status.state, status.exit_code) for job, status in bench.scheduler.status(jobs).items()}
    finally:
        bench.close()
    codes = {job: int(job) % 5 for job in jobs}
    assert ends == {job: (JobState.FAILED if code else JobState.FINISHED, code) for job, code in codes.items()}
    assert {job: (tmp_path / f"ran-{job}").read_text() for job in jobs} == dict.fromkeys(jobs, "ran\n")
