from __future__ import annotations

import pytest

from onward.model import events as ev
from onward.model.analysis.why import next_action
from onward.model.job import DONE_UNTOLD, JobId, JobState, JobStatus
from onward.model.policy.job_end import classify_end, deletion_noticed
from onward.model.policy.leg_history import cancelled_by_others, made_progress, time_left
from onward.model.policy.lifecycle import MOST_UNKNOWN_ENDS, Close, Continue, NothingToDo, crash_signature, decide
from onward.model.run import LegEnd, Run, RunState, fold
from onward.model.spec import CheckpointRule, Limits, Resources, Script
from onward.model.stop_reason import StopReason
from tests.histories import HOUR, History, make_spec

TRACEBACK = """\
Traceback (most recent call last):
  File "/home/ada/train.py", line 31, in <module>
    loss = model(batch)
ValueError: batch 17 at 0x7f3a holds no labels"""
SAME_TRACEBACK_ELSEWHERE = TRACEBACK.replace("line 31", "line 44").replace("17", "3").replace("0x7f3a", "0xDEADBEEF")
OTHER_TRACEBACK = TRACEBACK.replace("ValueError: batch", "KeyError: item")


def closing(history: History) -> Close:
    action = history.action
    assert isinstance(action, Close), action
    return action


def going_on(history: History) -> Continue:
    action = history.action
    assert isinstance(action, Continue), action
    return action


# ── going on ──────────────────────────────────────────────────────────────────


def test_a_run_that_never_began_wants_its_first_leg() -> None:
    assert History(resources=Resources(mem=2048)).action == Continue(leg=1, mem=2048)
    assert History().submitted(1).action == Continue(leg=1, mem=None)


def test_a_leg_at_work_is_left_alone() -> None:
    assert History().leg(None).action == NothingToDo()
    assert History().leg(LegEnd.TIME_LIMIT, steps=[10]).leg(None).action == NothingToDo()


def test_a_closed_run_is_left_alone() -> None:
    assert History().leg(LegEnd.DONE).closed("finished").action == NothingToDo()


@pytest.mark.parametrize("end", [LegEnd.TIME_LIMIT, LegEnd.PREEMPTED, LegEnd.NODE_LOST])
@pytest.mark.parametrize("silent", [True, False])
def test_what_the_cluster_does_to_a_leg_does_not_end_the_run(end: LegEnd, silent: bool) -> None:
    assert going_on(History().leg(end, steps=[10], silent=silent)).leg == 2
    assert going_on(History().leg(end, silent=silent)).leg == 2


def test_preemption_is_borne_however_often_it_comes() -> None:
    history = History(limits=Limits(max_restarts=0))
    for _ in range(20):
        history.leg(LegEnd.PREEMPTED)
    assert going_on(history).leg == 21


@pytest.mark.parametrize("end", [LegEnd.CRASHED, LegEnd.STALLED, LegEnd.LOST, LegEnd.AGAIN])
def test_a_bad_end_with_a_new_checkpoint_goes_on_whatever_the_number(end: LegEnd) -> None:
    history = History(limits=Limits(max_restarts=0))
    for step in range(10, 100, 10):
        history.leg(end, steps=[step], evidence=TRACEBACK)
    assert going_on(history).leg == 10


# ── nodes ─────────────────────────────────────────────────────────────────────


def test_a_node_is_excluded_once_it_was_lost_twice() -> None:
    history = History().leg(LegEnd.NODE_LOST, host="n7")
    assert going_on(history).exclude == ()
    history.leg(LegEnd.NODE_LOST, host="n8")
    assert going_on(history).exclude == ()
    history.leg(LegEnd.NODE_LOST, host="n7")
    assert going_on(history).exclude == ("n7",)


@pytest.mark.parametrize("end", [end for end in LegEnd if end not in (LegEnd.NODE_LOST, LegEnd.DONE, LegEnd.CANCELLED)])
def test_a_node_that_was_not_lost_is_not_blamed(end: LegEnd) -> None:
    history = History(resources=Resources(mem=1), limits=Limits(mem_max=1 << 20))
    for step in (10, 20, 30):
        history.leg(end, steps=[step], host="n7")
    assert going_on(history).exclude == ()


def test_a_node_that_was_lost_before_a_resume_is_not_excluded_after_it() -> None:
    history = History().leg(LegEnd.NODE_LOST, host="n7").closed().resumed().leg(LegEnd.NODE_LOST, host="n7")
    assert going_on(history).exclude == ()


def test_a_new_exclusion_joins_what_the_user_excluded() -> None:
    asked = Resources(exclude="node10,node2")
    assert asked.grown(mem=None, exclude=("node1", "node2")).exclude == "node10,node2,node1"
    assert Resources().grown(mem=None, exclude=()).exclude is None


# ── memory ────────────────────────────────────────────────────────────────────


def test_out_of_memory_doubles_the_memory_up_to_mem_max() -> None:
    history = History(resources=Resources(mem=1024), limits=Limits(mem_max=3000))
    assert going_on(history.leg(LegEnd.OUT_OF_MEMORY)).mem == 2048
    assert going_on(history.leg(LegEnd.OUT_OF_MEMORY, mem=2048)).mem == 3000
    end = closing(history.leg(LegEnd.OUT_OF_MEMORY, mem=3000))
    assert end.state is RunState.FAILED
    assert "3000M" in end.cause and "mem-max" in end.cause
    assert end.next == "onward resume k3x9q2m7 --mem 6000M"


def test_the_memory_once_learned_is_asked_for_by_every_later_leg() -> None:
    history = History(resources=Resources(mem=1024), limits=Limits(mem_max=8192)).leg(LegEnd.OUT_OF_MEMORY)
    assert going_on(history.leg(LegEnd.TIME_LIMIT, mem=2048, steps=[10])).mem == 2048


def test_out_of_memory_without_mem_max_stops_with_the_figure_to_ask_for() -> None:
    end = closing(History(resources=Resources(mem=1536)).leg(LegEnd.OUT_OF_MEMORY, peak=1500, reason="killed", evidence="Killed"))
    assert end.cause == "leg 1 ran out of memory with 1536M"
    assert end.evidence == "killed; it used at least 1500M\nKilled"
    assert end.next.endswith("--mem 3G")


def test_out_of_memory_where_none_was_asked_for_stops_with_twice_what_was_used() -> None:
    end = closing(History().leg(LegEnd.OUT_OF_MEMORY, peak=4096))
    assert "the default memory" in end.cause
    assert end.next.endswith("--mem 8G")


def test_out_of_memory_where_nothing_is_known_says_what_to_fill_in() -> None:
    assert closing(History().leg(LegEnd.OUT_OF_MEMORY, silent=True)).next.endswith("--mem SIZE")


def test_where_no_memory_was_asked_for_the_next_leg_gets_twice_what_was_used() -> None:
    history = History(limits=Limits(mem_max=10_000))
    assert going_on(history.leg(LegEnd.OUT_OF_MEMORY, peak=3000)).mem == 6000
    assert going_on(history.leg(LegEnd.OUT_OF_MEMORY, mem=6000)).mem == 10_000
    closing(history.leg(LegEnd.OUT_OF_MEMORY, mem=10_000))


def test_where_no_memory_was_asked_for_and_none_measured_the_next_leg_gets_mem_max() -> None:
    history = History(limits=Limits(mem_max=10_000)).leg(LegEnd.OUT_OF_MEMORY, silent=True)
    assert going_on(history).mem == 10_000
    assert closing(history.leg(LegEnd.OUT_OF_MEMORY, mem=10_000)).next.endswith("--mem 20000M")


def test_out_of_all_memory_of_a_node_does_not_go_round_in_circles() -> None:
    end = closing(History(resources=Resources(mem=0), limits=Limits(mem_max=1 << 20)).leg(LegEnd.OUT_OF_MEMORY))
    assert "all of its node's memory" in end.cause
    assert "--partition" in end.next and "--mem" not in end.next


# ── crashes ───────────────────────────────────────────────────────────────────


def test_the_same_crash_twice_without_progress_stops_at_once() -> None:
    history = History().leg(LegEnd.CRASHED, evidence=TRACEBACK)
    assert going_on(history).leg == 2
    end = closing(history.leg(LegEnd.CRASHED, evidence=TRACEBACK, reason="the training failed (exit code 1)"))
    assert end.state is RunState.FAILED
    assert "legs 1 and 2 crashed in the same way" in end.cause and "exit code 1" in end.cause
    assert end.evidence == TRACEBACK
    assert "onward resume k3x9q2m7" in end.next


def test_numbers_and_addresses_do_not_make_a_crash_another() -> None:
    assert crash_signature(TRACEBACK) == crash_signature(SAME_TRACEBACK_ELSEWHERE)
    assert crash_signature(TRACEBACK) != crash_signature(OTHER_TRACEBACK)
    closing(History().leg(LegEnd.CRASHED, evidence=TRACEBACK).leg(LegEnd.CRASHED, evidence=SAME_TRACEBACK_ELSEWHERE))


def test_the_same_crash_with_a_checkpoint_between_goes_on() -> None:
    history = History().leg(LegEnd.CRASHED, evidence=TRACEBACK).leg(LegEnd.CRASHED, steps=[10], evidence=TRACEBACK)
    assert going_on(history).leg == 3
    assert going_on(history.leg(LegEnd.CRASHED, evidence=TRACEBACK)).leg == 4


@pytest.mark.parametrize("between", [LegEnd.PREEMPTED, LegEnd.NODE_LOST, LegEnd.STALLED, LegEnd.TIME_LIMIT])
def test_another_end_between_two_equal_crashes_does_not_hide_them(between: LegEnd) -> None:
    history = History().leg(LegEnd.CRASHED, evidence=TRACEBACK).leg(between).leg(LegEnd.CRASHED, evidence=TRACEBACK)
    assert "legs 1 and 3 crashed in the same way" in closing(history).cause


def test_wordless_crashes_are_told_apart_by_their_reason() -> None:
    history = History().leg(LegEnd.CRASHED, reason="killed by SIGSEGV").leg(LegEnd.CRASHED, reason="exit code 3")
    assert going_on(history).leg == 3
    closing(history.leg(LegEnd.CRASHED, reason="killed by SIGSEGV"))


def test_different_crashes_go_on_up_to_max_restarts() -> None:
    history = History(limits=Limits(max_restarts=3))
    for word in ("one", "two", "three"):
        assert going_on(history.leg(LegEnd.CRASHED, evidence=f"{word}Error"))
    end = closing(history.leg(LegEnd.CRASHED, evidence="fourError", reason="it failed"))
    assert "4 failures in a row" in end.cause and "max-restarts 3" in end.cause
    assert end.evidence == "it failed\nfourError"


def test_a_run_allowed_no_restart_ends_with_its_first_crash() -> None:
    assert "a failure without a new checkpoint" in closing(History(limits=Limits(max_restarts=0)).leg(LegEnd.CRASHED)).cause


@pytest.mark.parametrize(
    ("end", "words"),
    [(LegEnd.STALLED, "stalled"), (LegEnd.LOST, "was lost"), (LegEnd.AGAIN, "asked for another leg without saving anything new")],
)
def test_stalling_vanishing_and_asking_again_for_nothing_are_bad_ends_too(end: LegEnd, words: str) -> None:
    history = History(limits=Limits(max_restarts=2)).leg(end).leg(end)
    assert going_on(history).leg == 3
    assert words in closing(history.leg(end)).cause


def test_bad_ends_of_all_kinds_are_counted_together() -> None:
    history = History(limits=Limits(max_restarts=3))
    history.leg(LegEnd.CRASHED, evidence="x").leg(LegEnd.STALLED).leg(LegEnd.PREEMPTED).leg(LegEnd.LOST)
    assert going_on(history).leg == 5
    assert "4 failures in a row" in closing(history.leg(LegEnd.AGAIN)).cause


def test_a_new_checkpoint_starts_the_count_anew() -> None:
    history = History(limits=Limits(max_restarts=1)).leg(LegEnd.LOST).leg(LegEnd.PREEMPTED, steps=[5]).leg(LegEnd.LOST)
    assert going_on(history).leg == 4
    closing(history.leg(LegEnd.LOST))


def test_a_checkpoint_no_newer_than_the_one_restored_is_no_progress() -> None:
    history = History(limits=Limits(max_restarts=1)).leg(LegEnd.PREEMPTED, steps=[100])
    history.leg(LegEnd.LOST, steps=[50]).leg(LegEnd.LOST, steps=[100])
    closing(history)


def test_progress_counts_from_the_checkpoint_that_was_restored_even_if_newer_ones_were_damaged() -> None:
    history = History().leg(LegEnd.TIME_LIMIT, steps=[100, 200, 300])
    history.leg(LegEnd.TIME_LIMIT, steps=[200]).leg(LegEnd.TIME_LIMIT, steps=[300])
    fell_back = [
        ev.Restored(leg=2, at=e.at, step=100, checkpoint="…")
        if isinstance(e, ev.Restored) and e.leg == 2
        else ev.Restored(leg=3, at=e.at, step=200, checkpoint="…")
        if isinstance(e, ev.Restored)
        else e
        for e in history.events
    ]
    run = fold(history.spec, fell_back)
    assert made_progress(run, run.legs[2]) and made_progress(run, run.legs[3])
    assert isinstance(decide(run), Continue)


# ── legs too short ────────────────────────────────────────────────────────────


def test_a_leg_too_short_for_its_first_checkpoint_stops_the_second_time() -> None:
    history = History(resources=Resources(time=7200)).leg(LegEnd.TIME_LIMIT)
    assert going_on(history).leg == 2
    end = closing(history.leg(LegEnd.TIME_LIMIT, ran=7100, last_step=812))
    assert end.state is RunState.FAILED
    assert "legs 1 and 2" in end.cause
    assert "01:58:2" in end.evidence and "step 812" in end.evidence and "no checkpoint was ever saved" in end.evidence
    assert "02:00:00" in end.next and "--time" in end.next and "save more often" in end.next


def test_where_saves_were_cut_off_the_end_says_so_instead_of_that_there_were_none() -> None:
    history = History(resources=Resources(time=7200)).leg(LegEnd.TIME_LIMIT).leg(LegEnd.TIME_LIMIT, ran=7100)
    words = "what the training saved last is incomplete and was not published: the training was killed while it was being written"
    warned = [*history.events, ev.Warned(leg=2, at=history.events[-1].at, text=words)]
    end = decide(fold(history.spec, warned))
    assert isinstance(end, Close) and words in end.evidence and "ever saved" not in end.evidence


def test_time_limits_with_a_preemption_between_are_too_short_as_well() -> None:
    history = History().leg(LegEnd.TIME_LIMIT, steps=[10]).leg(LegEnd.TIME_LIMIT).leg(LegEnd.PREEMPTED).leg(LegEnd.TIME_LIMIT)
    end = closing(history)
    assert "legs 2 and 4" in end.cause and "older than both legs" in end.evidence
    assert "the queue's own limit" in end.next


def test_a_time_limit_after_progress_is_as_it_should_be() -> None:
    history = History()
    for step in (10, 20, 30):
        history.leg(LegEnd.TIME_LIMIT, steps=[step])
    assert going_on(history.leg(LegEnd.TIME_LIMIT)).leg == 5


# ── what people ask ───────────────────────────────────────────────────────────


@pytest.mark.parametrize("silent", [True, False])
def test_a_leg_cancelled_by_its_owner_stops_the_run(silent: bool) -> None:
    end = closing(History().leg(LegEnd.CANCELLED, steps=[10], reason="job 101 was cancelled", silent=silent))
    assert end.state is RunState.CANCELLED
    assert "job 101 was cancelled" in end.cause and "onward resume k3x9q2m7" in end.next


def cancelled_by_root(history: History, leg: int) -> History:
    """The leg began, and root cancelled its job."""
    history.leg(None)
    history.events.append(ev.EndFound(leg=leg, at=history.tick(), end=LegEnd.CANCELLED, reason="job 7 was cancelled by root", by="root"))
    return history


def test_a_leg_cancelled_by_somebody_else_is_followed_by_the_next() -> None:
    assert going_on(cancelled_by_root(History(), 1)).leg == 2


def test_an_administrator_who_cancels_three_times_in_a_row_ends_the_run_and_is_named() -> None:
    history = History()
    for leg in (1, 2):
        assert going_on(cancelled_by_root(history, leg)).leg == leg + 1
    end = closing(cancelled_by_root(history, 3))
    assert (end.state, end.cause) == (RunState.CANCELLED, "root cancelled its jobs 3 times in a row")
    assert end.evidence == "job 7 was cancelled by root"
    assert end.next.startswith("ask root why; then onward resume")


def test_a_leg_that_ends_otherwise_breaks_the_row_of_cancellations() -> None:
    history = cancelled_by_root(cancelled_by_root(History(), 1), 2).leg(LegEnd.TIME_LIMIT, steps=[10])
    assert going_on(cancelled_by_root(history, 4)).leg == 5


def test_legs_that_wait_ahead_and_are_cancelled_together_count_once() -> None:
    history = History().leg(LegEnd.TIME_LIMIT, steps=[10])
    for leg in (2, 3, 4):
        name = f"digits.{leg}.x"
        history.events.append(ev.Submitting(leg=leg, at=history.tick(), name=name))
        history.events.append(ev.Gone(leg=leg, at=history.tick(), name=name, reason="cancelled by root", by="root"))
    assert cancelled_by_others(history.run) == 1


def test_a_queued_leg_cancelled_before_it_began_stops_the_run() -> None:
    history = History().leg(LegEnd.TIME_LIMIT, steps=[10]).submitted(2)
    history.events.append(ev.EndFound(leg=2, at=history.tick(), end=LegEnd.CANCELLED, reason="job 102 was cancelled"))
    assert closing(history).state is RunState.CANCELLED


@pytest.mark.parametrize("end", [None, LegEnd.TIME_LIMIT, LegEnd.CRASHED, LegEnd.OUT_OF_MEMORY])
def test_a_cancel_request_ends_the_run_whether_a_leg_is_at_work_or_not(end: LegEnd | None) -> None:
    close = closing(History().leg(end).cancelled(by="grace"))
    assert (close.state, close.cause) == (RunState.CANCELLED, "cancelled by grace")
    assert close.next


def test_a_cancel_request_ends_a_run_that_never_began() -> None:
    assert closing(History().cancelled()).state is RunState.CANCELLED


def test_a_stop_request_waits_for_the_leg_at_work() -> None:
    assert History().leg(None).stopped().action == NothingToDo()


@pytest.mark.parametrize("end", [end for end in LegEnd if end not in (LegEnd.DONE, LegEnd.CANCELLED)])
def test_a_stop_request_ends_the_run_with_its_leg(end: LegEnd) -> None:
    close = closing(History().leg(end, steps=[70]).stopped(by="grace"))
    assert close.state is RunState.CANCELLED
    assert close.cause == "stopped by grace after checkpoint at step 70"
    assert "onward resume" in close.next


def test_a_training_that_finishes_while_it_is_asked_to_stop_is_finished() -> None:
    assert closing(History().leg(LegEnd.DONE).stopped()).state is RunState.FINISHED


# ── limits ────────────────────────────────────────────────────────────────────


def test_max_legs_without_a_checkpoint_says_so_unless_a_script_saves_by_itself() -> None:
    limits = Limits(max_legs=1)
    assert closing(History(limits=limits).leg(LegEnd.PREEMPTED)).cause == "the run used all of its max-legs (1) without a checkpoint"
    script = Script(name="train.sh", folder="/home/ada", shell=("/bin/bash",))
    history = History(limits=limits)
    history.spec = make_spec(limits=limits, script=script)
    assert closing(history.leg(LegEnd.TIME_LIMIT)).cause == "the run used all of its max-legs (1)"


def test_max_legs_ends_the_run() -> None:
    history = History(limits=Limits(max_legs=2)).leg(LegEnd.TIME_LIMIT, steps=[1])
    assert going_on(history).leg == 2
    end = closing(history.leg(LegEnd.TIME_LIMIT, steps=[2]))
    assert end.state is RunState.FAILED and "max-legs (2)" in end.cause and "step 2" in end.cause
    assert "--max-legs" in end.next


def test_total_time_ends_the_run() -> None:
    history = History(limits=Limits(total_time=int(2.5 * HOUR)))
    history.leg(LegEnd.TIME_LIMIT, steps=[1]).leg(LegEnd.TIME_LIMIT, steps=[2])
    assert going_on(history).leg == 3
    end = closing(history.leg(LegEnd.TIME_LIMIT, steps=[3]))
    assert "total-time 02:30:00" in end.cause and "--total-time" in end.next


def test_what_a_leg_needed_to_stop_before_its_limit_is_no_time_for_another_leg() -> None:
    history = History(limits=Limits(total_time=int(HOUR)))
    end = closing(history.leg(LegEnd.TIME_LIMIT, steps=[1], ran=HOUR - 400, limit=HOUR - 20))
    assert "used 00:53:" in end.cause and "total-time 01:00:00" in end.cause
    again = History(limits=Limits(total_time=int(HOUR))).leg(LegEnd.PREEMPTED, steps=[1], ran=HOUR - 400, limit=HOUR)
    assert going_on(again).leg == 2, "the time of a leg that was cut off is still there"
    assert time_left(again.run) == pytest.approx(400, abs=10)


def test_waiting_in_the_queue_is_not_counted_as_time_of_the_run() -> None:
    history = History(limits=Limits(total_time=int(3 * HOUR))).leg(LegEnd.TIME_LIMIT, steps=[1])
    history.tick(100 * HOUR)
    assert going_on(history.leg(LegEnd.TIME_LIMIT, steps=[2])).leg == 3


# ── resuming ──────────────────────────────────────────────────────────────────


def test_a_resumed_run_wants_its_next_leg_with_what_was_changed() -> None:
    history = History(resources=Resources(mem=1024)).leg(LegEnd.OUT_OF_MEMORY).closed().resumed(mem=4096, max_legs=5)
    assert history.run.state is RunState.WAITING
    assert history.action == Continue(leg=2, mem=4096)
    assert history.run.limits.max_legs == 5


def test_resuming_resets_every_counter() -> None:
    history = History(limits=Limits(max_restarts=1, max_legs=2, total_time=int(2 * HOUR)))
    history.leg(LegEnd.CRASHED, evidence=TRACEBACK).leg(LegEnd.CRASHED, evidence=TRACEBACK).closed().resumed()
    assert going_on(history).leg == 3
    assert going_on(history.leg(LegEnd.CRASHED, evidence=TRACEBACK)).leg == 4
    closing(history.leg(LegEnd.CRASHED, evidence=TRACEBACK))


def test_requests_of_before_a_resume_no_longer_bind() -> None:
    history = History().leg(LegEnd.TIME_LIMIT, steps=[1]).stopped().cancelled().closed("cancelled").resumed()
    run = history.run
    assert (run.closed, run.cancel, run.stop) == (None, None, None)
    assert going_on(history).leg == 2
    assert going_on(history.leg(LegEnd.TIME_LIMIT, steps=[2])).leg == 3


def test_requests_of_after_a_resume_do_bind() -> None:
    history = History().leg(LegEnd.CRASHED).closed().resumed().leg(LegEnd.TIME_LIMIT, steps=[2])
    assert closing(history.cancelled()).state is RunState.CANCELLED


def test_a_run_can_be_closed_and_resumed_again_and_again() -> None:
    history = History()
    for leg in range(1, 6):
        assert going_on(history).leg == leg
        history.leg(LegEnd.CRASHED).closed()
        assert history.action == NothingToDo()
        history.resumed(mem=leg)
    assert history.run.resources.mem == 5


# ── every end ─────────────────────────────────────────────────────────────────


def histories_that_close() -> list[History]:
    limits = Limits(max_restarts=0)
    return [
        *(History(limits=limits).leg(end).leg(end) for end in LegEnd if end not in (LegEnd.PREEMPTED, LegEnd.NODE_LOST)),
        *(History(limits=Limits(max_legs=1)).leg(end, steps=[1]) for end in LegEnd),
        *(History(limits=Limits(total_time=1)).leg(end, steps=[1]) for end in LegEnd),
        *(History().leg(end).stopped() for end in LegEnd),
        *(History().leg(end).cancelled() for end in LegEnd),
        History().cancelled(),
    ]


def test_every_closing_has_a_cause_and_unless_finished_a_next_action() -> None:
    for history in histories_that_close():
        end = closing(history)
        assert end.cause
        assert bool(end.next) == (end.state is not RunState.FINISHED), end
        assert "k3x9q2m7" in end.next or end.state is RunState.FINISHED


def test_only_done_finishes_a_run() -> None:
    for history in histories_that_close():
        last = history.run.last_leg
        if closing(history).state is RunState.FINISHED:
            assert last is not None and last.end is LegEnd.DONE
    assert closing(History().leg(LegEnd.DONE)).state is RunState.FINISHED


def test_a_done_that_only_the_scheduler_tells_is_never_read() -> None:
    ends = {state: classify_end(status(state), "5")[0] for state in JobState}
    assert LegEnd.DONE not in ends.values()


# ── a store that is full ──────────────────────────────────────────────────────


def missed(history: History, step: int, *, kept: str = "") -> History:
    leg = max(history.run.legs)
    history.events.append(ev.Missed(leg=leg, at=history.tick(), step=step, reason="/store is full: needs 1 GB", kept=kept))
    return history


def test_a_training_that_finished_and_could_not_store_its_last_checkpoint_is_not_finished() -> None:
    end = closing(missed(History().leg(LegEnd.DONE, steps=[10]), 20))
    assert end.state is RunState.FAILED
    assert "step 20" in end.cause and "/store is full" in end.evidence and "make room" in end.next
    assert closing(missed(History().leg(LegEnd.DONE, steps=[30]), 20)).state is RunState.FINISHED, "a later one was stored"


def test_a_training_that_finished_with_no_time_left_to_publish_gets_one_more_leg_for_that() -> None:
    late = missed(History().leg(LegEnd.DONE, steps=[10]), 20, kept="/node/step-20")
    assert going_on(late).leg == 2
    assert closing(late.leg(LegEnd.DONE, steps=[20])).state is RunState.FINISHED
    again = missed(missed(History().leg(LegEnd.DONE), 20, kept="/node/step-20").leg(LegEnd.DONE), 20, kept="/node/step-20")
    assert closing(again).state is RunState.FAILED, "a second time would be the same"


def test_no_further_leg_publishes_for_a_run_that_may_have_none() -> None:
    late = missed(History(limits=Limits(max_legs=1)).leg(LegEnd.DONE), 20, kept="/node/step-20")
    assert "step 20" in closing(late).cause


def test_legs_that_saved_and_could_not_store_are_not_told_to_save_more_often() -> None:
    end = closing(missed(missed(History().leg(LegEnd.TIME_LIMIT), 5).leg(LegEnd.TIME_LIMIT), 5))
    assert "none could be stored" in end.cause and "make room" in end.next


# ── what the scheduler says ───────────────────────────────────────────────────


def status(state: JobState, **others: object) -> JobStatus:
    return JobStatus(id=JobId("5"), name="digits.1.x", state=state, nodes=("n7",), **others)  # type: ignore[arg-type]


ENDS = {
    JobState.TIMED_OUT: LegEnd.TIME_LIMIT,
    JobState.PREEMPTED: LegEnd.PREEMPTED,
    JobState.OUT_OF_MEMORY: LegEnd.OUT_OF_MEMORY,
    JobState.NODE_FAILED: LegEnd.NODE_LOST,
    JobState.CANCELLED: LegEnd.CANCELLED,
    JobState.FAILED: LegEnd.LOST,
    JobState.FINISHED: LegEnd.LOST,
    JobState.UNKNOWN: LegEnd.LOST,
    JobState.QUEUED: LegEnd.LOST,
    JobState.HELD: LegEnd.LOST,
    JobState.RUNNING: LegEnd.LOST,
}


@pytest.mark.parametrize("state", JobState)
def test_every_state_of_a_job_is_some_end_of_its_silent_leg(state: JobState) -> None:
    found, reason = classify_end(status(state, reason="its words"), "5")
    assert found is ENDS[state]
    assert "job 5" in reason


def test_a_job_nobody_knows_is_lost_and_not_finished() -> None:
    end, reason = classify_end(None, "5")
    assert end is LegEnd.LOST and "no longer knows job 5" in reason


def test_the_exit_code_of_a_job_whose_folder_took_no_word_of_it_says_that_its_training_finished() -> None:
    end, reason = classify_end(status(JobState.FAILED, exit_code=DONE_UNTOLD), "5")
    assert end is LegEnd.DONE and "the run's folder could not be written" in reason


def test_a_cancelled_job_says_by_whom_and_a_failed_one_how() -> None:
    assert "CANCELLED by 0" in classify_end(status(JobState.CANCELLED, reason="CANCELLED by 0"), "5")[1]
    assert "signal 9" in classify_end(status(JobState.FAILED, signal=9), "5")[1]
    assert "exit code 3" in classify_end(status(JobState.FAILED, exit_code=3), "5")[1]
    assert "n7" in classify_end(status(JobState.NODE_FAILED), "5")[1]


def test_deciding_changes_nothing() -> None:
    history = History().leg(LegEnd.TIME_LIMIT, steps=[1])
    run: Run = history.run
    assert decide(run) == decide(run) == history.action


# ── Grid Engine: a deletion is announced, a kill is not ───────────────────────


def ended(state: JobState, **more: int) -> JobStatus:
    return JobStatus(id=JobId("7"), name="digits.1.ab", state=state, **more)  # type: ignore[arg-type]


def test_a_kill_that_was_not_announced_is_no_deletion_where_one_would_have_been() -> None:
    killed = ended(JobState.CANCELLED, signal=9)
    assert classify_end(killed, "7")[0] is LegEnd.CANCELLED
    assert classify_end(killed, "7", noticed=True)[0] is LegEnd.CANCELLED
    assert classify_end(killed, "7", noticed=False)[0] is LegEnd.LOST


@pytest.mark.parametrize("status", [None, ended(JobState.FAILED, exit_code=1), ended(JobState.FINISHED, exit_code=0)])
def test_a_deletion_that_was_announced_is_one_however_the_job_is_told_to_have_ended(status: JobStatus | None) -> None:
    assert classify_end(status, "7", noticed=True)[0] is LegEnd.CANCELLED


@pytest.mark.parametrize("state", [JobState.TIMED_OUT, JobState.NODE_FAILED, JobState.OUT_OF_MEMORY])
@pytest.mark.parametrize("noticed", [None, False])
def test_what_the_scheduler_knows_for_sure_needs_no_notice(state: JobState, noticed: bool | None) -> None:
    assert classify_end(ended(state), "7", noticed=noticed) == classify_end(ended(state), "7")


@pytest.mark.parametrize(("notice_expected", "without"), [(True, False), (False, None)])
def test_a_missing_notice_means_something_only_where_one_is_expected(notice_expected: bool, without: bool | None) -> None:
    history = History().leg(None)
    assert deletion_noticed(history.run.legs[1], notice_expected=notice_expected) is without
    history.events.append(ev.AskedToStop(leg=1, at=2e9, why=StopReason.DELETED))
    assert deletion_noticed(history.run.legs[1], notice_expected=notice_expected) is True


def test_a_training_that_says_it_is_not_to_be_run_again_is_not() -> None:
    history = History().leg(LegEnd.TIME_LIMIT, steps=[10])
    history.leg(None, steps=[20])
    history.events.append(ev.Ended(leg=2, at=history.tick(), end=LegEnd.CRASHED, reason="exit code 100", evidence="no data", final=True))
    action = closing(history)
    assert (action.state, action.evidence) == (RunState.FAILED, "no data")
    assert "failed for good: exit code 100" in action.cause


# ── batch scripts save where only they know ───────────────────────────────────


def script_history(limits: Limits | None = None) -> History:
    history = History(limits=limits)
    history.spec = make_spec(limits=limits, script=Script(name="train.sh", folder="/home/ada", shell=("/bin/bash",)))
    return history


def test_a_script_goes_on_at_time_limits_without_a_checkpoint_of_ours() -> None:
    history = script_history()
    for _ in range(30):
        history.leg(LegEnd.TIME_LIMIT)
    assert going_on(history).leg == 31


def test_a_script_that_asks_to_be_run_again_is() -> None:
    history = script_history()
    for _ in range(10):
        history.leg(LegEnd.AGAIN)
    assert going_on(history).leg == 11


def test_a_script_ends_at_its_limits_all_the_same() -> None:
    history = script_history(Limits(max_legs=3))
    for _ in range(3):
        history.leg(LegEnd.TIME_LIMIT)
    assert "max-legs" in closing(history).cause


def test_a_script_that_crashes_twice_in_the_same_way_has_failed_but_not_if_it_had_its_time_in_between() -> None:
    twice = script_history().leg(LegEnd.CRASHED, evidence=TRACEBACK).leg(LegEnd.CRASHED, evidence=TRACEBACK)
    assert closing(twice).state is RunState.FAILED
    apart = script_history().leg(LegEnd.CRASHED, evidence=TRACEBACK).leg(LegEnd.TIME_LIMIT).leg(LegEnd.CRASHED, evidence=TRACEBACK)
    assert going_on(apart).leg == 4


def test_going_on_from_a_checkpoint_is_offered_only_where_there_is_one() -> None:
    assert "continues from the last checkpoint" in closing(History().leg(LegEnd.CANCELLED, steps=[10])).next
    for history in (History().leg(LegEnd.CANCELLED), History().leg(LegEnd.AGAIN).stopped(), History().submitted(1).cancelled()):
        assert "starts it from the beginning: no checkpoint was stored" in closing(history).next
    history = History().leg(LegEnd.CANCELLED)
    history.spec = make_spec(script=Script(name="train.sh", folder="/home/ada", shell=("/bin/bash",)))
    assert "starts the script again" in closing(history).next


def test_the_advice_is_to_fix_the_code_only_where_it_was_started() -> None:
    history = History(limits=Limits(max_restarts=0)).leg(LegEnd.CRASHED, reason="loading the module cuda failed")
    assert closing(history).next.startswith("fix what comes before the training (its environment or launcher)")
    history.events.append(ev.Started(leg=1, at=1.0, pid=1))
    assert closing(history).next.startswith("fix the code and submit again")


# ── ends that nobody could explain ────────────────────────────────────────────


def unheard(history: History) -> History:
    """One more leg, of whose end the scheduler said nothing for ten minutes."""
    history.leg(None)
    number = max(history.run.legs)
    history.events.append(ev.EndFound(leg=number, at=history.tick(), end=LegEnd.LOST, reason="the scheduler does not answer", counts=False))
    return history


def test_ends_of_which_the_scheduler_said_nothing_do_not_count_as_failures() -> None:
    history = History(limits=Limits(max_restarts=1)).leg(LegEnd.TIME_LIMIT, steps=[1])
    for _ in range(5):
        unheard(history)
    assert history.action == Continue(leg=7, mem=None)
    assert isinstance(history.leg(LegEnd.CRASHED, evidence="one").action, Continue), "the first that counts"
    assert isinstance(history.leg(LegEnd.CRASHED, evidence="two").action, Close)


def test_a_run_of_which_nobody_ever_knows_anything_does_not_go_on_for_ever() -> None:
    history = History(limits=Limits(max_restarts=1)).leg(LegEnd.TIME_LIMIT, steps=[1])
    for _ in range(MOST_UNKNOWN_ENDS):
        assert isinstance(history.action, Continue)
        unheard(history)
    assert "for reasons outside the run" in closing(history).cause


# ── checkpoints of the training's own ─────────────────────────────────────────


def own_history(**rule: object) -> History:
    history = History()
    history.spec = make_spec(checkpoints=CheckpointRule(**rule))  # type: ignore[arg-type]
    return history


def self_saved(history: History, leg: int) -> History:
    history.events.append(ev.SelfSaved(leg=leg, at=history.at, files=["checkpoint.pth.tar"], bytes=1, written=history.at))
    return history


def test_legs_that_wrote_files_of_their_own_go_on_from_limit_to_limit() -> None:
    history = History()
    for leg in range(1, 6):
        history.leg(LegEnd.TIME_LIMIT)
        assert made_progress(self_saved(history, leg).run, history.run.legs[leg])
    assert going_on(history).leg == 6


def test_two_legs_in_a_row_that_wrote_nothing_end_the_run_and_the_advice_names_the_ways_out() -> None:
    history = self_saved(History().leg(LegEnd.TIME_LIMIT), 1).leg(LegEnd.TIME_LIMIT)
    assert going_on(history).leg == 3
    end = closing(history.leg(LegEnd.TIME_LIMIT))
    assert "legs 2 and 3" in end.cause and "no file of its own" in end.evidence
    assert "--checkpoints own" in end.next and "checkpoints: {paths:" in end.next


def test_a_training_whose_owner_says_that_it_keeps_its_own_is_trusted_like_a_batch_script() -> None:
    history = own_history(own=True)
    for _ in range(5):
        history.leg(LegEnd.TIME_LIMIT)
    assert going_on(history).leg == 6


def test_resume_can_say_that_it_keeps_its_own() -> None:
    history = History().leg(LegEnd.TIME_LIMIT).leg(LegEnd.TIME_LIMIT)
    history.events.append(ev.Resumed(leg=3, at=history.tick(), by="ada", changes={"own": True}))
    for _ in range(4):
        history.leg(LegEnd.TIME_LIMIT)
    assert going_on(history).leg == 7


def test_once_it_saves_with_us_its_other_files_are_no_progress() -> None:
    history = History().leg(LegEnd.TIME_LIMIT, steps=[10])
    for leg in (2, 3):
        self_saved(history.leg(LegEnd.TIME_LIMIT), leg)
    assert "older than both legs" in closing(history).evidence
    assert "--checkpoints own" not in closing(history).next


def test_where_paths_are_named_and_nothing_lies_there_the_end_says_so() -> None:
    history = own_history(paths=("last.ckpt",)).leg(LegEnd.TIME_LIMIT).leg(LegEnd.TIME_LIMIT)
    assert "checkpoints.paths (last.ckpt)" in closing(history).next


def test_a_crash_after_a_save_of_its_own_is_borne_but_not_the_same_one_again_and_again() -> None:
    history = History(limits=Limits(max_restarts=3))
    for leg in range(1, 4):
        self_saved(history.leg(LegEnd.CRASHED, evidence=TRACEBACK), leg)
        assert going_on(history).leg == leg + 1
    other = self_saved(history.leg(LegEnd.CRASHED, evidence=OTHER_TRACEBACK), 4)
    assert going_on(other).leg == 5
    for leg in range(5, 8):
        self_saved(history.leg(LegEnd.CRASHED, evidence=TRACEBACK), leg)
    assert going_on(history).leg == 8
    end = closing(self_saved(history.leg(LegEnd.CRASHED, evidence=TRACEBACK), 8))
    assert "the last 4 legs crashed in the same way" in end.cause and "continue from its own files" in end.next


def test_after_the_first_leg_that_saved_nothing_the_advice_comes_before_the_run_ends() -> None:
    history = History().leg(LegEnd.TIME_LIMIT).submitted(2)
    assert "leg 1 met its time limit" in next_action(history.run) and "--checkpoints own" in next_action(history.run)
    assert next_action(self_saved(history, 1).run) == ""
