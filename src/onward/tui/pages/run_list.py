"""Screen 1: the list of runs, with the chart and the log of the one under the cursor beside it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from onward.tui.drawing.log_pane import log_pane
from onward.tui.drawing.series_plots import plot
from onward.tui.drawing.text import Block, Line, beside, boxed, cut, fit, line, many, short, span, titled, wrapped
from onward.tui.sources.interface import ListedRun
from onward.tui.state import GROUPS, LOOKING, ScreenData, ScreenState, arranged, metric_of, overlay

MARKS = {"running": "▶", "waiting": "◌", "submitted": "◌", "finished": "✓", "failed": "✗", "cancelled": "■"}
_WHY = 3  # lines below the list


def runs_page(view: ScreenState, board: ScreenData, *, width: int, height: int, now: float) -> Block:
    left = list_width(width)
    listed = _list(view, board, width=left, height=height, now=now)
    right = width - left - 3
    above = chart_height(height)
    names = {run: row.name if (row := board.row(run)) else run for run in overlay(view, board)}
    key = metric_of(view, board.metrics)
    if view.chosen is None:
        beyond = boxed([titled("chart", right)], right, above)
    elif key is None:
        words = "this run has logged no metrics yet" if board.run == view.chosen and not board.reading else LOOKING
        note = line(fit(f"  {words}", right), "dim")
        beyond = boxed([titled("chart", right, focus=view.pane == "chart"), note], right, above)
    else:
        beyond = plot(view, key, board, names, width=right, height=above, focus=view.pane == "chart")
    log = log_pane(view, board, width=right, height=height - above, focus=view.pane == "log")
    return beside(listed, [*boxed(beyond, right, above), *log])


def list_width(width: int) -> int:
    return 34 if width < 110 else min(width * 45 // 100, 96)


def chart_height(height: int) -> int:
    return height // 2 + 1


def list_rows(height: int) -> int:
    """Runs that the list shows at once."""
    return max(height - 2 - _WHY, 1)


def _list(view: ScreenState, board: ScreenData, *, width: int, height: int, now: float) -> Block:
    focus = view.pane == "list"
    if board.runs is None:
        words = LOOKING if not board.trouble else "no data yet"
        return boxed([titled("runs", width, focus=focus), line(fit(f"  {words}", width), "dim")], width, height)
    entries = arranged(board.runs.rows, view.pinned, GROUPS[view.group])
    rows = list_rows(height)
    body = [_entry(view, entry, width, now) for entry in _window(view, entries, rows)]
    if not entries:
        body = [line(fit(f"  {words}", width), "dim") for words in _empty(view, width - 2)]
    count, total = len(board.runs.rows), board.runs.total
    title = (f"{count} of {total} runs" if total else many(count, "run")) + (f" · {len(view.selected)} selected" if view.selected else "")
    title += f" · /{view.filter}" if view.filter else ""
    head = cut([(_columns(width), "dim")], width)
    return [titled(title, width, focus=focus), head, *boxed(body, width, rows), *_about(view, board, width)][:height]


def _empty(view: ScreenState, width: int) -> list[str]:
    words = f"no run matches {view.filter!r}: Esc clears the filter" if view.filter else "no runs yet: onward submit creates one"
    return wrapped(words, width)


def _window(view: ScreenState, entries: Sequence[ListedRun | str], rows: int) -> Sequence[ListedRun | str]:
    at = next((n for n, entry in enumerate(entries) if isinstance(entry, ListedRun) and entry.id == view.chosen), 0)
    first = max(0, min(at - rows // 2, len(entries) - rows))
    return entries[first : first + rows]


def _columns(width: int) -> str:
    name, more = _name_width(width), width >= 60
    head = f"   {fit('name', name)} {'done':>5}{'leg':>4}"
    return head + (f" {'saved':>6} {'wait':>6} {'gpu':>4}  why" if more else "")


def _name_width(width: int) -> int:
    return width - 3 - 1 - 5 - 4 if width < 60 else 24


def _entry(view: ScreenState, entry: ListedRun | str, width: int, now: float) -> Line:
    if isinstance(entry, str):
        return line(fit(f" {entry}", width), "head")
    here = entry.id == view.chosen
    mark = "*" if entry.id in view.selected else "^" if entry.id in view.pinned else " "
    done = f"{_percent(entry)}%" if entry.fraction is not None else "–" if entry.step is None else short(entry.step)
    text = f"{fit(entry.name, _name_width(width))} {done:>5}{entry.legs or '–':>4}"
    if width >= 60:
        saved = span(now - entry.saved_at) if entry.saved_at else "–"
        gpu = "–" if entry.gpu_use is None else f"{100 * entry.gpu_use:.0f}%"
        text += f" {saved:>6} {span(entry.waited):>6} {gpu:>4}  {entry.why}"
    state = MARKS.get(entry.state, "?")
    if here:
        return line(fit(f"{mark}{state} {text}", width), "cursor")
    return cut([(mark, "focus"), (f"{state} ", f"state.{entry.state}"), (fit(text, width - 3), "")], width)


def _percent(row: ListedRun) -> int:
    """100 only when the last step is done."""
    return max(0, min(100, int(100 * (row.fraction or 0.0) + 1e-9)))


def _about(view: ScreenState, board: ScreenData, width: int) -> Block:
    row = board.row(view.chosen)
    if row is None:
        note = board.runs.note if board.runs else ""
        return boxed([line(fit(f" {part}", width), "dim") for part in wrapped(note, width - 1, most=_WHY)], width, _WHY)
    words = f"{row.state}: {row.why}" if row.why else row.state
    style = f"state.{row.state}"
    return boxed([line(fit(part, width), style) for part in wrapped(words, width, most=_WHY)], width, _WHY)
