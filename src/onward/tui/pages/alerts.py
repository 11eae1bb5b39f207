"""Screen 5: what rules told of, and beside it what a person would want to be told: runs that failed lately. Pure."""

from __future__ import annotations

from onward.tui.drawing.text import Block, Line, boxed, clock, fit, line, many, span, titled, wrapped
from onward.tui.sources.interface import ListedAlert, ListedRun
from onward.tui.state import ALERTS, LOOKING, ScreenData, ScreenState

_LATELY = 3 * 86_400.0  # seconds
_ABOUT = 4  # lines about what is under the cursor
_LEVELS = {"error": "✗", "warn": "!", "warning": "!", "info": "·"}


def alerts_page(view: ScreenState, board: ScreenData, *, width: int, height: int, now: float) -> Block:
    found = entries(board, now)
    alerts = [one for one in found if isinstance(one, ListedAlert)]
    at = max(0, min(view.at.get(ALERTS, 0), len(found) - 1))
    lines: Block = [titled(f"alerts · {many(len(alerts), 'notice')}", width, focus=True)]
    if not alerts:
        note = board.alerts.note if board.alerts else LOOKING
        lines += [line(fit(f"  {part}", width), "dim") for part in wrapped(note or "no alerts so far", width - 2)]
    lines += [_notice(one, width, here=n == at, now=now) for n, one in enumerate(alerts)]
    failed = len(found) - len(alerts)
    lines.append(titled(f"{many(failed, 'run')} failed in the last 3 days", width))
    if not failed:
        lines.append(line(fit("  none", width), "dim"))
    lines += [_failure(one, width, here=n == at, now=now) for n, one in enumerate(found) if isinstance(one, ListedRun)]
    rows = height - _ABOUT
    row = at + (1 if at < len(alerts) else len(lines) - len(found) + len(alerts)) if found else 0
    first = max(0, min(row - rows // 2, len(lines) - rows))
    return [*boxed(lines[first:], width, rows), *_about(found[at] if found else None, width)]


def entries(board: ScreenData, now: float) -> list[ListedAlert | ListedRun]:
    """Under one cursor: what was told, newest first, then the runs that failed."""
    rows = board.runs.rows if board.runs else ()
    failed = [row for row in rows if row.state == "failed" and now - row.created < _LATELY]
    return [*(board.alerts.notices if board.alerts else ()), *failed]


def run_of(entry: ListedAlert | ListedRun) -> str | None:
    return entry.run if isinstance(entry, ListedAlert) else entry.id


def _notice(one: ListedAlert, width: int, *, here: bool, now: float) -> Line:
    state = "not sent" if one.error else "sent" if one.sent else "waits"
    text = f" {_LEVELS.get(one.level, '·')} {clock(one.at, now):>11}  {fit(state, 8)}  {one.title}"
    return line(fit(text, width), "cursor" if here else "bad" if one.level == "error" or one.error else "")


def _failure(row: ListedRun, width: int, *, here: bool, now: float) -> Line:
    return line(fit(f" ✗ {fit(row.name, 24)} {span(now - row.created):>6} old  {row.why}", width), "cursor" if here else "state.failed")


def _about(entry: ListedAlert | ListedRun | None, width: int) -> Block:
    if entry is None:
        return boxed([], width, _ABOUT)
    title, words = (
        (entry.title, f"{entry.text} {entry.error}") if isinstance(entry, ListedAlert) else (entry.name, f"{entry.why}. → {entry.next}")
    )
    lines = [line(fit(f" {part}", width)) for part in wrapped(words, width - 1, most=_ABOUT - 1)]
    return boxed([titled(title, width), *lines], width, _ABOUT)
