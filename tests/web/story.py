"""Two runs of Onward's own, written as their legs would have written them: one at work in its third leg, one that ran out of memory.

For pictures and for looks at every page: they have waits, checkpoints, logs in colours, samples of four GPUs, files and a diff.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onward.checkpoints.manifest import FileEntry, Manifest
from onward.model import events as ev
from onward.model.run import LegEnd
from onward.model.spec import Cluster, Limits, Resources, RunSpec, spec_to_json
from onward.rundir.files.code_list import record_code
from onward.rundir.journal import Journal
from onward.rundir.layout import RunDir

HOUR = 3600.0
AT_WORK, DEAD = "r7m2k9xq", "b4w8n3tz"
TOTAL = 36_000  # steps, one a second
_GPUS = tuple(f"GPU-{n}{n}a4c1e7-{n}b2d" for n in range(4))
_RESOURCES = Resources(time=6 * 3600, mem=64 * 1024, cpus_per_task=16, gpus="a100:4", partition="gpu")


@dataclass(kw_only=True)
class Told:
    """A run's folder as its story goes on."""

    dir: RunDir
    now: float
    step: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(5))

    def write(self, event: ev.Event) -> None:
        journal = Journal(self.dir.leg_journal(event.leg))
        journal.write(event)
        journal.close()

    def leg(self, leg: int, *, waits: float, trains: float, end: LegEnd | None, reason: str = "", evidence: str = "") -> None:
        name = f"{self.dir.path.name[13:]}.{leg}.{leg:08x}"
        self.write(ev.Submitting(leg=leg, at=self.now, name=name, mem=_RESOURCES.mem, time=_RESOURCES.time))
        self.write(ev.Submitted(leg=leg, at=self.now + 1, name=name, job=f"{48_210 + leg}"))
        self.now += waits
        began, first = self.now, self.step
        gpus = list(_GPUS)
        self.write(
            ev.Claimed(leg=leg, at=self.now, job=f"{48_210 + leg}", hosts=[f"gpu{leg + 2:02d}"], deadline=began + 6 * HOUR, gpus=gpus)
        )
        if first:
            self.write(ev.Restored(leg=leg, at=self.now + 20, step=first, checkpoint=f"leg-{leg - 1:04d}.step-{first:08d}"))
        self.write(ev.Started(leg=leg, at=self.now + 30, pid=4711))
        self._trained(leg, began, first, int(trains))
        self.now = began + trains
        if end is not None:
            self.write(ev.Ended(leg=leg, at=self.now, end=end, reason=reason, evidence=evidence, first_step=first, last_step=self.step))

    def _trained(self, leg: int, began: float, first: int, seconds: int) -> None:
        lines = [{"kind": "init", "total": TOTAL, "t": began}]
        for at in range(60, seconds, 60):
            step = first + at
            loss = 0.4 + 6 * math.exp(-step / 9000) + self.chance.gauss(0, 0.05)
            told = {"train/loss": loss, "train/lr": 1e-3 * (1 + math.cos(math.pi * step / TOTAL)) / 2}
            if at % 600 == 0:
                told["val/accuracy"] = 0.78 * (1 - math.exp(-step / 8000)) + self.chance.gauss(0, 0.003)
            lines.append({"s": step, "t": began + at, "m": told})
            if at % 1800 == 0:
                self._saved(leg, step, began + at, loss)
        self.step = self.saved
        _write(self.dir.spool / f"leg-{leg:04d}.train-7.jsonl", lines)
        _write(self.dir.spool / f"leg-{leg:04d}.system.jsonl", self._samples(began, seconds, tired=leg == 2))
        self.dir.log(leg, "out").write_text("".join(_lines(leg, began, first, seconds)))
        self.dir.log(leg, "err").write_text("UserWarning: the data loader has 4 workers; 16 CPUs are there\n")

    saved: int = 0

    def _saved(self, leg: int, step: int, at: float, loss: float) -> None:
        self.saved = step
        data = b"weights\n" * 4096
        manifest = Manifest(
            leg=leg,
            step=step,
            created=at,
            metrics={"train/loss": round(loss, 4)},
            files={"model.pt": FileEntry(size=len(data), hash=hashlib.sha256(data).hexdigest())},
            algorithm="sha256",
        )
        folder = self.dir.checkpoints / str(manifest.name)
        folder.mkdir()
        (folder / "model.pt").write_bytes(data)
        (folder / "manifest.json").write_text(manifest.to_json())
        self.write(ev.Published(leg=leg, at=at, step=step, bytes=len(data), save_seconds=2.5, stage_seconds=11.0))

    def _samples(self, began: float, seconds: int, *, tired: bool) -> Iterator[dict[str, Any]]:
        for number, at in enumerate(range(30, seconds, 60)):
            told = {
                "system/cpu_percent": 640 + self.chance.gauss(0, 40),
                "system/rss_mib": 21_000 + min(at, 3600),
                "system/mem_anon_mib": 20_000 + min(at, 3600),
                "system/mem_cache_mib": 9_000.0 + at % 1200,
                "system/load_1m": 7.5 + self.chance.gauss(0, 0.5),
            }
            for place, gpu in enumerate(_GPUS):
                idle = tired and place == 3 and at > seconds * 0.6
                told |= {
                    f"gpu/{gpu}/percent": 0.0 if idle else min(100.0, 93 + self.chance.gauss(0, 4)),
                    f"gpu/{gpu}/mem_used_mib": 1_200.0 if idle else 31_400.0 + place * 300,
                    f"gpu/{gpu}/mem_total_mib": 40_960.0,
                    f"gpu/{gpu}/power_w": 60.0 if idle else 342 + self.chance.gauss(0, 9),
                    f"gpu/{gpu}/temperature_c": 38.0 if idle else 66 + self.chance.gauss(0, 1.5),
                }
            yield {"n": number, "t": began + at, "kind": "system", "m": told}


def tell(root: Path, now: float) -> None:
    """Both stories, ending now."""
    told = _begin(root, "resnet50", AT_WORK, now - 10.6 * HOUR, {"lr": 0.001, "batch_size": 256, "depth": 50, "seed": 1})
    told.leg(1, waits=0.6 * HOUR, trains=5.9 * HOUR, end=LegEnd.TIME_LIMIT, reason="the job's time limit of 6 h was near")
    told.leg(2, waits=0.3 * HOUR, trains=1.9 * HOUR, end=LegEnd.PREEMPTED, reason="a job of higher priority took its nodes")
    told.leg(3, waits=0.7 * HOUR, trains=1.2 * HOUR, end=None)
    artifacts = told.dir.artifacts
    (artifacts / "plots").mkdir()
    (artifacts / "plots" / "confusion.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 9L9 0" stroke="teal"/></svg>'
    )
    (artifacts / "metrics.json").write_text(json.dumps({"val/accuracy": 0.71, "epoch": 6}, indent=2))
    record_code(told.dir, mode=0o644)
    (told.dir.code / "outputs" / "samples").mkdir(parents=True)
    (told.dir.code / "outputs" / "samples" / "epoch-6.txt").write_text("a small dog\n")
    (told.dir.code / "history.csv").write_text("epoch,loss\n1,2.31\n2,1.74\n")
    died = _begin(root, "bert-large", DEAD, now - 5 * HOUR, {"lr": 0.0003, "batch_size": 64, "seed": 3})
    evidence = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has 39.39 GiB, of which 1.1 GiB is free."
    died.leg(1, waits=0.2 * HOUR, trains=1.1 * HOUR, end=LegEnd.CRASHED, reason="the training ended with exit code 1", evidence=evidence)
    with died.dir.log(1, "err").open("a") as log:
        log.write(f'Traceback (most recent call last):\n  File "train.py", line 88, in <module>\n    loss.backward()\n{evidence}\n')
    died.write(
        ev.Closed(
            leg=1,
            at=died.now + 5,
            state="failed",
            cause="the training ended with exit code 1: CUDA out of memory",
            evidence=evidence,
            next="fix the code and submit again, with a smaller batch_size or more GPUs",
        )
    )


def _begin(root: Path, name: str, id: str, created: float, params: dict[str, Any]) -> Told:
    spec = RunSpec(
        id=id,
        name=name,
        experiment="vision" if name.startswith("res") else "language",
        cluster=Cluster(name="lab", scheduler="slurm"),
        command=("python", "train.py", "--lr", str(params["lr"])),
        workdir=".",
        created=created,
        user="ada",
        params=params,
        resources=_RESOURCES,
        limits=Limits(max_legs=12),
        launcher="torchrun",
        code={"commit": "6f1c2ab9d0e4", "branch": "main", "dirty": True},
    )
    dir = RunDir(root / f"2026-11-15_{'A' if name.startswith('res') else 'B'}_{name}")
    dir.make()
    dir.spec.write_text(json.dumps(spec_to_json(spec)))
    dir.code_diff.write_text("--- a/train.py\n+++ b/train.py\n@@ -12 +12 @@\n-warmup = 500\n+warmup = 1000\n")
    return Told(dir=dir, now=created)


def _write(to: Path, records: Any) -> None:
    to.write_text("".join(json.dumps({"n": number, **one}) + "\n" for number, one in enumerate(records)))


def _lines(leg: int, began: float, first: int, seconds: int) -> Iterator[str]:
    yield f"\x1b[1;36mleg {leg}\x1b[0m goes on from step {first:,}\n"
    for at in range(60, seconds, 60):
        loss = 0.4 + 6 * math.exp(-(first + at) / 9000)
        yield f"[{int(began + at)}] \x1b[32mINFO\x1b[0m step {first + at:>6} loss \x1b[1m{loss:.4f}\x1b[0m 2,130 images/s\n"
        if at % 1800 == 0:
            yield f"[{int(began + at)}] \x1b[33mSAVE\x1b[0m checkpoint at step {first + at}\n"
