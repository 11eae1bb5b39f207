"""Said once to each user: how to have runs watched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onward.errors import InvalidInput
from onward.operations.context import OperationsContext
from onward.operations.repair.timer import TendTimer
from onward.operations.tracker_access.location import tracker_location
from onward.schedulers.state_folder import first_time, state_folder

HINT = (
    "runs continue by themselves; if all jobs of a run disappear, it waits for your next command. To have runs watched (shown once):",
    "  onward up    or    onward tend --install (a timer)    or in cron: */10 * * * * onward tend",
)
_MARK = "watching-hint-said"


def hint_once(context: OperationsContext) -> Sequence[str]:
    """Nothing where they are watched already, or it was said before. A state folder that cannot be written: nothing either."""
    try:
        said = (state_folder(context.env) / _MARK).exists()
        if said or TendTimer(env=context.env, folder=Path()).installed or tracker_location(context.env).served_at():
            return ()
    except (OSError, InvalidInput):
        return ()
    return HINT if first_time(context.env, _MARK) else ()
