"""Wait for the run's folder while its storage is full, read-only or away, instead of failing at the first error."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from onward.clock import Clock

log = logging.getLogger(__name__)

T = TypeVar("T")

_PAUSE, _LONGEST_PAUSE = 0.25, 5.0  # seconds between two tries
_SAY_EVERY = 60.0  # seconds


def wait_for_storage(what: str, act: Callable[[], T], *, clock: Clock, until: float, ending: Callable[[], bool] = lambda: False) -> T:
    """Do `act`, which may be repeated. While the storage refuses, try again, until then or until the job is told to end.

    Any OSError counts: a file that is missing may be on a file system that is not mounted at this moment. Raises the last one.
    """
    pause, said = _PAUSE, None
    while True:
        try:
            done = act()
        except OSError as error:
            now = clock.now()
            if now >= until or ending():
                raise
            if said is None or now - said >= _SAY_EVERY:
                said = now
                log.warning("%s fails now, and is retried for up to %.0f s: %s", what, until - now, error)
            clock.sleep(min(pause, max(until - now, 0.0)))
            pause = min(2 * pause, _LONGEST_PAUSE)
            continue
        if said is not None:
            log.info("%s: works again", what)
        return done
