"""A checkpoint that all ranks write: each commits its share on its own node; the supervisors make one of them.

Started by hand there is no supervisor: whichever rank commits last puts the shares together.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from onward.sdk import contract
from onward.sdk.atomic_files import write_whole
from onward.sdk.ranks import Ranks


def partial_share(checkpoints: Path, step: int, rank: int) -> Path:
    name = f"{contract.PARTIAL_PREFIX}{contract.step_folder(step)}-{contract.rank_name(rank)}-{os.getpid()}"
    return checkpoints / contract.SHARES / name


def commit_share(partial: Path, checkpoints: Path, step: int, ranks: Ranks, note: Mapping[str, object]) -> Path:
    """The share appears by rename, all or nothing. It replaces an existing one of the same step."""
    final = checkpoints / contract.SHARES / contract.step_folder(step) / contract.rank_name(ranks.rank)
    write_whole(partial / contract.COMMIT_FILE, json.dumps({**note, "step": step, "rank": ranks.rank, "world": ranks.world_size}))
    shutil.rmtree(final, ignore_errors=True)
    for _ in range(3):  # the step's folder may be cleared away, once its other shares have been carried off, in this very moment
        final.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.rename(partial, final)
            break
    return final


def join_unmanaged(checkpoints: Path, step: int, ranks: Ranks) -> Path | None:
    """The joined folder, not yet committed, for the one rank that finds all shares and claims them first."""
    shares = checkpoints / contract.SHARES / contract.step_folder(step)
    folders = [shares / contract.rank_name(rank) for rank in range(ranks.world_size)]
    if not all((folder / contract.COMMIT_FILE).is_file() for folder in folders):
        return None
    joined = checkpoints / f"{contract.PARTIAL_PREFIX}{contract.step_folder(step)}-joined"
    try:
        os.rename(shares, joined)
    except OSError:
        return None  # another rank was faster
    for rank in range(ranks.world_size):
        folder = joined / contract.rank_name(rank)
        (folder / contract.COMMIT_FILE).unlink()
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                target = joined / path.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, target)
        shutil.rmtree(folder, ignore_errors=True)
    return joined
