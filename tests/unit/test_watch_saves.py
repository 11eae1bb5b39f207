"""A training that saves files in any order and at any pace, and a publisher beside it: nothing that is published mixes two saves."""

from __future__ import annotations

import io
import os
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from onward.checkpoints.manifest import verify
from onward.checkpoints.publishing.publisher import CheckpointPublisher
from onward.checkpoints.restoring.newest import published_names_of
from onward.checkpoints.watching import folder_look
from onward.checkpoints.watching.watcher import SaveWatcher
from onward.clock import ManualClock
from onward.model.spec import CheckpointRule

SEEDS = range(4)
LOOK = 1.0  # seconds
FILES = ("model.pt", "optim.pt", "ema.pt", "rng.pt")

Place = Callable[[int, str], str]


def numbered(step: int, name: str) -> str:
    return name.replace(".", f"_{step}.")


def in_folder(step: int, name: str) -> str:
    return f"epoch-{step}/{name}"


def fixed(step: int, name: str) -> str:
    return name


class Simulation:
    """Time moves by hand; the publisher looks every second of it."""

    def __init__(self, folder: Path, where: Place, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.random = random.Random(seed)
        self.sandbox = where
        self.local, self.store = folder / "local", folder / "store"
        self.local.mkdir()
        self.clock = ManualClock(1_000_000.0)
        self.open: set[str] = set()
        self.step = 0
        self.records = 0
        self.published: dict[int, set[str]] = {}  # save → files of it, as published last
        self.refused: list[int] = []
        self.files = FILES[: self.random.randint(2, len(FILES))]
        monkeypatch.setattr(os, "fsync", lambda _: None)  # nothing dies here
        monkeypatch.setattr(folder_look, "open_for_writing", lambda *_, **__: frozenset(self.open))
        self.publisher = CheckpointPublisher(
            SaveWatcher(self.local),
            self.store,
            leg=1,
            rule=CheckpointRule(keep=1000),
            resumed_step=None,
            progress=lambda: (self.step, {}),
            clock=self.clock,
        )

    def pass_time(self, seconds: float) -> None:
        until = self.clock.now() + seconds
        while self.clock.now() < until:
            self.clock.sleep(min(LOOK, until - self.clock.now()))
            self.write("metrics.jsonl", b"x" * self.records)
            self.records += 1
            self.look()

    def look(self, *, closed: bool = False) -> None:
        for report in self.publisher.work(closed=closed):
            if report.kind == "refused":
                self.refused.append(report.step)
            elif report.kind == "published":
                self.examine(report.step)

    def examine(self, step: int) -> None:
        name = next(name for name in published_names_of(self.store) if name.step == step)
        folder = self.store / str(name)
        state = [file for file in verify(folder).files if file.endswith(".pt")]
        saves = {(folder / file).read_bytes().split(b" ")[0] for file in state}
        assert len(saves) == 1, f"{name} mixes {saves}"
        assert all(b" done" in (folder / file).read_bytes() for file in state), f"{name} has half a file"
        self.published[int(saves.pop())] = {os.path.basename(file) for file in state}

    def write(self, name: str, content: bytes) -> None:
        path = self.local / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (self.clock.now(), self.clock.now()))

    def save(self, *, gap: float, upto: int | None = None) -> None:
        """One save: its files one after the other, in any order, each written for a while."""
        self.step += 100
        for name in self.random.sample(self.files, len(self.files))[:upto]:
            self.pass_time(self.random.uniform(0, gap))
            path = self.sandbox(self.step, name)
            self.open.add(str(self.local.resolve() / path))
            for part in range(self.random.randint(0, 3)):
                self.write(path, b"%d %s" % (self.step, b"half" * part))
                self.pass_time(self.random.uniform(0, 1.5))
            self.write(path, b"%d done and all there" % self.step)
            self.open.discard(str(self.local.resolve() / path))

    def is_whole(self, step: int) -> bool:
        return len(self.published.get(step, ())) == len(self.files)


@pytest.mark.parametrize("where", [numbered, in_folder, fixed])
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_that_is_published_mixes_two_saves_and_every_save_that_rests_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Place, seed: int
) -> None:
    simulation = Simulation(tmp_path, where, seed, monkeypatch)
    for _ in range(6):
        simulation.save(gap=25.0)
        rest = simulation.random.choice([2.5, 5.0, 70.0])
        simulation.pass_time(rest)
        if rest > 60:
            assert simulation.is_whole(simulation.step), f"step {simulation.step} rested and was not published"
    simulation.look(closed=True)
    assert simulation.is_whole(simulation.step) and simulation.refused == []
    assert all(simulation.is_whole(step) for step in simulation.published), "whole, and not in parts"
    if where is not fixed:
        assert sorted(simulation.published) == [100, 200, 300, 400, 500, 600]


@pytest.mark.parametrize("where", [numbered, in_folder, fixed])
@pytest.mark.parametrize("seed", SEEDS)
def test_gaps_longer_than_were_ever_seen_mix_nothing_and_all_is_whole_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Place, seed: int
) -> None:
    simulation = Simulation(tmp_path, where, seed, monkeypatch)
    for _ in range(5):
        simulation.save(gap=90.0)
        simulation.pass_time(simulation.random.choice([5.0, 200.0]))
    simulation.look(closed=True)
    assert simulation.is_whole(simulation.step)
    if where is not fixed:
        assert all(simulation.is_whole(step) for step in range(100, 600, 100))


@pytest.mark.parametrize("where", [numbered, in_folder, fixed])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_save_that_a_kill_cuts_short_is_refused_and_the_one_before_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Place, seed: int
) -> None:
    simulation = Simulation(tmp_path, where, seed, monkeypatch)
    for _ in range(3):
        simulation.save(gap=20.0)
        simulation.pass_time(60.0)
    simulation.save(gap=20.0, upto=1)
    simulation.look(closed=True)
    assert sorted(simulation.published) == [100, 200, 300] and len(simulation.refused) == 1


def test_of_saves_that_replace_each_other_too_fast_to_rest_one_that_is_whole_is_taken_after_a_while(tmp_path: Path) -> None:
    moment = [0.0]
    watcher = SaveWatcher(tmp_path, timer=lambda: moment[0])

    def taken(name: str, content: bytes, *, at: float, age: float = 0.5) -> list[int | None]:
        for path in tmp_path.iterdir():
            path.unlink()
        (tmp_path / name).write_bytes(content)
        moment[0] = at
        found = watcher.ready(now=(tmp_path / name).stat().st_mtime + age)
        for candidate in found:
            watcher.done_with(candidate)
        return [candidate.step for candidate in found]

    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("state", "of this step")
    assert [taken(f"step={step}.ckpt", whole.getvalue(), at=float(step)) for step in range(1, 10)] == [[]] * 9
    assert taken("step=10.ckpt", whole.getvalue()[:-10], at=10.0) == [], "it is not whole"
    assert taken("step=11.h5", b"no format tells", at=11.0) == []
    assert taken("step=12.ckpt", whole.getvalue(), at=12.0) == [12]
    assert taken("step=13.ckpt", whole.getvalue(), at=13.0) == [], "there was one just now"
    assert taken("step=14.ckpt", whole.getvalue(), at=14.0, age=3.0) == [14]
    assert taken("step=24.ckpt", whole.getvalue(), at=24.0) == [24]
    with (tmp_path / "step=40.ckpt").open("wb") as file:
        file.write(whole.getvalue())
        file.flush()
        moment[0] = 40.0
        assert watcher.ready(now=os.stat(file.fileno()).st_mtime + 0.5) == [], "it is open"
