"""The demo: a real training through at least four jobs on this machine, one of them killed, proved equal to an unbroken one."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ONWARD = [sys.executable, "-m", "onward"]
LEG = "0:10"  # minutes:seconds: so short that the training needs several
EPOCHS = "24"
PAUSE = "0.025"


def main() -> int:
    work = Path(tempfile.mkdtemp(prefix="onward-demo-"))
    env = {**os.environ, "ONWARD_ROOT": str(work / "runs"), "ONWARD_STATE_DIR": str(work / "state")}
    train = ["train.py", "--epochs", EPOCHS]

    print("1. the same training, unbroken, for comparison")
    unbroken = work / "unbroken.npz"
    by_hand = {**env, "ONWARD_RUN_DIR": str(work / "by-hand")}
    subprocess.run([sys.executable, *train, "--out", unbroken], cwd=HERE, env=by_hand, check=True, stdout=subprocess.DEVNULL)

    print(f"2. now in jobs of {LEG} at most; the second one is killed with SIGKILL, supervisor, training and all\n")
    broken = work / "broken.npz"
    command = [*ONWARD, "run", "--cluster", "local", "--name", "digits", "--time", LEG, "--"]
    command += [sys.executable, *train, "--pause", PAUSE, "--out", str(broken)]
    following = subprocess.Popen(command, cwd=HERE, env=env, stdout=subprocess.DEVNULL)
    killer = threading.Thread(target=kill_leg_two, args=(work / "runs",), daemon=True)
    killer.start()
    if following.wait():
        print(f"\nthe run did not finish: see {work}")
        return 1

    shown = subprocess.run([*ONWARD, "show", "digits", "--json"], env=env, check=True, capture_output=True, text=True).stdout
    legs = json.loads(shown)["legs"]
    print()
    subprocess.run([*ONWARD, "show", "digits"], env=env, check=True)
    same = equal(unbroken, broken)
    lost = [leg["number"] for leg in legs if leg["end"] == "lost"]
    print(f"\n{len(legs)} legs, leg {', '.join(map(str, lost)) or '–'} killed")
    print(f"final weights bit-identical to the unbroken training: {'yes' if same else 'NO'}")
    print(f"look around in {work / 'runs'}")
    return 0 if same and len(legs) >= 4 and lost else 1


def kill_leg_two(runs: Path) -> None:
    """kill -9 everything of leg 2's job, two seconds after its training began. As a dying node would."""
    journal = None
    while journal is None or '"started"' not in journal.read_text():
        time.sleep(0.1)
        journal = next(iter(runs.glob("*/journal/leg-0002.jsonl")), None)
    time.sleep(2)
    job = json.loads(journal.read_text().splitlines()[0])["job"]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"ONWARD_JOB_ID={job}".encode() in variables and any(v.startswith(b"ONWARD_JOB_NAME=digits.2.") for v in variables):
            os.kill(int(process.name), signal.SIGKILL)


def equal(one: Path, other: Path) -> bool:
    with np.load(one) as a, np.load(other) as b:
        return sorted(a) == sorted(b) and all(a[name].tobytes() == b[name].tobytes() for name in a)


if __name__ == "__main__":
    sys.exit(main())
