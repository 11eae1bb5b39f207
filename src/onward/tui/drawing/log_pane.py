"""A log in a pane: the last lines, or from one line on; long ones wrapped, matches and errors marked. Pure."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from onward.rundir.logs.search import ERRORS
from onward.tui.drawing.text import Block, boxed, fit, line, plain, titled
from onward.tui.sources.interface import LogLine, LogWindow
from onward.tui.state import LOOKING, ScreenData, ScreenState

_NAMES = {"out": "stdout", "err": "stderr", "supervisor": "supervisor"}
_ERRORS = tuple(word.decode() for word in ERRORS)


def log_pane(view: ScreenState, board: ScreenData, *, width: int, height: int, focus: bool) -> Block:
    log, name = board.log, _NAMES[view.stream]
    if log is None:
        words = "nothing printed yet" if view.stream == "out" else f"nothing on {name}"
        words = words if board.run == view.chosen else LOOKING
        return boxed([titled(name, width, focus=focus), line(fit(f"  {words}", width), "dim")], width, height)
    where = name if log.stream == "supervisor" else f"{name} of leg {log.leg}" + (f"/{max(log.legs)}" if len(log.legs) > 1 else "")
    lines = [*shown(view, log, width=width, height=height - 1)]
    at = "follows" if view.top is None else f"paused at {100 * view.top // max(log.size, 1)}%"
    found = f" · /{view.find}" if view.find else ""
    return boxed([titled(f"{where} · {at}{found}", width, focus=focus), *lines], width, height)


def shown(view: ScreenState, log: LogWindow, *, width: int, height: int) -> Block:
    if view.top is not None:
        wanted = [one for one in log.lines if one.offset >= view.top][:height]
        return _wrapped(view, wanted, width)[:height]
    return _wrapped(view, list(log.lines[-height:]), width)[-height:] if height > 0 else []


def scrolled(view: ScreenState, log: LogWindow, by: int, *, page: int) -> None:
    """So many lines up or down; beyond the last one, it follows again."""
    offsets = [one.offset for one in log.lines]
    if not offsets:
        return
    if view.top is None:
        if by > 0:
            return
        at = max(len(offsets) - page, 0) + by
    else:
        at = next((n for n, offset in enumerate(offsets) if offset >= view.top), len(offsets) - 1) + by
    last = len(offsets) - page
    view.top = None if by > 0 and at >= last and log.end >= log.size else offsets[max(0, min(at, len(offsets) - 1))]


def _wrapped(view: ScreenState, lines: list[LogLine], width: int) -> Block:
    found: Block = []
    for one in lines:
        text = plain(one.text)
        style = _style(view, text)
        while True:
            head = text if cell_len(text) <= width else set_cell_size(text, width).rstrip()
            found.append(line(head, style))
            text = text[max(len(head), 1) :]
            if not text:
                break
    return found


def _style(view: ScreenState, text: str) -> str:
    if view.find and view.find.lower() in text.lower():
        return "match"
    return "bad" if any(word in text for word in _ERRORS) else ""
