"""Four nodes of the Slurm bed, a slow store, and a checkpoint of which each rank writes a quarter; one leg is killed with SIGKILL.

The nodes share this machine's disk, in folders of their own. Those of a killed leg are found by whichever node comes next.
"""

from __future__ import annotations

import math
import pwd
import signal
import time
from pathlib import Path

import pytest

from beds.slurm import SlurmBed
from onward.sdk import contract
from tests.cluster.conftest import Person, RunOnBed
from tests.scale.conftest import GB
from tests.scale.places import Ground, rate_of
from tests.scale.seen import finished, legs, legs_text, nothing_lost

pytestmark = [pytest.mark.scale, pytest.mark.cluster]

_NODES = 4
_PAUSE = 0.5  # seconds a step takes


@pytest.mark.takes("nodes", "v100", "pair")
def test_four_nodes_lose_nothing_at_planned_ends_nor_what_lay_on_them_when_all_was_killed(
    alice: Person, bed: SlurmBed, ground: Ground, size: int
) -> None:
    store, node = ground.slow("store", checkpoint=size), ground.folder / "node"
    node.mkdir()
    node.chmod(0o1777)
    publish = size / rate_of(store, min(size // 8, GB))
    save = size / rate_of(node, min(size // 4, 2 * GB))
    minutes = math.ceil((6 * publish + 4 * save + 60) / 60)
    every = round((1.5 * publish + save + 5) / _PAUSE)
    steps = round(1.6 * 60 * minutes / _PAUSE) + 2 * every
    print(f"\nfour nodes: {size / GB:g} GB in {_NODES} shares; a copy takes {publish:.0f} s, a save {save:.0f} s; legs of {minutes} min")
    run = submit(alice, store, node, minutes=minutes, size=size, steps=steps, every=every)
    try:
        killed = 2 * every - 1
        until_committed(run, node, killed, within=60 * minutes + 120)
        kill_all(run, bed)
        shown = run.until_over(within=60 * minutes * 6 + 300)
        found = legs(run.folder, run.events())
        print(legs_text(found))
        finished(shown, run.folder)
        assert len(shown["legs"][0]["nodes"]) == _NODES
        assert "time_limit" in {leg.end for leg in found}
        assert found[1].resumed == killed, f"step {killed} lay on the nodes, and leg 2 went on from {found[1].resumed}"
        nothing_lost(found[1:])
        assert all(sorted(leg.saved) == list(range(_NODES)) for leg in found[1:])
        assert not list(node.glob(f"onward-*/{run.id}/*/checkpoints/{contract.SHARES}/step-*")), "nothing is left on the nodes"
    finally:
        if not (run.folder / "params" / "done.json").exists():
            alice.onward("cancel", run.id, check=False)
            run.jobs_left()


def submit(alice: Person, store: Path, node: Path, *, minutes: int, size: int, steps: int, every: int) -> RunOnBed:
    runs = store / "runs"
    runs.mkdir()
    account = pwd.getpwnam(alice.user)
    for folder in (store, runs):
        folder.chmod(0o1777)
    alice.environment["ONWARD_ROOT"] = str(runs / account.pw_name)
    settings = f'cluster = "slurm"\n[clusters.slurm]\nscheduler = "slurm"\nlocal-disk = "{node}"\n'
    alice.environment["ONWARD_SETTINGS"] = str(alice.write("settings.toml", settings))
    alice.write("training.py", Path(__file__).with_name("training.py").read_text())
    shape = ("--launcher", "srun", "-p", "spot", "--nodes", str(_NODES), "--ntasks-per-node", "1")
    flags = (*shape, "--mem", "2G", "--keep", "2", "--time", f"{minutes}:00")
    command = ("python3", "training.py", "--bytes", str(size), "--steps", str(steps), "--every", str(every))
    return alice.submit(*flags, "--", *command)


def until_committed(run: RunOnBed, node: Path, step: int, *, within: float) -> None:
    """Until every rank of the first leg has committed its share of this step on its node."""
    marks = f"onward-*/{run.id}/leg-0001*/checkpoints/{contract.SHARES}/{contract.step_folder(step)}/rank-*/{contract.COMMIT_FILE}"
    give_up = time.monotonic() + within
    while len(list(node.glob(marks))) < _NODES:
        assert time.monotonic() < give_up, f"not all shares of step {step} were saved:\n{run.log()}"
        time.sleep(0.1)


def kill_all(run: RunOnBed, bed: SlurmBed) -> None:
    """Every process of the leg's job, on all of its nodes."""
    [claimed] = [event for event in run.events() if event["kind"] == "claimed" and event["leg"] == 1]
    for host in claimed["hosts"]:
        for process in bed.processes(host):
            if process.environment.get("SLURM_JOB_ID") == claimed["job"]:
                process.send(signal.SIGKILL)
