"""Grid Engine's answers, as they were recorded on a real one (8.1.9), and what each is taken for.

For the real one: tests/contract, tests/cluster.
"""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from onward.errors import InvalidInput, NotOffered, SchedulerUnavailable, SubmitLimitReached, SubmitRefused, SubmitUnclear
from onward.model.job import JobId, JobState, JobStatus
from onward.model.spec import Cluster, Resources
from onward.schedulers.base import advice_of, capabilities_of, end_time_of, grace_of, live_jobs_of, requeues, why_of
from onward.schedulers.gridengine.output_parsing import (
    parse_accounting,
    parse_error_reasons,
    parse_qacct,
    parse_qstat,
    parse_state,
    status_of,
)
from onward.schedulers.gridengine.scheduler import GridEngineScheduler
from onward.schedulers.registry import scheduler_for

QSTAT = """\
<?xml version='1.0'?>
<job_info  xmlns:xsd="http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat/qstat.xsd">
  <queue_info>
    <job_list state="running">
      <JB_job_number>12</JB_job_number>
      <JAT_prio>0.50000</JAT_prio>
      <JB_name>digits.1.9d3b52ba</JB_name>
      <JB_owner>alice</JB_owner>
      <state>r</state>
      <JAT_start_time>2026-11-15T19:35:18</JAT_start_time>
      <queue_name>all.q@e2</queue_name>
      <slots>1</slots>
    </job_list>
  </queue_info>
  <job_info>
    <job_list state="pending">
      <JB_job_number>13</JB_job_number>
      <JAT_prio>0.00000</JAT_prio>
      <JB_name>digits.2.01fd7880</JB_name>
      <JB_owner>alice</JB_owner>
      <state>hqw</state>
      <JB_submission_time>2026-11-15T19:35:18</JB_submission_time>
      <queue_name></queue_name>
      <slots>1</slots>
    </job_list>
    <job_list state="pending">
      <JB_job_number>14</JB_job_number>
      <JAT_prio>0.25000</JAT_prio>
      <JB_name>eqw</JB_name>
      <JB_owner>alice</JB_owner>
      <state>Eqw</state>
      <JB_submission_time>2026-11-15T19:55:43</JB_submission_time>
      <queue_name></queue_name>
      <slots>1</slots>
    </job_list>
  </job_info>
</job_info>
"""
QSTAT_J = """\
==============================================================
job_number:                 14
error reason          1:      11/15/2026 19:55:43 [1001:10827]: error: can't open output file "/tmp/x/out.log": No such file or directory
scheduling info:            Job is in error state
"""
DOWN = (
    "error: commlib error: got select error (Connection refused)\n"
    'error: unable to send message to qmaster using port 16444 on host "ge-master": got send error'
)
QACCT = """\
==============================================================
qname        all.q
hostname     e2
owner        alice
jobname      t1
jobnumber    12
taskid       undefined
qsub_time    Sun Nov 15 19:35:18 2026
start_time   Sun Nov 15 19:35:18 2026
end_time     Sun Nov 15 19:36:19 2026
granted_pe   NONE
slots        1
failed       37  : qmaster enforced h_rt, h_cpu, or h_vmem limit
exit_status  137                  (Killed)
maxvmem      53.000MB
category     -l h_rt=60,h_vmem=500M,hostname=(e1|e2)&!e1
"""


def line(
    *,
    job: int = 58,
    name: str = "digits.1.5139b73f",
    failed: int = 0,
    code: int = 0,
    ran: int | None = 11,
    asked: str = "NONE",
    vmem: int = 0,
) -> str:
    """A line of the accounting file, as it was recorded, with these figures in it."""
    start, end = ("1794771828", str(1794771828 + ran)) if ran is not None else ("0", "0")
    return (
        f"all.q:e1:alice:alice:{name}:{job}:sge:0:1794771827:{start}:{end}:{failed}:{code}:11:0.147108:0.048770:22792.000000:0:0:0:0:6917:0:0:"
        f"0.000000:192:0:0:0:185:102:NONE:defaultdepartment:NONE:1:0:2.140000:0.128406:0.062981:{asked}:0.000000:NONE:{vmem}.000000:0:0\n"
    )


def result(*lines: str) -> JobStatus:
    return status_of(list(parse_accounting(lines)))


# ── the queue ─────────────────────────────────────────────────────────────────


def test_the_queue_is_read_with_names_hosts_and_moments() -> None:
    running, held, wrong = parse_qstat(QSTAT)
    assert (running.id, running.name, running.state, running.nodes) == ("12", "digits.1.9d3b52ba", JobState.RUNNING, ("e2",))
    assert running.started == time.mktime((2026, 11, 15, 19, 35, 18, 0, 0, -1))
    assert (held.state, held.nodes, held.started) == (JobState.HELD, (), None)
    assert (wrong.state, wrong.reason) == (JobState.FAILED, "error state Eqw")


@pytest.mark.parametrize(
    ("letters", "state"),
    [
        ("qw", JobState.QUEUED),
        ("hqw", JobState.HELD),
        ("t", JobState.RUNNING),
        ("r", JobState.RUNNING),
        ("dr", JobState.RUNNING),
        ("hr", JobState.RUNNING),
        ("s", JobState.RUNNING),
        ("Rr", JobState.RUNNING),
        ("Rq", JobState.QUEUED),
        ("hRwq", JobState.HELD),
        ("Eqw", JobState.FAILED),
        ("Ehqw", JobState.FAILED),
        ("", JobState.UNKNOWN),
        ("x", JobState.UNKNOWN),
    ],
)
def test_letters_combine(letters: str, state: JobState) -> None:
    assert parse_state(letters) is state


@pytest.mark.parametrize(
    ("letters", "paused", "words"),
    [
        ("s", True, "suspended"),
        ("S", True, "suspended with its queue"),
        ("T", True, "suspended because its host is too busy"),
        ("Rs", True, "suspended"),
        ("r", False, ""),
        ("hqw", False, ""),
        ("dr", False, "being deleted"),
    ],
)
def test_a_suspended_job_says_that_it_stands_still_and_why(letters: str, paused: bool, words: str) -> None:
    job = f"<job_list><JB_job_number>7</JB_job_number><JB_name>a.1.x</JB_name><state>{letters}</state></job_list>"
    (found,) = parse_qstat(f"<job_info><queue_info>{job}</queue_info></job_info>")
    assert (found.paused, found.reason) == (paused, words)


def test_an_answer_that_is_not_xml_is_no_answer() -> None:
    with pytest.raises(SchedulerUnavailable, match="did not print XML"):
        parse_qstat("error: commlib error")


def test_the_reason_of_an_error_state_is_told_without_its_date() -> None:
    assert parse_error_reasons(QSTAT_J) == {"14": 'error: can\'t open output file "/tmp/x/out.log": No such file or directory'}


# ── accounting ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("record", "state", "code", "number"),
    [
        (line(), JobState.FINISHED, 0, None),
        (line(code=3), JobState.FAILED, 3, None),
        (line(failed=100, code=137), JobState.CANCELLED, None, signal.SIGKILL),
        (line(failed=100, code=140), JobState.CANCELLED, None, signal.SIGUSR2),
        (line(failed=100, code=143), JobState.FAILED, None, signal.SIGTERM),
        (line(failed=100, code=139), JobState.FAILED, None, signal.SIGSEGV),
        (line(failed=37, code=137, ran=61, asked="-l h_rt=60"), JobState.TIMED_OUT, None, signal.SIGKILL),
        (line(failed=37, code=137, ran=36, asked="-l h_rt=25"), JobState.TIMED_OUT, None, signal.SIGKILL),
        (
            line(failed=37, code=137, ran=13, asked="-l h_rt=600,h_vmem=1500M", vmem=3026231296),
            JobState.OUT_OF_MEMORY,
            None,
            signal.SIGKILL,
        ),
        (line(failed=37, code=137, ran=61, asked="-q all.q@e1 -l h_vmem=1500M", vmem=5382144), JobState.TIMED_OUT, None, signal.SIGKILL),
        (line(failed=19, ran=None), JobState.NODE_FAILED, 0, None),
        (line(failed=25, ran=None), JobState.NODE_FAILED, 0, None),
        (line(failed=26, ran=None), JobState.FAILED, 0, None),
        (line(failed=30, code=100), JobState.FAILED, 100, None),
    ],
)
def test_what_accounting_says_of_an_end(record: str, state: JobState, code: int | None, number: int | None) -> None:
    status = result(record)
    assert (status.state, status.exit_code, status.signal) == (state, code, number)


def test_a_job_that_was_started_again_after_its_host_was_lost_ended_with_the_host() -> None:
    assert result(line(failed=19, ran=None), line()).state is JobState.NODE_FAILED
    assert result(line(failed=25, ran=None), line(failed=25, ran=None), line()).state is JobState.NODE_FAILED


def test_a_job_that_asked_to_be_started_again_ended_as_its_last_run_did() -> None:
    assert result(line(failed=25, code=99), line(code=3)).exit_code == 3


def test_lines_that_are_no_records_are_passed_over_and_colons_in_what_was_asked_are_not_in_the_way() -> None:
    records = list(parse_accounting(["# a comment\n", "all.q:e1:half\n", line(asked="-l h_rt=0:1:0,x=a:b", failed=37, code=137, ran=61)]))
    assert [(record.category, record.maxvmem) for record in records] == [("-l h_rt=0:1:0,x=a:b", 0.0)]
    assert status_of(records).state is JobState.TIMED_OUT


def test_qacct_says_the_same() -> None:
    [record] = parse_qacct(QACCT)
    assert (record.job, record.name, record.host, record.failed, record.exit_status) == ("12", "t1", "e2", 37, 137)
    assert record.started is not None and record.ended is not None and record.ended - record.started == 61
    assert status_of([record]).state is JobState.TIMED_OUT


@pytest.mark.parametrize(("who", "other"), [("root", "root"), ("alice", ""), ("NONE", "")])
def test_qacct_of_newer_grid_engines_says_who_deleted_a_job(who: str, other: str) -> None:
    [record] = parse_qacct(re.sub(r"(?m)^owner .*$", "owner        alice", QACCT) + f"deleted_by   {who}\n")
    status = status_of([record])
    assert status.cancelled_by == other
    assert (status.state is JobState.CANCELLED) == (who != "NONE")


# ── the adapter, on stand-ins for its programs ────────────────────────────────


class Programs:
    """`qstat` and the others as small scripts, which note how they were called; and an accounting file."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self.accounting = folder / "root" / "default" / "common" / "accounting"
        self.accounting.parent.mkdir(parents=True)
        self.accounting.write_text("")
        for variable, value in (("SGE_ROOT", folder / "root"), ("SGE_BINARY_PATH", folder), ("LOGNAME", "alice")):
            monkeypatch.setenv(variable, str(value))
        monkeypatch.delenv("SGE_CELL", raising=False)
        for name in ("qstat", "qacct", "qsub", "qdel", "qconf"):
            self.answer(name)
        self.answer("qstat", '<?xml version="1.0"?>\n<job_info><queue_info/><job_info/></job_info>')

    def answer(self, name: str, out: str = "", *, err: str = "", code: int = 0) -> None:
        said = f"echo {name} \"$@\" >> {self._folder}/calls\ncat <<'END'\n{out}\nEND\ncat >&2 <<'END'\n{err}\nEND\nexit {code}\n"
        (self._folder / name).write_text(f"#!/bin/sh\n{said}")
        (self._folder / name).chmod(0o755)

    def script(self, name: str, text: str) -> None:
        (self._folder / name).write_text(f"#!/bin/sh\n{text}\n")

    @property
    def calls(self) -> list[str]:
        path = self._folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    return Programs(tmp_path, monkeypatch)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "run" / "params" / "leg-0001.sh"
    path.parent.mkdir(parents=True)
    path.write_text("true\n")
    return path


def test_a_job_in_the_error_state_is_told_with_its_reason(programs: Programs) -> None:
    programs.answer("qstat-xml", QSTAT)
    programs.answer("qstat-j", QSTAT_J)
    folder = programs.accounting.parents[3]
    (folder / "qstat").write_text(f'#!/bin/sh\nexec "{folder}/qstat$1" "$@"\n')
    status = GridEngineScheduler().status([JobId("13"), JobId("14")])[JobId("14")]
    assert (status.state, "can't open output file" in status.reason) == (JobState.FAILED, True)


def test_what_is_in_the_queue_is_told_in_one_call(programs: Programs) -> None:
    programs.answer("qstat", QSTAT)
    status = GridEngineScheduler().status([JobId("12"), JobId("13")])
    assert {job: s.state for job, s in status.items()} == {"12": JobState.RUNNING, "13": JobState.HELD}
    assert programs.calls == ["qstat -xml -u alice"]


def test_a_job_that_has_left_the_queue_is_looked_for_in_accounting_and_is_unknown_until_it_is_there(programs: Programs) -> None:
    scheduler = GridEngineScheduler()
    assert scheduler.status([JobId("58")]) == {}
    programs.accounting.write_text(line(job=57) + line(job=58, code=3) + line(job=580)[:40])
    assert scheduler.status([JobId("58")])[JobId("58")].exit_code == 3


def test_many_jobs_take_one_call_each_of_qstat_and_none_of_qacct(programs: Programs) -> None:
    programs.accounting.write_text("".join(line(job=job) for job in range(100, 400)))
    assert len(GridEngineScheduler().status([JobId(str(job)) for job in range(100, 400)])) == 300
    assert programs.calls == ["qstat -xml -u alice"]


def test_without_its_file_accounting_is_asked_by_qacct(programs: Programs) -> None:
    programs.accounting.unlink()
    programs.answer("qacct", QACCT)
    assert GridEngineScheduler().status([JobId("12")])[JobId("12")].state is JobState.TIMED_OUT
    programs.answer("qacct", "", err="error: job id 12 not found", code=1)
    assert GridEngineScheduler().status([JobId("12")]) == {}


def test_of_two_jobs_that_were_given_one_number_the_newer_is_told(programs: Programs) -> None:
    programs.accounting.write_text(line(job=58, name="ours.1.aa", code=3) + line(job=58, name="theirs.1.bb"))
    status = GridEngineScheduler().status([JobId("58")])[JobId("58")]
    assert (status.name, status.state) == ("theirs.1.bb", JobState.FINISHED)


def test_a_job_is_found_by_exactly_its_name_in_the_queue_and_in_accounting(programs: Programs) -> None:
    programs.answer("qstat", QSTAT)
    programs.accounting.write_text(
        line(job=7, name="digits.1.9d3b52ba") + line(job=8, name="digits.1.9d3b52ba2") + line(job=9, name="x").replace("alice:x", "bob:x")
    )
    assert GridEngineScheduler().find("digits.1.9d3b52ba") == ["7", "12"]
    assert GridEngineScheduler().find("x") == []


def test_the_queue_alone_lists_what_is_there(programs: Programs) -> None:
    programs.answer("qstat", QSTAT)
    assert "12" in live_jobs_of(GridEngineScheduler())


def test_a_host_that_may_not_ask_cannot_list_jobs_and_says_so(programs: Programs) -> None:
    programs.answer("qstat", "", err='denied: host "e3" is neither submit nor admin host', code=1)
    with pytest.raises(NotOffered, match="neither submit nor admin host"):
        GridEngineScheduler().live()
    assert live_jobs_of(GridEngineScheduler()) == {}


def test_a_qmaster_that_does_not_answer_is_no_word_about_jobs(programs: Programs, script: Path) -> None:
    for name in ("qstat", "qsub", "qdel", "qconf"):
        programs.answer(name, "", err=DOWN, code=1)
    scheduler = GridEngineScheduler()
    for ask in (
        lambda: scheduler.status([JobId("1")]),
        lambda: scheduler.find("x"),
        scheduler.live,
        lambda: scheduler.cancel([JobId("1")]),
        scheduler.check,
    ):
        with pytest.raises(SchedulerUnavailable):
            ask()
    with pytest.raises(SubmitUnclear):
        scheduler.submit(script, name="x.1.ab")


def test_a_host_that_may_not_ask_the_queue_is_answered_by_accounting(programs: Programs) -> None:
    programs.answer("qstat", "", err='denied: host "e3" is neither submit nor admin host', code=1)
    programs.accounting.write_text(line(job=58))
    assert GridEngineScheduler().status([JobId("58")])[JobId("58")].state is JobState.FINISHED
    with pytest.raises(SchedulerUnavailable, match="neither submit nor admin host"):
        GridEngineScheduler().status([JobId("58"), JobId("59")])


def test_a_job_is_submitted_by_its_name_after_another_by_number(programs: Programs, script: Path) -> None:
    programs.answer("qsub", "66")
    assert GridEngineScheduler().submit(script, name="x.2.ab", after=JobId("65")) == "66"
    assert programs.calls == [f"qsub -terse -N x.2.ab -wd {script.parent.parent} -hold_jid 65 {script}"]
    programs.answer("qsub", "66.1-10:1")
    assert GridEngineScheduler().submit(script, name="x.2.ab") == "66"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ('Unable to run job: unknown resource "nosuch".\nExiting.', "qconf -sc"),
        ('Unable to run job: Job was rejected because job requests unknown queue "nosuch.q".\nExiting.', "qconf -sql"),
        ('Unable to run job: job rejected: the requested parallel environment "x" does not exist.\nExiting.', "qconf -spl"),
        ('Unable to run job: denied: host "e3" is not a submit host.\nExiting.', "legs-ahead"),
    ],
)
def test_a_refusal_is_told_in_its_own_words_with_what_to_do(programs: Programs, script: Path, words: str, hint: str) -> None:
    programs.answer("qsub", "", err=words, code=1)
    with pytest.raises(SubmitRefused) as caught:
        GridEngineScheduler().submit(script, name="x.1.ab")
    assert hint in caught.value.hint
    assert "Exiting" not in caught.value.message


def test_a_waiting_job_that_this_process_deleted_is_cancelled(programs: Programs) -> None:
    programs.answer("qdel", "alice has deleted job 13\nalice has registered the job 12 for deletion")
    scheduler = GridEngineScheduler()
    scheduler.cancel([JobId("12"), JobId("13")])
    assert {job: s.state for job, s in scheduler.status([JobId("12"), JobId("13")]).items()} == {"13": JobState.CANCELLED}


def test_somebody_elses_job_cannot_be_deleted_and_that_is_said(programs: Programs) -> None:
    programs.answer("qdel", "", err="denied: no privileges", code=1)
    with pytest.raises(SchedulerUnavailable, match="no privileges"):
        GridEngineScheduler().cancel([JobId("12")])


SHORT, LONG = "qname short.q\nnotify 00:00:02\nh_rt 00:02:00\n", "qname all.q\nnotify 00:01:00\nh_rt INFINITY\n"


def test_a_short_notice_is_told_at_submit(programs: Programs) -> None:
    programs.answer("qconf", SHORT)
    [words] = advice_of(GridEngineScheduler(), Resources(partition="short.q"))
    assert "short.q" in words and "2 s" in words
    programs.answer("qconf", LONG)
    assert advice_of(GridEngineScheduler(), Resources(partition="all.q")) == []
    [words] = advice_of(GridEngineScheduler(notify=False), Resources())
    assert "qdel" in words


def test_the_short_notice_of_a_queue_beside_others_is_not_told(programs: Programs) -> None:
    answers = f'case "$*" in -sql) echo "all.q short.q";; *short*) echo "{SHORT}";; *) echo "{LONG}";; esac'
    programs.script("qconf", answers)
    assert advice_of(GridEngineScheduler(), Resources()) == []
    programs.script("qconf", answers.replace("all.q short.q", "short.q"))
    assert len(advice_of(GridEngineScheduler(), Resources(time=60))) == 1
    assert advice_of(GridEngineScheduler(), Resources(time=3600)) == []  # it can never get into that queue


def test_a_job_that_no_queue_could_ever_run_is_told_at_submit(programs: Programs) -> None:
    said = "".join(f'Job 7 (-l gpus=9) cannot run at host "e{n}" because it offers only hc:gpus=2\n' for n in range(4))
    programs.answer("qsub", "", err=f"Unable to run job: {said}verification: no suitable queues\nExiting.", code=1)
    [words] = advice_of(GridEngineScheduler(), Resources(gpus="9"))
    assert "wait forever" in words and 'cannot run at host "e0"' in words and "and 2 more" in words
    assert programs.calls[0] == "qsub -w v -b y -l gpus=9 /bin/true"


def test_a_parallel_environment_that_lays_slots_out_otherwise_is_told_at_submit(programs: Programs) -> None:
    scheduler = GridEngineScheduler(names={"nodes": "mpi"})
    programs.answer("qconf", "pe_name mpi\nallocation_rule    $round_robin\n")
    [words] = advice_of(scheduler, Resources(nodes=2, ntasks_per_node=2))
    assert "$round_robin" in words and "2 hosts with 2 slots each" in words
    programs.answer("qconf", "pe_name mpi\nallocation_rule    2\n")
    assert advice_of(scheduler, Resources(nodes=2, ntasks_per_node=2)) == []


def test_all_of_a_nodes_memory_cannot_be_asked_for_and_that_is_told(programs: Programs) -> None:
    [words] = advice_of(GridEngineScheduler(), Resources(mem=0))
    assert "no memory is requested" in words


def test_why_a_job_waits_is_told_in_the_schedulers_words_and_a_hold_with_what_ends_it(programs: Programs) -> None:
    rows = "job_number:  {}\nowner: alice\nscheduling info:            {}\n                            {}\n"
    programs.answer(
        "qstat", rows.format(7, "(-l h_vmem=9G) cannot run at host e1", "queue x dropped") + rows.format(8, "Job is in hold state", "")
    )
    assert why_of(GridEngineScheduler(), [JobId("8"), JobId("7")]) == {
        "7": "(-l h_vmem=9G) cannot run at host e1",
        "8": "held by a user; qrls 8 releases it",
    }
    assert programs.calls == ["qstat -j 7,8"]
    programs.answer("qstat", "job_number: 7\nscheduling info: (Collecting of scheduler job information is turned off)\n")
    assert why_of(GridEngineScheduler(), [JobId("7")]) == {}


def test_inside_a_job_it_tells_its_hosts_and_whether_it_is_a_second_life(
    programs: Programs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pe_hostfile").write_text("e1 2 all.q@e1 UNDEFINED\ne2 2 all.q@e2 UNDEFINED\n")
    (tmp_path / "config").write_text("")
    values = {
        "JOB_ID": "7",
        "RESTARTED": "1",
        "PE_HOSTFILE": tmp_path / "pe_hostfile",
        "SGE_JOB_SPOOL_DIR": tmp_path,
        "CUDA_VISIBLE_DEVICES": "0,1",
    }
    for key, value in values.items():
        monkeypatch.setenv(key, str(value))
    found = GridEngineScheduler().allocation()
    assert (found.job, found.hosts, found.gpus, found.restarted) == ("7", ("e1", "e2"), ("0", "1"), True)
    assert found.deadline is None and found.started == pytest.approx((tmp_path / "config").stat().st_mtime)
    monkeypatch.delenv("JOB_ID")
    with pytest.raises(SchedulerUnavailable, match="not a Grid Engine job"):
        GridEngineScheduler().allocation()


def test_a_path_that_grid_engine_would_take_for_something_else_is_refused() -> None:
    for name in ('a"b', "it's", "a$JOB_ID", "host:a", "a\\b"):
        with pytest.raises(InvalidInput, match="Grid Engine cannot write to"):
            GridEngineScheduler().directives(Resources(), output=Path("/runs") / name)


def test_its_profile_says_what_is_asked_for() -> None:
    with_notice = scheduler_for(Cluster(name="a", scheduler="gridengine", names={"mem": "mem_free/job"}))
    lines = with_notice.directives(Resources(mem=1024), output=Path("/runs/a b.log"))
    assert list(lines) == ['#$ -o "/runs/a b.log"', "#$ -j y", "#$ -S /bin/bash", "#$ -r y", "#$ -notify", "#$ -l mem_free=1024M"]
    assert capabilities_of(with_notice).delete_notice == signal.SIGUSR2 and capabilities_of(with_notice).only_notice_tells_deletion
    without = scheduler_for(Cluster(name="a", scheduler="gridengine", notify=False))
    assert "#$ -notify" not in without.directives(Resources(), output=Path("/x"))
    assert capabilities_of(without).delete_notice is None and not capabilities_of(without).only_notice_tells_deletion


# ── what a site imposes ───────────────────────────────────────────────────────


def test_a_limit_on_the_number_of_jobs_is_told_from_other_refusals(programs: Programs, tmp_path: Path) -> None:
    words = "Unable to run job: job rejected: only 1 jobs are allowed per user (current job count: 1)\nExiting."
    programs.answer("qsub", err=words, code=25)
    with pytest.raises(SubmitLimitReached) as caught:
        GridEngineScheduler().submit(tmp_path / "s.sh", name="a.1.x")
    assert "only 1 jobs are allowed per user" in caught.value.message
    assert "cancel one, or wait" in caught.value.hint


def test_the_grace_of_a_queue_is_its_notify_time(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    programs.answer("qconf", "qname                 all.q\nnotify                00:01:30\nh_rt                  INFINITY")
    monkeypatch.setenv("QUEUE", "all.q")
    assert grace_of(GridEngineScheduler()) == 90.0
    assert grace_of(GridEngineScheduler(notify=False)) is None
    programs.answer("qconf", err='denied: host "e3" is neither submit nor admin host', code=1)
    assert grace_of(GridEngineScheduler()) is None


def test_a_jobs_limit_cannot_be_moved_and_it_goes_back_into_the_queue_by_its_exit_code() -> None:
    able = requeues(GridEngineScheduler())
    assert able and able.requeue(JobId("7")) == 99
    assert end_time_of(GridEngineScheduler(), JobId("7")) is None
