from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from onward.model import events as ev
from onward.model.policy.lifecycle import decide
from onward.model.run import LegEnd, RunState, fold
from onward.model.spec import Limits, Resources, RunSpec, spec_from_json, spec_to_json
from tests.histories import History, make_spec

Told = tuple[RunSpec, list[ev.Event]]


@st.composite
def told_histories(draw: st.DrawFn) -> Told:
    """Any run: legs that end in any way, requests, closings and resumes between them, and what the queue did to their jobs."""
    history = History(resources=Resources(mem=1024), limits=Limits(max_restarts=draw(st.integers(0, 3)), mem_max=4096))
    step = 0
    for number in range(1, draw(st.integers(0, 6)) + 1):
        if draw(st.booleans()):  # an asking that came to nothing
            history.submitted(number, job="900")
            name = f"digits.{number}.{len(history.events) - 2:08x}"
            history.events.append(
                draw(
                    st.sampled_from(
                        [
                            ev.Withdrawn(leg=number, at=history.tick(), name=name, job="900", reason="too small"),
                            ev.Refused(leg=number, at=history.tick(), name=name, reason="no such queue"),
                            ev.Gone(leg=number, at=history.tick(), name=name, reason="forgotten"),
                            ev.Warned(leg=number, at=history.tick(), text="hm"),
                        ]
                    )
                )
            )
        steps = draw(st.lists(st.integers(step, step + 20), max_size=3))
        step = max([step, *steps])
        history.leg(draw(st.sampled_from(LegEnd)), steps=steps, silent=draw(st.booleans()), host=draw(st.sampled_from(["a", "b"])))
        if draw(st.booleans()):  # the scheduler was asked twice, and said two things
            history.events.append(ev.EndFound(leg=number, at=history.tick(), end=draw(st.sampled_from(LegEnd)), reason="asked again"))
        match draw(st.sampled_from(["on", "on", "cancel", "stop", "resume"])):
            case "cancel":
                history.cancelled()
            case "stop":
                history.stopped()
            case "resume":
                history.closed().resumed(mem=number)
            case _:
                pass
    if draw(st.booleans()):
        history.leg(None)
    return history.spec, history.events


@settings(max_examples=150, deadline=None)
@given(history=told_histories(), data=st.data())
def test_a_run_is_the_same_in_whatever_order_its_events_are_read(history: Told, data: st.DataObject) -> None:
    spec, events = history
    shuffled = data.draw(st.permutations(events))
    assert fold(spec, shuffled) == fold(spec, events)
    assert decide(fold(spec, shuffled)) == decide(fold(spec, events))


@settings(max_examples=150, deadline=None)
@given(history=told_histories())
def test_events_come_back_from_a_journal_as_they_were_written(history: Told) -> None:
    _, events = history
    assert [ev.parse_event(event.line()) for event in events] == events


@settings(max_examples=150, deadline=None)
@given(history=told_histories())
def test_reading_an_event_twice_makes_no_other_state(history: Told) -> None:
    """A desk that crashed after its write may write the same again."""
    spec, events = history
    once, twice = fold(spec, events), fold(spec, [*events, *events])
    assert once.state == twice.state
    assert decide(once) == decide(twice)


def test_a_run_waits_runs_and_ends() -> None:
    history = History()
    assert history.run.state is RunState.SUBMITTED
    assert history.submitted(1).run.state is RunState.SUBMITTED
    assert history.leg(None).run.state is RunState.RUNNING
    assert History().leg(LegEnd.TIME_LIMIT).run.state is RunState.WAITING
    assert History().leg(LegEnd.TIME_LIMIT).submitted(2).run.state is RunState.WAITING
    assert History().leg(LegEnd.DONE).closed("finished").run.state is RunState.FINISHED
    assert History().leg(LegEnd.CRASHED).closed("failed").resumed().run.state is RunState.WAITING


def test_a_legs_own_last_word_beats_what_the_scheduler_said() -> None:
    history = History().leg(LegEnd.TIME_LIMIT, reason="stopped in time")
    history.events.append(ev.EndFound(leg=1, at=history.tick(), end=LegEnd.CANCELLED, reason="the scheduler's word"))
    leg = history.run.legs[1]
    assert (leg.end, leg.reason) == (LegEnd.TIME_LIMIT, "stopped in time")


def test_any_answer_of_the_scheduler_beats_having_had_none() -> None:
    history = History().leg(LegEnd.PREEMPTED, silent=True)
    history.events.append(ev.EndFound(leg=1, at=history.tick(), end=LegEnd.LOST, reason="no answer"))
    assert history.run.legs[1].end is LegEnd.PREEMPTED


def test_the_newest_asking_stands_unless_it_was_withdrawn_or_refused() -> None:
    history = History().submitted(1, job="7").submitted(1, job="8")
    assert history.run.legs[1].job == "8"
    name = history.events[-1].name  # type: ignore[attr-defined]
    history.events.append(ev.Withdrawn(leg=1, at=history.tick(), name=name, job="8", reason="too small"))
    assert history.run.legs[1].job == "7"


def test_a_withdrawal_read_before_its_submission_still_withdraws() -> None:
    history = History().submitted(1, job="7")
    name = history.events[-1].name  # type: ignore[attr-defined]
    early = ev.Withdrawn(leg=1, at=history.at - 100, name=name, job="7", reason="a clock that goes wrong")
    assert fold(history.spec, [early, *history.events]).legs[1].submission is None


def test_the_job_of_a_claimed_leg_is_the_one_that_claimed_it() -> None:
    history = History().leg(None).submitted(1, job="999")
    assert history.run.legs[1].job == "101"


def test_a_spec_comes_back_as_it_was_frozen_and_ignores_what_it_does_not_know() -> None:
    spec = make_spec(resources=Resources(mem=5, gpus="a100:2"), limits=Limits(max_legs=7), params={"lr": 0.1, "deep": True})
    plain = spec_to_json(spec)
    plain["of_tomorrow"] = 1
    plain["resources"]["colour"] = "red"
    assert spec_from_json(plain) == spec
