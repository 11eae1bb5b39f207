"""Ending with whoever started us: a launcher that is killed ends nobody by itself, and its ranks must not go on beside the next leg's."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


class ParentWatch:
    """Who started this process. Once it has gone, somebody else is our parent."""

    def __init__(self) -> None:
        self._pid = os.getppid()

    @property
    def gone(self) -> bool:
        return os.getppid() != self._pid


def die_with_parent_hook() -> Callable[[], None]:
    """What a child calls before it becomes its program: the kernel kills it when this process has gone, however that was."""
    here = os.getpid()
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):  # a Python without it, or not Linux
        return lambda: None

    def tell_the_kernel() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != here:
            os._exit(1)

    return tell_the_kernel
