"""Keys that move: a cursor, a page, a log; and what every key leaves behind, a new picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onward.tui.drawing.frame import body_height
from onward.tui.drawing.log_pane import scrolled
from onward.tui.pages.alerts import entries
from onward.tui.pages.cluster import nodes_across, queue_rows, shown_jobs
from onward.tui.pages.run import log_height
from onward.tui.pages.run_list import chart_height, list_rows
from onward.tui.sources.interface import DataSource
from onward.tui.state import ALERTS, NODES, QUEUE, RUN, RUNS, ScreenData, ScreenState, moved, next_metric, shown_rows

_FAR = 1 << 30


class CursorKeys:
    """What the program has, as far as keys need it; and how they move."""

    view: ScreenState
    board: ScreenData
    source: DataSource
    links: list[str]
    size: Any
    _now: Callable[[], float]

    # what the program has
    news: Callable[[], None]
    draw: Callable[[], None]
    say: Callable[[str], None]
    do: Callable[[Callable[[], str]], None]
    ask: Callable[..., None]
    hush: Callable[[], bool]

    def _changed(self, *, news: bool = True) -> None:
        self.board.message = ""
        self.draw()
        if news:
            self.news()

    def action_move(self, by: int) -> None:
        self._move(by)

    def action_page(self, by: int) -> None:
        self._move(by * max(self._page() - 1, 1))

    def action_edge(self, by: int) -> None:
        view = self.view
        if view.in_log and self.board.log:
            view.top = None if by > 0 else 0
            self._changed()
        else:
            self._move(by * _FAR)

    def action_side(self, by: int) -> None:
        view, picture, log = self.view, self.board.picture, self.board.log
        if view.screen == NODES and picture and picture.snapshot and not len(picture.others) > 1:
            self._cursor(NODES, by, len(picture.snapshot.nodes))
        elif view.screen in (QUEUE, NODES) and picture and picture.others:
            at = picture.others.index(picture.name) if picture.name in picture.others else 0
            view.cluster = picture.others[(at + by) % len(picture.others)]
        elif view.screen in (RUNS, RUN) and log and log.legs:
            at = max(0, min(len(log.legs) - 1, log.legs.index(log.leg) + by))
            view.leg, view.top = log.legs[at], None
        self._changed()

    def _move(self, by: int) -> None:
        view, board = self.view, self.board
        if view.help:
            view.scroll = max(0, min(view.scroll + by, 40))
            self._changed(news=False)
            return
        if view.in_log and board.log:
            scrolled(view, board.log, by, page=self._log_page())
        elif view.screen == QUEUE:
            self._cursor(QUEUE, by, len(shown_jobs(view, board)))
        elif view.screen == NODES and board.picture and board.picture.snapshot:
            self._cursor(NODES, by * (nodes_across(self.size.width) if abs(by) < _FAR else 1), len(board.picture.snapshot.nodes))
        elif view.screen == ALERTS:
            self._cursor(ALERTS, by, len(entries(board, self._now())))
        elif view.screen == RUN and view.pane == "overview":
            view.scroll = max(0, min(view.scroll + by, 200))
        elif view.screen == RUN and view.pane == "charts":
            next_metric(view, board, max(-1, min(by, 1)))
        elif view.screen == RUNS and shown_rows(view, board):
            moved(view, board, by)
        self._changed()

    def _cursor(self, screen: int, by: int, count: int) -> None:
        self.view.at[screen] = max(0, min(min(self.view.at.get(screen, 0), count - 1) + by, count - 1))

    def _page(self) -> int:
        height = body_height(self.size.height)
        if self.view.in_log:
            return self._log_page()
        return list_rows(height) if self.view.screen == RUNS else queue_rows(height)

    def _log_page(self) -> int:
        height = body_height(self.size.height)
        if self.view.screen == RUNS:
            return max(height - chart_height(height) - 1, 1)
        return max(log_height(self.size.width, height), 1)
