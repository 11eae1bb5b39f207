"""A script that keeps its own checkpoint in its working folder, written in place, as PyTorch's ImageNet example does."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

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
# What happens to it: once per word, in the first leg that has got so far. `kill`: after some saves. `tear` and `lose`: after a publish
# in this leg, its file is cut off, as in the middle of a save, or goes. Each ends in a kill -9.
ACCIDENT = """\
import glob, os, runpy, signal, sys, threading, time, zipfile

words, file = sys.argv[1].split(","), "checkpoint.pth.tar"
began, run, leg = time.time(), os.environ["ONWARD_RUN_DIR"], int(os.environ["ONWARD_LEG"])
happened = os.path.join(run, "workdir", "happened")


def is_time_for(word):
    published = glob.glob(f"{run}/results/checkpoints/leg-{leg:04d}.*")
    if not (published if word != "kill" else os.path.exists("model_best.pth.tar")):
        return False
    return os.path.getmtime(file) > began and time.time() - os.path.getmtime(file) > 0.1 and zipfile.is_zipfile(file)


def accident(word):
    while not is_time_for(word):
        time.sleep(0.02)
    with open(happened, "a") as note:
        note.write(f"{word} {leg}\\n")
    if word == "tear":
        os.truncate(file, os.path.getsize(file) // 2)
    elif word == "lose":
        os.unlink(file)
    os.kill(os.getpid(), signal.SIGKILL)


done = open(happened).read().count("\\n") if os.path.exists(happened) else 0
for word in words[done : done + 1]:
    threading.Thread(target=accident, args=(word,), daemon=True).start()
sys.argv[:] = sys.argv[2:]
runpy.run_path("main.py", run_name="__main__")
"""


def saved_in(run: LocalRun, leg: int) -> list[int]:
    """The epochs that a leg said it saved."""
    return [int(found) for found in re.findall(r"Epoch: \[(\d+)\] saved", (run.folder / "logs" / f"leg-{leg:04d}.out").read_text())]


def loaded_by(run: LocalRun, leg: int) -> int:
    """The epoch that a leg went on with; 0: it began anew."""
    found = re.search(r"loaded checkpoint '.*' \(epoch (\d+)\)", (run.folder / "logs" / f"leg-{leg:04d}.out").read_text())
    return int(found[1]) if found else 0


def accidents(run: LocalRun) -> list[list[str]]:
    return [line.split() for line in (run.folder / "workdir" / "happened").read_text().splitlines()]


def ends(shown: dict[str, Any]) -> list[str]:
    return [leg["end"] for leg in shown["legs"] if leg["end"]]


@pytest.mark.parametrize("flags", [(), ("--checkpoints", "own")], ids=["unchanged", "declared"])
def test_a_script_that_saves_in_its_working_folder_goes_on_from_limit_to_limit_and_through_a_kill(
    machine: Machine, flags: tuple[str, ...]
) -> None:
    (machine.home / "main.py").write_text(MAIN)
    arguments = ("kill", "main.py", "--epochs", "45", "--resume", "checkpoint.pth.tar")
    run = machine.submit(ACCIDENT, "--time", "0:16", *flags, name="accident", prelude="", arguments=arguments)
    shown = run.until_over(within=300)
    assert shown["state"] == "finished", shown["reason"]
    assert ends(shown).count("crashed") == len(accidents(run)) == 1 and ends(shown).count("time_limit") >= 2
    for leg in range(2, len(ends(shown)) + 1):  # each goes on from what the one before saved last; it may have been ended before it said so
        assert loaded_by(run, leg) - saved_in(run, leg - 1)[-1] in (1, 2)
    assert "trained: [45.0]" in run.output()
    seen = {event["leg"] for event in run.events("selfsaved") if "checkpoint.pth.tar" in event["files"]}
    assert seen >= set(range(1, len(ends(shown))))
    assert shown["own_files"]["leg"] == len(ends(shown)) and shown["checkpoints"] == []


PARAMS = """\
name: main
train:
  command: {command}
  resources: {{time: "0:40"}}
  checkpoints: {{paths: [checkpoint.pth.tar]}}
"""


def test_files_named_in_paths_are_published_and_put_back_where_they_are_torn_or_gone(machine: Machine) -> None:
    (machine.home / "main.py").write_text(MAIN)
    (machine.home / "accident.py").write_text(ACCIDENT)
    arguments = ["tear,lose", "main.py", "--epochs", "20", "--seconds", "4", "--resume", "checkpoint.pth.tar"]
    (machine.home / "params.yaml").write_text(PARAMS.format(command=json.dumps([sys.executable, "accident.py", *arguments])))
    body = json.loads(machine.onward("submit", "--json", "--cluster", "local", "params.yaml").stdout)
    run = LocalRun(machine=machine, id=body["id"], folder=Path(body["folder"]))
    shown = run.until_over(within=400)
    assert shown["state"] == "finished", shown["reason"]
    assert "trained: [20.0]" in run.output()
    [(_, torn), (_, lost)] = accidents(run)
    for leg in (int(torn), int(lost)):
        assert ends(shown)[leg - 1] == "crashed"
        assert loaded_by(run, leg + 1) >= max(loaded_by(run, leg), 1)
    put_back = [event["leg"] for event in run.events("warned") if "put back into the working folder" in event["text"]]
    assert put_back == [int(torn) + 1, int(lost) + 1]
    with zipfile.ZipFile(Path(shown["checkpoints"][-1]["folder"]) / "checkpoint.pth.tar") as newest:
        assert json.loads(newest.read("archive/data.json"))["epoch"] == 20
