"""Random seeds of tests: one for the whole run, printed; each test's own follows from it, so a second try draws the same numbers."""

from __future__ import annotations

import os
import random
import zlib

VARIABLE = "ONWARD_TEST_SEED"


def of_the_run() -> int:
    """Drawn once, then inherited by every worker and child."""
    return int(os.environ.setdefault(VARIABLE, str(random.SystemRandom().randrange(1 << 32))))


def of_a_test(node_id: str) -> int:
    return zlib.crc32(f"{of_the_run()} {node_id}".encode())
