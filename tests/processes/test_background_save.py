"""A save that was handed over becomes a checkpoint, whoever is killed next: the training, the writer, or both one after the other."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from onward.checkpoints.save_writer import SaveService
from onward.sdk import contract
from onward.sdk.background_save import state_memory
from onward.sdk.background_save.writer_client import SaveFailed
from onward.sdk.run import TrainingRun
from onward.sdk.saving import committed
from onward.torch import Checkpointer
from onward.torch.reading import read_state
from tests.processes.test_sdk_run import surroundings

MIB = 1 << 20

TRAINING = """\
import sys, time, torch, onward
from onward.torch import Checkpointer
onward.init(name="saves")
checkpoints = Checkpointer()
state = checkpoints.load()
step = state["step"] if state else 0
print("resumed", step, flush=True)
while True:
    step += 1
    checkpoints.save(step, {"step": step, "weights": torch.full((int(sys.argv[1]) << 18,), float(step))})
    print("saved", step, flush=True)
"""


def start(folder: Path, env: dict[str, str], megabytes: int = 4) -> subprocess.Popen[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ONWARD_")} | env
    command = [sys.executable, "-c", TRAINING, str(megabytes)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=folder)


def last_said(process: subprocess.Popen[str], word: str, count: int = 1) -> int:
    assert process.stdout
    for line in process.stdout:
        if line.startswith(word):
            count -= 1
            if not count:
                return int(line.split()[1])
    raise AssertionError(f"the training ended before it had said {word!r}")


def newest_of(checkpoints: Path) -> int:
    found = committed(checkpoints)
    state = read_state(found[-1] / "state.safetensors")
    assert bool((state["weights"] == state["step"]).all()) and found[-1].name == contract.step_folder(state["step"])
    return int(state["step"])


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def writers() -> set[int]:
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"onward.checkpoints.save_writer" in (process / "cmdline").read_bytes():
                found.add(int(process.name))
        except OSError:
            continue
    return found


def test_a_save_survives_the_kill_of_an_unmanaged_training(tmp_path: Path) -> None:
    env = {contract.RUN_DIR: str(tmp_path / "run")}
    for _ in range(3):
        training = start(tmp_path, env)
        said = last_said(training, "saved", count=3)
        training.kill()
        rest = training.communicate()[0].split("saved ")
        said = max(said, *(int(words) for words in rest[1:]), 0)
        until(lambda said=said: committed(tmp_path / "run" / "checkpoints") and newest_of(tmp_path / "run" / "checkpoints") >= said)  # type: ignore[misc]


def test_a_killed_writer_is_replaced_and_gets_what_it_had_not_written_once_more(tmp_path: Path) -> None:
    before = writers()
    training = start(tmp_path, {contract.RUN_DIR: str(tmp_path / "run")}, megabytes=32)
    try:
        last_said(training, "saved")
        [writer] = writers() - before
        os.kill(writer, signal.SIGKILL)
        said = last_said(training, "saved", count=3)
    finally:
        training.kill()
        training.communicate()
    until(lambda: committed(tmp_path / "run" / "checkpoints") and newest_of(tmp_path / "run" / "checkpoints") >= said)
    until(lambda: not writers() - before)


@pytest.fixture
def supervised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> TrainingRun:
    for name, value in {**surroundings(tmp_path), contract.SAVE_SOCKET: str(tmp_path / "saves.sock")}.items():
        monkeypatch.setenv(name, value)
    return TrainingRun.of_environment(name=None)


def test_the_supervisors_writer_takes_what_a_killed_training_had_handed_over(tmp_path: Path, seed: int) -> None:
    """Killed at random moments: what was reported as saved is there, whole, and nothing older is loaded."""
    env = {**surroundings(tmp_path), contract.SAVE_SOCKET: str(tmp_path / "saves.sock")}
    draw = random.Random(seed)
    for _ in range(5):
        with SaveService(tmp_path / "saves.sock"):
            training = start(tmp_path, env)
            last_said(training, "resumed")
            time.sleep(draw.uniform(0, 0.3))
            training.kill()
            lines = training.communicate()[0].splitlines()
        said = max([int(line.split()[1]) for line in lines if line.startswith("saved ")], default=0)
        if said:
            assert newest_of(tmp_path / "ckpt") >= said
            env[contract.RESUME_DIR] = str(committed(tmp_path / "ckpt")[-1])


def test_a_socket_deep_in_folders_works(supervised: TrainingRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("d" * 100) / "saves.sock"
    deep.parent.mkdir()
    monkeypatch.setenv(contract.SAVE_SOCKET, str(deep))
    with SaveService(deep):
        checkpoints = Checkpointer(supervised)
        checkpoints.save(1, {"x": torch.ones(3)})
        checkpoints.wait()
    assert deep.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in committed(tmp_path / "ckpt")] == ["step-00000001"]


def test_a_state_may_change_as_soon_as_save_returns_and_may_grow_and_shrink(supervised: TrainingRun, tmp_path: Path) -> None:
    with SaveService(tmp_path / "saves.sock"):
        checkpoints = Checkpointer(supervised)
        for step, size in enumerate((10, 1 << 20, 3, 1 << 21), start=1):
            weights = torch.full((size,), float(step))
            checkpoints.save(step, {"step": step, "weights": weights})
            weights.fill_(-1.0)
        checkpoints.wait()
    for folder in committed(tmp_path / "ckpt"):
        state = read_state(folder / "state.safetensors")
        assert bool((state["weights"] == state["step"]).all())
    assert newest_of(tmp_path / "ckpt") == 4


def test_a_run_with_very_many_metrics_saves_too(supervised: TrainingRun, tmp_path: Path) -> None:
    supervised.log({f"gradients/layer-{number:06d}": 0.5 for number in range(100_000)}, step=1)
    with SaveService(tmp_path / "saves.sock"):
        checkpoints = Checkpointer(supervised)
        checkpoints.save(1, {"x": torch.ones(3)})
        checkpoints.wait()
    [folder] = committed(tmp_path / "ckpt")
    assert len(json.loads((folder / contract.COMMIT_FILE).read_text())["metrics"]) == 100_000


def test_a_training_may_have_thousands_of_files_open(supervised: TrainingRun, tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], min(4096, limits[1])), limits[1]))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        with SaveService(tmp_path / "saves.sock"):
            checkpoints = Checkpointer(supervised)
            checkpoints.save(1, {"x": torch.ones(3)})
            checkpoints.wait()
    finally:
        for handle in opened:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert [path.name for path in committed(tmp_path / "ckpt")] == ["step-00000001"]


def test_a_save_that_fails_is_reported_and_training_continues(
    supervised: TrainingRun, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with SaveService(tmp_path / "saves.sock"):
        checkpoints = Checkpointer(supervised)
        (tmp_path / "ckpt").rmdir()
        (tmp_path / "ckpt").write_text("in the way")
        checkpoints.save(1, {"x": torch.ones(3)})
        with pytest.raises(SaveFailed, match="step 1 failed"):
            checkpoints.wait()
        checkpoints.save(2, {"x": torch.ones(3)})
        assert checkpoints._writer
        checkpoints._writer.wait()
        (tmp_path / "ckpt").unlink()
        checkpoints.save(3, {"x": torch.ones(3)})
        checkpoints.wait()
    assert "the save of step 2 failed" in capfd.readouterr().err
    assert [path.name for path in committed(tmp_path / "ckpt")] == ["step-00000003"]


def test_without_memory_for_a_copy_the_save_says_so(supervised: TrainingRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_memory, "free_memory", lambda: 300 * MIB)
    with SaveService(tmp_path / "saves.sock"), pytest.raises(MemoryError, match="takes 80 MiB, and 300 MiB of memory are free"):
        Checkpointer(supervised).save(1, {"x": torch.zeros(20 * MIB)})


def test_a_busy_writer_is_waited_for_or_the_save_is_skipped(supervised: TrainingRun, tmp_path: Path) -> None:
    state = {"x": torch.zeros(8 * MIB)}
    with SaveService(tmp_path / "saves.sock"):
        patient, hasty = Checkpointer(supervised), Checkpointer(supervised, when_busy="skip")
        assert all(patient.save(step, state) for step in range(1, 6))
        taken = [hasty.save(step, state) for step in range(6, 16)]
        patient.wait()
        hasty.wait()
    saved = [int(path.name.split("-")[1]) for path in committed(tmp_path / "ckpt")]
    assert saved == [*range(1, 6), *(step for step, was_taken in zip(range(6, 16), taken, strict=True) if was_taken)]
    assert not all(taken)


def test_ranks_that_shard_their_state_each_find_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**surroundings(tmp_path), contract.SAVE_SOCKET: str(tmp_path / "saves.sock"), "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    with SaveService(tmp_path / "saves.sock"):
        for rank in (0, 1):
            monkeypatch.setenv("RANK", str(rank))
            checkpoints = Checkpointer(TrainingRun.of_environment(name=None, agree=False), sharded=True)
            checkpoints.save(7, {"rank": rank})
            checkpoints.wait()
    shares = tmp_path / "ckpt" / contract.SHARES / "step-00000007"
    for rank in (0, 1):
        file = shares / contract.rank_name(rank) / f"state.rank-{rank:05d}-of-00002.safetensors"
        assert read_state(file) == {"rank": rank}
    assert json.loads((shares / "rank-00001" / contract.COMMIT_FILE).read_text())["world"] == 2


def test_a_checkpoint_of_another_kind_is_named(supervised: TrainingRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "resume").mkdir()
    monkeypatch.setattr(supervised, "_resume", tmp_path / "resume")
    with pytest.raises(FileNotFoundError, match=r"it was not saved by onward\.torch\.Checkpointer"):
        Checkpointer(supervised).load()
    (tmp_path / "resume" / "state.rank-00000-of-00002.safetensors").touch()
    with pytest.raises(FileNotFoundError, match="another number of ranks"):
        Checkpointer(supervised).load()
