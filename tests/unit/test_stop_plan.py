"""When a training is asked to stop: the plan as it learns, leg by leg and save by save."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.model import events as ev
from onward.model.run import Leg
from onward.supervisor.stop.plan import StopPlan, StopPlanner

DAY = 86400.0
GB = 10**9
seconds = st.floats(0, 1e5, allow_nan=False)


def leg(number: int = 1, *, stop: float | None = None, cut: bool = False, at: float = 0.0) -> Leg:
    made = Leg(number=number)
    if stop is not None:
        made.own = ev.Ended(leg=number, at=at, end="time_limit", reason="", stop_seconds=stop, stop_cut=cut)
    return made


def with_saves(made: Leg, *saves: tuple[float, float, float], size: int = 80 * GB) -> Leg:
    """Each save as (at, seconds to save, seconds to publish)."""
    for step, (at, save, stage) in enumerate(saves):
        made.published.append(ev.Published(leg=made.number, at=at, step=step, bytes=size, save_seconds=save, stage_seconds=stage))
    return made


def learned(*saves: tuple[float, float, float], size: int = 80 * GB, limit: float = DAY) -> StopPlanner:
    return StopPlanner.of([with_saves(leg(), *saves, size=size)], limit=limit)


legs = st.lists(
    st.builds(
        lambda n, stop, save, stage: with_saves(leg(n, stop=stop), (n, save, stage)),
        st.integers(1, 9),
        st.none() | seconds,
        seconds,
        seconds,
    ),
    max_size=5,
)


@given(legs=legs, limit=st.none() | st.floats(0.01, 1e7), several=st.booleans())
def test_a_plan_leaves_time_to_save_then_to_publish_and_half_the_leg_to_train(legs: list[Leg], limit: float | None, several: bool) -> None:
    plan = StopPlanner.of(legs, limit=limit, several=several).plan(0.0)
    length = DAY if limit is None else limit
    assert 0 < plan.kill < plan.ask <= length / 2
    assert plan.kill <= 0.35 * length


@given(legs=legs, limit=st.floats(-1e5, 0))
def test_a_deadline_that_has_passed_means_at_once(legs: list[Leg], limit: float) -> None:
    plan = StopPlanner.of(legs, limit=limit).plan(0.0)
    assert 0 <= plan.kill <= plan.ask <= 0.001


def test_while_nothing_is_known_the_lead_is_minutes_however_long_the_leg_is() -> None:
    day, days = (StopPlanner.of([], limit=limit).plan(0.0) for limit in (DAY, 3 * DAY))
    assert day == days == StopPlan(ask=270.0, kill=150.0)
    assert StopPlanner.of([], limit=100).plan(0.0).ask == pytest.approx(5 + 2 + 2)


def test_the_first_save_of_the_first_leg_sharpens_the_plan_at_once() -> None:
    planner = StopPlanner.of([], limit=DAY)
    planner.saved(at=1800.0, seconds=20.0, size=80 * GB)
    planner.published(at=1880.0, seconds=80.0, size=80 * GB)
    assert planner.plan(2000.0) == StopPlan(ask=25 + 10 + 88 + 30, kill=88 + 30)


def test_a_checkpoint_that_grew_is_planned_for_at_the_rate_that_was_measured() -> None:
    planner = learned((0.0, 10.0, 50.0), size=50 * GB)
    planner.publishing(at=100.0, size=100 * GB)
    planner.saved(at=100.0, seconds=20.0, size=100 * GB)
    assert planner.plan(100.0).kill == pytest.approx(110 + 30.0)


def test_small_checkpoints_say_nothing_about_the_time_a_large_one_takes_per_byte() -> None:
    planner = learned((0.0, 0.1, 0.1), size=10_000)
    planner.saved(at=1.0, seconds=5.0, size=10 * GB)
    assert planner.plan(1.0).kill < 120


def test_a_publish_that_drags_on_is_known_to_be_slow_before_it_ends() -> None:
    planner = learned((0.0, 10.0, 80.0), (1800.0, 10.0, 80.0))
    planner.publishing(at=3600.0, size=80 * GB)
    assert planner.plan(3650.0).kill == pytest.approx(118.0)
    assert planner.plan(4200.0).kill == pytest.approx(600 + 40 + 30.0)


def test_one_slow_hour_is_forgotten_within_a_few_saves() -> None:
    """Twice the worst ever seen cost 31 hours over the next 20 legs."""
    slow = [(1800.0 * n, 10.0, 800.0) for n in range(2)]
    planner = learned(*slow)
    assert planner.plan(3600.0).ask > 800
    for n in range(2, 6):
        planner.saved(at=1800.0 * n, seconds=10.0, size=80 * GB)
        planner.published(at=1800.0 * n, seconds=80.0, size=80 * GB)
    assert planner.plan(6 * 1800.0).ask < 200


def test_the_next_leg_starts_from_what_the_last_one_measured_however_long_it_waited() -> None:
    first = with_saves(leg(1, stop=15.0, at=DAY), *((1800.0 * n, 10.0, 80.0) for n in range(40)))
    planner = StopPlanner.of([first], limit=DAY)
    assert planner.plan(30 * DAY) == StopPlan(ask=1.25 * 15 + 118, kill=118)


def test_a_stop_that_was_cut_short_gets_twice_its_time_next() -> None:
    ample, cut = (StopPlanner.of([leg(stop=100.0, cut=short)], limit=DAY).plan(0.0) for short in (False, True))
    assert (ample.ask - ample.kill, cut.ask - cut.kill) == (125.0, 250.0)


def test_a_publish_that_the_deadline_cut_off_gets_twice_its_time_next() -> None:
    made = leg(1)
    made.missed.append(ev.Missed(leg=1, at=1.0, step=5, reason="no time", bytes=80 * GB, seconds=100.0))
    assert StopPlanner.of([made], limit=DAY).plan(0.0).kill == pytest.approx(200 + 20 + 30)


def test_stops_of_long_ago_fade_with_the_legs_since() -> None:
    slow, quick = leg(1, stop=600.0), [leg(n, stop=20.0) for n in range(2, 12)]
    plan = StopPlanner.of([slow, *quick], limit=DAY).plan(0.0)
    assert plan.ask - plan.kill == 25.0


def test_a_training_that_never_saved_is_given_time_for_a_state_of_its_size() -> None:
    planner = StopPlanner.of([], limit=DAY)
    planner.state_bytes, planner.store_rate = 100 * GB, 0.25 * GB
    assert planner.plan(0.0).kill == pytest.approx(400 + 40 + 30)
    planner.state_bytes = 10**14
    assert planner.plan(0.0).kill == pytest.approx(1800 + 30), "a guess is bounded"
    planner.saved(at=1.0, seconds=10.0, size=GB)
    planner.published(at=2.0, seconds=4.0, size=GB)
    assert planner.plan(3.0).kill == pytest.approx(4.4 + 30.0), "what was measured beats what was guessed"


def test_the_user_may_set_the_lead() -> None:
    planner = StopPlanner.of([with_saves(leg(), (0.0, 60.0, 600.0))], limit=DAY, set_lead=300.0)
    assert planner.plan(0.0).ask == 300.0 and 0 < planner.plan(0.0).kill < 300.0
    assert StopPlanner.of([], limit=100.0, set_lead=300.0).plan(0.0).ask == 90.0


def test_several_processes_are_asked_earlier_since_they_leave_together() -> None:
    quick = with_saves(leg(stop=0.1), (0.0, 0.01, 0.01), size=1)
    alone, together = (StopPlanner.of([quick], limit=60, several=several).plan(0.0) for several in (False, True))
    assert together.ask - together.kill == pytest.approx(9.0) and alone.ask - alone.kill == pytest.approx(1.0)


def test_a_plan_is_counted_back_from_the_deadline() -> None:
    plan = StopPlan(ask=100, kill=30)
    assert (plan.ask_at(1000.0), plan.kill_at(1000.0)) == (900.0, 970.0)
    assert (plan.ask_at(None), plan.kill_at(None)) == (None, None)


def test_a_training_that_is_asked_late_has_its_time_to_save_all_the_same() -> None:
    plan = StopPlan(ask=100, kill=30)
    assert plan.kill_at(1000.0, asked_at=900.0) == 970.0
    assert plan.kill_at(1000.0, asked_at=915.0) == 985.0, "it will not be published in time, and stays on the node"
    assert plan.kill_at(1000.0, asked_at=980.0) == 990.0


def test_legs_that_never_stopped_by_themselves_teach_nothing() -> None:
    silent = leg(1)
    silent.own = ev.Ended(leg=1, at=1.0, end="crashed", reason="")
    assert StopPlanner.of([silent], limit=1000).plan(0.0) == StopPlanner.of([], limit=1000).plan(0.0)


# ── probes of the store ───────────────────────────────────────────────────────


def test_near_the_end_the_store_is_measured_where_the_last_publish_is_old() -> None:
    planner = learned((0.0, 10.0, 80.0))
    assert planner.probe_size(30.0, DAY) == 800_000_000, "beside a publish, to compare the two"
    planner.probed(at=31.0, seconds=0.4, size=800_000_000)
    assert planner.probe_size(100.0, DAY) == 0 and planner.probe_size(40_000.0, DAY) == 0
    assert planner.probe_size(DAY - 1500, DAY) == 800_000_000
    planner.probed(at=DAY - 1490, seconds=4.0, size=800_000_000)
    assert planner.plan(DAY - 1480).kill == pytest.approx(800 + 40 + 30), "ten times as slow as beside the publish"
    assert planner.probe_size(DAY - 1400, DAY) == 0, "not again so soon"
    planner.probed(at=DAY - 900, seconds=0.4, size=800_000_000)
    assert planner.plan(DAY - 880).kill == pytest.approx(118.0), "and it is known when it is well again"


def test_small_checkpoints_need_no_probe_and_nor_does_a_lead_that_the_user_set() -> None:
    assert learned((0.0, 0.1, 0.1), size=1000).probe_size(DAY - 100, DAY) == 0
    assert StopPlanner.of([], limit=DAY, set_lead=60.0).probe_size(0.0, DAY) == 0
    assert learned((0.0, 10.0, 80.0)).probe_size(0.0, None) == 0


def test_where_nothing_was_saved_the_store_is_measured_once() -> None:
    planner = StopPlanner.of([], limit=DAY)
    assert planner.probe_size(0.0, DAY) == 64 << 20
    planner.probed(at=1.0, seconds=0.064 * 1.048576, size=64 << 20)
    assert planner.probe_size(2.0, DAY) == 0 and planner.store_rate == pytest.approx(GB / 1.5)


def test_a_publish_that_nobody_timed_teaches_nothing() -> None:
    """What several nodes carried over for a killed leg is told with 0 s; taken for a rate, it made the next lead far too short."""
    timed, salvaged = (100.0, 5.0, 60.0), (200.0, 0.0, 0.0)
    assert learned(timed, salvaged).plan(300.0).kill == learned(timed).plan(300.0).kill
