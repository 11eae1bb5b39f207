"""When a job would start if it were submitted now: what sbatch says of it, and what a dry run makes of that."""

from __future__ import annotations

from pathlib import Path

import pytest

from onward.errors import SchedulerUnavailable
from onward.operations.submit.preflight import notes_on_start
from onward.schedulers.base import ExpectedStart, expected_start_of
from onward.schedulers.slurm.expected_start import parse_test
from onward.schedulers.slurm.scheduler import SlurmScheduler
from tests.fakes import FakeScheduler

STARTS = "sbatch: Job 2217 to start at 1794783430 using 48 processors on nodes g[1-3] in partition gpu"
REFUSED = "sbatch: error: invalid partition specified: nosuch\nallocation failure: Invalid partition name specified"


class Expecting(FakeScheduler):
    def __init__(self, expected: ExpectedStart | None) -> None:
        super().__init__()
        self.expected = expected

    def expected_start(self, script: str) -> ExpectedStart | None:
        self._answer()
        return self.expected


def test_slurms_answer_is_read() -> None:
    assert parse_test(STARTS, refused=False) == ExpectedStart(at=1794783430.0, nodes="g[1-3]", queue="gpu")
    assert parse_test(REFUSED, refused=True) == ExpectedStart(
        refused="invalid partition specified: nosuch; Invalid partition name specified"
    )
    assert parse_test("something else", refused=False) is None


def test_sbatch_is_given_the_script_and_queues_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program = tmp_path / "sbatch"
    program.write_text(
        f'#!/bin/sh\necho "$1" > {tmp_path}/told\nfor last; do :; done\ncat "$last" >> {tmp_path}/told\necho "{STARTS}" >&2\n'
    )
    program.chmod(0o755)
    found = SlurmScheduler().expected_start("#!/bin/bash\n#SBATCH --time=10\n")
    assert found is not None and found.at == 1794783430.0
    assert (tmp_path / "told").read_text() == "--test-only\n#!/bin/bash\n#SBATCH --time=10\n"


@pytest.mark.parametrize(
    ("at", "words"),
    [
        (1030.0, "start immediately"),
        (1000.0 + 3600, "in about 60 min"),
        (1000.0 + 10 * 3600, "in about 10 h"),
        (1000.0 + 5e5, "in about 5 d 18 h"),
    ],
)
def test_a_dry_run_says_how_soon(at: float, words: str) -> None:
    [note] = notes_on_start(Expecting(ExpectedStart(at=at, nodes="g1", queue="gpu")), "", now=1000.0)
    assert words in note and "on g1 (queue gpu)" in note


def test_a_dry_run_says_that_it_would_be_refused() -> None:
    assert notes_on_start(Expecting(ExpectedStart(refused="no such queue")), "", now=0) == ["the scheduler would refuse it: no such queue"]


def test_where_nothing_is_told_nothing_is_said() -> None:
    silent = Expecting(ExpectedStart(at=1.0))
    silent.down = True
    with pytest.raises(SchedulerUnavailable):
        expected_start_of(silent, "")
    assert [notes_on_start(one, "", now=0) for one in (silent, Expecting(None), Expecting(ExpectedStart()), FakeScheduler())] == [[]] * 4
