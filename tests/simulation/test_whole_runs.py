"""Runs of weeks, with nodes, disks, rates and faults drawn from a seed, in seconds."""

from __future__ import annotations

import statistics

import pytest

from tests.simulation.run import simulate
from tests.simulation.world import DAY, GB, HOUR, Setup

WEEKS = Setup()  # 21 days in 24 h legs, 8 nodes, 80 GB every 30 min, a store of 1 GB/s with an hour a day at 0.1 GB/s
LARGE = Setup(days=30, nodes=16, pool=40, checkpoint=500 * GB, every=2 * HOUR, save=40.0, disk=1600 * GB)
SMALL_DISKS = Setup(days=7, disk=int(1.5 * 80 * GB))
UNRULY = Setup(days=7, preempted_every=DAY / 4, node_lost_every=DAY / 2, jitter=0.3, slow_every=6 * HOUR)
SHORT = Setup(days=0.25, leg=600.0, checkpoint=4 * GB, every=60.0, save=4.0, store=0.7 * GB, queue=(0.0, 60.0), start=5.0)


@pytest.mark.parametrize("setup", [WEEKS, LARGE, SMALL_DISKS, UNRULY, SHORT], ids=["weeks", "large", "small disks", "unruly", "short legs"])
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_committed_is_deleted_before_it_is_published_or_superseded_by_a_published_one(setup: Setup, seed: int) -> None:
    account = simulate(setup, seed)
    assert account.world.deleted_unpublished == []
    assert account.world.newest > 0 and len(account.legs) > 5


@pytest.mark.parametrize("setup", [WEEKS, LARGE, SMALL_DISKS], ids=["weeks", "large", "small disks"])
@pytest.mark.parametrize("seed", [3, 4])
def test_a_leg_gives_away_no_more_than_its_save_its_publish_and_two_minutes(setup: Setup, seed: int) -> None:
    legs = [leg for leg in simulate(setup, seed).legs if leg.given_away is not None]
    assert legs
    too_much = [leg for leg in legs if (leg.given_away or 0.0) > leg.save + leg.publish + 120.0]
    assert too_much == []


def test_three_weeks_with_slow_hours_and_faults_train_97_percent_of_what_the_faults_leave() -> None:
    accounts = [simulate(WEEKS, seed) for seed in range(5, 8)]
    assert min(account.goodput for account in accounts) >= 0.97
    assert statistics.mean(given for account in accounts for given in account.given_away) <= 240.0
    assert max(given for account in accounts for given in account.given_away[:1]) <= WEEKS.checkpoint / WEEKS.slow + 240.0


def test_a_disk_of_one_and_a_half_checkpoints_is_enough() -> None:
    account = simulate(SMALL_DISKS, 1)
    assert account.world.skipped_saves <= 2, "only where the one before is still being published, in a slow hour"
    assert account.goodput >= 0.97


def test_the_same_seed_gives_the_same_run() -> None:
    first, again = (simulate(SHORT, 9) for _ in range(2))
    assert first.legs == again.legs
