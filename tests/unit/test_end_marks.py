"""A training that was asked to stop and exits 0: had it reached its end?"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from onward.rundir.progress import Progress
from onward.supervisor.leg.end_marks import reached_its_end

BEGAN = 1_700_000_000.0


def trainer_state(folder: Path, step: int, most: object = 100, *, at: float = BEGAN + 60) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "trainer_state.json"
    path.write_text(json.dumps({"global_step": step, "max_steps": most}))
    os.utime(path, (at, at))


def reached(*folders: Path, progress: Progress | None = None, saved: int | None = None) -> bool:
    return reached_its_end(progress or Progress(), saved=saved, folders=folders, began=BEGAN)


def test_what_it_said_or_logged_is_enough() -> None:
    assert reached(progress=Progress(finished=True))
    assert reached(progress=Progress(total=100, last_step=99))
    assert not reached(progress=Progress(total=100, last_step=98))


def test_a_checkpoint_of_the_last_step_is_enough_and_one_before_it_is_not() -> None:
    assert reached(progress=Progress(total=100), saved=100)
    assert not reached(progress=Progress(total=100), saved=99)  # some save a step before they do it
    assert not reached(saved=100)


def test_the_trainer_notes_that_it_has_done_all_its_steps(tmp_path: Path) -> None:
    trainer_state(tmp_path / "checkpoint-50", 50, at=BEGAN + 30)
    assert not reached(tmp_path)
    trainer_state(tmp_path / "checkpoint-100", 100)
    assert reached(tmp_path)
    trainer_state(tmp_path, 100)
    assert reached(tmp_path / "elsewhere", tmp_path)


def test_what_an_earlier_leg_noted_says_nothing_of_this_one(tmp_path: Path) -> None:
    trainer_state(tmp_path / "checkpoint-100", 100, at=BEGAN - 60)
    assert not reached(tmp_path)
    trainer_state(tmp_path / "checkpoint-150", 150, 200)  # it was given more steps to do
    assert not reached(tmp_path)


@pytest.mark.parametrize("most", [0, -1, None, "many"])
def test_a_trainer_without_a_number_of_steps_is_not_done(tmp_path: Path, most: object) -> None:
    trainer_state(tmp_path, 100, most)
    assert not reached(tmp_path)


def test_a_torn_note_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "trainer_state.json").write_text('{"global_step": 100, "max')
    assert not reached(tmp_path)
