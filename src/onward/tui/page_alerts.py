"""Screen 5: alerts. There are no rules yet, so it lists what a person would want to be told: runs that failed lately. Pure."""

from __future__ import annotations

from onward.tui.source import Row
from onward.tui.text import Block, boxed, fit, line, span, titled, wrapped
from onward.tui.view import ALERTS, Board, View

_LATELY = 3 * 86_400.0  # seconds


def alerts_page(view: View, board: Board, *, width: int, height: int, now: float) -> Block:
    failed = failures(board, now)
    lines: Block = [
        titled("alerts", width, focus=True),
        line(fit("  No alert rules are set up: there is nothing to show of them.", width), "dim"),
    ]
    lines += [line(""), titled(f"{len(failed)} runs failed in the last 3 days", width)]
    if not failed:
        lines.append(line(fit("  none: all is well, as far as runs can tell", width), "dim"))
    at = max(0, min(view.at.get(ALERTS, 0), len(failed) - 1))
    for n, row in enumerate(failed[max(at - 2, 0) :], start=max(at - 2, 0)):
        lines.append(
            line(fit(f" ✗ {fit(row.name, 24)} {span(now - row.created):>6} old  {row.why}", width), "cursor" if n == at else "state.failed")
        )
        lines += [
            line(fit(f"   → {part}" if i == 0 else f"     {part}", width))
            for i, part in enumerate(wrapped(row.next, width - 5, most=2))
            if part
        ]
    return boxed(lines, width, height)


def failures(board: Board, now: float) -> list[Row]:
    rows = board.runs.rows if board.runs else ()
    return [row for row in rows if row.state == "failed" and now - row.created < _LATELY]
