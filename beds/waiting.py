"""Waiting for something another process does."""

import time
from collections.abc import Callable


def until(check: Callable[[], bool], *, timeout: float, pause: float = 0.05) -> bool:
    """Ask `check` again and again; True as soon as it is, False when `timeout` seconds are over."""
    deadline = time.monotonic() + timeout
    while not check():
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
    return True
