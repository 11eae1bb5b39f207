"""What the screen needs now, asked of its source in one go. Runs in a thread of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from onward.errors import OnwardError
from onward.tui.drawing.frame import body_height
from onward.tui.pages.run import grid_keys
from onward.tui.sources.interface import DataSource
from onward.tui.state import ALERTS, NODES, QUEUE, RUN, RUNS, ScreenData, ScreenState, metric_of, overlay, shown_rows

_POINTS = 400  # of a line: two for each dot of a wide chart


@dataclass(frozen=True, kw_only=True)
class ScreenSize:
    width: int
    height: int


def refresh_screen(source: DataSource, view: ScreenState, before: ScreenData, size: ScreenSize, now: float) -> ScreenData:
    """A new board. Where the source fails, with what it had told until then, and the trouble in words."""
    board = replace(before, words=source.words, reading=False)
    try:
        _gather(source, view, board, size)
    except OnwardError as error:
        board.trouble = f"{error.message}{f' – {error.hint}' if error.hint else ''}"
    except OSError as error:
        board.trouble = str(error)
    else:
        board.trouble, board.heard = "", now
    return board


def _gather(source: DataSource, view: ScreenState, board: ScreenData, size: ScreenSize) -> None:
    if view.screen != RUN or board.runs is None:
        board.runs = source.runs("" if view.screen in (QUEUE, NODES) else view.filter)
    if view.screen in (QUEUE, NODES):
        board.picture = source.picture(view.cluster)
    if view.screen == ALERTS:
        board.alerts = source.alerts()
    if view.screen in (RUNS, ALERTS) and view.chosen not in {row.id for row in board.runs.rows}:
        rows = shown_rows(view, board)
        view.choose(rows[0].id if rows else None)
    run = view.chosen
    if view.screen in (RUNS, RUN) and run is not None:
        _gather_run(source, view, board, run, size)


def _gather_run(source: DataSource, view: ScreenState, board: ScreenData, run: str, size: ScreenSize) -> None:
    """On the board at once: it never holds one run's metrics beside another's log."""
    metrics, reading = source.metrics(run), source.reading
    if view.screen == RUNS:
        key = metric_of(view, metrics)
        keys = [key] if key else []
    else:
        board.detail, reading = source.detail(run), reading or source.reading
        keys = grid_keys(view, metrics, width=size.width, height=body_height(size.height))
    series = source.series(overlay(view, board), keys, points=_POINTS) if keys else ()
    board.log = source.log(run, view.stream, leg=view.leg, around=view.top)
    board.run, board.metrics, board.series, board.reading = run, metrics, series, reading or source.reading
