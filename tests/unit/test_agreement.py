"""All ranks leave at the same call of should_stop(): checked on the supervisor's rule, on a model of every order, and on real files."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onward.rundir.layout import LegLocal
from onward.sdk import contract
from onward.sdk.ranks import Ranks
from onward.sdk.stop import GO, LEAVE, WAIT, AgreedStop, StopFile, StopPromise, stop_source
from onward.supervisor.ranks.rank_group import RankGroup
from onward.supervisor.ranks.stop_agreement import RankReport, StopAgreement, agreed_call, allowed_call, patience, uneven_calls_warning

# ── the supervisor's rule ─────────────────────────────────────────────────────


def report(rank: int, *, limit: int | None = None, count: int = 100, world: int = 3, interval: float = 0.1) -> RankReport:
    return RankReport(rank=rank, world=world, count=count, limit=limit, interval=interval)


def test_nothing_is_agreed_while_nobody_has_promised() -> None:
    assert agreed_call([], waited=1e9) is None
    assert agreed_call([report(0), report(1)], waited=1e9) is None


def test_the_furthest_limit_is_agreed_once_all_have_promised() -> None:
    reports = [report(0, limit=20), report(1, limit=22), report(2, limit=21)]
    assert agreed_call(reports, waited=0) == StopAgreement(number=22)
    assert agreed_call(reports[:2], waited=0) == StopAgreement(number=22), "rank 2 never calls: that is clear from the others' counts"
    assert agreed_call([*reports[:2], report(2)], waited=0) is None, "rank 2 calls, and has not promised yet"


def test_at_the_first_calls_a_rank_that_has_not_called_is_waited_for() -> None:
    early = [report(0, limit=3, count=2), report(1, limit=3, count=2)]
    assert agreed_call(early, waited=1) is None
    assert agreed_call(early, waited=15) == StopAgreement(number=3, without=(2,))


def test_a_rank_that_has_ended_is_not_waited_for() -> None:
    assert agreed_call([report(0, limit=20), report(1, limit=20), report(2)], waited=0, gone=[2]) == StopAgreement(number=20)


def test_the_wait_for_a_promise_is_bounded_and_as_long_as_some_steps() -> None:
    slow = [report(0, limit=20, interval=60), report(1, limit=20, interval=60), report(2, interval=60)]
    assert patience(slow) == 180
    assert agreed_call(slow, waited=100) is None
    assert agreed_call(slow, waited=180) == StopAgreement(number=20, without=(2,))


def test_a_rank_that_waits_for_others_may_go_on_so_that_they_can_promise() -> None:
    promised, late = report(0, limit=20, count=20), report(1, count=20)
    assert allowed_call([promised, late], allowed=0) is None, "it does not wait yet"
    waits = RankReport(rank=0, world=2, count=20, limit=20, interval=0.1, waiting=True)
    assert allowed_call([waits, late], allowed=0) == 30
    assert allowed_call([waits, late], allowed=30) is None, "it has been told, and has not got there"
    assert agreed_call([waits, report(1, limit=22, world=2)], waited=0, allowed=30) == StopAgreement(number=30)


# ── every order in which things can be seen ───────────────────────────────────


class Model:
    """Ranks, a supervisor, and a wire between each rank and it on which everything may be late. One rank at a time does one thing."""

    def __init__(self, ahead: list[int], *, in_step: bool) -> None:
        self.ranks = [StopPromise() for _ in ahead]
        self.ahead = ahead
        self.in_step = in_step
        self.within_call = [False for _ in ahead]
        self.left: dict[int, int] = {}
        self.sees_asked = [False for _ in ahead]
        self.sees_number: list[int | None] = [None for _ in ahead]
        self.sees_allowed = [0 for _ in ahead]
        self.allowed = 0
        self.sent: dict[int, RankReport] = {}  # on its way to the supervisor
        self.reports: dict[int, RankReport] = {}
        self.asked = False
        self.number: int | None = None

    def call(self, rank: int) -> None:
        """Begin a call of should_stop(), or look again in one that waits. In step: nobody begins a call before all have ended the last."""
        promise = self.ranks[rank]
        if rank in self.left:
            return
        if not self.within_call[rank]:
            done = min(other.count - waits for other, waits in zip(self.ranks, self.within_call, strict=True))
            if self.in_step and promise.count > done:
                return
            promise.count += 1
            self.within_call[rank] = True
        number, allowed = self.sees_number[rank], self.sees_allowed[rank]
        answer = promise.answer(asked=self.sees_asked[rank], number=number, allowed=allowed, ahead=self.ahead[rank])
        self.sent[rank] = RankReport(
            rank=rank, world=len(self.ranks), count=promise.count, limit=promise.limit, interval=1.0, waiting=answer == WAIT
        )
        if answer == LEAVE:
            self.left[rank] = promise.count
        if answer != WAIT:
            self.within_call[rank] = False

    def deliver_report(self, rank: int) -> None:
        if rank in self.sent:
            self.reports[rank] = self.sent[rank]

    def deliver_stop(self, rank: int) -> None:
        self.sees_asked[rank] = self.asked
        self.sees_number[rank] = self.number
        self.sees_allowed[rank] = self.allowed

    def supervise(self) -> None:
        if self.asked and self.number is None and self.reports:
            reports = list(self.reports.values())
            agreed = agreed_call(reports, waited=0, allowed=self.allowed) if len(reports) == len(self.ranks) else None
            self.number = agreed.number if agreed else None
            if not agreed:
                self.allowed = allowed_call(reports, allowed=self.allowed) or self.allowed


acts = st.tuples(st.sampled_from(["call", "call", "call", "report", "stop", "supervise", "ask"]), st.integers(0, 4))


@settings(max_examples=1500, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.booleans(), st.lists(acts, max_size=300))
def test_no_order_of_seeing_lets_one_rank_leave_where_another_goes_on(
    ahead: list[int], in_step: bool, order: list[tuple[str, int]]
) -> None:
    model = Model(ahead, in_step=in_step)
    for act, who in order:
        perform(model, act, who % len(ahead))
        assert len(set(model.left.values())) <= 1, "ranks left at different calls"
        if model.left:
            leaves_at = next(iter(model.left.values()))
            assert all(rank.count <= leaves_at for rank in model.ranks), "a rank went on beyond the call at which another left"
    for _ in range(40 * len(ahead)):  # let everything arrive: all leave in the end, whatever came before
        for rank in range(len(ahead)):
            for act in ("ask", "stop", "call", "report", "supervise"):
                perform(model, act, rank)
    assert len(model.left) == len(ahead), "a rank stayed behind"
    assert len(set(model.left.values())) == 1


def perform(model: Model, act: str, rank: int) -> None:
    match act:
        case "call":
            model.call(rank)
        case "report":
            model.deliver_report(rank)
        case "stop":
            model.deliver_stop(rank)
        case "supervise":
            model.supervise()
        case _:
            model.asked = True


def test_a_promise_is_kept() -> None:
    promise = StopPromise()
    promise.count = 5
    assert promise.answer(asked=False, number=None, ahead=2) == GO and promise.limit is None
    assert promise.answer(asked=True, number=None, ahead=2) == GO and promise.limit == 7
    promise.count = 7
    assert promise.answer(asked=True, number=None, ahead=2) == WAIT
    assert promise.answer(asked=True, number=8, ahead=2) == GO
    promise.count = 8
    assert promise.answer(asked=True, number=8, ahead=2) == LEAVE


# ── on files, with ranks as threads ───────────────────────────────────────────


def rank_of(local: LegLocal, rank: int, world: int) -> AgreedStop:
    made = stop_source({"ONWARD_STOP_FILE": str(local.stop_file), "ONWARD_RANKS_DIR": str(local.ranks)}, Ranks(rank, world), agree=True)
    assert isinstance(made, AgreedStop)
    return made


@pytest.fixture
def local(tmp_path: Path) -> LegLocal:
    made = LegLocal(tmp_path / "leg-0001")
    made.make()
    return made


def live(rank_group: RankGroup, ranks: list[threading.Thread], *, ask_after: float) -> None:
    began = time.monotonic()
    give_up = began + 120
    while any(thread.is_alive() for thread in ranks):
        if time.monotonic() - began > ask_after:
            rank_group.ask()
        rank_group.look(time.time())
        time.sleep(0.01)
        assert time.monotonic() < give_up, "a rank did not leave"


def test_ranks_of_one_node_all_leave_at_the_same_call(local: LegLocal) -> None:
    world, left = 4, {}
    barrier = threading.Barrier(world, timeout=60)

    def train(rank: int) -> None:
        stop, calls = rank_of(local, rank, world), 0
        while True:
            calls += 1
            if stop.call():
                left[rank] = calls
                return
            time.sleep(0.001 * (1 + rank))
            barrier.wait()

    threads = [threading.Thread(target=train, args=(rank,), daemon=True) for rank in range(world)]
    for thread in threads:
        thread.start()
    live(RankGroup(local), threads, ask_after=0.3)
    assert len(left) == world and len(set(left.values())) == 1, left


def test_rank_0_alone_may_ask_and_tell_the_others(local: LegLocal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.supervisor.ranks.stop_agreement._PATIENCE", 0.5)
    left: list[int] = []

    def train() -> None:
        stop, calls = rank_of(local, 0, 8), 0
        while not stop.call():
            calls += 1
            time.sleep(0.002)
        left.append(calls)

    thread = threading.Thread(target=train, daemon=True)
    thread.start()
    live(RankGroup(local), [thread], ask_after=0.2)
    assert left


def test_a_rank_that_is_sent_term_does_not_leave_alone_but_says_so(local: LegLocal) -> None:
    rank_group, stop = RankGroup(local), rank_of(local, 1, 2)
    assert stop.call() is False
    rank_group.look(0)
    assert not rank_group.ranks.termed
    stop.term()
    assert stop.call() is False
    rank_group.look(0)
    assert rank_group.ranks.termed


def test_a_number_that_was_passed_already_is_left_at_at_once(local: LegLocal) -> None:
    stop = rank_of(local, 1, 2)
    assert [stop.call() for _ in range(5)] == [False] * 5
    local.stop_file.write_text("3")
    assert stop.call() is True


def test_a_single_process_needs_no_agreement(local: LegLocal) -> None:
    env = {"ONWARD_STOP_FILE": str(local.stop_file), "ONWARD_RANKS_DIR": str(local.ranks)}
    for ranks, agreeing in ((Ranks(), True), (Ranks(1, 4), False)):
        local.stop_file.unlink(missing_ok=True)
        stop = stop_source(env, ranks, agree=agreeing)
        assert isinstance(stop, StopFile) and stop.call() is False
        RankGroup(local).ask()
        assert stop.call() is True
    assert os.listdir(local.ranks) == []


def test_the_note_of_a_rank_says_how_far_it_is_and_is_written_seldom(local: LegLocal) -> None:
    stop = rank_of(local, 2, 4)
    stop.call()
    note = local.ranks / "rank-00002.json"
    written = note.stat().st_mtime_ns
    assert json.loads(note.read_text())["limit"] is None
    for _ in range(100):
        stop.call()
    assert note.stat().st_mtime_ns == written
    RankGroup(local).ask()
    stop.call()
    body = json.loads(note.read_text())
    assert body["count"] == 102 and body["limit"] > 102 and (body["rank"], body["world"]) == (2, 4)


def test_a_stop_that_is_there_before_the_first_call_is_promised_for_the_next(tmp_path: Path) -> None:
    """The time since the first call is that of writing a note: no measure of a step."""
    stop = tmp_path / "stop"
    stop.touch()
    rank = AgreedStop(str(stop), str(tmp_path), Ranks(rank=0, world_size=2, local_rank=0))
    assert not rank.call()
    note = json.loads((tmp_path / f"{contract.rank_name(0)}.json").read_text())
    assert note["limit"] == 2


def test_who_waits_at_an_early_call_is_allowed_no_further_than_it_has_come() -> None:
    early = RankReport(rank=0, world=2, count=2, limit=2, interval=1e-6, waiting=True)
    assert allowed_call([early, RankReport(rank=1, world=2)], allowed=0) == 4


def test_ranks_that_call_not_equally_often_are_told() -> None:
    def promises(*limits: int, interval: float = 0.2) -> list[RankReport]:
        return [RankReport(rank=rank, world=len(limits), limit=limit, interval=interval) for rank, limit in enumerate(limits)]

    assert "rank 1 has called should_stop() about 7 times more often than rank 0" in uneven_calls_warning(promises(222, 229, 225))
    assert uneven_calls_warning(promises(222, 225, 223)) == ""
    assert uneven_calls_warning(promises(1000, 1500, interval=0.001)) == "", "a moment's difference is many short calls"
    assert uneven_calls_warning(promises(5)) == "" and uneven_calls_warning([]) == ""


def test_the_remark_on_uneven_calls_comes_with_the_agreement(local: LegLocal) -> None:
    rank_group = RankGroup(local)
    rank_group.ask()
    for rank, limit in enumerate((20, 40)):
        note = {"rank": rank, "world": 2, "count": limit - 1, "limit": limit, "interval": 0.5}
        (local.ranks / f"rank-{rank:05d}.json").write_text(json.dumps(note))
    rank_group.look(1.0)
    assert local.stop_file.read_text() == "40" and "about 20 times" in rank_group.remark
