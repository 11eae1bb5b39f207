"""Runs that nobody submitted, as the tracker sees them: named, owned, and over when their process is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward.sdk import contract, process_identity
from onward.tracker.runs.registry import RunQuery
from onward.tracker.runs.rows import RunView
from onward.tracker.store import Tracker
from onward.tracker.unmanaged import liveness
from onward.tracker.unmanaged.liveness import SILENCE, LivenessVerdict, UnmanagedWatch, judge_liveness
from tests.databases import new_database, tracker_in
from tests.unit.test_api_routes import Harness, good

NOW = 1_700_000_000.0


@pytest.fixture(autouse=True)
def each_look_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "EVERY", -1.0)


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[Tracker]:
    with Tracker.open(new_database(tmp_path / "onward.db")) as opened:
        yield opened


class Hand:
    def __init__(self, tmp_path: Path, tracker: Tracker) -> None:
        self.root = tmp_path / "runs"
        self.spool = self.root / contract.UNMANAGED_FOLDER / "2026-11-15_101010_digits_77" / "spool"
        self.spool.mkdir(parents=True)
        self.tracker = tracker
        self._told = 0

    def tell(self, *records: dict[str, Any], leg: int = 1, at: float = NOW) -> None:
        with (self.spool / f"leg-{leg:04d}.train-77.jsonl").open("a") as file:
            for record in records:
                file.write(json.dumps({"n": self._told, "t": at + self._told, **record}) + "\n")
                self._told += 1

    def begin(self, *, of: dict[str, Any] | None = None, leg: int = 1, at: float = NOW, **words: Any) -> None:
        self._told = 0
        self.tell(
            {"kind": "init", "name": "Digits", "user": "ada", "process": of or process_identity.this_process(), **words}, leg=leg, at=at
        )

    def look(self, times: int = 1) -> RunView:
        for _ in range(times):
            assert self.tracker.files.look([self.root]).problems == []
        [view] = self.tracker.runs.search(RunQuery()).runs
        return view

    def legs(self) -> list[tuple[int, str, str | None]]:
        [view] = self.tracker.runs.search(RunQuery()).runs
        return [(leg["leg"], leg["state"], leg["end"]) for leg in self.tracker.runs.legs(view.info.run_id)]


@pytest.fixture
def hand(tmp_path: Path, tracker: Tracker) -> Hand:
    return Hand(tmp_path, tracker)


def gone() -> dict[str, Any]:
    """A process of this machine that is no more."""
    return {**process_identity.this_process(), "began": 1}


def test_it_has_the_name_the_user_and_the_experiment_that_it_tells(hand: Hand) -> None:
    hand.begin(experiment="mnist")
    hand.tell({"s": 1, "m": {"loss": 1.0}})
    info = hand.look().info
    assert (info.name, info.user, info.experiment_name, info.state, info.started) == ("Digits", "ada", "mnist", "running", NOW)
    hand.tell({"kind": "name", "name": "Better"}, {"kind": "note", "text": "why"}, {"kind": "note", "text": "why"})
    info = hand.look().info
    assert info.name == "Better"
    assert [note["text"] for note in hand.tracker.runs.notes(info.run_id)] == ["why"]


@pytest.mark.parametrize(
    ("record", "state", "leg"),
    [
        ({"kind": "finish"}, "finished", ("finished", "done")),
        ({"kind": "end", "state": "failed", "reason": "ValueError: bad"}, "failed", ("failed", "crashed")),
        ({"kind": "end", "state": "cancelled", "reason": "interrupted"}, "cancelled", ("cancelled", "cancelled")),
        ({"kind": "end", "state": "waiting", "reason": "saved"}, "waiting", ("finished", "again")),
    ],
)
def test_how_it_ended_is_what_it_told(hand: Hand, record: dict[str, Any], state: str, leg: tuple[str, str]) -> None:
    hand.begin()
    hand.tell(record)
    info = hand.look(3).info
    assert (info.state, info.reason) == (state, record.get("reason", ""))
    assert hand.legs() == [(1, *leg)]
    assert (info.ended is None) == (state == "waiting")


def test_an_end_of_no_known_state_ends_nothing(hand: Hand) -> None:
    hand.begin()
    hand.tell({"kind": "end", "state": "exploded"}, {"kind": "end"}, {"kind": "end", "state": ["failed"]})
    assert hand.look().info.state == "running"


def test_a_process_that_is_gone_has_failed_once_it_is_missed_twice(hand: Hand) -> None:
    hand.begin(of=gone())
    assert hand.look().info.state == "running"
    info = hand.look().info
    assert (info.state, info.ended) == ("failed", NOW)
    assert info.reason == f"its process ({os.getpid()} on {os.uname().nodename}) wrote no end record"
    assert hand.legs() == [(1, "unknown", "lost")]


def test_a_clock_that_is_set_back_does_not_put_the_looks_off(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    hand.begin(of=gone())
    hand.look()
    monkeypatch.setattr(liveness, "EVERY", 5.0)
    watch = UnmanagedWatch(hand.tracker.database, hand.tracker._writer)
    for now in (NOW + 7200, NOW):
        watch.look(now)
    assert hand.tracker.runs.search(RunQuery()).runs[0].info.state == "failed"


def test_last_words_that_come_late_are_believed(hand: Hand) -> None:
    hand.begin(of=gone())
    assert hand.look(2).info.state == "failed"
    hand.tell({"kind": "finish"})
    info = hand.look(3).info
    assert (info.state, info.reason, hand.legs()) == ("finished", "", [(1, "finished", "done")])


def test_the_next_leg_of_a_run_that_died_runs(hand: Hand) -> None:
    hand.begin(of=gone())
    hand.look(2)
    hand.begin(leg=2, at=NOW + 100)
    info = hand.look(3).info
    assert (info.state, info.reason, info.ended, info.started) == ("running", "", None, NOW)
    assert hand.legs() == [(1, "unknown", "lost"), (2, "running", None)]


def test_what_an_earlier_leg_says_does_not_end_a_later_one(hand: Hand) -> None:
    hand.begin(leg=2)
    hand.look()
    hand.begin(leg=1)
    hand.tell({"kind": "finish"})
    assert hand.look().info.state == "running"


def test_of_a_process_elsewhere_silence_is_told_and_its_run_is_not_over(hand: Hand) -> None:
    elsewhere = {**process_identity.this_process(), "host": "node7", "boot": "other", "pid": 12}
    hand.begin(of=elsewhere)
    info = hand.look(3).info
    assert (info.state, info.ended) == ("running", None)
    assert info.reason == "silent since 2023-11-14 22:13 UTC; its process (12 on node7) cannot be checked on this machine"
    hand.tell({"s": 1, "m": {"loss": 1.0}}, at=2e9)
    info = hand.look(2).info
    assert (info.state, info.reason) == ("running", "")


def test_a_training_that_lives_is_let_be_however_silent(hand: Hand) -> None:
    hand.begin()
    info = hand.look(3).info
    assert (info.state, info.reason) == ("running", "")


def test_a_run_that_is_killed_is_seen_to_have_failed(hand: Hand, tmp_path: Path) -> None:
    root = tmp_path / "real"
    env = {**os.environ, contract.ROOT: str(root)}
    script = "import onward, time; onward.init(project='p').log({'loss': 1.0}); print(flush=True); time.sleep(600)"
    training = subprocess.Popen([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert training.stdout
        training.stdout.readline()
        hand.tracker.files.look([root])
        hand.tracker.files.look([root])
        [view] = hand.tracker.runs.search(RunQuery()).runs
        assert (view.info.state, view.metrics["loss"].value) == ("running", 1.0)
    finally:
        training.kill()
        training.communicate()
    hand.tracker.files.look([root])
    hand.tracker.files.look([root])
    [view] = hand.tracker.runs.search(RunQuery()).runs
    assert view.info.state == "failed" and "wrote no end record" in view.info.reason


# ── the judgement, by values alone ────────────────────────────────────────────

HERE = {"host": "node1", "boot": "b2", "space": "s"}
TOLD = {"process": {"host": "node1", "boot": "b1", "pid": 5}, "heard": NOW}


@pytest.mark.parametrize(
    ("lives", "later", "expected"),
    [
        (True, 9 * SILENCE, None),
        (False, 0.0, LivenessVerdict(gone=True, words="its process (5 on node1) wrote no end record")),
        (None, SILENCE - 1, None),
        (None, SILENCE, LivenessVerdict(gone=True, words="node1 was restarted, and its process (5 on node1) wrote no end record")),
    ],
)
def test_what_is_presumed(lives: bool | None, later: float, expected: LivenessVerdict | None) -> None:
    assert judge_liveness(TOLD, lives=lives, here=HERE, now=NOW + later) == expected


def test_who_was_never_heard_of_is_not_silent() -> None:
    assert judge_liveness({"process": {"host": "x"}}, lives=None, here=HERE, now=NOW) is None


# ── its files ─────────────────────────────────────────────────────────────────


def test_files_of_its_folder_are_its_artifacts(tmp_path: Path) -> None:
    with tracker_in(tmp_path) as opened:
        harness = Harness(tmp_path, opened)
        root = harness.sandbox.context.roots[0]
        folder = root / contract.UNMANAGED_FOLDER / "2026-11-15_101010_digits_77"
        for part in ("spool", "results/artifacts"):
            (folder / part).mkdir(parents=True)
        (folder / "results" / "artifacts" / "image.png").write_bytes(b"png")
        opened.tracker.files.look([root])
        [view] = opened.tracker.runs.search(RunQuery()).runs
        listed = good(harness.client.get(f"/api/v1/runs/{view.info.run_id}/artifacts"))["artifacts"]
        assert [(one["path"], one["bytes"]) for one in listed] == [("image.png", 3)]
        assert harness.client.get(f"/api/v1/runs/{view.info.run_id}/artifacts/image.png").body == b"png"
