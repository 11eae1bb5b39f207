"""The loop that watches a training, with time in the test's hand: a training here is a table of what it does when."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL
from types import SimpleNamespace

import pytest

from onward.checkpoints.publishing.publisher import PublishReport
from onward.checkpoints.watching.save_in_progress import is_being_saved
from onward.clock import ManualClock
from onward.model.events import AskedToStop, Event, LimitMoved, Missed, Warned
from onward.model.spec import Limits
from onward.model.stop_reason import StopReason
from onward.rundir.layout import LegLocal
from onward.rundir.progress import SpoolReader
from onward.sdk import contract
from onward.supervisor.leg.watch import TrainingWatch
from onward.supervisor.ranks.rank_group import RankGroup
from onward.supervisor.stop.plan import StopPlan, StopPlanner
from onward.supervisor.stop.suspension import SuspensionClock
from onward.supervisor.stop.time_limit import TimeLimit
from tests.histories import make_spec

START = 1_000_000.0
Does = Callable[["Bench"], None]


class FakeChild:
    pid = 0

    def __init__(self) -> None:
        self.gone = threading.Event()
        self.gone.set()
        self.code: int | None = None

    @property
    def running(self) -> bool:
        return self.code is None

    def signal(self, number: int) -> None: ...

    def kill(self, number: int = SIGKILL) -> None:
        if self.running and number == SIGKILL:
            self.code = -number


class Bench:
    """A training that does what `plan` says at each second, and ends when it is killed or says so."""

    def __init__(self, folder: Path, plan: dict[float, Does], *, deadline: float | None = None) -> None:
        self.local = LegLocal(folder)
        self.local.make()
        self.clock = ManualClock(START)
        self.child = FakeChild()
        self.reports: list[PublishReport] = []
        self.written: list[Event] = []
        self._plan = dict(plan)
        self.folder = SimpleNamespace(stop_requested=False, fenced_by=0, deleted=False, taken_over=lambda: False)
        self.training = TrainingWatch(
            spec=make_spec(),
            leg=1,
            child=self.child,  # type: ignore[arg-type]
            rank_group=RankGroup(self.local),
            local=self.local,
            journal=SimpleNamespace(write=self.written.append),  # type: ignore[arg-type]
            publisher=SimpleNamespace(reports=self._take),  # type: ignore[arg-type]
            spool=SpoolReader(self.local.spool),
            signals=SimpleNamespace(ending=False, warned=False, deleted=False, given_up=False, settle=lambda: None),  # type: ignore[arg-type]
            folder=self.folder,  # type: ignore[arg-type]
            planner=StopPlanner(limit=deadline),
            shaped=lambda _learned: StopPlan(ask=40, kill=20),
            limit=TimeLimit(START + deadline if deadline else None, self.clock),
            clock=self.clock,
            woken=SimpleNamespace(wait=self._tick, clear=lambda: None, set=lambda: None),  # type: ignore[arg-type]
        )

    def _tick(self, _seconds: float) -> None:
        self.clock.sleep(0.25)
        for at in sorted(at for at in self._plan if at <= self.now):
            self._plan.pop(at)(self)
        assert self.now < 1000, "it never ended"

    def _take(self) -> list[PublishReport]:
        found, self.reports = self.reports, []
        return found

    @property
    def now(self) -> float:
        return self.clock.now() - START

    def watch(self) -> tuple[int, float]:
        code = self.training.watch()
        return code, self.now


def ask(bench: Bench) -> None:
    bench.folder.stop_requested = True


def published(step: int, *, seconds: float = 0.0) -> Does:
    """Told now, after a save that took so long."""

    def tell(bench: Bench) -> None:
        bench.reports.append(PublishReport(kind="published", step=step, save_seconds=seconds, began=bench.clock.now() - seconds))

    return tell


def begin_to_save(bench: Bench) -> None:
    folder = bench.local.checkpoints / f"{contract.PARTIAL_PREFIX}{contract.step_folder(2)}-1"
    folder.mkdir()
    os.utime(folder, (bench.clock.now(), bench.clock.now()))


def have_saved(bench: Bench) -> None:
    for folder in bench.local.checkpoints.glob(f"{contract.PARTIAL_PREFIX}*"):
        shutil.rmtree(folder)


def leave(bench: Bench) -> None:
    bench.child.code = contract.EXIT_AGAIN


def test_a_save_that_was_asked_for_is_let_finish_though_another_was_published_meanwhile(tmp_path: Path) -> None:
    plan: dict[float, Does] = {2: ask, 3: published(1), 4: begin_to_save, 49: have_saved, 50: leave}
    code, at = Bench(tmp_path, plan).watch()
    assert (code, at) == (contract.EXIT_AGAIN, 50)


def test_a_save_that_was_under_way_before_the_request_is_not_the_one_that_was_asked_for(tmp_path: Path) -> None:
    plan: dict[float, Does] = {2: ask, 4: published(1, seconds=3), 60: published(2), 61: leave}
    assert Bench(tmp_path, plan).watch() == (contract.EXIT_AGAIN, 61)


def test_a_training_that_has_saved_as_requested_and_stays_is_ended(tmp_path: Path) -> None:
    code, at = Bench(tmp_path, {2: ask, 5: published(1)}).watch()
    assert code == -SIGKILL and 15 <= at < 30


def test_a_training_that_saves_on_and_on_is_ended_by_the_deadlines_plan(tmp_path: Path) -> None:
    """A request, and then saves without end: the last is under way at every look."""
    plan: dict[float, Does] = {2: ask, 3: begin_to_save, **{at + 0.5: published(at) for at in range(3, 120, 2)}}
    code, at = Bench(tmp_path, plan, deadline=120).watch()
    assert code == -SIGKILL and 100 <= at < 105


def test_without_a_save_in_the_way_one_that_saves_on_and_on_is_ended_soon(tmp_path: Path) -> None:
    plan: dict[float, Does] = {2: ask, **{at + 0.5: published(at) for at in range(3, 900, 2)}}
    code, at = Bench(tmp_path, plan).watch()
    assert code == -SIGKILL and at < 30


def test_checkpoints_that_the_ranks_spoilt_are_told_in_the_run_and_ask_for_no_stop(tmp_path: Path) -> None:
    def refuse(bench: Bench) -> None:
        bench.reports += [PublishReport(kind="refused", step=step, reason=f"the checkpoint of step {step}: rank 3") for step in range(7)]

    bench = Bench(tmp_path, {1: refuse, 5: leave})
    assert bench.watch() == (contract.EXIT_AGAIN, 5)
    texts = [event.text for event in bench.written if isinstance(event, Warned)]
    assert len(texts) == 3 and texts[0] == "the checkpoint of step 0: rank 3" and "supervisor's log" in texts[2]


def test_a_rank_that_ends_early_while_others_wait_is_told_once(tmp_path: Path) -> None:
    def rank_3_leaves(bench: Bench) -> None:
        note = {"rank": 3, "code": 75, "at": bench.clock.now(), "host": "g2"}
        (bench.local.ranks / "exit-00003.json").write_text(json.dumps(note))
        (bench.local.ranks / "task-00000.json").write_text(json.dumps({"rank": 0, "world": 4}))

    bench = Bench(tmp_path, {1: rank_3_leaves, 200: leave})
    bench.watch()
    texts = [event.text for event in bench.written if isinstance(event, Warned)]
    assert texts == ["rank 3 ended with exit code 75 while ranks 0, 1, 2 continued, and may wait for it"]


# ── in the middle of a save ───────────────────────────────────────────────────


def test_a_share_that_is_being_written_is_a_save_and_one_left_behind_is_none(tmp_path: Path) -> None:
    folder = tmp_path / contract.SHARES / f"{contract.PARTIAL_PREFIX}step-00000001-rank-00000-7"
    folder.mkdir(parents=True)
    now = folder.stat().st_mtime
    assert is_being_saved(tmp_path, now=now + 300)
    assert not is_being_saved(tmp_path, now=now + 3000)


def test_a_file_of_the_trainings_own_is_being_saved_while_it_is_open(tmp_path: Path) -> None:
    assert not is_being_saved(tmp_path / "nowhere", now=0)
    (tmp_path / "epoch-1").mkdir()
    with (tmp_path / "epoch-1" / "model.pt").open("wb"):
        assert is_being_saved(tmp_path, now=0)
    assert not is_being_saved(tmp_path, now=0)


@pytest.mark.parametrize("name", ["metrics.jsonl", "history.csv", "train.log", ".hidden"])
def test_a_record_that_stays_open_is_no_save(tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("wb"):
        assert not is_being_saved(tmp_path, now=0)


def ranks_are_termed(bench: Bench) -> None:
    (bench.local.ranks / "rank-00000.json").write_text(json.dumps({"rank": 0, "world": 2, "count": 1, "term": True}))


def another_rank_failed(bench: Bench) -> None:
    (bench.local.ranks / "exit-00001.json").write_text(json.dumps({"rank": 1, "code": -9, "at": bench.clock.now()}))


def leaves(bench: Bench) -> None:
    bench.child.code = 1


def test_ranks_that_are_told_to_end_stand_for_a_warning(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {5: ranks_are_termed, 12: leaves})
    bench.watch()
    assert bench.training.asked is StopReason.WARNING


def test_ranks_that_their_launcher_ends_since_one_failed_were_not_warned(tmp_path: Path) -> None:
    """Word of the failure comes from another node, after that of the end."""
    bench = Bench(tmp_path, {5: ranks_are_termed, 6: another_rank_failed, 12: leaves})
    bench.watch()
    assert bench.training.asked is None


# ── what lies on the node at the end ──────────────────────────────────────────


def commit(bench: Bench, step: int) -> None:
    folder = bench.local.checkpoints / contract.step_folder(step)
    folder.mkdir()
    (folder / "w").write_bytes(b"w" * step)
    (folder / contract.COMMIT_FILE).write_text(json.dumps({"step": step, "seconds": 1.0}))


def test_a_checkpoint_that_the_limit_left_on_the_node_is_journaled_with_where_it_lies(tmp_path: Path) -> None:
    bench, store = Bench(tmp_path / "leg-0001", {}, deadline=100.0), tmp_path / "store"
    commit(bench, 229)
    (store / "leg-0001.step-00000199").mkdir(parents=True)
    bench.training.saves.note_left_on_node(store, cut_off=True, at_deadline=False)
    [missed] = [event for event in bench.written if isinstance(event, Missed)]
    assert missed.step == 229 and missed.bytes > 229 and missed.kept.startswith(str(bench.local.checkpoints))
    assert bench.training.saves.left_behind, "so the node's folder stays"


def test_what_is_published_or_superseded_is_not_missed(tmp_path: Path) -> None:
    bench, store = Bench(tmp_path / "leg-0001", {}, deadline=100.0), tmp_path / "store"
    commit(bench, 100)
    (store / "leg-0001.step-00000200").mkdir(parents=True)
    bench.training.saves.note_left_on_node(store, cut_off=False, at_deadline=False)
    assert bench.written == [] and not bench.training.saves.left_behind


def test_files_that_a_publisher_was_still_publishing_when_it_was_cut_off_stay_on_the_node(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "leg-0001", {}, deadline=100.0)
    (bench.local.checkpoints / "model_7.pt").write_bytes(b"w")
    bench.reports.append(PublishReport(kind="publishing", step=7, bytes=1))
    bench.training.take_reports()
    bench.training.saves.note_left_on_node(tmp_path / "store", cut_off=True, at_deadline=False)
    assert [event.step for event in bench.written if isinstance(event, Missed)] == [7] and bench.training.saves.left_behind


def test_a_checkpoint_that_is_stored_is_never_told_as_one_that_could_not_be(tmp_path: Path) -> None:
    """Files were left after it, of which nobody knows the step."""
    bench = Bench(tmp_path / "leg-0001", {}, deadline=100.0)
    (bench.local.checkpoints / "model.pt").write_bytes(b"w")
    bench.reports.append(PublishReport(kind="published", step=7, bytes=1))
    bench.training.take_reports()
    bench.training.saves.note_left_on_node(tmp_path / "store", cut_off=True, at_deadline=False)
    [warned] = [event.text for event in bench.written if isinstance(event, Warned)]
    assert warned.startswith("the job ended before what the training saved after step 7 was published; it is in ")
    assert bench.training.saves.last_missed is None and bench.training.saves.left_behind


def test_a_publisher_that_is_cut_off_with_everything_stored_leaves_nothing_behind(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "leg-0001", {}, deadline=100.0)
    for name, written in (("state_7", 50.0), ("state_6", 40.0)):
        (bench.local.checkpoints / name).write_bytes(b"w")
        os.utime(bench.local.checkpoints / name, (written, written))
    bench.reports.append(PublishReport(kind="published", step=7, bytes=1, began=48.5, save_seconds=1.5))
    bench.training.take_reports()
    bench.training.saves.note_left_on_node(tmp_path / "store", cut_off=True, at_deadline=False)
    assert [event for event in bench.written if isinstance(event, Warned | Missed)] == [] and not bench.training.saves.left_behind


def test_a_save_that_was_never_committed_is_not_told_as_a_checkpoint_left_on_the_node(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "leg-0001", {}, deadline=100.0)
    (bench.local.checkpoints / f"{contract.PARTIAL_PREFIX}7").mkdir()
    bench.training.saves.note_left_on_node(tmp_path / "store", cut_off=True, at_deadline=False)
    assert bench.written == [] and not bench.training.saves.left_behind


# ── the grace time and the limit ──────────────────────────────────────────────


def end_by_signal(bench: Bench) -> None:
    bench.training.signals.ending = True  # type: ignore[misc]


def test_a_training_has_the_sites_grace_time_to_save_when_its_job_is_taken_away(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {10.0: end_by_signal}, deadline=900.0)
    bench.training.limit.grace = 200.0
    code, at = bench.watch()
    assert code == -SIGKILL and 175 < at < 190, "85 % of it: the rest is for the last words"


def test_a_limit_that_was_moved_moves_the_request_and_is_journaled(tmp_path: Path) -> None:
    def move(bench: Bench) -> None:
        bench.training.limit.deadline = START + 500
        bench.training.limit.news = "the job's time limit was moved by +5 min"

    bench = Bench(tmp_path, {20.0: move}, deadline=200.0)
    code, at = bench.watch()
    assert code == -SIGKILL and 475 < at < 490
    assert [(event.text, event.deadline) for event in bench.written if isinstance(event, LimitMoved)] == [
        ("the job's time limit was moved by +5 min", START + 500)
    ]


def test_a_limit_that_is_moved_just_before_the_request_keeps_the_training_going(tmp_path: Path) -> None:
    def is_current(now: float, *, needed_at: float) -> bool:
        if now >= needed_at:
            bench.training.limit.deadline = START + 500
        return True

    bench = Bench(tmp_path, {}, deadline=200.0)
    bench.training.limit.is_current = is_current  # type: ignore[method-assign]
    code, at = bench.watch()
    assert code == -SIGKILL and at > 475


def test_a_limit_that_is_not_known_for_sure_yet_asks_nobody_to_stop(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {}, deadline=200.0)
    bench.training.limit.is_current = lambda now, *, needed_at: now >= needed_at + 15  # type: ignore[method-assign]
    bench.watch()
    (asked,) = [event for event in bench.written if isinstance(event, AskedToStop)]
    assert 175 <= asked.at - START < 176


def test_a_suspended_training_has_not_stalled(tmp_path: Path) -> None:
    def suspended(bench: Bench) -> None:
        bench.clock.sleep(300)
        bench.training._standstill = SuspensionClock(iter([0.0, 300.0, *[300.0] * 10_000]).__next__)

    def ends(bench: Bench) -> None:
        bench.child.code = 0

    bench = Bench(tmp_path, {20.0: suspended, 330.0: ends})
    bench.training.spec = replace(bench.training.spec, limits=Limits(stall_time=60))
    code, _ = bench.watch()
    assert code == 0 and not bench.training.stalled
    assert [event.text for event in bench.written if isinstance(event, Warned)] == [
        "nothing ran here for 5 min: the job was suspended, or its node hung"
    ]
