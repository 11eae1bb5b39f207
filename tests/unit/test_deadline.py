from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from onward.model import event as ev
from onward.model.run import Leg
from onward.supervisor.deadline import StopPlan, plan_stop

seconds = st.floats(0, 1e5, allow_nan=False)


def leg(*, stop: float | None = None, save: float | None = None, stage: float = 0.0) -> Leg:
    made = Leg(number=1)
    if stop is not None:
        made.own = ev.Ended(leg=1, at=1.0, end="time_limit", reason="", stop_seconds=stop)
    if save is not None:
        made.published.append(ev.Published(leg=1, at=1.0, step=1, bytes=1, save_seconds=save, stage_seconds=stage))
    return made


legs = st.lists(st.builds(leg, stop=st.none() | seconds, save=st.none() | seconds, stage=seconds), max_size=5)


@given(legs=legs, limit=st.none() | st.floats(0.01, 1e7))
def test_a_plan_leaves_time_to_save_then_to_carry_over_and_half_the_leg_to_train(legs: list[Leg], limit: float | None) -> None:
    plan = plan_stop(legs, limit=limit)
    length = 86400.0 if limit is None else limit
    assert 0 < plan.kill < plan.ask <= length / 2
    assert plan.kill <= length / 4


@given(legs=legs, limit=st.floats(-1e5, 0))
def test_a_deadline_that_has_passed_means_at_once(legs: list[Leg], limit: float) -> None:
    plan = plan_stop(legs, limit=limit)
    assert 0 <= plan.kill <= plan.ask <= 0.001


@given(stop=st.integers(0, 10**5), save=st.integers(0, 10**5), stage=st.integers(0, 10**5))
def test_on_a_long_leg_the_next_stop_gets_twice_what_the_slowest_took(stop: int, save: int, stage: int) -> None:
    plan = plan_stop([leg(stop=stop), leg(save=save, stage=stage)], limit=1e7)
    assert plan.kill >= 2 * stage
    assert plan.ask - plan.kill >= 2 * max(stop, save)


@given(legs=legs, more=st.builds(leg, stop=seconds, save=seconds, stage=seconds))
def test_a_slower_stop_never_makes_the_next_plan_shorter(legs: list[Leg], more: Leg) -> None:
    measured = [*legs, leg(stop=0, save=0)]
    before, after = plan_stop(measured, limit=86400), plan_stop([*measured, more], limit=86400)
    assert after.ask >= before.ask and after.kill >= before.kill


def test_while_nothing_is_known_a_share_of_the_leg_is_kept_free() -> None:
    assert plan_stop([], limit=86400) == StopPlan(ask=0.1 * 86400 + 0.04 * 86400 + 60, kill=0.04 * 86400 + 60)
    assert plan_stop([], limit=100).ask == 10 + 4 + 3


def test_a_plan_is_counted_back_from_the_deadline() -> None:
    plan = StopPlan(ask=100, kill=30)
    assert (plan.ask_at(1000.0), plan.kill_at(1000.0)) == (900.0, 970.0)
    assert (plan.ask_at(None), plan.kill_at(None)) == (None, None)


def test_legs_that_never_stopped_by_themselves_teach_nothing() -> None:
    silent = replace(leg(), own=ev.Ended(leg=1, at=1.0, end="crashed", reason=""))
    assert plan_stop([silent], limit=1000) == plan_stop([], limit=1000)


def test_several_processes_are_asked_earlier_since_they_leave_together() -> None:
    quick = [leg(stop=0.1, save=0.01, stage=0.01)]
    alone, together = plan_stop(quick, limit=60), plan_stop(quick, limit=60, several=True)
    assert together.ask - together.kill == 9.0 and alone.ask - alone.kill == 1.0
    assert plan_stop(quick, limit=86400, several=True).ask - together.kill > 9.0
    assert plan_stop([leg(stop=40.0)], limit=600, several=True).ask - plan_stop([leg(stop=40.0)], limit=600).ask == 0
