"""Repair runs when somebody looks at them: what `onward tend` does, once a minute at most, and never at the cost of the look.

Whoever looks has asked the scheduler anyway. One that is slow is waited for only a moment: a repair may be cut off at any
line, and the next one finishes it.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from onward.operations.context import OperationsContext
from onward.operations.repair.tend import tend
from onward.rundir.layout import RunDir
from onward.schedulers.state_folder import state_folder
from onward.sdk.contract import LEG

EVERY = 60.0  # seconds between two repairs, whatever the number of looks and of processes that look
_PATIENCE = 3.0  # seconds that a look is held up at most
_MOST = 1000  # runs: of more, the newest


@dataclass(frozen=True, kw_only=True)
class _Newest:
    runs: Sequence[RunDir]
    others: Sequence[Path] = ()


def repair_after_look(context: OperationsContext, *, patience: float = _PATIENCE) -> list[str]:
    """What was repaired, in words. Never raises. Runs of other users, and of other machines, are left alone."""
    if LEG in context.env:  # inside a job, which may not be allowed to submit
        return []
    try:
        with _turn(context) as ours:
            return _tend_within(context, patience) if ours else []
    except Exception as error:  # a look is never spoilt by a repair
        logging.getLogger(__name__).debug("no repair this time: %s", error)
        return []


def keep_repairing(context: OperationsContext, stopped: threading.Event) -> None:
    """For a screen that stays open: the same again and again, until it is closed."""
    while not stopped.wait(EVERY):
        repair_after_look(context)


def _tend_within(context: OperationsContext, patience: float) -> list[str]:
    acted: list[str] = []

    def work() -> None:
        with suppress(Exception):
            runs = context.runs()
            among = _Newest(runs=runs[-_MOST:]) if len(runs) > _MOST else None
            acted.extend(tend(context, among=among, uploads=False).acted)

    quiet = logging.NullHandler()  # with no handler at all, warnings would stand in the middle of what the command prints
    logging.getLogger("onward").addHandler(quiet)
    thread = threading.Thread(target=work, name="repair", daemon=True)
    thread.start()
    thread.join(patience)
    return list(acted)


@contextmanager
def _turn(context: OperationsContext) -> Iterator[bool]:
    """Whether a repair is due, and nobody else is at it. The stamp is this user's, one for each set of roots."""
    key = hashlib.sha256("\n".join(map(str, context.roots)).encode()).hexdigest()[:12]
    folder = state_folder(context.env)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    now = context.clock.now()
    with (folder / f"repaired-{key}").open("a+") as stamp:
        try:
            fcntl.flock(stamp, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        stamp.seek(0)
        last = _seconds(stamp.read())
        if 0 <= now - last < EVERY:
            yield False
            return
        stamp.truncate(0)
        stamp.write(f"{now}\n")
        stamp.flush()
        yield True


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
