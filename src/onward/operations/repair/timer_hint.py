"""Said once to each user: how to have runs watched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onward.errors import InvalidInput
from onward.operations.context import OperationsContext
from onward.operations.repair.timer import TendTimer
from onward.operations.tracker_access.location import tracker_location
from onward.schedulers.state_folder import state_folder

HINT = (
    "runs continue by themselves; if all jobs of a run disappear, it waits for your next command. To have runs watched (shown once):",
    "  onward up    or    onward tend --install (a timer)    or in cron: */10 * * * * onward tend",
)


def hint_once(desk: OperationsContext) -> Sequence[str]:
    """Nothing where they are watched already, or it was said before. A state folder that cannot be written: nothing either."""
    try:
        said = state_folder(desk.env) / "watching-hint-said"
        if said.exists() or TendTimer(env=desk.env, folder=Path()).installed or tracker_location(desk.env).served_at():
            return ()
        said.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with said.open("x"):
            return HINT
    except (OSError, InvalidInput):
        return ()
