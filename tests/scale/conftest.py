"""Nightly: real checkpoints of SCALE_GB gigabytes (20 unless set), on slow, small and full file systems.

`make scale` alone runs these. They need root, bindfs (Debian), and free disk of six checkpoints and 10 GB in SCALE_DIR (/var/tmp).
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import alice, bed, site
from tests.crash.conftest import Machine, wait_for_the_keeper
from tests.needs import missing
from tests.scale.places import Ground, clear_abandoned

__all__ = ["alice", "bed", "site"]

GB = 1_000_000_000
_ABOVE = Path(os.environ.get("SCALE_DIR", "/var/tmp"))
_PREFIX = "onward-scale-"
_CHECKPOINTS = 6  # at a time: three in the store, three on the node, being written ones among them
_BESIDE = 10 * GB  # free disk for everything but checkpoints


def pytest_configure() -> None:
    """Whoever ends the tests by SIGTERM wants them to clear up as for Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def size() -> int:
    """Bytes of a checkpoint."""
    return round(float(os.environ.get("SCALE_GB", "20")) * GB)


@pytest.fixture
def ground(size: int) -> Iterator[Ground]:
    if os.geteuid() != 0:
        missing("file systems are mounted here, which needs root")
    for program, package in (("bindfs", "bindfs"), ("mkfs.ext4", "e2fsprogs"), ("losetup", "mount")):
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            missing(f"{program} is not installed: apt-get install {package}")
    clear_abandoned(_ABOVE, _PREFIX)
    need, free = _CHECKPOINTS * size + _BESIDE, shutil.disk_usage(_ABOVE).free
    if free < need:
        missing(
            f"checkpoints of {size / GB:g} GB need {need / GB:.0f} GB free in {_ABOVE}, and there are {free / GB:.0f} GB: "
            "set SCALE_GB to less, or SCALE_DIR to a folder on a larger disk"
        )
    ground = Ground(folder=_ABOVE / f"{_PREFIX}{os.getpid()}")
    ground.folder.mkdir()
    try:
        yield ground
    finally:
        ground.clear()


@pytest.fixture
def machine(ground: Ground) -> Iterator[Machine]:
    """Runs on this machine's own queue. A test may name another store (ONWARD_ROOT) or node disk before it submits."""
    home = ground.folder / "home"
    home.mkdir()
    shutil.copy(Path(__file__).with_name("training.py"), home / "training.py")
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("ONWARD_", "SLURM_"))},
        "ONWARD_ROOT": str(ground.folder / "runs"),
        "ONWARD_STATE_DIR": str(ground.folder / "state"),
        "ONWARD_SETTINGS": str(home / "settings.toml"),
    }
    machine = Machine(home=home, environment=environment)
    node = ground.folder / "node"
    node.mkdir()
    node_disk(machine, node)
    yield machine
    for folder in Path(environment["ONWARD_ROOT"]).glob("*_*_*"):
        if not (folder / "params" / "done.json").exists():
            machine.onward("cancel", str(folder), check=False)
    wait_for_the_keeper(ground.folder / "state")


def node_disk(machine: Machine, folder: Path) -> None:
    settings = f'[clusters.local]\nscheduler = "local"\nlocal-disk = "{folder}"\n'
    Path(machine.environment["ONWARD_SETTINGS"]).write_text(settings)


def command(size: int, *, steps: int, every: int) -> tuple[str, ...]:
    return (sys.executable, "training.py", "--bytes", str(size), "--steps", str(steps), "--every", str(every))
