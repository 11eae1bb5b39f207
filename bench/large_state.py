"""A real training with a state of several gigabytes, in short legs, one of them killed -9: what was lost, are the weights the same?

    python bench/large_state.py --python ~/env/bin/python      a Python that has PyTorch; --gpus 1 trains on a GPU

It trains three times on this machine's local queue: unbroken, in legs of 60 s and in legs of 120 s (`--legs`), and prints a line per leg.
It exits with 1 where a committed step was lost at a planned end, or the weights differ.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.crash.conftest import LocalRun, Machine, wait_for_the_keeper
from tests.scale.seen import SeenLeg, legs, legs_text

_TRAINING = Path(__file__).with_name("large_state_training.py")
_KILL_AFTER = 0.6  # of the second leg's length
_WEIGHTS = re.compile(r"^weights (\w+)$", re.MULTILINE)
_TRAINED = re.compile(r"^trained (\d+) at (\S+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Result:
    weights: str
    found: list[SeenLeg]
    killed: int | None  # number of the leg
    trained: int  # steps, repeated ones counted
    step_seconds: float
    leg_seconds: float  # all legs together

    @property
    def lost(self) -> list[str]:
        """What a leg did not go on from although the leg before it, which ended as planned, had committed it."""
        lines = []
        for before, after in itertools.pairwise(self.found):
            if before.number != self.killed and after.resumed != before.newest:
                lines.append(f"leg {after.number} went on from {after.resumed}, and leg {before.number} had committed {before.newest}")
        return lines


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0


def train(machine: Machine, options: argparse.Namespace, *, limit: int | None) -> Result:
    name = f"legs-{limit}" if limit else "unbroken"
    flags = ("--time", f"0:{limit}") if limit else ("--time", "5:00:00")
    command = [
        options.python,
        str(_TRAINING),
        "--bytes",
        str(options.gb * 1e9),
        "--steps",
        str(options.steps),
        "--every",
        str(options.every),
    ]
    machine.onward("submit", "--cluster", "local", "--name", name, "--keep", "2", "--gpus", str(options.gpus), *flags, "--", *command)
    (folder,) = Path(machine.environment["ONWARD_ROOT"]).glob(f"*_{name}")
    run = LocalRun(machine=machine, id=str(folder), folder=folder)
    killed = kill_leg(run, 2, after=_KILL_AFTER * limit) if limit else None
    shown = run.until_over(within=options.patience)
    if shown["state"] != "finished":
        sys.exit(f"{name} {shown['state']}: {shown.get('cause')}\n{run.output('err')[-2000:]}")
    found = legs(folder, events(run))
    steps = [(int(step), float(at)) for step, at in _TRAINED.findall(run.output())]
    pauses = [after[1] - before[1] for before, after in itertools.pairwise(steps) if after[0] == before[0] + 1]
    claimed = {event["leg"]: event["at"] for event in run.events("claimed")}
    ended = {event["leg"]: event["at"] for event in run.events("ended") + run.events("found")}
    [weights] = _WEIGHTS.findall(run.output())
    shutil.rmtree(folder)
    return Result(
        weights=weights,
        found=found,
        killed=killed,
        trained=len(steps),
        step_seconds=median(pauses),
        leg_seconds=sum(ended[leg] - at for leg, at in claimed.items()),
    )


def kill_leg(run: LocalRun, leg: int, *, after: float) -> int:
    """The leg's supervisor, its publisher and the training, all at once, as when a node goes down."""
    run.until(lambda shown: len(run.events("started")) >= leg or shown["state"] == "finished", within=600)
    began = next((event["at"] for event in run.events("started") if event["leg"] == leg), None)
    if began is None:
        sys.exit(f"the training finished before leg {leg}: more --steps")
    time.sleep(max(0.0, began + after - time.time()))
    mark = f"ONWARD_RUN_DIR={run.folder}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            ours = mark in (process / "environ").read_bytes().split(b"\0") or is_supervisor(process, run.folder)
            if ours:
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            continue
    return leg


def is_supervisor(process: Path, folder: Path) -> bool:
    words = (process / "cmdline").read_bytes()
    return b"supervisor.pyz" in words and bytes(folder) in words


def events(run: LocalRun) -> list[dict[str, Any]]:
    kinds = ("claimed", "started", "askedtostop", "published", "missed", "warned", "ended", "found")
    return sorted((event for kind in kinds for event in run.events(kind)), key=lambda event: event["at"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python that has PyTorch")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs to ask for: without any, the local queue hides them")
    parser.add_argument("--gb", type=float, default=4.4, help="size of the state")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--every", type=int, default=100, help="steps between two checkpoints")
    parser.add_argument("--legs", type=int, nargs="*", default=[60, 120], help="seconds of a leg")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), help="on a disk with room for six checkpoints")
    parser.add_argument("--patience", type=float, default=3600, help="seconds for one training")
    options = parser.parse_args()
    if os.path.sep in options.python:  # not resolve(): a link in a virtual environment is what makes it one
        options.python = os.path.abspath(options.python)
    place = Path(tempfile.mkdtemp(prefix="onward-large-state-", dir=options.folder))
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("ONWARD_", "SLURM_"))}
    environment |= {"ONWARD_ROOT": str(place / "runs"), "ONWARD_STATE_DIR": str(place / "state"), "TMPDIR": str(place / "node")}
    environment["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # without it CUDA's matrix products are not deterministic
    (place / "node").mkdir()
    machine = Machine(home=place, environment=environment)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    good = True
    try:
        unbroken = train(machine, options, limit=None)
        print(f"unbroken: {unbroken.leg_seconds:.0f} s, {unbroken.step_seconds:.2f} s a step\n{legs_text(unbroken.found)}", flush=True)
        for limit in options.legs:
            result = train(machine, options, limit=limit)
            same = result.weights == unbroken.weights
            useful = options.steps * result.step_seconds
            print(f"\nlegs of {limit} s, leg {result.killed} killed -9:\n{legs_text(result.found)}")
            print(f"weights {'equal' if same else 'DIFFER FROM'} the unbroken run's; steps trained twice: {result.trained - options.steps}")
            print("\n".join(result.lost) or "no committed step lost at a planned end")
            print(f"goodput: {useful:.0f} s of steps in {result.leg_seconds:.0f} s of legs = {useful / result.leg_seconds:.2f}", flush=True)
            good = good and same and not result.lost
    finally:
        machine.onward("cancel", *[str(path) for path in (place / "runs").glob("*_*_*")], check=False)
        wait_for_the_keeper(place / "state")
        shutil.rmtree(place, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
