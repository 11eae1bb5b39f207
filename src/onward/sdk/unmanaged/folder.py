"""The folder of a training that nobody submitted: which it is, and what earlier processes left in it."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from onward.sdk import contract
from onward.sdk.ranks import Ranks

_TAIL = 2 << 20  # bytes: a record of thousands of metrics fits


def script_name() -> str:
    return Path(sys.argv[0] or "run").stem or "run"


def folder_for(name: str, ranks: Ranks, *, id: str | None = None, resume: object = None) -> Path:
    """`id` is a name that the script chooses; the same id continues the same run. Raises ValueError where `resume` forbids it."""
    given = os.environ.get(contract.RUN_DIR)
    if given:
        return Path(given)
    room = Path(os.environ.get(contract.ROOT, "runs")) / contract.UNMANAGED_FOLDER
    if id:
        folder = room / safe_file_name(id)
        known = (folder / "spool").is_dir()
        if resume == "must" and not known:
            raise ValueError(f"init(id={id!r}, resume='must'): no run in {folder}; resume='allow' starts one")
        if resume == "never" and known:
            raise ValueError(f"init(id={id!r}, resume='never'): the run {folder} already exists; resume='allow' continues it")
        return folder
    if ranks.several:  # one folder for all that one launcher started
        return room / f"{time.strftime('%Y-%m-%d')}_{safe_file_name(name)}_{os.environ.get('MASTER_PORT') or os.getppid()}"
    folder = room / f"{time.strftime('%Y-%m-%d_%H%M%S')}_{safe_file_name(name)}_{os.getpid()}"
    return folder.with_name(f"{folder.name}{time.time_ns() % 1_000_000_000:09d}") if folder.exists() else folder  # two within a second


def unmanaged_run_id(folder: Path) -> str:
    """The tracker's id for a run of this folder."""
    import hashlib

    return hashlib.sha256(f"onward run by hand {folder}".encode()).hexdigest()[:32]


def next_leg(folder: Path) -> int:
    return len({path.name.split(".")[0] for path in (folder / "spool").glob("leg-*")}) + 1


def last_step(folder: Path) -> int:
    """The last logged step; -1: none."""
    steps = [-1]
    for path in (folder / "spool").glob("leg-*.jsonl"):
        with path.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _TAIL, 0))
            lines = file.read().split(b"\n")
        for line in reversed(lines):
            try:
                record = json.loads(line)
                if "m" in record or "v" in record:
                    steps.append(int(record["s"]))
                    break
            except (ValueError, KeyError, TypeError):
                continue
    return max(steps)


def safe_file_name(name: str) -> str:
    """A text as a file name."""
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in name).strip(".") or "run"
