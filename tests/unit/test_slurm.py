"""The Slurm adapter against stand-ins for its programs: what each answer is taken for. For the real one: tests/contract, tests/cluster."""

from __future__ import annotations

import os
import pwd
import threading
from pathlib import Path

import pytest

from onward.errors import InvalidInput, SchedulerUnavailable, SubmitLimitReached, SubmitRefused, SubmitUnclear
from onward.model.job import JobId, JobState
from onward.model.spec import Resources
from onward.schedulers.base import end_time_of, grace_of, live_jobs_of
from onward.schedulers.command import Answer
from onward.schedulers.slurm.job_states import parse_state
from onward.schedulers.slurm.scheduler import SlurmScheduler
from onward.schedulers.slurm.wait_reasons import plain_reason


class Programs:
    """`squeue` and the others as small scripts on the PATH, which note that they were called."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        for name in ("squeue", "sacct", "sbatch", "scontrol", "scancel", "sacctmgr"):
            self.answer(name)

    def answer(self, name: str, out: str = "", *, err: str = "", code: int = 0) -> None:
        note = f'echo {name} >> {self.folder}/calls\necho {name} "$@" >> {self.folder}/lines\n'
        script = f"#!/bin/sh\n{note}cat <<'END'\n{out}\nEND\ncat >&2 <<'END'\n{err}\nEND\nexit {code}\n"
        (self.folder / name).write_text(script)
        (self.folder / name).chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().split()

    @property
    def lines(self) -> list[str]:
        """The same with their arguments."""
        return (self.folder / "lines").read_text().splitlines()


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


@pytest.mark.parametrize(
    ("native", "reason", "state", "words"),
    [
        ("PENDING", "JobHeldUser", JobState.HELD, "held by its owner"),
        ("PENDING", "JobHeldAdmin", JobState.HELD, "held by an administrator"),
        ("PENDING", "job requeued in held state", JobState.HELD, "held when it was requeued"),
        ("PENDING", "job_requeued_in_held_state", JobState.HELD, "held when it was requeued"),
        ("PENDING", "launch failed requeued held", JobState.HELD, "held because it could not be started"),
        ("REQUEUE_HOLD", "None", JobState.HELD, ""),
        ("REQUEUE_HOLD", "job requeued in held state", JobState.HELD, "scontrol release releases it"),
        ("SPECIAL_EXIT", "job requeued in held state", JobState.HELD, "scontrol release releases it"),
    ],
)
def test_a_job_that_somebody_holds_is_held_and_says_how_it_is_let_go(
    programs: Programs, native: str, reason: str, state: JobState, words: str
) -> None:
    programs.answer("squeue", f"7|a.1.x|{native}|{reason}||1|N/A|N/A")
    found = SlurmScheduler().status([JobId("7")])[JobId("7")]
    assert (found.state, found.paused) == (state, False)
    assert words in plain_reason(found.reason)


@pytest.mark.parametrize(("native", "words"), [("SUSPENDED", "suspended"), ("STOPPED", "stopped by a signal")])
def test_a_suspended_job_still_has_its_nodes_and_says_that_it_stands_still(programs: Programs, native: str, words: str) -> None:
    programs.answer("squeue", f"7|a.1.x|{native}|None|c1|1|2|900")
    found = SlurmScheduler().status([JobId("7")])[JobId("7")]
    assert (found.state, found.paused, found.reason, found.nodes) == (JobState.RUNNING, True, words, ("c1",))


CANCELLED = "7|a.1.x|CANCELLED|None||1|N/A|2"


def test_accounting_says_who_cancelled_a_job_that_the_controller_still_knows(programs: Programs) -> None:
    programs.answer("squeue", CANCELLED)
    programs.answer("sacct", "7|a.1.x|CANCELLED by 1|0:0|None assigned|1|Unknown|2")
    status = SlurmScheduler().status([JobId("7")])[JobId("7")]
    assert (status.state, status.cancelled_by) == (JobState.CANCELLED, pwd.getpwuid(1).pw_name)


def test_an_accounting_that_has_not_heard_of_the_end_yet_is_asked_again(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    programs.answer("squeue", CANCELLED)
    programs.answer("sacct", "7|a.1.x|PENDING|0:0|None assigned|1|Unknown|Unknown")

    def heard(seconds: float) -> None:
        if seconds >= 1 and threading.current_thread() is threading.main_thread():  # subprocess polls with time.sleep
            programs.answer("sacct", "7|a.1.x|CANCELLED by 1|0:0|None assigned|1|Unknown|2")

    monkeypatch.setattr("onward.schedulers.slurm.scheduler.time.sleep", heard)
    assert SlurmScheduler().status([JobId("7")])[JobId("7")].cancelled_by == pwd.getpwuid(1).pw_name
    assert programs.calls.count("sacct") == 2


def test_a_user_whom_this_machine_does_not_know_is_named_by_number(programs: Programs) -> None:
    programs.answer("sacct", "7|a.1.x|CANCELLED by 999999|0:0|None assigned|1|Unknown|2")
    assert SlurmScheduler().status([JobId("7")])[JobId("7")].cancelled_by == "user 999999"


def test_a_job_that_its_owner_cancelled_names_nobody_else(programs: Programs) -> None:
    programs.answer("squeue", CANCELLED)
    programs.answer("sacct", f"7|a.1.x|CANCELLED by {os.getuid()}|0:0|None assigned|1|Unknown|2")
    assert SlurmScheduler().status([JobId("7")])[JobId("7")].cancelled_by == ""


def test_the_controller_lists_what_is_there_in_one_call(programs: Programs) -> None:
    programs.answer("squeue", CANCELLED)
    assert live_jobs_of(SlurmScheduler()) == {}
    programs.answer("squeue", err="slurm_load_jobs error: Socket timed out", code=1)
    with pytest.raises(SchedulerUnavailable):
        live_jobs_of(SlurmScheduler())


def test_without_an_answer_of_accounting_nobody_else_is_taken_for_the_one_who_cancelled(programs: Programs) -> None:
    programs.answer("squeue", CANCELLED)
    programs.answer("sacct", err="sacct: error: Connection refused", code=1)
    status = SlurmScheduler().status([JobId("7")])[JobId("7")]
    assert (status.state, status.cancelled_by) == (JobState.CANCELLED, "")


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
        "sbatch: error: RPC rate limit exceeded 10 times with status SLURMCTLD_COMMUNICATIONS_BACKOFF",
        "sbatch: error: Batch job submission failed: Resource temporarily unavailable, try again later",
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


POLICY = "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"


@pytest.mark.parametrize(
    "words",
    [
        f"sbatch: error: AssocMaxSubmitJobLimit\n{POLICY}",
        f"sbatch: error: QOSMaxSubmitJobPerUserLimit\n{POLICY}",
        f"sbatch: error: AssocGrpSubmitJobsLimit\n{POLICY}",
        POLICY,  # older versions do not name the limit
        "sbatch: error: You have reached the maximum number of queued jobs",
    ],
)
def test_a_limit_on_the_number_of_jobs_is_told_from_other_refusals(programs: Programs, tmp_path: Path, words: str) -> None:
    programs.answer("sbatch", err=words, code=1)
    with pytest.raises(SubmitLimitReached) as caught:
        SlurmScheduler().submit(tmp_path / "s.sh", name="a.1.x")
    assert caught.value.transient
    assert "cancel one, or wait" in caught.value.hint


@pytest.mark.parametrize("limit", ["QOSMaxWallDurationPerJobLimit", "AssocMaxCpuPerJobLimit", "QOSMaxGRESPerUser"])
def test_a_limit_on_what_a_job_may_ask_for_is_a_refusal_for_good(programs: Programs, tmp_path: Path, limit: str) -> None:
    programs.answer("sbatch", err=f"sbatch: error: {limit}\n{POLICY}", code=1)
    with pytest.raises(SubmitRefused) as caught:
        SlurmScheduler().submit(tmp_path / "s.sh", name="a.1.x")
    assert not isinstance(caught.value, SubmitLimitReached)


def test_who_may_have_one_job_submitted_is_told_how_the_run_goes_on(programs: Programs) -> None:
    programs.answer("sacctmgr", "1")
    [words] = SlurmScheduler().advice(Resources(account="ml"))
    assert "MaxSubmitJobs" in words and "onward tend" in words
    assert any(" account=ml " in line for line in programs.lines)


@pytest.mark.parametrize("out", ["", "20", "1\n\n1", "none"])
def test_who_may_have_more_jobs_or_whose_limit_is_not_known_is_told_nothing(programs: Programs, out: str) -> None:
    programs.answer("sacctmgr", out)
    assert SlurmScheduler().advice(Resources()) == []


def test_a_site_whose_limits_cannot_be_read_is_no_trouble(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    programs.answer("sacctmgr", err="sacctmgr: error: slurm_persist_conn_open_without_init: failed to open persistent connection", code=1)
    assert SlurmScheduler().advice(Resources()) == []
    monkeypatch.setenv("PATH", "/nonexistent")
    assert SlurmScheduler().advice(Resources()) == []


# ── slow and busy controllers ─────────────────────────────────────────────────


def test_one_job_is_asked_after_by_its_id_alone_and_several_by_their_owner(programs: Programs) -> None:
    """For a list of ids squeue would load the jobs of the whole cluster."""
    programs.answer("squeue", "7|a.1.x|RUNNING|None|c1|1|1|1\n8|b.1.x|RUNNING|None|c1|1|1|1")
    SlurmScheduler().status([JobId("7")])
    SlurmScheduler().status([JobId("7"), JobId("8")])
    one, several = programs.lines
    assert one.endswith("-j 7") and " -u " not in one
    assert " -u " in several and " -j " not in several


def test_the_exit_codes_of_failed_jobs_are_read_without_listing_the_cluster(programs: Programs) -> None:
    squeue = """#!/bin/sh
case "$*" in
  *exit_code*) echo "7                       1792                    " ;;
  *) echo "7|a.1.x|FAILED|NonZeroExitCode|c1|1|1|1" ;;
esac
"""
    (programs.folder / "squeue").write_text(squeue)
    found = SlurmScheduler().status([JobId("7")])[JobId("7")]
    assert (found.state, found.exit_code, found.signal) == (JobState.FAILED, 7, None)


def test_a_single_job_that_the_controller_forgot_is_looked_for_in_accounting(programs: Programs) -> None:
    programs.answer("squeue", err="slurm_load_jobs error: Invalid job id specified", code=1)
    programs.answer("sacct", "7|a.1.x|COMPLETED|0:0|c1|1|1|1")
    assert SlurmScheduler().status([JobId("7")])[JobId("7")].state is JobState.FINISHED


def test_every_program_is_given_a_minute_and_more_to_answer(programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy controller takes 20 s. What a submit can do without has half a minute."""
    given: dict[str, float] = {}

    def note(argv: list[str], *, timeout: float, extra: object = None) -> Answer:
        given[argv[0]] = min(timeout, given.get(argv[0], timeout))
        return Answer(code=0, out="7", err="")

    for module in ("slurm.scheduler", "slurm.site_limits"):
        monkeypatch.setattr(f"onward.schedulers.{module}.run_command", note)
    scheduler = SlurmScheduler()
    scheduler.submit(tmp_path / "s.sh", name="a.1.x")
    scheduler.status([JobId("7")])
    scheduler.find("a.1.x")
    scheduler.cancel([JobId("7")])
    scheduler.advice(Resources())
    assert scheduler.settle_seconds
    assert given.pop("sacctmgr") >= 30
    assert given.keys() == {"sbatch", "squeue", "sacct", "scancel", "scontrol"}
    assert min(given.values()) >= 60 and given["sbatch"] >= 120


def test_a_program_that_does_not_answer_in_time_leaves_things_unknown(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("squeue", "sbatch"):
        (programs.folder / name).write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr("onward.schedulers.slurm.scheduler._QUERY_TIMEOUT", 0.05)
    monkeypatch.setattr("onward.schedulers.slurm.scheduler._SUBMIT_TIMEOUT", 0.05)
    with pytest.raises(SchedulerUnavailable):
        SlurmScheduler().status([JobId("7")])
    with pytest.raises(SubmitUnclear):
        SlurmScheduler().submit(tmp_path / "s.sh", name="a.1.x")


# ── what a site imposes ───────────────────────────────────────────────────────


def test_a_limit_that_an_admin_moved_is_read_again(programs: Programs) -> None:
    programs.answer("squeue", "1800000000")
    assert end_time_of(SlurmScheduler(), JobId("7")) == 1_800_000_000.0
    assert programs.lines == ["squeue -h -j 7 -o %e"]


@pytest.mark.parametrize("out", ["", "N/A", "NONE"])
def test_a_job_without_a_known_end_has_none(programs: Programs, out: str) -> None:
    programs.answer("squeue", out)
    assert end_time_of(SlurmScheduler(), JobId("7")) is None


@pytest.mark.parametrize(
    ("preempt", "seconds"),
    [("preempt/partition_prio", 150.0), ("preempt/none", 150.0), ("preempt/qos", 330.0)],
)
def test_the_grace_of_a_preemption_is_that_of_the_partition_or_the_qos_and_then_killwait(
    programs: Programs, monkeypatch: pytest.MonkeyPatch, preempt: str, seconds: float
) -> None:
    script = f"""#!/bin/sh
[ "$2" = config ] && printf 'KillWait                = 30 sec\\nPreemptType             = {preempt}\\n'
[ "$2 $3" = "partition spot" ] && echo "   DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=120 Hidden=NO"
exit 0
"""
    (programs.folder / "scontrol").write_text(script)
    programs.answer("sacctmgr", "00:05:00")
    monkeypatch.setenv("SLURM_JOB_PARTITION", "spot")
    monkeypatch.setenv("SLURM_JOB_QOS", "low")
    assert grace_of(SlurmScheduler()) == seconds


def test_a_controller_that_does_not_answer_has_no_known_grace_and_no_known_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert grace_of(SlurmScheduler()) is None
    assert end_time_of(SlurmScheduler(), JobId("7")) is None


def test_a_scheduler_that_cannot_tell_has_no_known_grace_and_no_known_end() -> None:
    assert grace_of(object()) is None
    assert end_time_of(object(), JobId("7")) is None


def test_a_job_is_allowed_to_come_back_and_put_back_into_the_queue(programs: Programs) -> None:
    assert SlurmScheduler().requeue(JobId("7")) is None
    assert programs.lines == ["scontrol update JobId=7 Requeue=1", "scontrol requeue 7"]
    SlurmScheduler().requeued(JobId("7"))
    assert programs.lines[-1] == "scontrol update JobId=7 Requeue=0"


def test_a_site_that_allows_no_requeue_says_why(programs: Programs) -> None:
    programs.answer("scontrol", err="slurm_update error: Access/permission denied", code=1)
    with pytest.raises(SubmitRefused, match="Access/permission denied"):
        SlurmScheduler().requeue(JobId("7"))


def test_a_job_that_came_back_knows_it(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert not SlurmScheduler().allocation().restarted
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    assert SlurmScheduler().allocation().restarted


# ── the answers of sbatch ─────────────────────────────────────────────────────


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
