"""The Slurm adapter against stand-ins for its programs: what each answer is taken for. For the real one: tests/contract, tests/cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from onward.errors import InvalidInput, SchedulerUnavailable, SubmitRefused, SubmitUnclear
from onward.model.job import JobId, JobState
from onward.model.spec import Resources
from onward.schedulers.slurm import SlurmScheduler
from onward.schedulers.slurm_words import parse_state


class Programs:
    """`squeue` and the others as small scripts on the PATH, which note that they were called."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        for name in ("squeue", "sacct", "sbatch", "scontrol", "scancel"):
            self.answer(name)

    def answer(self, name: str, out: str = "", *, err: str = "", code: int = 0) -> None:
        script = f"#!/bin/sh\necho {name} >> {self._folder}/calls\ncat <<'END'\n{out}\nEND\ncat >&2 <<'END'\n{err}\nEND\nexit {code}\n"
        (self._folder / name).write_text(script)
        (self._folder / name).chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return (self._folder / "calls").read_text().split()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    return Programs(tmp_path, monkeypatch)


def test_a_state_nobody_told_us_of_is_unknown_and_never_an_end() -> None:
    assert parse_state("FUTURE_STATE") is JobState.UNKNOWN
    assert parse_state("") is JobState.UNKNOWN
    assert JobState.UNKNOWN.live


def test_a_state_with_an_addition_is_read() -> None:
    assert parse_state("CANCELLED by 1001") is JobState.CANCELLED
    assert parse_state("CANCELLED+") is JobState.CANCELLED


def test_a_job_held_on_another_is_held_and_one_that_waits_is_queued(programs: Programs) -> None:
    programs.answer("squeue", "7|a.1.x|PENDING|Dependency||1|N/A|N/A\n8|b.1.x|PENDING|ReqNodeNotAvail, UnavailableNodes:g3||1|N/A|N/A")
    found = SlurmScheduler().status([JobId("7"), JobId("8")])
    assert found[JobId("7")].state is JobState.HELD
    assert (found[JobId("8")].state, found[JobId("8")].reason) == (JobState.QUEUED, "ReqNodeNotAvail, UnavailableNodes:g3")


def test_without_accounting_a_job_that_the_controller_forgot_is_absent(programs: Programs) -> None:
    programs.answer("sacct", err="Slurm accounting storage is disabled", code=1)
    assert SlurmScheduler().status([JobId("7")]) == {}
    assert list(SlurmScheduler().find("a.1.x")) == []


def test_an_accounting_that_does_not_answer_is_unknown_not_absent(programs: Programs) -> None:
    programs.answer("sacct", err="sacct: error: Connection refused", code=1)
    with pytest.raises(SchedulerUnavailable):
        SlurmScheduler().status([JobId("7")])


def test_a_controller_that_does_not_answer_is_unknown_not_absent(programs: Programs) -> None:
    programs.answer("squeue", err="slurm_load_jobs error: Unable to contact slurm controller (connect failure)", code=1)
    with pytest.raises(SchedulerUnavailable):
        SlurmScheduler().status([JobId("7")])


def test_a_thousand_jobs_are_asked_after_in_one_call(programs: Programs) -> None:
    programs.answer("squeue", "\n".join(f"{n}|r{n}.1.x|RUNNING|None|c1|1|1|1" for n in range(1, 1001)))
    assert len(SlurmScheduler().status([JobId(str(n)) for n in range(1, 1001)])) == 1000
    assert programs.calls == ["squeue"]


@pytest.mark.parametrize(
    "words",
    [
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying",
    ],
)
def test_a_submit_that_may_have_been_accepted_is_unclear(programs: Programs, tmp_path: Path, words: str) -> None:
    programs.answer("sbatch", err=words, code=1)
    with pytest.raises(SubmitUnclear):
        SlurmScheduler().submit(tmp_path / "s.sh", name="a.1.x")


def test_a_refusal_says_slurms_words_and_what_to_look_at(programs: Programs, tmp_path: Path) -> None:
    programs.answer("sbatch", err="sbatch: error: Batch job submission failed: Invalid partition name specified", code=1)
    with pytest.raises(SubmitRefused) as caught:
        SlurmScheduler().submit(tmp_path / "s.sh", name="a.1.x")
    assert "Invalid partition name specified" in caught.value.message
    assert "sinfo" in caught.value.hint


def test_a_success_without_an_id_is_unclear(programs: Programs, tmp_path: Path) -> None:
    with pytest.raises(SubmitUnclear):
        SlurmScheduler().submit(tmp_path / "s.sh", name="a.1.x")


def test_the_id_is_read_also_where_the_cluster_is_named_with_it(programs: Programs, tmp_path: Path) -> None:
    programs.answer("sbatch", "4711;big")
    assert SlurmScheduler().submit(tmp_path / "s.sh", name="a.1.x") == "4711"


def test_directives_say_no_requeue_and_round_the_time_up_to_minutes() -> None:
    lines = SlurmScheduler().directives(Resources(time=61, mem=512, gpus="a100:2"), output=Path("/runs/a b/log"))
    assert "#SBATCH --no-requeue" in lines
    assert "#SBATCH --time=00:02:00" in lines
    assert "#SBATCH --mem=512M" in lines
    assert "#SBATCH --gpus=a100:2" in lines
    assert '#SBATCH --output="/runs/a b/log"' in lines


@pytest.mark.parametrize("path", ['/runs/a"b', "/runs/a\\b", "/runs/a\nb"])
def test_a_path_that_slurm_cannot_write_to_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput):
        SlurmScheduler().directives(Resources(), output=Path(path))


def test_a_percent_sign_in_a_path_is_no_pattern_of_slurms() -> None:
    assert '#SBATCH --output="/runs/100%%j/log"' in SlurmScheduler().directives(Resources(), output=Path("/runs/100%j/log"))
