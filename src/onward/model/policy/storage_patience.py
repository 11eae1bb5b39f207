"""How long a job waits for the run's folder while its storage is full, read-only or away. Pure.

A 24-hour leg can afford a quarter of an hour; a leg of a minute cannot. A job that gives up queues another in its place, which
waits again, so the sum over such jobs is limited too: nobody should pay for GPUs that only wait for a disk.
"""

from __future__ import annotations

_MOST, _LEAST = 900.0, 60.0  # seconds
_SHARE, _MOST_SHARE = 0.1, 0.5  # of a leg
MOST_WAITED = 7200.0  # seconds, by all jobs together that could not begin one leg
_EARLY_PAUSE, _LONGEST_EARLY_PAUSE = 30.0, 900.0  # seconds


def storage_patience(limit: float | None) -> float:
    """Seconds that a leg with this time limit waits for its storage, at its start and again at its end."""
    if limit is None:
        return _MOST
    return min(_MOST, max(_LEAST, limit * _SHARE), limit * _MOST_SHARE)


def may_wait_again(waited: float) -> bool:
    """Whether another job should wait, after jobs that could not begin this leg have waited so long together."""
    return waited < MOST_WAITED


def early_pause(times: int, limit: float | None) -> float:
    """Seconds that a job which started too early waits for its predecessor to end, before another takes its place.

    `times`: how many jobs of this leg have left for that reason. The first leaves at once: its replacement is held on the predecessor.
    Where that hold does not work, each waits longer than the one before.
    """
    if times == 0:
        return 0.0
    return min(_EARLY_PAUSE * 2.0 ** min(times, 10), _LONGEST_EARLY_PAUSE, limit * _MOST_SHARE if limit else _LONGEST_EARLY_PAUSE)
