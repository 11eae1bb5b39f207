"""What a run looks like from outside: every promised key, in plain words, also where something is broken."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onward.cli.runs.show import _facts
from onward.errors import StorageError
from onward.model import events as ev
from onward.model.job import JobState
from onward.model.run import LegEnd
from onward.model.spec import Cluster
from onward.operations.runs.control import cancel, stop
from onward.operations.runs.record import checkpoints, in_plain_words, inspect_run, inspect_runs, progress, reason, run_record
from onward.rundir.claim import claim
from onward.rundir.journal import read_run
from tests import event_files
from tests.sandbox import PlayedRun, Sandbox

RUN = {"id", "name", "experiment", "state", "reason", "no_job_since", "silent_since", "copy_of"}
RUN |= {"folder", "cluster", "user", "created", "legs", "progress"}
DETAILS = {
    *("cause", "evidence", "next", "priority", "command", "params", "code"),
    *("checkpoints", "own_files", "written", "broken_lines", "effort", "risk", "finish"),
}
LEG = {
    *("number", "job", "cluster", "state", "end", "reason", "submitted", "started", "deadline", "ended"),
    *("first_step", "last_step", "resumed_step", "fell_back", "nodes", "gpus", "mem", "warnings"),
}
CHECKPOINT = {"step", "leg", "bytes", "state", "folder", "created", "metrics"}
PROGRESS = {"step", "total", "steps_per_second", "at", "eta", "metrics"}


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def shown(run: PlayedRun) -> dict[str, Any]:
    return run_record(inspect_run(run.sandbox.context, run.dir))


def why(run: PlayedRun) -> str:
    return reason(inspect_run(run.sandbox.context, run.dir))


# ── the keys ──────────────────────────────────────────────────────────────────


def test_a_run_that_went_on_has_every_promised_key(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1).publish(1, 9).end(1, LegEnd.TIME_LIMIT).begin(2)
    run.write(ev.Restored(leg=2, at=run.now(), step=9, checkpoint="leg-0001.step-00000009", fell_back=["step 10: damaged"]))
    run.write(ev.Missed(leg=2, at=run.now(), step=11, reason="disk full"))
    run.write(ev.Warned(leg=2, at=run.now(), text="careful"))
    logged = [{"s": 10, "t": 2.0, "m": {"loss": 0.5}}, {"s": 12, "t": 3.0, "m": {"loss": 0.25}}]
    run.log(2, {"kind": "init", "total": 100, "t": 1.0}, *logged)
    run.save(1, 9)
    entry = shown(run)
    assert entry.keys() == RUN | DETAILS
    assert [leg.keys() for leg in entry["legs"]] == [LEG] * 3
    assert [one.keys() for one in entry["checkpoints"]] == [CHECKPOINT]
    assert entry["progress"] == {
        "step": 12,
        "total": 100,
        "steps_per_second": 2.0,
        "at": 3.0,
        "eta": 3.0 + 87 / 2.0,
        "metrics": {"loss": 0.25},
    }
    assert (entry["id"], entry["state"], entry["cluster"], entry["folder"]) == ("k00digit", "running", "local", str(run.dir.path))
    first, second, third = entry["legs"]
    assert (first["number"], first["job"], first["state"], first["end"]) == (1, "1", "finished", "time_limit")
    assert (first["first_step"], first["last_step"]) == (0, 9)
    assert first["submitted"] <= first["started"] < first["ended"]
    assert (second["state"], second["end"], second["ended"]) == ("running", None, None)
    assert (second["first_step"], second["last_step"], second["resumed_step"]) == (10, 12, 9)
    assert (second["nodes"], second["gpus"], second["fell_back"]) == (["node1"], ["0"], ["step 10: damaged"])
    assert second["warnings"] == ["careful", "the checkpoint of step 11 was not stored: disk full"]
    assert (third["state"], third["started"], third["nodes"]) == ("held", None, [])
    json.dumps(entry)


def test_a_checkpoint_that_was_left_on_its_node_and_published_later_is_no_miss(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    run.write(ev.Missed(leg=1, at=run.now(), step=11, reason="the job ended before", bytes=5, kept="/local/leg-0001/step-11"))
    assert len(shown(run)["legs"][0]["warnings"]) == 1
    run.publish(1, 11)
    assert shown(run)["legs"][0]["warnings"] == []


def last_heard(run: PlayedRun, at: float) -> None:
    for path in (*run.dir.spool.iterdir(), *run.dir.logs.iterdir(), *run.dir.journals.iterdir()):
        os.utime(path, (at, at))


def test_a_leg_of_which_nothing_is_heard_says_since_when(sandbox: Sandbox) -> None:
    """Its storage hangs where it runs: it cannot say so itself."""
    run = sandbox.play().begin(1)
    run.log(1, {"kind": "system", "t": run.now(), "m": {}})
    last_heard(run, run.now() - 310)
    assert shown(run)["silent_since"] == run.now() - 310
    assert "no news from the leg for 5 min: the storage of the run's folder may hang there, or be full" in why(run)
    run.log(1, {"kind": "system", "t": run.now(), "m": {}})
    assert shown(run)["silent_since"] is None and "no news" not in why(run)


def test_a_leg_that_prepares_for_long_or_is_suspended_or_has_ended_is_not_called_silent(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    last_heard(run, run.now() - 7200)
    fake = sandbox.scheduler.jobs[run.job(1)]
    fake.status = replace(fake.status, paused=True)
    assert shown(run)["silent_since"] is None
    fake.status = replace(fake.status, paused=False)
    assert shown(run)["silent_since"] is not None
    run.publish(1, 5).end(1, LegEnd.DONE)
    last_heard(run, run.now() - 7200)
    assert shown(run)["silent_since"] is None
    preparing = sandbox.play("other")
    sandbox.scheduler.start(preparing.job(1))
    claim(preparing.dir, 1, job=preparing.job(1))
    last_heard(preparing, run.now() - 7200)
    assert shown(preparing)["silent_since"] is None, "it may be restoring a large checkpoint"


def test_a_list_has_no_details(sandbox: Sandbox) -> None:
    sandbox.play()
    [seen], _ = inspect_runs(sandbox.context, sandbox.context.runs())
    assert run_record(seen, details=False).keys() == RUN


def test_the_step_of_a_run_that_logs_nothing_is_that_of_its_newest_checkpoint(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1).publish(1, 7200).end(1, LegEnd.TIME_LIMIT).begin(2)
    assert shown(run)["progress"]["step"] == 7200
    run.write(ev.Restored(leg=2, at=run.now(), step=3600, checkpoint="…", fell_back=["step 7200: damaged"]))
    assert shown(run)["progress"]["step"] == 3600
    run.log(2, {"s": 3601, "t": 2.0, "m": {"loss": 0.5}})
    assert shown(run)["progress"]["step"] == 3601


def test_or_that_of_its_newest_event_files_from_their_ends(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    event_files.training(run.dir.tensorboard / "v0" / "events.out.tfevents.1700000000.n1", range(9000, 9900, 100), at=1.7e9)
    event_files.training(run.dir.tensorboard / "v1" / "events.out.tfevents.1700000900.n1", range(0, 40_000, 10), at=1.7e9)
    assert shown(run)["progress"]["step"] == 39_990
    (run.dir.tensorboard / "v1" / "events.out.tfevents.1700000901.n1").write_bytes(b"no record at all" * 9)
    assert shown(run)["progress"]["step"] == 39_990


def test_what_a_training_keeps_by_itself_is_shown(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    assert shown(run)["own_files"] is None
    run.write(ev.SelfSaved(leg=1, at=run.now(), files=["checkpoint.pth.tar"], bytes=5, written=run.now()))
    answer = shown(run)
    assert answer["own_files"]["files"] == ["checkpoint.pth.tar"] and answer["own_files"]["leg"] == 1
    facts = dict(_facts(answer))
    assert facts["saved"].startswith("by the training itself, ") and facts["saved"].endswith(" ago (leg 1): checkpoint.pth.tar")
    assert facts["at risk"].endswith("since it saved by itself")


def test_a_run_that_has_logged_nothing_has_no_progress(sandbox: Sandbox) -> None:
    entry = shown(sandbox.play())
    assert entry["progress"] == {"step": None, "total": None, "steps_per_second": None, "at": None, "eta": None, "metrics": {}}
    assert entry["checkpoints"] == []


def test_a_run_that_is_over_has_no_time_of_arrival(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    run.log(1, {"kind": "init", "total": 100, "t": 1.0}, {"s": 1, "t": 2.0, "m": {}}, {"s": 2, "t": 3.0, "m": {}})
    assert shown(run)["progress"]["eta"] is not None
    run.end(1, LegEnd.DONE)
    assert shown(run)["progress"]["eta"] is None


def test_the_steps_of_a_leg_that_logged_nothing_yet_are_those_of_the_leg_before(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    run.log(1, {"kind": "init", "total": 100, "t": 1.0}, {"s": 7, "t": 2.0, "m": {"loss": 1.0}})
    run.publish(1, 7).end(1, LegEnd.TIME_LIMIT).begin(2)
    assert shown(run)["progress"]["step"] == 7


@pytest.mark.parametrize(
    "line",
    [
        {"s": 3, "t": 1.0, "m": {"loss": "high", "fine": 1.0}},
        {"s": 3, "t": 1.0, "m": {"loss": [1], "fine": 1.0}},
        {"s": "many", "t": 1.0, "m": {}},
        {"kind": "init", "total": "all", "t": 1.0},
        {"kind": "init", "total": -5, "t": 1.0},
    ],
)
def test_a_record_that_nobody_of_ours_wrote_hurts_nothing(sandbox: Sandbox, line: dict[str, Any]) -> None:
    run = sandbox.play().begin(1)
    run.log(1, line, {"s": 4, "t": 2.0, "m": {"fine": 1.0}})
    found = progress(inspect_run(sandbox.context, run.dir))
    assert (found["step"], found["total"], found["metrics"]) == (4, None, {"fine": 1.0})


# ── why ───────────────────────────────────────────────────────────────────────


def test_a_queued_run_says_what_it_waits_for(sandbox: Sandbox) -> None:
    run = sandbox.play()
    assert why(run) == "leg 1 is queued"
    sandbox.scheduler._change(run.job(1), state=JobState.QUEUED, reason="Resources")
    assert why(run) == "leg 1 is queued: Resources"


def test_a_job_that_has_started_and_not_yet_claimed_its_leg_is_starting(sandbox: Sandbox) -> None:
    run = sandbox.play()
    sandbox.scheduler.start(run.job(1))
    assert why(run) == "leg 1 is starting"


def test_a_submit_without_an_answer_is_said_to_be_unclear(sandbox: Sandbox) -> None:
    run = sandbox.play()
    run.write(ev.Submitting(leg=1, at=run.now(), name="digits.1.later"))
    assert "it is unknown whether the job for leg 1 was accepted" in why(run)


def test_a_running_run_says_where(sandbox: Sandbox) -> None:
    assert why(sandbox.play().begin(1)) == "leg 1 runs on node1"


def test_a_suspended_leg_says_so(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    job = sandbox.scheduler.jobs[run.job(1)]
    job.status = replace(job.status, paused=True, reason="suspended")
    assert why(run) == f"leg 1 is suspended on node1, and continues when the scheduler resumes job {run.job(1)}"
    assert shown(run)["legs"][0]["reason"] == "suspended"


@pytest.mark.parametrize(("state", "words"), [(JobState.HELD, "and is held: job requeued in held state"), (JobState.QUEUED, "requeued")])
def test_a_leg_whose_job_was_put_back_into_the_queue_does_not_claim_to_run(sandbox: Sandbox, state: JobState, words: str) -> None:
    run = sandbox.play().begin(1)
    job = sandbox.scheduler.jobs[run.job(1)]
    job.status = replace(job.status, state=state, reason="job requeued in held state" if state is JobState.HELD else "")
    assert words in why(run)
    assert "runs on" not in why(run)


def test_a_successor_that_somebody_cancelled_is_told_while_the_leg_before_it_runs(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    sandbox.scheduler.end(run.job(2), JobState.CANCELLED, exit_code=None, reason="CANCELLED by 0")
    assert why(run) == f"leg 1 runs on node1; job {run.job(2)}, queued for leg 2, is cancelled (CANCELLED by 0) and will not begin"


def test_a_limit_that_was_moved_is_the_limit_of_the_leg_from_then_on(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    before = shown(run)["legs"][0]["deadline"]
    run.write(ev.LimitMoved(leg=1, at=run.now(), deadline=before + 3600, text="the job's time limit was moved by +60 min"))
    leg = shown(run)["legs"][0]
    assert (leg["deadline"], leg["warnings"]) == (before + 3600, ["the job's time limit was moved by +60 min"])


@pytest.mark.parametrize(("asked", "words"), [("deadline", "time limit is near"), ("request", "a user asked for it"), ("moon", "moon")])
def test_a_leg_that_was_asked_to_stop_says_why(sandbox: Sandbox, asked: str, words: str) -> None:
    run = sandbox.play().begin(1)
    run.write(ev.AskedToStop(leg=1, at=run.now(), why=asked))
    assert words in why(run)


def test_between_legs_the_next_one_is_spoken_of(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1).publish(1, 1).end(1, LegEnd.TIME_LIMIT)
    assert why(run) == "leg 2 is queued"
    assert shown(run)["state"] == "waiting"


@pytest.mark.parametrize(("state", "words"), [(JobState.TIMED_OUT, "timed out"), (JobState.NODE_FAILED, "node failed")])
def test_a_leg_that_is_gone_without_a_word_is_said_to_be(sandbox: Sandbox, state: JobState, words: str) -> None:
    run = sandbox.play().begin(1, successor=False).die(1, state)
    assert why(run) == f"leg 1 is gone ({words}); the next leg or `onward tend` finds out why"


def test_a_job_that_the_scheduler_does_not_know_is_said_to_be_unknown(sandbox: Sandbox) -> None:
    run = sandbox.play()
    sandbox.scheduler.forget(run.job(1))
    assert "does not know its job, so no job is queued for it: `onward tend` or `onward show` queues one" in why(run)


def test_a_foreign_job_with_our_id_is_not_spoken_of(sandbox: Sandbox) -> None:
    run = sandbox.play()
    sandbox.scheduler.forget(run.job(1))
    sandbox.scheduler._last = 0
    sandbox.scheduler.submit(run.dir.script(1), name="somebody-elses")
    sandbox.scheduler.start(run.job(1), nodes=("their-node",))
    assert "does not know its job" in why(run)
    assert shown(run)["legs"][0]["nodes"] == []


def test_a_job_that_ended_before_it_began_is_said_to_have(sandbox: Sandbox) -> None:
    run = sandbox.play()
    sandbox.scheduler.end(run.job(1), JobState.FAILED, exit_code=127)
    assert "ended before the leg began (failed)" in why(run)


def test_a_refused_leg_says_why_it_was_refused(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False).publish(1, 1).end(1, LegEnd.TIME_LIMIT)
    run.write(ev.Submitting(leg=2, at=run.now(), name="digits.2.x"))
    run.write(ev.Refused(leg=2, at=run.now(), name="digits.2.x", reason="no such partition"))
    assert "refused the next leg: no such partition" in why(run)


def test_a_run_without_any_leg_queued_says_so(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1, successor=False).publish(1, 1).end(1, LegEnd.TIME_LIMIT)
    assert why(run) == "no job is queued for it: `onward tend` or `onward show` queues one"


def test_a_scheduler_that_does_not_answer_costs_only_what_it_would_have_said(sandbox: Sandbox) -> None:
    queued, running = sandbox.play("queued"), sandbox.play("running").begin(1)
    sandbox.scheduler.down = True
    assert "the scheduler did not answer" in why(queued)
    assert why(running) == "leg 1 runs on node1"
    assert shown(running)["legs"][0]["state"] == "running"


def test_a_run_that_is_over_says_what_ended_it(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    stop(sandbox.context, run.dir)
    cancel(sandbox.context, run.dir)
    entry = shown(run)
    assert entry["state"] == "cancelled"
    assert entry["reason"] == entry["cause"]
    assert entry["reason"].startswith("cancelled by")
    assert "onward resume k00digit" in entry["next"]


def test_a_leg_that_was_queued_when_the_run_was_over_is_no_longer_said_to_be_queued(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    run.queue(3, after=run.job(2))
    sandbox.scheduler.down = True  # nobody could take them back
    run.end(1, LegEnd.DONE)
    shows = {leg["number"]: (leg["state"], leg["reason"]) for leg in shown(run)["legs"]}
    assert shows[2] == shows[3] == ("cancelled", "not needed: the run was over before it began")


def test_a_leg_that_waits_says_why_where_the_scheduler_tells_only_when_asked(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    run = sandbox.play()
    asked: list[list[str]] = []

    def tell(jobs: list[str]) -> dict[str, str]:
        asked.append(list(jobs))
        return dict.fromkeys(jobs, "cannot run at host e1")

    monkeypatch.setattr(sandbox.scheduler, "why", tell, raising=False)
    assert why(run) == "leg 1 is queued: cannot run at host e1"
    assert shown(run)["legs"][0]["reason"] == "cannot run at host e1"
    asked.clear()
    run.begin(1)
    inspect_run(sandbox.context, run.dir)
    inspect_runs(sandbox.context, [run.dir])
    assert asked == []  # it runs; and a list is for a glance


def test_a_cancelled_run_whose_job_could_not_be_ended_says_so(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    run.write(ev.CancelRequested(leg=1, at=run.now(), by="ada"))
    assert why(run) == "cancelled by ada; its jobs have not ended yet: run onward cancel again, or `onward tend`"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_of_somebody_elses_run_the_scheduler_is_not_asked(sandbox: Sandbox) -> None:
    run = sandbox.play()
    os.chown(run.dir.path, 65534, 65534)
    sandbox.scheduler.asked = 0
    assert why(run) == "leg 1 was submitted; its job belongs to ada"
    assert sandbox.scheduler.asked == 0


# ── many at once ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("count", [1, 20])
def test_one_question_is_enough_for_a_list(sandbox: Sandbox, count: int) -> None:
    for number in range(count):
        sandbox.play(f"run{number}").begin(1)
    sandbox.scheduler.asked = 0
    seen, broken = inspect_runs(sandbox.context, sandbox.context.runs())
    assert (len(seen), broken, sandbox.scheduler.asked) == (count, [], 1)


def test_nobody_is_asked_about_runs_that_are_over(sandbox: Sandbox) -> None:
    sandbox.play().begin(1).end(1, LegEnd.DONE)
    sandbox.scheduler.asked = 0
    inspect_runs(sandbox.context, sandbox.context.runs())
    assert sandbox.scheduler.asked == 0


@pytest.mark.parametrize("spec", ["", "{", "[]", '{"schema": 1}', '{"cluster": 5}'])
def test_a_folder_that_cannot_be_read_does_not_hide_the_others_and_is_named(sandbox: Sandbox, spec: str) -> None:
    broken, other = sandbox.play("broken"), sandbox.play("other")
    broken.dir.spec.write_text(spec)
    seen, problems = inspect_runs(sandbox.context, sandbox.context.runs())
    assert [one.dir for one in seen] == [other.dir]
    assert [str(broken.dir.path) in problem.message for problem in problems] == [True]
    with pytest.raises(StorageError):
        inspect_run(sandbox.context, broken.dir)


def test_a_torn_journal_is_read_as_far_as_it_goes(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    with run.dir.leg_journal(1).open("a") as file:
        file.write('{"kind":"ended","leg":1,"at":')
    assert shown(run)["state"] == "running"
    assert read_run(run.dir).legs[1].end is None


# ── checkpoints ───────────────────────────────────────────────────────────────


def test_checkpoints_are_published_or_verified_once_every_byte_was_read(sandbox: Sandbox) -> None:
    run = sandbox.play()
    run.save(1, 9)
    run.save(2, 5)
    listed = checkpoints(run.dir)
    assert [(one["leg"], one["step"], one["state"], one["bytes"]) for one in listed] == [(1, 9, "published", 63), (2, 5, "published", 35)]
    assert listed[0]["metrics"] == {"loss": 0.5}
    assert [one["state"] for one in checkpoints(run.dir, verify=True)] == ["verified", "verified"]


def test_a_flipped_byte_is_found_by_verifying_and_a_missing_file_at_once(sandbox: Sandbox) -> None:
    run = sandbox.play()
    (run.save(1, 1) / "w.bin").write_bytes(b"weighty")
    (run.save(1, 2) / "w.bin").unlink()
    (run.save(1, 3) / "manifest.json").write_text("{")
    listed = checkpoints(run.dir)
    assert [one["state"] for one in listed] == ["published", "damaged", "damaged"]
    assert all(one.keys() >= CHECKPOINT for one in listed)
    assert "w.bin is missing" in listed[1]["problem"]
    verified = checkpoints(run.dir, verify=True)
    assert [one["state"] for one in verified] == ["damaged"] * 3
    assert "hash" in verified[0]["problem"]


def test_a_reason_of_slurms_is_told_in_plain_words_with_its_own_behind_them() -> None:
    slurm = Cluster(name="a", scheduler="slurm")
    assert in_plain_words(slurm, "Priority") == "other jobs are ahead in the queue (Priority)"
    assert in_plain_words(slurm, "Brandnew") == "Slurm says 'Brandnew'"
    assert in_plain_words(slurm, "") == ""
    assert in_plain_words(Cluster(name="b", scheduler="gridengine"), "cannot run at host e1") == "cannot run at host e1"


def test_a_checkpoint_that_was_left_on_a_node_is_shown_with_where_it_lies_and_how_to_publish_it(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1).publish(1, 9)
    run.write(ev.Missed(leg=1, at=run.now(), step=12, reason="no time", bytes=5, kept="/scratch/step-12"))
    [warning] = shown(run)["legs"][0]["warnings"]
    assert "; it is in /scratch/step-12 on " in warning and f"supervisor.pyz salvage {run.dir.path}" in warning
    run.publish(1, 20)
    assert shown(run)["legs"][0]["warnings"] == ["the checkpoint of step 12 was not stored: no time"], "a newer one is published"
