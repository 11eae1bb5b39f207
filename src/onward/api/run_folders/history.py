"""A run with all that is written of it: from its folder where this server sees it, else from what was sent."""

from __future__ import annotations

from dataclasses import dataclass

from onward.api.run_folders.locate import folder_of
from onward.api.services import Services
from onward.model.analysis.eta import TrainingPace
from onward.model.events import Event
from onward.model.run import Run, fold
from onward.operations.runs.record import folder_pace
from onward.rundir.journal import read_folded
from onward.rundir.layout import RunDir
from onward.tracker.runs.rows import RunInfo
from onward.tracker.runs.stored_history import stored_history
from onward.tracker.series.pace import stored_pace


@dataclass(frozen=True, kw_only=True)
class RunHistory:
    info: RunInfo
    dir: RunDir | None  # where this server sees it
    run: Run
    events: list[Event]


def history_of(svc: Services, info: RunInfo) -> RunHistory:
    dir = folder_of(svc, info.folder)
    if dir is not None and info.source == "onward":
        try:
            run, events = read_folded(dir)
            return RunHistory(info=info, dir=dir, run=run, events=events)
        except (OSError, ValueError):
            pass  # a folder that cannot be read now: what was read of it before stands
    with svc.tracker.reading() as connection:
        spec, events = stored_history(connection, info)
    return RunHistory(info=info, dir=dir, run=fold(spec, events), events=events)


def run_pace(svc: Services, history: RunHistory) -> TrainingPace:
    """How far and how fast: from the ends of its spool, as `onward show` has it, else from the newest points."""
    if history.dir is not None and history.info.source == "onward":
        pace = folder_pace(history.dir, history.run)
        if pace.step is not None:
            return pace
    with svc.tracker.reading_points() as connection:
        return stored_pace(connection, history.info)
