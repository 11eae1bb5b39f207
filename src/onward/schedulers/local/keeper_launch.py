"""Launch: how a keeper comes to run, at most one a queue, whoever asks and however many at once.

Whoever gets the keeper's lock starts the keeper and hands the lock over with the open file, so there is no moment in between.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import onward
from onward.errors import SchedulerUnavailable
from onward.schedulers.command import clean_environment
from onward.schedulers.local.job_queue import LocalQueue

LOCK_VARIABLE = "ONWARD_KEEPER_LOCK"  # the number of the open file that holds the lock
_START_SECONDS = 60.0


def take_lock(path: Path) -> int | None:
    """The open file that holds the lock until it is closed everywhere; `None` when a keeper runs."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def ensure_keeper(queue: LocalQueue, command: Sequence[str]) -> None:
    """Start a keeper if there are jobs that need one and none runs."""
    if not queue.unfinished():
        return
    lock = take_lock(queue.keeper_lock)
    if lock is None:
        return
    try:
        with queue.keeper_log.open("ab") as log:
            done = subprocess.run(  # it answers once it has detached: see keeper.main
                command,
                env=clean_environment({LOCK_VARIABLE: str(lock), **_python_path()}),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lock,),
                start_new_session=True,
                timeout=_START_SECONDS,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SchedulerUnavailable(f"the local queue's keeper could not be started: {error}", hint=f"see {queue.keeper_log}") from error
    finally:
        os.close(lock)
    if done.returncode:
        raise SchedulerUnavailable(f"the local queue's keeper exited at once with code {done.returncode}", hint=f"see {queue.keeper_log}")


def keeper_command(state: Path) -> list[str]:
    """From an installed package, or from the archive that this code runs from: then its `__main__` knows the word `keeper`."""
    archive = _archive()
    if archive is not None:
        return [sys.executable, str(archive), "keeper", str(state)]
    return [sys.executable, "-m", "onward.schedulers.local.keeper", str(state)]


def _archive() -> Path | None:
    return next((parent for parent in _package().parents if parent.is_file()), None)


def _python_path() -> dict[str, str]:
    """The keeper must find this very package, also where it is not installed but was put on the path."""
    return {} if _archive() else {"PYTHONPATH": str(_package().parent)}


def _package() -> Path:
    return Path(onward.__file__).absolute().parent
