"""A run with all that is written of it: from its folder where this server sees it, else from what was sent."""

from __future__ import annotations

from dataclasses import dataclass

from onward.api.folders import folder_of
from onward.api.services import Services
from onward.model.event import Event
from onward.model.finish import Pace
from onward.model.run import Run, fold
from onward.operations.inspect import Seen, pace_of, progress
from onward.rundir.journal import read_folded
from onward.rundir.layout import RunDir
from onward.tracker.histories import stored_history
from onward.tracker.pace import stored_pace
from onward.tracker.run_rows import RunInfo


@dataclass(frozen=True, kw_only=True)
class History:
    info: RunInfo
    dir: RunDir | None  # where this server sees it
    run: Run
    events: list[Event]


def history_of(svc: Services, info: RunInfo) -> History:
    dir = folder_of(svc, info.folder)
    if dir is not None and info.source == "onward":
        try:
            run, events = read_folded(dir)
            return History(info=info, dir=dir, run=run, events=events)
        except (OSError, ValueError):
            pass  # a folder that cannot be read now: what was read of it before stands
    with svc.tracker.reading() as connection:
        spec, events = stored_history(connection, info)
    return History(info=info, dir=dir, run=fold(spec, events), events=events)


def pace(svc: Services, history: History) -> Pace:
    """How far and how fast: from the ends of its spool, as `onward show` has it, else from the newest points."""
    if history.dir is not None and history.info.source == "onward":
        told = pace_of(progress(Seen(dir=history.dir, run=history.run, answers=None, at=svc.clock.now())))
        if told.step is not None:
            return told
    with svc.tracker.reading_points() as connection:
        return stored_pace(connection, history.info)
