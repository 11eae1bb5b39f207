"""What goes on beside a training ends in the order of its turns, waits no longer than the job has, and after a failure at once."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from onward.clock import ManualClock
from onward.supervisor.companions import Companions, Turn

NOW = 1_000_000.0


class Recorder:
    """Notes who was stopped, and how long each would have been waited for."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.seconds: dict[str, float] = {}
        self.companions = Companions(ManualClock(NOW))

    def add(self, turn: Turn, name: str = "", *, fails: bool = False, **how: float) -> None:
        name = name or turn.name

        def stop(*, within: float) -> None:
            self.ended.append(name)
            self.seconds[name] = within
            if fails:
                raise OSError("the storage is read-only")

        self.companions.add(turn, stop, **how, last=self._last_of(name))

    def _last_of(self, name: str) -> Callable[[], None]:
        return lambda: self.ended.append(f"last of {name}")


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def test_companions_end_in_the_order_of_their_turns_however_they_started(recorder: Recorder) -> None:
    for turn in (Turn.RELAY, Turn.MIRROR, Turn.OUTPUT, Turn.SAMPLES, Turn.PUSH, Turn.EVENT_FILES, Turn.RUN_FOLDER, Turn.TIME_LIMIT):
        recorder.add(turn)
    recorder.companions.end_all(until=math.inf)
    stopped = [name for name in recorder.ended if not name.startswith("last")]
    assert stopped == ["TIME_LIMIT", "SAMPLES", "PUSH", "RELAY", "EVENT_FILES", "MIRROR", "OUTPUT", "RUN_FOLDER"]


def test_the_last_thing_one_does_comes_before_the_next_one_ends(recorder: Recorder) -> None:
    recorder.add(Turn.MIRROR)
    recorder.add(Turn.EVENT_FILES)
    recorder.companions.end_all(until=math.inf)
    assert recorder.ended == ["EVENT_FILES", "last of EVENT_FILES", "MIRROR", "last of MIRROR"]


def test_several_of_one_turn_end_as_they_started_and_each_once(recorder: Recorder) -> None:
    recorder.add(Turn.PIPELINE, "advance")
    recorder.add(Turn.PIPELINE, "upload")
    recorder.companions.end(Turn.PIPELINE, until=math.inf)
    recorder.companions.end_all(until=math.inf)
    assert recorder.ended == ["advance", "last of advance", "upload", "last of upload"]


@pytest.mark.parametrize(("left", "seconds"), [(math.inf, 3600.0), (7200.0, 3600.0), (63.0, 60.0), (3.5, 1.0), (-5.0, 1.0)])
def test_one_that_may_take_long_leaves_three_seconds_of_the_job_and_gets_at_least_one(
    recorder: Recorder, left: float, seconds: float
) -> None:
    recorder.add(Turn.RELAY, longest=3600.0)
    recorder.add(Turn.MIRROR, seconds=5.0)
    recorder.companions.end_all(until=NOW + left)
    assert recorder.seconds == {"RELAY": seconds, "MIRROR": 5.0}


def test_after_a_failure_only_those_that_carry_go_on(recorder: Recorder) -> None:
    for turn in Turn:
        recorder.add(turn, longest=3600.0 if turn is Turn.RELAY else 0.0)
    recorder.companions.abandon()
    assert recorder.seconds == dict.fromkeys(("OWN_CHECKPOINTS", "TIME_LIMIT", "SAMPLES", "RELAY", "EVENT_FILES", "RUN_FOLDER"), 1.0)


def test_after_a_failure_one_that_cannot_end_keeps_no_other_from_it(recorder: Recorder, caplog: pytest.LogCaptureFixture) -> None:
    recorder.add(Turn.RELAY, fails=True)
    recorder.add(Turn.EVENT_FILES)
    recorder.companions.abandon()
    assert recorder.ended == ["RELAY", "EVENT_FILES", "last of EVENT_FILES"]
    assert "ending the training's relay failed" in caplog.text
