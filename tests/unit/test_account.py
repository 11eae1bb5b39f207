"""Where a run's time went, what is at risk, when it will be done, and its timeline: from events alone."""

from __future__ import annotations

import dataclasses

import pytest

from onward.cli.runs.show import account_words
from onward.model import events as ev
from onward.model.analysis.effort import effort, newest_published, queue_waits, work_at_risk
from onward.model.analysis.eta import TrainingPace, estimate_eta
from onward.model.analysis.timeline import timeline
from onward.model.analysis.why import next_action, why
from onward.model.run import LegEnd, Run, fold
from onward.model.spec import Limits, Resources
from onward.operations.runs.record import time_account
from tests.histories import make_spec

T = 1_000_000.0  # when the run was submitted


def asked(leg: int, at: float) -> list[ev.Event]:
    name = f"digits.{leg}.0"
    return [ev.Submitting(leg=leg, at=T + at, name=name), ev.Submitted(leg=leg, at=T + at, name=name, job=f"10{leg}")]


def began(leg: int, at: float, *, ready: float = 0, deadline: float | None = None) -> list[ev.Event]:
    until = None if deadline is None else T + deadline
    return [
        ev.Claimed(leg=leg, at=T + at, job=f"10{leg}", hosts=["n1"], deadline=until),
        ev.Started(leg=leg, at=T + at + ready, pid=7),
    ]


def published(leg: int, at: float, step: int, *, save: float = 0, stage: float = 0) -> ev.Event:
    return ev.Published(leg=leg, at=T + at, step=step, bytes=1, save_seconds=save, stage_seconds=stage)


def ended(leg: int, at: float, end: LegEnd, reason: str = "as told") -> ev.Event:
    return ev.Ended(leg=leg, at=T + at, end=end, reason=reason)


def restored(leg: int, at: float, step: int) -> ev.Event:
    return ev.Restored(leg=leg, at=T + at, step=step, checkpoint="c")


def entries(
    *events: ev.Event | list[ev.Event], resources: Resources | None = None, limits: Limits | None = None
) -> tuple[Run, list[ev.Event]]:
    flat = [one for event in events for one in (event if isinstance(event, list) else [event])]
    return fold(make_spec(resources=resources, limits=limits), flat), flat


def crashed_and_went_on() -> tuple[Run, list[ev.Event]]:
    """Leg 1: waits 100 s, ready after 10, saves step 50 at 200 (its state is of 190), crashes at 300. Leg 2: from step 50, at work."""
    return entries(
        *(asked(1, 0), began(1, 100, ready=10), published(1, 200, 50, save=4, stage=6), asked(2, 105), ended(1, 300, LegEnd.CRASHED)),
        *(began(2, 340, ready=20), restored(2, 350, 50), published(2, 450, 80)),
    )


# ── effort ────────────────────────────────────────────────────────────────────


def test_what_was_computed_after_the_checkpoint_that_was_gone_on_from_is_lost() -> None:
    run, _ = crashed_and_went_on()
    spent = effort(run, now=T + 500)
    assert spent.allocated == 200 + 160
    assert spent.kept == (190 - 110) + (450 - 360)
    assert spent.lost == 300 - 190
    assert spent.overhead == 10 + 20
    assert spent.at_risk == 50
    assert spent.goodput == pytest.approx(170 / 310)
    assert spent.waited == 100 + 40


def test_a_later_leg_that_went_back_further_takes_earlier_work_with_it() -> None:
    run, _ = entries(
        *(asked(1, 0), began(1, 0), published(1, 100, 50), published(1, 200, 100), ended(1, 200, LegEnd.TIME_LIMIT), asked(2, 10)),
        *(began(2, 200), restored(2, 200, 50), published(2, 300, 120), ended(2, 300, LegEnd.DONE)),
    )
    assert effort(run, now=T + 999).kept == 100 + 100


def test_a_leg_that_began_anew_leaves_nothing_of_the_one_before() -> None:
    run, _ = entries(asked(1, 0), began(1, 0), published(1, 90, 5), ended(1, 100, LegEnd.CRASHED), asked(2, 10), began(2, 100))
    assert effort(run, now=T + 100).kept == 0


def own(leg: int, at: float) -> ev.Event:
    return ev.SelfSaved(leg=leg, at=T + at + 5, files=["checkpoint.pth.tar"], bytes=1, written=T + at)


def test_of_legs_that_save_by_themselves_what_came_before_their_last_file_is_kept() -> None:
    run, _ = entries(
        *(asked(1, 0), began(1, 0), own(1, 50), own(1, 90), ended(1, 100, LegEnd.TIME_LIMIT), asked(2, 10)),
        *(began(2, 100), ended(2, 200, LegEnd.DONE)),
    )
    spent = effort(run, now=T + 999)
    assert (spent.kept, spent.lost, spent.unknown) == (90 + 100, 10, 0)
    at_risk = work_at_risk(entries(asked(1, 0), began(1, 0), own(1, 50))[0], now=T + 80, last_step=None)
    assert at_risk and at_risk.seconds == 30


def test_what_a_leg_does_before_its_first_own_save_is_at_risk_in_seconds_and_not_in_all_steps_of_the_run() -> None:
    run, events = entries(
        *(asked(1, 0), began(1, 0), own(1, 90), ended(1, 100, LegEnd.TIME_LIMIT), asked(2, 10)),
        *(began(2, 100),),
    )
    spent = effort(run, now=T + 140)
    assert (spent.kept, spent.lost, spent.at_risk, spent.unknown) == (90, 10, 40, 0) and spent.goodput == 0.9
    at_risk = work_at_risk(run, now=T + 140, last_step=5000)
    assert at_risk and (at_risk.seconds, at_risk.steps) == (40, None)
    later, _ = entries(*events, own(2, 130))
    at_risk = work_at_risk(later, now=T + 140, last_step=5000)
    assert at_risk and (at_risk.seconds, at_risk.steps) == (10, None)
    assert effort(later, now=T + 140).goodput == pytest.approx(120 / 130)


def test_the_goodput_is_unknown_where_a_leg_had_its_time_and_nobody_saw_it_save() -> None:
    run, _ = entries(asked(1, 0), began(1, 0), ended(1, 100, LegEnd.TIME_LIMIT), asked(2, 10), began(2, 100), ended(2, 200, LegEnd.DONE))
    spent = effort(run, now=T + 999)
    assert spent.unknown == 100 and spent.goodput is None and spent.lost == 0
    said = dict(account_words(time_account(run, TrainingPace(), now=T + 999)))
    assert said["goodput"] == "unknown: only the training knows what was useful of 2 min"


def test_what_was_computed_before_a_crash_without_any_save_is_lost() -> None:
    run, _ = entries(asked(1, 0), began(1, 0), ended(1, 100, LegEnd.CRASHED), asked(2, 10), began(2, 100), ended(2, 200, LegEnd.DONE))
    assert effort(run, now=T + 999).goodput == 0.5


def test_no_steps_are_at_risk_where_none_was_logged_since_the_checkpoint() -> None:
    run, _ = entries(asked(1, 0), began(1, 0), published(1, 50, 300))
    at_risk = work_at_risk(run, now=T + 80, last_step=300)
    assert at_risk and at_risk.steps is None and at_risk.seconds == 30


def test_a_run_that_never_began_has_no_goodput() -> None:
    run, _ = entries(asked(1, 0))
    assert effort(run, now=T + 60).goodput is None
    assert effort(run, now=T + 60).waited == 60


# ── waits, risk ───────────────────────────────────────────────────────────────


def test_a_leg_that_is_held_on_one_at_work_does_not_wait_yet() -> None:
    run, _ = entries(asked(1, 0), began(1, 30), asked(2, 40))
    assert [(w.leg, w.since - T, w.until and w.until - T) for w in queue_waits(run, now=T + 100)] == [(1, 0, 30)]


def test_a_wait_goes_on_until_the_leg_begins_and_not_beyond_the_run() -> None:
    run, events = entries(asked(1, 0), began(1, 30), asked(2, 40), ended(1, 90, LegEnd.TIME_LIMIT))
    assert queue_waits(run, now=T + 100)[-1].until is None
    assert queue_waits(run, now=T + 100)[-1].since == T + 90
    over, _ = entries(*events, ev.Closed(leg=1, at=T + 95, state="failed", cause="enough"))
    assert [w.leg for w in queue_waits(over, now=T + 100)] == [1]


def test_at_risk_is_what_came_after_the_state_that_the_newest_checkpoint_holds() -> None:
    run, _ = crashed_and_went_on()
    at_risk = work_at_risk(run, now=T + 500, last_step=95)
    assert at_risk is not None
    assert (at_risk.seconds, at_risk.steps, at_risk.since_step) == (50, 15, 80)
    newest = newest_published(run)
    assert newest is not None
    assert (newest.leg, newest.step) == (2, 80)


def test_before_the_first_checkpoint_everything_is_at_risk_and_after_the_end_nothing() -> None:
    run, events = entries(asked(1, 0), began(1, 10, ready=5))
    at_risk = work_at_risk(run, now=T + 40, last_step=9)
    assert at_risk is not None
    assert (at_risk.seconds, at_risk.steps, at_risk.since_step) == (25, 10, None)
    assert work_at_risk(run, now=T + 40, last_step=None) is not None
    over, _ = entries(*events, ended(1, 50, LegEnd.CRASHED))
    assert work_at_risk(over, now=T + 60, last_step=9) is None


# ── finish ────────────────────────────────────────────────────────────────────


def test_what_fits_into_this_leg_waits_for_nothing() -> None:
    run, _ = entries(asked(1, 0), began(1, 60, deadline=3660), resources=Resources(time=3600))
    done = estimate_eta(run, TrainingPace(step=99, total=200, rate=1.0, at=T + 160), now=T + 165)
    assert done is not None
    assert (done.at, done.legs, done.waiting) == (T + 160 + 100, 0, 0)
    assert done.words == "at the pace of the last steps, within this leg"


def test_what_does_not_fit_needs_legs_each_after_the_mean_wait_so_far() -> None:
    run, _ = entries(asked(1, 0), began(1, 60, ready=100, deadline=3660), resources=Resources(time=3600))
    done = estimate_eta(run, TrainingPace(step=0, total=8001, rate=1.0, at=T + 160), now=T + 160)
    assert done is not None
    assert done.legs == 2  # 3500 s here, 4500 s in legs of 3500
    assert done.waiting == 120
    assert done.at == T + 160 + 8000 + 120 + 200
    assert "in 2 more legs, each after a wait of 60 s, the mean of 1 so far" in done.words


def test_a_run_that_waits_needs_a_leg_whatever_is_left() -> None:
    run, _ = entries(asked(1, 0), began(1, 60), asked(2, 70), ended(1, 160, LegEnd.TIME_LIMIT))
    done = estimate_eta(run, TrainingPace(step=50, total=101, rate=1.0, at=T + 150), now=T + 170)
    assert done is not None
    assert (done.legs, done.at) == (1, T + 170 + 50 + (35 - 10))


def test_limits_that_will_be_met_first_are_told() -> None:
    for limits, words in ((Limits(max_legs=2), "max-legs is 2"), (Limits(total_time=100), "total-time")):
        run, _ = entries(asked(1, 0), began(1, 60, deadline=3660), resources=Resources(time=3600), limits=limits)
        done = estimate_eta(run, TrainingPace(step=0, total=20_000, rate=1.0, at=T + 60), now=T + 60)
        assert done is not None
        assert words in done.words


def test_nothing_is_expected_where_nothing_tells_how_much_is_left() -> None:
    run, events = entries(asked(1, 0), began(1, 60))
    for pace in (TrainingPace(), TrainingPace(step=5, total=10), TrainingPace(step=5, rate=1.0), TrainingPace(step=5, total=10, rate=0.0)):
        assert estimate_eta(run, pace, now=T + 60) is None
    over, _ = entries(*events, ev.Closed(leg=1, at=T + 95, state="cancelled", cause="enough"))
    assert estimate_eta(over, TrainingPace(step=5, total=10, rate=1.0), now=T + 99) is None
    assert (TrainingPace(step=4, total=10).fraction, TrainingPace(step=99, total=10).fraction, TrainingPace(step=4).fraction) == (
        0.5,
        1.0,
        None,
    )


# ── timeline ──────────────────────────────────────────────────────────────────


def test_a_timeline_has_every_stretch_and_moment_in_order_with_the_log_that_tells_more() -> None:
    run, events = crashed_and_went_on()
    line = timeline(run, [*events, ev.StopRequested(leg=2, at=T + 460, by="ada")], now=T + 500)
    assert [(s.kind, s.leg, s.start - T, s.end and s.end - T) for s in line.segments] == [
        ("queue", 1, 0, 100),
        ("leg", 1, 100, 300),
        ("prepare", 1, 100, 110),
        ("sync", 1, 194, 200),
        ("queue", 2, 300, 340),
        ("leg", 2, 340, None),
        ("prepare", 2, 340, 360),
        ("sync", 2, 450, 450),
    ]
    assert [(m.kind, m.leg, m.at - T, m.step) for m in line.marks] == [
        ("checkpoint", 1, 200, 50),
        ("end", 1, 300, None),
        ("checkpoint", 2, 450, 80),
        ("request", 2, 460, None),
    ]
    assert (line.start, line.end) == (T, T + 500)
    crash = line.segments[1]
    assert crash.log is not None
    assert (crash.log.leg, crash.log.stream, crash.state) == (1, "err", "crashed")
    assert crash.words == "leg 1 on n1, crashed: as told"


def test_a_timeline_of_a_run_that_was_made_known_after_its_end_spans_what_took_place() -> None:
    run, events = crashed_and_went_on()
    closed, _ = entries(*events, ev.Closed(leg=2, at=T + 480, state="cancelled", cause="enough"))
    late = dataclasses.replace(closed, spec=dataclasses.replace(run.spec, created=T + 9000))
    line = timeline(late, [], now=T + 9999)
    assert (line.start, line.end) == (T, T + 480)


def test_a_stall_shows_as_long_as_it_was_let_go_on() -> None:
    run, events = entries(asked(1, 0), began(1, 10), ended(1, 500, LegEnd.STALLED), limits=Limits(stall_time=120))
    stalls = [s for s in timeline(run, events, now=T + 600).segments if s.kind == "stall"]
    assert [(s.start, s.end) for s in stalls] == [(T + 380, T + 500)]


def test_a_long_pause_in_what_is_logged_shows_as_a_stall() -> None:
    run, events = entries(asked(1, 0), began(1, 10), ended(1, 2000, LegEnd.TIME_LIMIT), asked(2, 20), began(2, 2100))
    often = [T + 20 + n * 10 for n in range(20)]  # until 210, then nothing until 800
    again = [T + 800 + n * 10 for n in range(121)]  # until the leg's end
    second = [T + 2200 + n for n in range(10)]
    line = timeline(run, events, now=T + 3000, logged=[*often, *again, *second])
    assert [(s.leg, s.start - T, s.end and s.end - T) for s in line.segments if s.kind == "stall"] == [(1, 210, 800), (2, 2209, None)]
    assert [
        s for s in timeline(run, events, now=T + 2300, logged=[*often, *again, *second]).segments if s.kind == "stall" and s.leg == 2
    ] == []
    seldom = [T + 20 + n * 200 for n in range(8)]
    assert [s for s in timeline(run, events, now=T + 2100, logged=seldom).segments if s.kind == "stall"] == []


def test_of_very_many_checkpoints_some_are_drawn_and_the_last_of_each_leg_always() -> None:
    run, events = entries(
        *(asked(1, 0), began(1, 10), [published(1, 20 + n, n) for n in range(2500)], ended(1, 3000, LegEnd.TIME_LIMIT)),
        *(asked(2, 20), began(2, 3100), published(2, 3200, 2600)),
    )
    line = timeline(run, events, now=T + 4000)
    steps = [m.step for m in line.marks if m.kind == "checkpoint"]
    assert line.checkpoints == 2501
    assert 800 <= len(steps) <= 1001
    assert {2499, 2600} <= set(steps)
    assert len([s for s in line.segments if s.kind == "sync"]) == len(steps)


def test_what_people_asked_what_was_missed_and_how_it_closed_are_marks() -> None:
    run, events = entries(
        *(asked(1, 0), began(1, 10), ev.Missed(leg=1, at=T + 20, step=3, reason="full"), ev.Warned(leg=1, at=T + 21, text="careful")),
        *(ev.AskedToStop(leg=1, at=T + 22, why="request"), ended(1, 30, LegEnd.CANCELLED), ev.CancelRequested(leg=1, at=T + 25, by="bob")),
        *(ev.Closed(leg=1, at=T + 31, state="cancelled", cause="cancelled by bob"), ev.Refused(leg=2, at=T + 24, name="x", reason="no")),
    )
    line = timeline(run, events, now=T + 999)
    kinds = ["missed", "warning", "request", "warning", "request", "end", "closed"]
    assert [m.kind for m in line.marks] == kinds
    assert line.end == T + 31  # a run that is over is drawn up to its end
    again, events = entries(*events, ev.Resumed(leg=2, at=T + 50, by="ada", changes={"mem": 4096}))
    assert timeline(again, events, now=T + 60).marks[-1].words == "ada resumed the run with mem 4096"


# ── why, without a scheduler ──────────────────────────────────────────────────


def test_without_a_scheduler_the_sentence_says_what_the_journals_know() -> None:
    queued, _ = entries(asked(1, 0))
    assert why(queued, None, unheard="") == "leg 1 was submitted"
    assert next_action(queued) == ""
    run, _ = crashed_and_went_on()
    assert why(run, None) == "leg 2 runs on n1"
    refused, _ = entries(ev.Submitting(leg=1, at=T, name="x"), ev.Refused(leg=1, at=T, name="x", reason="no such partition"))
    assert "no such partition" in why(refused, None)
    assert next_action(refused) == "cancel it, then resume it with other resources: onward cancel k3x9q2m7"
    nothing, _ = entries()
    assert next_action(nothing) == "run onward tend"
    cancelled, _ = entries(asked(1, 0), ev.CancelRequested(leg=1, at=T, by="ada"))
    assert next_action(cancelled) == "run onward cancel k3x9q2m7 again to end its remaining jobs"


# ── as `onward show` says it ──────────────────────────────────────────────────


def test_show_tells_finish_risk_and_goodput_and_nothing_of_what_is_not_known() -> None:
    run, _ = crashed_and_went_on()
    said = dict(account_words(time_account(run, TrainingPace(step=95, total=100, rate=0.001, at=T + 490), now=T + 500)))
    assert said["at risk"] == "15 steps, 50 s of work since the checkpoint of step 80"
    assert said["goodput"] == "55% of 6 min in jobs was useful; 2 min lost; 2 min in queues"
    assert "finish" not in said  # within this leg: the line of its progress has it
    fresh, _ = entries(asked(1, 0))
    assert account_words(time_account(fresh, TrainingPace(), now=T)) == []
