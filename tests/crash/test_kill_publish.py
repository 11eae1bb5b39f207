"""A training that saves, and a publisher that publishes, killed at random moments: what is listed is whole, and nothing told is lost.

Each round forks a process that does what the two do, over and over: save, look, copy, rename, report, let go. The round
kills it after a random time and looks at the store. The next one goes on from there, as the next leg or as a publisher
started again. The rounds run in processes of their own (`python -m tests.crash.test_kill_publish`), so that forking is cheap.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onward.checkpoints.manifest import verify
from onward.checkpoints.publishing.publisher import CheckpointPublisher
from onward.checkpoints.restoring.newest import published_names_of, restore_newest
from onward.checkpoints.watching.watcher import SaveWatcher
from onward.clock import SystemClock
from onward.model.checkpoint import CheckpointName
from onward.model.spec import CheckpointRule
from onward.rundir.progress import leg_progress
from onward.sdk.run import TrainingRun

ROUNDS = 300  # by each of
WORKERS = 2
LONGEST = 0.08  # seconds a process is let live: some six checkpoints, and as many on a machine that is slower or busy
LONGER, SHORTER = 1.3, 0.95  # it grows by one round that published nothing as much as it shrinks by five that did
RULE = CheckpointRule(keep=2)


def content(name: CheckpointName) -> dict[str, bytes]:
    """Several small files that tell of which checkpoint they are, so that no two can be mixed unseen."""
    stamp = f"{name};".encode()
    return {"model.bin": stamp * 100, "deep/er/optimizer.bin": stamp * 40, "deep/rng": stamp, "empty": b""}


class Rounds:
    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.store, self.spool = folder / "store", folder / "spool"
        self.leg = 1
        self.local(1).mkdir(parents=True)
        self.reported = CheckpointName(0, -1)  # the newest that was reported published
        self.published = 0
        self.longest = LONGEST

    # ── what is killed ────────────────────────────────────────────────────────

    def live(self, pipe: int, step: int) -> None:
        run = TrainingRun(folder=self.folder, leg=self.leg, checkpoints=self.local(self.leg), spool=self.spool, resume=None, by_hand=False)
        publisher = self.publisher(self.leg, resumed=step)
        os.write(pipe, b"ready\n")
        self.salvage(pipe)
        while True:
            step += 1
            run.log({"loss": 1.0 / (step + 1)}, step)
            os.write(pipe, b"logged 0 %d\n" % step)
            with run.checkpoint(step) as folder:
                for name, data in content(CheckpointName(self.leg, step)).items():
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    (folder / name).write_bytes(data)
            for report in publisher.work():
                os.write(pipe, f"{report.kind} {self.leg} {report.step}\n".encode())

    def salvage(self, pipe: int) -> None:
        """Carry over what earlier legs committed on this node and could not publish."""
        for leg in range(1, self.leg):
            if self.local(leg).exists():
                for report in self.publisher(leg, resumed=None).work():
                    os.write(pipe, f"{report.kind} {leg} {report.step}\n".encode())
                shutil.rmtree(self.local(leg))

    def publisher(self, leg: int, *, resumed: int | None) -> CheckpointPublisher:
        watcher = SaveWatcher(self.local(leg), quiet_seconds=float("inf"))
        return CheckpointPublisher(
            watcher, self.store, leg=leg, rule=RULE, resumed_step=resumed, progress=lambda: (None, {}), clock=SystemClock()
        )

    def local(self, leg: int) -> Path:
        return self.folder / "node" / f"leg-{leg:04d}"

    # ── one round ─────────────────────────────────────────────────────────────

    def play(self) -> None:
        step = self.resume()
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(reading)
                self.live(writing, step)
            finally:
                os._exit(1)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            first = pipe.readline()
            time.sleep(self.random.uniform(0, self.longest))
            os.kill(child, signal.SIGKILL)
            text = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert (first, status) == (b"ready\n", -signal.SIGKILL), f"the process died by itself: {status}"
        self.examine(text.split(b"\n")[:-1])  # a torn last line was not told

    def resume(self) -> int:
        """As a leg begins: on the same node or another, from the newest that verifies."""
        if self.random.random() < 0.5:
            if self.random.random() < 0.5:
                shutil.rmtree(self.folder / "node")
            self.leg += 1
            self.local(self.leg).mkdir(parents=True)
        found = restore_newest(self.store, self.folder / "resume")
        if found is None:
            assert self.reported.leg == 0, f"{self.reported} was published and nothing can be restored"
            return 0
        assert found.fell_back == (), found.fell_back
        for name, data in content(found.manifest.name).items():
            assert (self.folder / "resume" / name).read_bytes() == data
        return found.manifest.step

    def examine(self, expected: list[bytes]) -> None:
        logged, before = -1, self.published
        for line in expected:
            kind, leg, step = line.decode().split()
            assert kind in ("published", "logged"), line
            if kind == "logged":
                logged = int(step)
            else:
                self.published += 1
                self.reported = max(self.reported, CheckpointName(int(leg), int(step)))
        self.longest = min(1.0, self.longest * (LONGER if self.published == before else SHORTER))
        listed = published_names_of(self.store)
        for name in listed:
            manifest = verify(self.store / str(name))
            assert set(manifest.files) == set(content(name))
            assert all((self.store / str(name) / file).read_bytes() == data for file, data in content(name).items()), name
        assert self.reported.leg == 0 or (listed and listed[-1] >= self.reported), f"{self.reported} was reported, {listed} are there"
        assert self.published < 2 or len(listed) >= 2, "the last two are never let go"
        assert logged < 0 or (leg_progress(self.spool, self.leg).last_step or 0) >= logged, f"step {logged} was logged and is lost"

    def finish(self) -> None:
        """A last leg that is not killed clears away what all the others left half-done."""
        self.publisher(self.leg + 1, resumed=None)
        assert [name for name in os.listdir(self.store) if CheckpointName.parse(name) is None] == []


def main(folder: str, seed: str, rounds: str) -> None:
    play = Rounds(Path(folder), int(seed))
    for number in range(int(rounds)):
        try:
            play.play()
        except BaseException:
            print(f"seed {seed}, round {number}, leg {play.leg}", file=sys.stderr)
            raise
    play.finish()
    print(rounds, play.published, play.leg)


@pytest.mark.slow
def test_killed_600_times_every_checkpoint_that_is_listed_verifies_and_none_that_was_told_is_lost(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    seeds = [chance.randrange(1 << 32) for _ in range(WORKERS)]
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.crash.test_kill_publish", str(tmp_path / str(seed)), str(seed), str(ROUNDS)],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in seeds
    ]
    try:
        for seed, worker in zip(seeds, workers, strict=True):
            out, err = worker.communicate(timeout=400)
            assert worker.returncode == 0, f"seed {seed}:\n{err}"
            rounds, published, legs = (int(word) for word in out.split())
            assert rounds == ROUNDS and published > ROUNDS / 4 and legs > ROUNDS / 4, "the kills came before anything was done"
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


if __name__ == "__main__":
    main(*sys.argv[1:])
