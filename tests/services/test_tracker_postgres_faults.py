"""PostgreSQL that goes away under load, servers that share it, and one that is killed: every acknowledged point is there, exactly once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from beds.postgres import Postgres
from onward.errors import StorageUnavailable
from onward.tracker.runs.registry import NewRun
from onward.tracker.store import Tracker
from tests.crash.test_tracker_kill import check_batches, load_until_killed
from tests.tracker_load import batch


def until(check: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_a_server_that_stops_at_once_under_load_costs_no_acknowledged_point(own_postgres: Postgres) -> None:
    address = own_postgres.create("onward")
    acknowledged: set[int] = set()
    refused = 0
    stop = threading.Event()
    with Tracker.open(address) as tracker:
        run = tracker.runs.create(NewRun()).run_id
        tracker.upkeep.start(0.05)

        def send(numbers: range) -> None:
            nonlocal refused
            for number in numbers:
                while not stop.is_set():
                    try:
                        tracker.ingest.points(run, batch(number))
                        acknowledged.add(number)
                        break
                    except StorageUnavailable as error:  # what a client sees as 503, and tries again
                        assert error.transient
                        refused += 1
                        time.sleep(0.02)

        threads = [threading.Thread(target=send, args=(range(n, 100_000, 4),), daemon=True) for n in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(4):
            before = len(acknowledged)
            until(lambda before=before: len(acknowledged) > before + 20)  # type: ignore[misc]
            own_postgres.stop(how="immediate")
            seen = refused
            until(lambda seen=seen: refused > seen)  # type: ignore[misc]
            own_postgres.start()
        before = len(acknowledged)
        until(lambda: len(acknowledged) > before + 20)
        stop.set()
        for thread in threads:
            thread.join()
        check_batches(tracker, run, set(acknowledged))


@pytest.mark.slow
def test_a_killed_server_of_ours_loses_nothing_there_either(address: str) -> None:
    with Tracker.open(address) as tracker:
        run = tracker.runs.create(NewRun()).run_id
        acknowledged: set[int] = set()
        for _ in range(4):
            acknowledged |= load_until_killed(address, run, max(acknowledged, default=-1) + 1, 0.3)
            check_batches(tracker, run, acknowledged)


def test_two_servers_that_share_a_database_do_not_disturb_each_other(address: str) -> None:
    with Tracker.open(address) as one, Tracker.open(address) as two:
        run = one.runs.create(NewRun()).run_id

        def send(tracker: Tracker, first: int) -> None:
            for number in range(first, 60, 2):
                tracker.ingest.points(run, batch(number))
                tracker.ingest.points(run, batch(number // 2))  # and what the other sends, again
                tracker.upkeep.tidy(resting=0)

        threads = [threading.Thread(target=send, args=(tracker, n)) for n, tracker in enumerate((one, two))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert check_batches(one, run, set(range(60))) == set(range(60))
        assert one.version() == two.version()


def test_one_of_several_servers_is_elected_and_another_when_it_leaves(address: str) -> None:
    with Tracker.open(address) as one, Tracker.open(address) as two:
        assert [one.election.won(), two.election.won(), one.election.won(), two.election.won()] == [True, False, True, False]
        one.election.leave()
        assert two.election.won()
        assert not one.election.won()


def test_servers_that_start_at_once_make_the_tables_once(own_postgres: Postgres) -> None:
    address = own_postgres.create("fresh")
    failures: list[BaseException] = []

    def start() -> None:
        try:
            Tracker.open(address).close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
