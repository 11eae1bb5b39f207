"""A script that keeps its own checkpoint in its working folder, written in place, as PyTorch's ImageNet example does."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
import zipfile
from pathlib import Path

import pytest

from tests.crash.conftest import LocalRun, Machine

# The shape of pytorch/examples imagenet/main.py: `--resume FILE` that may not be there yet, one file written after each epoch,
# in place, and a copy of it when it is the best. It knows nothing of Onward. As torch.save does, it writes a zip archive.
MAIN = """\
import argparse, json, os, shutil, time, zipfile

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=90)
parser.add_argument("--resume", default="")
parser.add_argument("--seconds", type=float, default=0.7)
args = parser.parse_args()

start_epoch, best_acc1, weights = 0, 0.0, [0.0]
if args.resume:
    if os.path.isfile(args.resume):
        print(f"=> loading checkpoint '{args.resume}'")
        with zipfile.ZipFile(args.resume) as archive:
            checkpoint = json.loads(archive.read("archive/data.json"))
        start_epoch, best_acc1, weights = checkpoint["epoch"], checkpoint["best_acc1"], checkpoint["state_dict"]
        print(f"=> loaded checkpoint '{args.resume}' (epoch {checkpoint['epoch']})", flush=True)
    else:
        print(f"=> no checkpoint found at '{args.resume}'", flush=True)


def save_checkpoint(state, is_best, filename="checkpoint.pth.tar"):
    with zipfile.ZipFile(filename, "w") as archive:
        archive.writestr("archive/padding", os.urandom(5000))
        archive.writestr("archive/data.json", json.dumps(state))
    if is_best:
        shutil.copyfile(filename, "model_best.pth.tar")


for epoch in range(start_epoch, args.epochs):
    time.sleep(args.seconds)
    weights = [weight + 1 for weight in weights]
    acc1 = float(epoch)
    is_best, best_acc1 = acc1 > best_acc1, max(acc1, best_acc1)
    save_checkpoint({"epoch": epoch + 1, "arch": "linear", "state_dict": weights, "best_acc1": best_acc1}, is_best)
    print(f"Epoch: [{epoch}] saved", flush=True)
print(f"trained: {weights}", flush=True)
"""
LEG = "0:16"


def saved_in(run: LocalRun, leg: int) -> list[int]:
    """The epochs that a leg said it saved."""
    log = run.folder / "logs" / f"leg-{leg:04d}.out"
    return [int(found) for found in re.findall(r"Epoch: \[(\d+)\] saved", log.read_text() if log.exists() else "")]


def loaded_by(run: LocalRun, leg: int) -> int | None:
    found = re.search(r"loaded checkpoint '.*' \(epoch (\d+)\)", (run.folder / "logs" / f"leg-{leg:04d}.out").read_text())
    return int(found[1]) if found else None


def submit(machine: Machine, *flags: str, epochs: int) -> LocalRun:
    arguments = ("--epochs", str(epochs), "--resume", "checkpoint.pth.tar")
    return machine.submit(MAIN, "--time", LEG, *flags, name="main", prelude="", arguments=arguments)


def kill_after_a_save(run: LocalRun, leg: int) -> None:
    run.until(lambda _: len(saved_in(run, leg)) >= 2, within=90)
    pid, checkpoint = run.training_pid(leg), run.folder / "code" / "checkpoint.pth.tar"
    while True:  # not in the middle of a save: what such a script does then is its own affair
        os.kill(pid, signal.SIGSTOP)
        if zipfile.is_zipfile(checkpoint):
            break
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)


def is_whole_story(run: LocalRun, legs: int, epochs: int) -> None:
    """Each leg went on from what the one before had saved last, and together they did every epoch once, but for one cut off."""
    for leg in range(2, legs + 1):
        before, loaded = saved_in(run, leg - 1), loaded_by(run, leg)
        assert loaded is not None and loaded - before[-1] in (1, 2), (leg, before, loaded)  # it may be ended between saving and saying so
    assert f"trained: [{epochs}.0]" in run.output()
    done = {epoch for leg in range(1, legs + 1) for epoch in saved_in(run, leg)}
    assert len(done) >= epochs - legs and max(done) == epochs - 1


@pytest.mark.parametrize("flags", [(), ("--checkpoints", "own")], ids=["unchanged", "declared"])
def test_a_script_that_saves_in_its_working_folder_goes_on_from_limit_to_limit_and_through_a_kill(
    machine: Machine, flags: tuple[str, ...]
) -> None:
    run = submit(machine, *flags, epochs=45)
    kill_after_a_save(run, leg=1)
    shown = run.until_over(within=240)
    ends = [leg["end"] for leg in shown["legs"] if leg["end"]]
    assert shown["state"] == "finished", shown["reason"]
    assert ends[0] in ("crashed", "lost") and ends[-1] in ("done", "again")
    assert ends[1:-1].count("time_limit") >= 2, ends
    is_whole_story(run, len(ends), 45)
    seen = {event["leg"] for event in run.events("selfsaved") if "checkpoint.pth.tar" in event["files"]}
    assert seen >= set(range(1, len(ends)))


PARAMS = """\
name: main
train:
  command: {command}
  resources: {{time: "{leg}"}}
  checkpoints: {{paths: [checkpoint.pth.tar]}}
"""


def killed_after_a_publish(run: LocalRun, leg: int) -> Path:
    """The training of this leg stands still, its save is published, and what happens now to its file is its last sight of it."""
    run.until(lambda _: any(event["leg"] == leg for event in run.events("published")), within=60)
    os.kill(run.training_pid(leg), signal.SIGSTOP)
    return run.folder / "code" / "checkpoint.pth.tar"


def test_files_named_in_paths_are_published_and_put_back_where_they_are_torn_or_gone(machine: Machine) -> None:
    (machine.home / "main.py").write_text(MAIN)
    command = json.dumps([sys.executable, "main.py", "--epochs", "14", "--seconds", "5", "--resume", "checkpoint.pth.tar"])
    (machine.home / "params.yaml").write_text(PARAMS.format(command=command, leg="0:40"))
    told = json.loads(machine.onward("submit", "--json", "--cluster", "local", "params.yaml").stdout)
    run = LocalRun(machine=machine, id=told["id"], folder=Path(told["folder"]))
    run.until(lambda shown: shown["legs"][0]["end"] == "time_limit" and shown["checkpoints"], within=90)

    checkpoint = killed_after_a_publish(run, leg=2)
    os.truncate(checkpoint, checkpoint.stat().st_size // 2)  # in the middle of a save
    os.kill(run.training_pid(2), signal.SIGKILL)
    checkpoint = killed_after_a_publish(run, leg=3)
    checkpoint.unlink()  # as if the folder had been lost with its disk
    os.kill(run.training_pid(3), signal.SIGKILL)

    shown = run.until_over(within=240)
    assert shown["state"] == "finished", shown["reason"]
    assert [leg["end"] for leg in shown["legs"]][:3] == ["time_limit", "crashed", "crashed"]
    for leg in (3, 4):
        assert (loaded_by(run, leg) or 0) >= saved_in(run, leg - 1)[-1]  # at most the save that was torn or lost is done again
    assert "trained: [14.0]" in run.output()
    assert [event["leg"] for event in run.events("warned") if "put back into the working folder" in event["text"]] == [3, 4]
    with zipfile.ZipFile(Path(shown["checkpoints"][-1]["folder"]) / "checkpoint.pth.tar") as newest:
        assert json.loads(newest.read("archive/data.json"))["epoch"] == 14
