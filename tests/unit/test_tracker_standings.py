"""Standings: the mean of the last minutes is one of their figures, the wait in the queue another."""

from __future__ import annotations

import pytest

from onward.model.analysis.run_summary import RunSummary, moving_mean


def test_a_mean_of_the_last_minutes_follows_slowly_and_never_goes_back_in_time() -> None:
    assert moving_mean(None, None, 0.8, 100.0) == 0.8
    assert moving_mean(0.8, 100.0, 0.0, 110.0) == pytest.approx(0.8, abs=0.05)
    assert moving_mean(0.8, 100.0, 0.0, 2000.0) == pytest.approx(0.0, abs=0.01)
    assert moving_mean(0.8, 100.0, 0.0, 90.0) == 0.8


def test_a_wait_is_over_when_the_leg_began_and_none_where_the_run_ended_before() -> None:
    assert RunSummary(queued_at=10.0, begun_at=25.0).queue_wait(99.0, over=False) == 15.0
    assert RunSummary(queued_at=10.0).queue_wait(99.0, over=False) == 89.0
    assert RunSummary(queued_at=10.0).queue_wait(99.0, over=True) is None
    assert RunSummary().queue_wait(99.0, over=False) is None
