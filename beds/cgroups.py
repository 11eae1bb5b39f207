"""Version 1 control groups: whether they can be used, who is in them, and clearing them away."""

import os
from pathlib import Path

from beds.process import Process

ROOT = Path("/sys/fs/cgroup")


def writable(controllers: tuple[str, ...]) -> bool:
    """Whether each controller is mounted on its own and groups can be made in it."""
    for controller in controllers:
        probe = ROOT / controller / f"onward-beds-probe-{os.getpid()}"
        try:
            probe.mkdir()
            usable = (probe / "cgroup.procs").exists()
            probe.rmdir()
        except OSError:
            return False
        if not usable:
            return False
    return True


def limits_swap() -> bool:
    """Whether memory and swap can be limited together."""
    return (ROOT / "memory" / "memory.memsw.limit_in_bytes").exists()


def groups(name: str) -> list[Path]:
    """The group of that name in every controller that has it."""
    return sorted(path for path in ROOT.glob(f"*/{name}") if path.is_dir())


def members(name: str) -> list[Process]:
    """Every process in the group of that name, or in a group below it, in any controller."""
    numbers: set[int] = set()
    for group in groups(name):
        for listing in group.rglob("cgroup.procs"):
            try:
                numbers.update(int(number) for number in listing.read_text().split())
            except OSError:
                continue  # the group went away meanwhile
    return [found for found in map(Process.of, sorted(numbers)) if found is not None]


def thaw(name: str) -> None:
    """Let frozen processes run: a suspended job cannot even be killed."""
    for state in (ROOT / "freezer" / name).rglob("freezer.state"):
        try:
            state.write_text("THAWED")
        except OSError:
            continue


def remove(name: str) -> bool:
    """Remove the empty groups of that name from the leaves up; True if all of them went."""
    gone = True
    for top in groups(name):
        for folder, _, _ in os.walk(top, topdown=False):
            try:
                Path(folder).rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                gone = False
    return gone
