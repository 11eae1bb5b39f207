"""One process at a time queues a job for a run: two `onward tend`, from cron and by hand, must not queue the same leg twice."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from onward.rundir.claim import take_file
from onward.rundir.layout import RunDir
from onward.sdk.atomic_files import draft_name

_ABANDONED = 600.0  # seconds: whoever made the mark was killed; no controller is waited for so long


@contextmanager
def queueing_alone(dir: RunDir, *, now: float) -> Iterator[bool]:
    """False: another process is doing it just now. What it does is seen in the journals afterwards."""
    mark = dir.queueing
    owner = json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "at": now})
    alone = take_file(mark, owner) or (_is_abandoned(mark, now) and _removed(mark, now) and take_file(mark, owner))
    try:
        yield alone
    finally:
        if alone:
            with suppress(OSError):  # it is taken for abandoned later
                mark.unlink()


def _is_abandoned(mark: Path, now: float) -> bool:
    try:
        return now - float(json.loads(mark.read_text())["at"]) > _ABANDONED
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        return now - mark.stat().st_mtime > _ABANDONED


def _removed(mark: Path, now: float) -> bool:
    """By a rename, of which only one can succeed; a mark that somebody made in the meantime is put back."""
    aside = mark.with_name(draft_name(mark.name))
    try:
        os.rename(mark, aside)
    except FileNotFoundError:
        return False
    abandoned = _is_abandoned(aside, now)
    if not abandoned:
        with suppress(FileExistsError):
            os.link(aside, mark)
    aside.unlink()
    return abandoned
