"""The training of the bench of legs, in every system: steps of a fixed length, saved by itself now and then, and once more when asked.

leg_training.py TRACE --steps N --pause S --save-every S [--leave-after S]            as a run of Onward
leg_training.py TRACE … --state FILE                                                  as a link of a chain, its state in a file
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

Save = Callable[[int], None]


class Trace:
    def __init__(self, path: Path, *, first: int) -> None:
        self._file = path.open("a", buffering=1)
        self.last = first - 1  # the last step that was done
        self._life = f"{os.uname().nodename}-{os.getpid()}-{time.time_ns()}"
        self.write("begin", step=first, job=os.environ.get("SLURM_JOB_ID") or os.environ.get("JOB_ID", ""))

    def write(self, what: str, **more: object) -> None:
        self._file.write(json.dumps({"what": what, "life": self._life, "t": time.time(), **more}) + "\n")


def train(
    trace: Trace,
    *,
    first: int,
    steps: int,
    pause: float,
    save_every: float,
    save: Save,
    asked: Callable[[], bool],
    leave_after: float | None,
) -> bool:
    """True when all steps are done; False when it was asked to leave, saved and left."""
    began = saved = time.monotonic()
    for step in range(first, steps):
        time.sleep(pause)
        trace.write("step", step=step)
        trace.last = step
        leave = asked() or (leave_after is not None and time.monotonic() - began >= leave_after and step + 1 < steps)
        if leave or time.monotonic() - saved >= save_every:
            save(step)
            trace.write("save", step=step)
            saved = time.monotonic()
        if leave:
            return False
    save(steps - 1)
    trace.write("save", step=steps - 1)
    return True


def read_state(path: Path) -> int:
    return int(json.loads(path.read_text())["step"]) + 1 if path.exists() else 0


def write_state(path: Path, step: int) -> None:
    """As the seed's training saves: beside, then renamed."""
    beside = path.with_suffix(".tmp")
    beside.write_text(json.dumps({"step": step}))
    os.replace(beside, path)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("trace", type=Path)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--pause", type=float, required=True)
    parser.add_argument("--save-every", type=float, required=True)
    parser.add_argument("--leave-after", type=float)
    parser.add_argument("--state", type=Path)
    options = parser.parse_args()
    how = {"steps": options.steps, "pause": options.pause, "save_every": options.save_every, "leave_after": options.leave_after}
    if options.state:
        state: Path = options.state
        first = read_state(state)
        trace = Trace(options.trace, first=first)
        train(trace, first=first, save=lambda step: write_state(state, step), asked=lambda: False, **how)
        trace.write("end")
        return 0

    import onward

    run = onward.init(total_steps=options.steps)
    resumed = run.resume()
    first = read_state(resumed / "state.json") if resumed else 0
    trace = Trace(options.trace, first=first)

    def save(step: int) -> None:
        with run.checkpoint(step) as folder:
            write_state(folder / "state.json", step)

    done = train(trace, first=first, save=save, asked=run.should_stop, **how)
    if done:
        run.finish()
    trace.write("end")
    return 0 if done else 75


if __name__ == "__main__":
    sys.exit(main())
