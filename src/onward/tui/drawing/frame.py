"""The whole screen: a line with the screens and where the data is from, the page, a line with the keys. Pure."""

from __future__ import annotations

from onward.tui.drawing.text import Block, Line, boxed, cut, fit, line, plain, span, width_of, wrapped
from onward.tui.keys.bindings import brief, help_block
from onward.tui.pages.alerts import alerts_page
from onward.tui.pages.cluster import nodes_page, queue_page
from onward.tui.pages.run import run_page
from onward.tui.pages.run_list import runs_page
from onward.tui.state import ALERTS, NODES, QUEUE, RUN, RUNS, SCREENS, ScreenData, ScreenState

_PAGES = {RUNS: runs_page, RUN: run_page, QUEUE: queue_page, NODES: nodes_page, ALERTS: alerts_page}
SMALLEST = (40, 10)
_LATE = 10.0  # seconds after which it is worth a word that nothing new was heard


def frame(view: ScreenState, board: ScreenData, *, width: int, height: int, now: float) -> Block:
    if width < SMALLEST[0] or height < SMALLEST[1]:
        words = f"too small: {width}×{height}, at least {SMALLEST[0]}×{SMALLEST[1]} is needed"
        return boxed([line(fit(words, max(width, 1)))], max(width, 1), max(height, 1))
    room = body_height(height)
    page = _PAGES[view.screen]
    body = help_block(width, room, view.scroll) if view.help else page(view, board, width=width, height=room, now=now)
    return [_head(view, board, width, now), *boxed(body, width, room), _foot(view, board, width)]


def failure_frame(error: Exception, *, width: int, height: int) -> Block:
    words = f"internal error: {type(error).__name__}: {error}; the other screens may work: 1 to 5, q quits"
    return boxed([line(fit(part, width), "bad") for part in wrapped(words, width, most=8)], width, height)


def body_height(height: int) -> int:
    return height - 2


def _head(view: ScreenState, board: ScreenData, width: int, now: float) -> Line:
    tabs = [(f" {n} {name} ", "cursor" if n == view.screen else "dim") for n, name in SCREENS.items()]
    if board.trouble:
        late = f" for {span(now - board.heard)}" if board.heard is not None else ""
        age, style = f"no answer{late}", "bad"
    else:
        old = now - board.heard if board.heard is not None else 0.0
        age, style = (f"as of {span(old)} ago" if old > _LATE else ""), "dim"
    left = cut(tabs, min(sum(len(text) for text, _ in tabs), width))
    room = width - width_of(left)
    words = " · ".join(part for part in (age, plain(board.words)) if part)
    return cut([*left, (f"{fit(words, room - 1).rstrip():>{room - 1}}" if room > 1 else "", style)], width)


def _foot(view: ScreenState, board: ScreenData, width: int) -> Line:
    if board.message:
        return line(fit(f" {board.message}", width), "focus")
    if board.trouble:
        return line(fit(f" {board.trouble}", width), "bad")
    return line(fit(f" {brief(view.screen)}", width), "dim")
