"""Making do with little address space: some sites limit that, and what Onward reserves there is taken from the training's."""

from __future__ import annotations

import threading

_STACK = 2 << 20  # bytes for each thread of ours; the system's own default is 8 MiB
_M_ARENA_MAX = -8


def limit_address_space() -> None:
    """Before the first thread starts: small stacks, and one heap for all of them instead of 64 MiB reserved for each."""
    threading.stack_size(_STACK)
    try:
        import ctypes

        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
    except (ImportError, OSError, AttributeError):  # a Python without it, or another C library: then it is as it is
        pass
