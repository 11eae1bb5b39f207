"""What a leg that trains costs shared storage: counted call by call over a simulated minute, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MINUTE = """
import collections, json, os, sys
from pathlib import Path

shared, scratch = sys.argv[1], Path(sys.argv[2])
counted = collections.Counter()
_REAL = {}


def count(name, path):
    if isinstance(path, int):
        try:
            path = os.readlink(f"/proc/self/fd/{path}")
        except OSError:
            return
    if os.fspath(path).startswith(shared):
        counted[name] += 1


def hook(event, arguments):  # what opens, lists, renames and removes
    if event in ("open", "os.listdir", "os.scandir", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link") and arguments[0]:
        count(event, arguments[0])


def counting(name):  # what the interpreter does not tell its hooks of
    real = getattr(os, name)

    def call(path, *more, **named):
        count(name, path)
        return real(path, *more, **named)

    setattr(os, name, call)


for name in ("stat", "lstat", "fstat", "fsync", "fdatasync", "close"):
    counting(name)
sys.addaudithook(hook)

from onward.checkpoints.publishing.publisher import CheckpointPublisher
from onward.checkpoints.watching.watcher import SaveWatcher
from onward.clock import ManualClock
from onward.model.spec import CheckpointRule
from onward.rundir.claim import claim
from onward.rundir.layout import LegLocal, RunDir
from onward.rundir.mirror import Mirror
from onward.sdk.spool import SpoolWriter
from onward.supervisor.preparation.batch_output import OutputFiles
from onward.supervisor.background import MIRROR_SECONDS, NODE_MIRROR_SECONDS
from onward.supervisor.stop.run_folder_watch import LOOK_SECONDS, ChangedFolder, FolderLooks

run, clock = RunDir(Path(shared)), ManualClock(10_000_000_000.0)
run.make()
claim(run, 1, job="1")


def node(number):
    local = LegLocal(scratch / f"node-{number}")
    local.make()
    return local, Mirror(local, run, now=clock.now)


first, *others = [node(number) for number in range(16)]
looks, pipeline = FolderLooks(run, 1, now=clock.now), ChangedFolder(run.checkpoints, now=clock.now)
outputs = OutputFiles(pairs=[(first[0].log(1, "out"), Path(shared, "digits-1.out"))], fresh=True, warn=print, now=clock.now)
publisher = CheckpointPublisher(
    SaveWatcher(first[0].checkpoints), run.checkpoints, leg=1, rule=CheckpointRule(), resumed_step=None,
    progress=lambda: (None, {}), clock=clock, shares=first[0].checkpoints,
)
writers = [SpoolWriter(str(local.spool), leg=1, name=f"train-{number}") for number, (local, _) in enumerate((first, *others))]
step = 0


def second(now):
    global step
    with first[0].log(1, "out").open("a") as file:
        for _ in range(10):
            step += 1
            print("step", step, file=file)
            writers[0].write({"s": step, "m": {"loss": 0.5}})
    if now % 10 == 0:  # figures of each node
        for (local, _), writer in zip((first, *others), writers):
            writer.write({"kind": "system", "m": {"cpu_percent": 7.0}})
    for _ in range(4):
        assert not list(publisher.work())
        clock.sleep(0.25)
    if now % MIRROR_SECONDS == 0:
        first[1].carry()
        outputs.carry()
    if now % NODE_MIRROR_SECONDS == 0:
        for _, mirror in others:
            mirror.carry()
    if now % LOOK_SECONDS == 0:
        looks.look()
        pipeline.changed()


for now in range(60):
    second(now)
counted.clear()
for now in range(60, 120):
    second(now)
there = run.log(1, "out").read_text().count("step")
print(json.dumps({"counted": counted, "there": there, "copied": Path(shared, "digits-1.out").read_text().count("step")}))
"""


def test_a_leg_on_sixteen_nodes_asks_shared_storage_at_most_twice_a_second(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "nodes").mkdir()
    command = [sys.executable, "-c", MINUTE, str(tmp_path / "run"), str(tmp_path / "nodes")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout)
    assert body["there"] >= 1160 and body["copied"] >= 1160, "the log of two minutes, but for the last two seconds"
    assert sum(body["counted"].values()) <= 120, body["counted"]
