"""Requests get their runs, and exactly one answer each, for every way a run can end."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from beds.waiting import until
from onward.errors import HostUnreachable, InvalidInput, LoginRefused, NotFound, OnwardError
from onward.inputs.recipes.definition import RecipeInput
from onward.inputs.recipes.numbered_names import NumberedName
from onward.model.job import JobState
from onward.model.requests.inputs import RunInputs
from onward.model.requests.outcome import OutcomeState
from onward.model.requests.request import OutgoingKind, Request, RequestInput, RequestState
from onward.model.run import LegEnd
from onward.model.spec import Limits, Resources
from onward.operations.clusters.saved_snapshot import save_snapshot
from onward.operations.requests.context import InputLogin
from onward.rundir.layout import RunDir, runs_under
from onward.rundir.request_inputs import ask_for_token, is_token_asked, read_inputs
from tests.serving import Gateway

ONE_LEG: dict[str, Any] = {"draft": {"limits": Limits(max_legs=1, max_restarts=0)}}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    made = Gateway(tmp_path)
    yield made
    made.close()


def test_a_request_gets_a_run_that_carries_its_id_and_its_results_come_back(gateway: Gateway) -> None:
    gateway.ask()
    assert gateway.step().submitted == 1
    record = gateway.of()
    run = gateway.played()
    assert (record.state, record.run) == (RequestState.SUBMITTED, run.spec.id)
    run.begin(1)
    run.log(1, {"t": 1.0, "s": 9, "m": {"loss": 0.25}})
    gateway.step(5)
    assert gateway.of().state is RequestState.RUNNING
    (run.dir.artifacts / "Model 0").write_bytes(b"weights")
    run.end(1, LegEnd.DONE)
    assert gateway.step().settled == 1
    answer = gateway.answer()
    assert (answer.state, [result.name for result in answer.results], answer.metrics) == (OutcomeState.DONE, ["Model 0"], {"loss": 0.25})
    assert gateway.sent(OutgoingKind.REPLY)[0].payload["run"] == run.spec.id
    gateway.step(60, times=3)
    assert len(runs_under(gateway.sandbox.root)) == 1
    assert len(gateway.sent(OutgoingKind.REPLY)) == 1


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (LegEnd.DONE, OutcomeState.DONE),
        (LegEnd.AGAIN, OutcomeState.FAILED),
        (LegEnd.TIME_LIMIT, OutcomeState.TIME_LIMIT),
        (LegEnd.PREEMPTED, OutcomeState.PREEMPTED),
        (LegEnd.OUT_OF_MEMORY, OutcomeState.OUT_OF_MEMORY),
        (LegEnd.CRASHED, OutcomeState.FAILED),
        (LegEnd.NODE_LOST, OutcomeState.NODE_LOST),
        (LegEnd.STALLED, OutcomeState.FAILED),
        (LegEnd.CANCELLED, OutcomeState.CANCELLED),
        (LegEnd.LOST, OutcomeState.FAILED),
    ],
)
def test_every_end_of_a_leg_that_ends_its_run_has_an_answer(gateway: Gateway, end: LegEnd, state: OutcomeState) -> None:
    gateway.recipe(**ONE_LEG)
    gateway.ask()
    gateway.step()
    gateway.played().begin(1, successor=False).end(1, end, reason="as it went")
    gateway.step()
    answer = gateway.answer()
    assert answer.state is state
    assert answer.reason
    assert "onward " not in answer.next, "who asked has no command line at the cluster"
    assert bool(answer.next) is (state is not OutcomeState.DONE)


def test_no_end_of_a_leg_was_forgotten_above() -> None:
    (marks,) = [mark for mark in test_every_end_of_a_leg_that_ends_its_run_has_an_answer.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
    assert {end for end, _ in marks.args[1]} == set(LegEnd)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (JobState.CANCELLED, OutcomeState.CANCELLED),
        (JobState.TIMED_OUT, OutcomeState.TIME_LIMIT),
        (JobState.OUT_OF_MEMORY, OutcomeState.OUT_OF_MEMORY),
        (JobState.NODE_FAILED, OutcomeState.NODE_LOST),
        (JobState.PREEMPTED, OutcomeState.PREEMPTED),
        (JobState.FAILED, OutcomeState.FAILED),
    ],
)
def test_a_job_that_died_without_a_word_is_answered_for_by_what_the_scheduler_says(
    gateway: Gateway, state: JobState, expected: OutcomeState
) -> None:
    """With nobody else to tend: whoever serves does."""
    gateway.recipe(**ONE_LEG)
    gateway.ask()
    gateway.step()
    gateway.played().begin(1, successor=False).die(1, state)
    gateway.until(lambda: gateway.of().outcome)
    assert gateway.answer().state is expected


def test_a_run_that_used_up_its_total_time_met_a_time_limit(gateway: Gateway) -> None:
    gateway.recipe(draft={"limits": Limits(total_time=60)})
    gateway.ask()
    gateway.step()
    gateway.played().begin(1, successor=False).publish(1, 5).later(90).end(1, LegEnd.AGAIN)
    gateway.step()
    assert gateway.answer().state is OutcomeState.TIME_LIMIT
    assert "total-time" in gateway.answer().reason


def test_a_queued_job_that_somebody_cancels_is_answered_for(gateway: Gateway) -> None:
    gateway.ask()
    gateway.step()
    gateway.sandbox.scheduler.cancel([gateway.played().job(1)])
    gateway.until(lambda: gateway.of().outcome)
    assert gateway.answer().state is OutcomeState.CANCELLED


def test_a_run_goes_on_through_preemptions_and_the_request_hears_only_of_its_end(gateway: Gateway) -> None:
    gateway.ask()
    gateway.step()
    run = gateway.played().begin(1).publish(1, 5).end(1, LegEnd.PREEMPTED)
    gateway.step(5)
    assert gateway.of().outcome is None
    run.begin(2).end(2, LegEnd.DONE)
    gateway.step(5)
    assert gateway.answer().state is OutcomeState.DONE


def test_the_last_lines_of_a_failed_training_come_with_its_answer(gateway: Gateway) -> None:
    gateway.recipe(**ONE_LEG)
    gateway.ask()
    gateway.step()
    run = gateway.played().begin(1, successor=False)
    run.dir.log(1, "out").write_text("epoch 1\n")
    run.dir.log(1, "err").write_text("".join(f"line {n}\n" for n in range(100)) + "ValueError: no such layer\n")
    run.end(1, LegEnd.CRASHED)
    gateway.step()
    tail = gateway.answer().log_tail.splitlines()
    assert tail[-40:] == [*(f"line {n}" for n in range(61, 100)), "ValueError: no such layer"]


def test_a_training_that_finished_without_a_required_result_has_failed(tmp_path: Path) -> None:
    def nothing(*_: object) -> list[object]:
        raise InvalidInput("it left no 'Model 0'", hint="see its log")

    gateway = Gateway(tmp_path, collect=nothing)
    gateway.ask()
    gateway.step()
    gateway.played().begin(1).end(1, LegEnd.DONE)
    gateway.step()
    assert (gateway.answer().state, gateway.answer().reason) == (OutcomeState.FAILED, "the training finished, but it left no 'Model 0'")
    gateway.close()


def test_results_that_another_machine_wrote_may_be_seen_late(tmp_path: Path) -> None:
    there = False

    def late(*_: object) -> list[object]:
        if not there:
            raise NotFound("'Model 0' is not among its artifacts")
        return []

    gateway = Gateway(tmp_path, collect=late)
    gateway.recipe(draft={"cluster": "slurm"})
    (gateway.sandbox.folder / "bin").mkdir()
    for name in ("sbatch", "python3"):
        (gateway.sandbox.folder / "bin" / name).symlink_to(sys.executable)
    gateway.sandbox.context.env = {**gateway.sandbox.context.env, "PATH": str(gateway.sandbox.folder / "bin")}
    for id in ("a", "b"):
        gateway.ask(id)
    gateway.step()
    gateway.played("a").begin(1).end(1, LegEnd.DONE)
    gateway.step(times=2)
    assert gateway.of("a").outcome is None
    there = True
    gateway.step(15)
    assert gateway.answer("a").state is OutcomeState.DONE
    there = False
    gateway.played("b").begin(1).end(1, LegEnd.DONE)
    gateway.until(lambda: gateway.of("b").outcome, seconds=10)
    assert gateway.answer("b").state is OutcomeState.FAILED
    gateway.close()


# ── submitting ────────────────────────────────────────────────────────────────


def test_what_the_scheduler_refuses_is_told_and_leaves_no_run(gateway: Gateway) -> None:
    gateway.ask()
    gateway.sandbox.scheduler.refuse = "the account is locked"
    gateway.step()
    assert gateway.answer().state is OutcomeState.FAILED
    assert "the account is locked" in gateway.answer().reason
    assert runs_under(gateway.sandbox.root) == []


def test_what_it_refuses_after_it_was_silent_is_told_too_and_not_asked_for_again(gateway: Gateway) -> None:
    gateway.sandbox.scheduler.down = True
    gateway.ask()
    gateway.step()
    assert gateway.of().state is RequestState.SUBMITTED  # as far as anybody knows
    gateway.sandbox.scheduler.down = False
    gateway.sandbox.scheduler.refuse = "the account is locked"
    gateway.until(lambda: gateway.of().outcome)
    assert gateway.answer().state is OutcomeState.FAILED
    assert "the account is locked" in gateway.answer().reason
    gateway.step(301, times=2)
    assert gateway.sandbox.scheduler.jobs == {}


def test_a_recipe_that_is_gone_or_takes_other_settings_by_now_is_a_refusal(gateway: Gateway) -> None:
    gateway.ask("a", recipe="away")
    gateway.ask("b", settings={"Epochs": 3})
    gateway.step()
    assert [gateway.answer(id).state for id in ("a", "b")] == [OutcomeState.REFUSED, OutcomeState.REFUSED]
    assert "no recipe named 'away'" in gateway.answer("a").reason


def test_a_lost_answer_of_the_scheduler_makes_no_second_job(gateway: Gateway) -> None:
    gateway.ask()
    gateway.sandbox.scheduler.lose = True
    gateway.step()
    gateway.step(31, times=3)
    assert len(gateway.sandbox.scheduler.jobs) == 1
    assert len(runs_under(gateway.sandbox.root)) == 1


def test_a_silent_scheduler_is_waited_for_with_one_run_and_the_others_keep_their_turn(gateway: Gateway) -> None:
    gateway.sandbox.scheduler.down = True
    for id in ("a", "b", "c"):
        gateway.ask(id)
    gateway.step()
    assert [gateway.of(id).state for id in ("a", "b", "c")] == ["submitted", "accepted", "accepted"]
    gateway.sandbox.scheduler.down = False
    gateway.until(lambda: all(gateway.of(id).folder for id in ("a", "b", "c")))
    gateway.until(lambda: len(gateway.sandbox.scheduler.jobs) == 3)
    assert len(runs_under(gateway.sandbox.root)) == 3


def test_a_full_disk_is_waited_for_and_fails_no_request(gateway: Gateway) -> None:
    gateway.ask("a")
    gateway.ask("b")
    with pytest.MonkeyPatch.context() as patch:

        def refuse(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patch.setattr("onward.operations.submit.new_run.freeze_code", refuse)
        gateway.step(31, times=3)
    assert [gateway.of(id).outcome for id in ("a", "b")] == [None, None]
    assert "No space left" in gateway.of("a").words
    gateway.until(lambda: gateway.of("a").folder and gateway.of("b").folder)
    assert len(gateway.sandbox.scheduler.jobs) == len(runs_under(gateway.sandbox.root)) == 2


def test_only_so_many_runs_are_open_at_once_and_the_urgent_go_first(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, runs=2)
    for id, priority in (("a", 0), ("b", 0), ("c", 5)):
        gateway.ask(id, priority=priority)
    gateway.step(times=2)
    assert [gateway.of(id).state for id in ("a", "b", "c")] == ["submitted", "accepted", "submitted"]
    gateway.played("c").begin(1).end(1, LegEnd.DONE)
    gateway.step(times=2)
    assert gateway.of("b").state is RequestState.SUBMITTED
    gateway.close()


def test_a_wrong_login_is_told_and_a_silent_application_is_waited_for(tmp_path: Path) -> None:
    trouble: list[OnwardError] = [HostUnreachable("rodan does not answer"), LoginRefused("rodan refused the login of ada")]

    def login(request: Request, *, refused: str = "") -> InputLogin:
        raise trouble.pop(0)

    gateway = Gateway(tmp_path, login=login)
    gateway.ask()
    gateway.step()
    assert (gateway.of().state, gateway.of().words) == (RequestState.ACCEPTED, "rodan does not answer")
    gateway.step(20)
    assert (gateway.answer().state, gateway.answer().reason) == (OutcomeState.FAILED, "rodan refused the login of ada")
    assert runs_under(gateway.sandbox.root) == []
    gateway.close()


def test_a_job_that_asks_for_another_token_gets_it_and_one_without_a_better_is_told_so(tmp_path: Path) -> None:
    entries: list[str] = []

    def login(request: Request, *, refused: str = "") -> InputLogin:
        entries.append(refused)
        return InputLogin(token="second" if refused else "first", origin="https://rodan.lab")

    gateway = Gateway(tmp_path, login=login)
    gateway.ask(inputs=(RequestInput(name="Image", url="https://rodan.lab/page.png"),))
    gateway.recipe(inputs=(RecipeInput(name=NumberedName(text="Image"), most=1 << 20),))
    gateway.settings = replace(gateway.settings, hosts=("rodan.lab",))
    gateway.serve = gateway.another()
    assert until(lambda: bool(gateway.step() and gateway.of().folder), timeout=60), "its inputs are looked at first"
    dir = gateway.played().dir
    for token in ("second", "second"):
        ask_for_token(dir)
        gateway.step(10)
        order = read_inputs(dir)
        assert order is not None and (order.token, is_token_asked(dir)) == (token, False)
    assert [refused for refused in entries if refused] == ["first", "second"]
    gateway.close()


def test_an_answer_names_no_place_of_the_site(gateway: Gateway) -> None:
    gateway.recipe(**ONE_LEG)
    gateway.ask()
    gateway.step()
    run = gateway.played().begin(1, successor=False)
    run.dir.log(1, "err").write_text(f'File "{run.dir.path}/code/train.py", line 1\n{gateway.sandbox.root}/other\n')
    run.end(1, LegEnd.CRASHED, reason=f"cannot create the folder {run.dir.inputs}")
    gateway.step()
    answer = gateway.answer()
    assert answer.log_tail.splitlines()[-2:] == ['File "RUN/code/train.py", line 1', "RUNS/other"]
    assert str(gateway.sandbox.root) not in str(answer)


def test_a_login_goes_to_the_job_with_the_one_place_that_may_see_it(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, login=lambda request, **_: InputLogin(token="s3cret", origin="https://rodan.lab"))
    seen: list[RunInputs] = []
    gateway.ask()
    submit = gateway.serve._submitter._draft

    def spy(record: object, recipe: object) -> object:
        draft = submit(record, recipe)  # type: ignore[arg-type]
        seen.append(draft.inputs)  # type: ignore[arg-type]
        return draft

    gateway.serve._submitter._draft = spy  # type: ignore[method-assign,assignment]
    gateway.step()
    assert [(inputs.token, inputs.token_for, inputs.request) for inputs in seen] == [("s3cret", "https://rodan.lab", "r1")]
    assert gateway.played().spec.request == "r1"
    gateway.close()


# ── deadlines and cancels ─────────────────────────────────────────────────────


def test_a_deadline_ends_the_run_and_says_so(gateway: Gateway) -> None:
    gateway.ask(deadline=gateway.now() + 60)
    gateway.step()
    run = gateway.played().begin(1)
    gateway.step(61)
    assert gateway.answer().state is OutcomeState.EXPIRED
    assert "its deadline passed" in gateway.answer().reason
    assert not any(status.status.state.live for status in gateway.sandbox.scheduler.jobs.values())
    assert run.run.closed is not None


def test_the_recipes_own_deadline_counts_from_when_the_request_came(gateway: Gateway) -> None:
    gateway.recipe(deadline=100)
    gateway.ask("a", deadline=gateway.now() + 9999)
    gateway.step()
    gateway.step(99)
    assert gateway.of("a").outcome is None
    gateway.step(1)
    assert gateway.answer("a").state is OutcomeState.EXPIRED


def test_a_deadline_that_passes_in_the_line_needs_no_run(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, runs=0)
    gateway.ask(deadline=gateway.now() + 60)
    gateway.step()
    gateway.step(61)
    assert (gateway.answer().state, gateway.of().run) == (OutcomeState.EXPIRED, None)
    gateway.close()


def test_a_cluster_that_is_away_until_the_deadline_is_the_reason_and_the_job_ends_when_it_is_back(gateway: Gateway) -> None:
    gateway.ask(deadline=gateway.now() + 60)
    gateway.step()
    run = gateway.played().begin(1)
    gateway.sandbox.scheduler.down = True
    gateway.step(61)
    assert gateway.answer().state is OutcomeState.UNREACHABLE
    gateway.sandbox.scheduler.down = False
    gateway.until(lambda: run.run.closed, seconds=301)
    assert not any(job.status.state.live for job in gateway.sandbox.scheduler.jobs.values())


def test_one_that_could_never_be_submitted_is_answered_at_its_deadline(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path)
    gateway.recipe(draft={"cluster": "slurm"})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    gateway.sandbox.context.env = {**gateway.sandbox.context.env, "PATH": str(tmp_path / "bin")}
    gateway.ask(deadline=gateway.now() + 60)
    gateway.step(1, times=3)
    assert gateway.of().state is RequestState.ACCEPTED
    assert "sbatch" in gateway.of().words
    gateway.step(60)
    assert gateway.answer().state is OutcomeState.UNREACHABLE
    assert "sbatch" in gateway.answer().reason
    gateway.close()


def test_a_cancel_before_and_after_the_run_was_submitted(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, runs=1)
    gateway.ask("a")
    gateway.ask("b")
    gateway.step()
    gateway.played("a").begin(1)
    for id in ("a", "b"):
        gateway.requests.end(id, by="ada", at=gateway.now())
    gateway.step()
    assert [gateway.answer(id).state for id in ("a", "b")] == [OutcomeState.CANCELLED, OutcomeState.CANCELLED]
    assert [gateway.answer(id).reason for id in ("a", "b")] == ["cancelled by ada", "cancelled by ada before its run was submitted"]
    assert len(runs_under(gateway.sandbox.root)) == 1
    gateway.close()


def test_a_cancel_that_comes_too_late_does_not_take_the_results_away(gateway: Gateway) -> None:
    gateway.ask()
    gateway.step()
    gateway.played().begin(1).end(1, LegEnd.DONE)
    gateway.requests.end("r1", by="ada", at=gateway.now())
    gateway.step()
    assert gateway.answer().state is OutcomeState.DONE


# ── progress ──────────────────────────────────────────────────────────────────


def test_progress_is_told_when_it_changes_and_at_most_every_five_seconds(gateway: Gateway) -> None:
    gateway.ask()
    gateway.step(times=2)
    (queued,) = gateway.sent(OutgoingKind.PROGRESS)
    assert (queued.payload["state"], queued.payload["leg"]) == ("submitted", None)
    run = gateway.played().begin(1)
    run.log(1, {"t": 1.0, "total": 10}, {"t": 2.0, "s": 4, "m": {"loss": 0.5}})
    gateway.step(1, times=3)
    gateway.step(3)
    (answer,) = gateway.sent(OutgoingKind.PROGRESS)  # the earlier one was not sent yet: overtaken
    assert (answer.payload["state"], answer.payload["leg"], answer.payload["step"], answer.payload["metrics"]) == (
        "running",
        1,
        4,
        {"loss": 0.5},
    )
    gateway.step(6, times=3)
    assert [message.id for message in gateway.sent(OutgoingKind.PROGRESS)] == [answer.id]
    assert gateway.of().progress == answer.payload


def test_why_a_run_waits_and_when_it_will_start_is_told_from_a_picture_of_its_cluster(gateway: Gateway) -> None:
    gateway.ask()
    gateway.step()
    scheduler, job = gateway.sandbox.scheduler, gateway.played().job(1)
    (seen,) = [one for one in scheduler.snapshot().jobs if one.id == job]
    waits = replace(seen, reason="others have a higher priority", expected_start=gateway.now() + 600)
    save_snapshot(gateway.sandbox.context.env, "local", replace(scheduler.snapshot(), jobs=(waits,)))
    before = scheduler.asked
    gateway.step()
    answer = gateway.sent(OutgoingKind.PROGRESS)[0].payload
    assert (answer["words"], answer["expected_start"]) == ("others have a higher priority", gateway.now() + 600)
    assert scheduler.asked == before  # somebody had asked lately


def test_the_first_protocol_has_no_words_for_progress_but_the_page_has(gateway: Gateway) -> None:
    gateway.ask(protocol="v1")
    gateway.step(times=2)
    assert gateway.sent(OutgoingKind.PROGRESS) == []
    assert gateway.of().progress is not None


# ── faults ────────────────────────────────────────────────────────────────────


def test_of_two_who_serve_one_does_until_it_is_gone(gateway: Gateway) -> None:
    other = gateway.another()
    gateway.step()
    assert other.step().served is False
    gateway.serve.close()
    gateway.ask()
    assert other.step().submitted == 1
    assert gateway.step().served is False
    other.close()


def test_a_fault_about_one_request_keeps_no_other_from_its_answer_and_it_gets_one_too(gateway: Gateway) -> None:
    gateway.recipe("odd")
    gateway.recipes["odd"].__dict__["settings"] = None  # breaks fill
    gateway.ask("a", recipe="odd")
    gateway.ask("b")
    gateway.step()
    assert gateway.of("b").state is RequestState.SUBMITTED
    gateway.until(lambda: gateway.of("a").outcome)
    assert gateway.answer("a").state is OutcomeState.FAILED
    assert "could not be processed" in gateway.answer("a").reason


def test_a_folder_that_cannot_be_read_is_waited_for_and_one_that_is_gone_is_told(gateway: Gateway) -> None:
    gateway.ask("a")
    gateway.ask("b")
    gateway.step()
    for id in ("a", "b"):
        gateway.played(id).begin(1).end(1, LegEnd.DONE)
    hidden = gateway.played("a").dir.journals
    hidden.rename(hidden.with_name("away"))
    hidden.write_text("")
    shutil.rmtree(gateway.played("b").dir.path)
    gateway.step(1, times=30)
    assert [gateway.of(id).outcome for id in ("a", "b")] == [None, None]
    hidden.unlink()
    hidden.with_name("away").rename(hidden)
    gateway.until(lambda: all(gateway.of(id).outcome for id in ("a", "b")))
    assert [gateway.answer(id).state for id in ("a", "b")] == [OutcomeState.DONE, OutcomeState.FAILED]
    assert "is gone" in gateway.answer("b").reason


def test_a_run_that_was_made_just_before_a_crash_is_found_again(gateway: Gateway) -> None:
    gateway.ask()
    gateway.step()
    with gateway.requests.database.writing() as connection:  # as if the last stroke had not come
        connection.exec_driver_sql("UPDATE requests SET state = 'accepted', folder = NULL, submitted = NULL")
    gateway.serve.close()
    gateway.serve = gateway.another()
    gateway.step(times=2)
    assert gateway.of().state is RequestState.SUBMITTED
    assert [RunDir(Path(str(gateway.of().folder))).path] == [dir.path for dir in runs_under(gateway.sandbox.root)]


def test_resources_that_cannot_be_had_are_told(gateway: Gateway) -> None:
    gateway.recipe(draft={"resources": Resources(mem=2048), "limits": Limits(mem_max=1024)})
    gateway.ask()
    gateway.step()
    assert "mem-max (1024 MiB) is below mem (2048 MiB)" in gateway.answer().reason
