"""A training to look at: colours in its log, checkpoints every five steps, and files that say when it goes on, goes round or fails."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers import PATIENCE, Running

SCRIPT = """\
import os, sys, time
import onward

steps, folder = int(sys.argv[1]), sys.argv[2]
there = lambda name: os.path.exists(os.path.join(folder, name))
run = onward.init(total_steps=steps)
saved = run.resume()
first = int((saved / "state").read_text()) if saved else 0
leg = os.environ["ONWARD_LEG"]
print(f"\\x1b[1;36mleg {leg}\\x1b[0m goes on from step {first} <b>not bold</b>", flush=True)
for step in range(first + 1, steps + 1):
    run.log({"loss": 2 / step}, step=step)
    print(f"step {step} \\x1b[32mloss {2 / step:.4f}\\x1b[0m", flush=True)
    if step % 5 == 0:
        with run.checkpoint(step) as made:
            (made / "state").write_text(str(step))
    if step == 7 and there("needs-shard") and not there("shard"):
        raise FileNotFoundError("no such shard: shard-00007")
    while step == steps - 1 and there("hold"):
        time.sleep(0.05)
        if there(f"turn-{leg}"):
            sys.exit(75)
        if run.should_stop():
            with run.checkpoint(step) as made:
                (made / "state").write_text(str(step))
            sys.exit(75)
run.finish()
"""


@dataclass(frozen=True, kw_only=True)
class Started:
    id: str
    server: Running
    token: str
    folder: Path  # where its signs lie
    dir: Path  # the run's own

    def sign(self, name: str, *, there: bool = True) -> None:
        (self.folder / name).touch() if there else (self.folder / name).unlink()

    def overview(self) -> Any:
        return self.server.json("GET", f"/api/v1/runs/{self.id}/overview", self.token)

    def until(self, state: str, *, leg: int = 0, step: int = 0) -> Any:
        deadline = time.monotonic() + PATIENCE
        while True:
            told = self.overview()
            if told["run"]["state"] == state and told["run"]["leg"] >= leg and (told["pace"]["step"] or 0) >= step:
                return told
            assert time.monotonic() < deadline, json.dumps(told["run"])
            time.sleep(0.2)


def start(server: Running, token: str, code: Path, name: str, *signs: str, steps: int = 12) -> Started:
    (code / "training.py").write_text(SCRIPT)
    folder = server.folder / f"signs-{name}"
    folder.mkdir()
    for sign in signs:
        (folder / sign).touch()
    train = {
        "command": [sys.executable, "training.py", str(steps), str(folder)],
        "params": {"lr": 0.1, "seed": 1},
        "limits": {"max-restarts": 1},
        "checkpoints": {"keep": 100},
    }
    made = server.json("POST", "/api/v1/runs", token, {"draft": {"name": name, "cluster": "local", "train": train}, "folder": str(code)})
    told = server.json("GET", f"/api/v1/runs/{made['id']}/overview", token)
    return Started(id=made["id"], server=server, token=token, folder=folder, dir=Path(told["folder"]))
