"""Screen 2: one run: overview with its timeline, charts, logs, GPUs. Pure.

All at once where there is room, else the pane that has the keys.
"""

from __future__ import annotations

from onward.tui.drawing.chart import sparkline
from onward.tui.drawing.log_pane import log_pane
from onward.tui.drawing.series_plots import plot
from onward.tui.drawing.text import Block, Line, bar, beside, boxed, cut, fit, line, size, titled, wrapped
from onward.tui.drawing.timeline import timeline_block
from onward.tui.pages.run_list import MARKS
from onward.tui.sources.interface import GpuReading, ShownRun
from onward.tui.state import LOOKING, ScreenData, ScreenState, metric_of, ordered_metrics, overlay

_CELL = (36, 9)  # the smallest chart
_ROOMY = (150, 36)


def run_page(view: ScreenState, board: ScreenData, *, width: int, height: int, now: float) -> Block:
    if view.chosen is None:
        words = "no run is selected: 1 lists them, Enter opens one"
        return boxed([titled("run", width), line(fit(f"  {words}", width), "dim")], width, height)
    tabs = _tabs(view, board, width)
    height -= 1
    if not roomy(width, height):
        return [tabs, *_pane(view, board, view.pane, width=width, height=height, now=now)]
    left, above = width * 45 // 100, height * 55 // 100
    right, below = width - left - 3, height - above
    top = beside(
        _pane(view, board, "overview", width=left, height=above, now=now), _pane(view, board, "charts", width=right, height=above, now=now)
    )
    bottom = beside(
        _pane(view, board, "GPUs", width=left, height=below, now=now), _pane(view, board, "logs", width=right, height=below, now=now)
    )
    return [tabs, *top, *bottom]


def roomy(width: int, height: int) -> bool:
    return width >= _ROOMY[0] and height >= _ROOMY[1]


def log_height(width: int, height: int) -> int:
    """Lines that the log has."""
    return height - 2 if not roomy(width, height - 1) else height - 1 - (height - 1) * 55 // 100 - 1


def grid_keys(view: ScreenState, metrics: tuple[str, ...], *, width: int, height: int) -> list[str]:
    """The metrics that are drawn: pinned ones first, a page of the grid with the chosen one on it."""
    height -= 1
    if roomy(width, height):
        width, height = width - width * 45 // 100 - 3, height * 55 // 100
    return _page(view, metrics, width, height)


def _grid(width: int, height: int) -> tuple[int, int]:
    return max(width // _CELL[0], 1), max((height - 1) // _CELL[1], 1)


def _tabs(view: ScreenState, board: ScreenData, width: int) -> Line:
    row = board.row(view.chosen)
    name, state = (row.name, row.state) if row else (view.chosen or "", "")
    done = "" if row is None or row.fraction is None else f" {int(100 * row.fraction + 1e-9)}%"
    spans = [(fit(f" {name}", min(len(name) + 1, width // 3)), "head"), (f" {MARKS.get(state, '?')} {state}{done} ", f"state.{state}")]
    spans += [(f" {pane} ", "cursor" if pane == view.pane else "dim") for pane in ("overview", "charts", "logs", "GPUs")]
    return cut(spans, width)


def _pane(view: ScreenState, board: ScreenData, pane: str, *, width: int, height: int, now: float) -> Block:
    focus = view.pane == pane
    if pane == "logs":
        return log_pane(view, board, width=width, height=height, focus=focus)
    if pane == "charts":
        return _charts(view, board, width=width, height=height, focus=focus)
    detail = board.detail if board.detail and board.detail.row.id == view.chosen else None
    if detail is None:
        return boxed([titled(pane, width, focus=focus), line(fit(f"  {LOOKING}", width), "dim")], width, height)
    if pane == "GPUs":
        return _gpus(detail, width=width, height=height, focus=focus)
    lines = overview_lines(detail, width=width, now=now)
    more = len(lines) - (height - 1)
    scroll = max(0, min(view.scroll, more))
    title = "overview" + (f" · ↓ {more - scroll} more" if more > scroll else "")
    return boxed([titled(title, width, focus=focus), *lines[scroll:]], width, height)


def overview_lines(detail: ShownRun, *, width: int, now: float) -> Block:
    row = detail.row
    lines: Block = [line(fit(part, width), f"state.{row.state}") for part in wrapped(f"{row.state}: {row.why}", width)]
    lines += [
        line(fit(f"→ {part}" if n == 0 else f"  {part}", width), "focus") for n, part in enumerate(wrapped(row.next, width - 2)) if part
    ]
    if row.state == "failed":
        lines += [line(fit(f"│ {text}", width), "bad") for text in detail.evidence[-6:]]
    if detail.timeline:
        lines += timeline_block(detail.timeline, width=width, now=now)
    for label, words in detail.facts:
        for n, part in enumerate(wrapped(words, max(width - 10, 10), most=3)):
            lines.append(cut([(fit(label if n == 0 else "", 10), "dim"), (part, "")], width))
    return lines


def _charts(view: ScreenState, board: ScreenData, *, width: int, height: int, focus: bool) -> Block:
    keys = _page(view, board.metrics, width, height)
    if not keys:
        words = "no metrics logged yet" if board.run == view.chosen and not board.reading else LOOKING
        return boxed([titled("charts", width, focus=focus), line(fit(f"  {words}", width), "dim")], width, height)
    names = {run: row.name if (row := board.row(run)) else run for run in overlay(view, board)}
    across, down = (1, 1) if len(keys) == 1 else _grid(width, height)
    across = min(across, len(keys))
    down = min(down, -(-len(keys) // across))
    wide, tall = (width - 3 * (across - 1)) // across, (height - 1) // down
    chosen = metric_of(view, board.metrics)
    found = f"{len(board.metrics)} metrics" + (f" · {len(view.pinned_metrics)} pinned" if view.pinned_metrics else "")
    rows: Block = [titled(f"charts · {found}", width, focus=focus)]
    for y in range(down):
        cells = [
            boxed(plot(view, key, board, names, width=wide, height=tall, focus=focus and key == chosen), wide, tall)
            for key in keys[y * across : (y + 1) * across]
        ]
        cells += [boxed([], wide, tall)] * (across - len(cells))
        block = cells[0]
        for cell in cells[1:]:
            block = beside(block, cell, gap="   ")
        rows += block
    return boxed(rows, width, height)


def _page(view: ScreenState, metrics: tuple[str, ...], width: int, height: int) -> list[str]:
    """Of a pane of this size, the metrics that fit into it."""
    now = metric_of(view, metrics)
    if view.zoom:
        return [now] if now else []
    across, down = _grid(width, height)
    keys, page = ordered_metrics(view, metrics), across * down
    at = keys.index(now) if now in keys else 0
    return keys[at // page * page :][:page]


def _gpus(detail: ShownRun, *, width: int, height: int, focus: bool) -> Block:
    lines: Block = [titled(f"GPUs · {len(detail.gpus)}" if detail.gpus else "GPUs", width, focus=focus)]
    if not detail.gpus:
        lines.append(line(fit("  no GPU samples: the run has no GPU, or has not started", width), "dim"))
    for gpu in detail.gpus:
        lines += _gpu(gpu, width)
    return boxed(lines, width, height)


def _gpu(gpu: GpuReading, width: int) -> Block:
    room = max(min((width - 47) // 2, 40), 6)
    use = "–" if gpu.percent is None else f"{gpu.percent:.0f}%"
    share = None if gpu.percent is None else gpu.percent / 100
    full = None if not gpu.mem_total or gpu.mem_used is None else gpu.mem_used / gpu.mem_total
    held = "–" if gpu.mem_used is None else size(gpu.mem_used) + (f"/{size(gpu.mem_total)}" if gpu.mem_total else "")
    rest = [f"{gpu.power:.0f}W" if gpu.power is not None else "", f"{gpu.temperature:.0f}°C" if gpu.temperature is not None else ""]
    style = "bad" if gpu.percent is not None and gpu.percent < 5 else "good"
    first = cut(
        [
            (fit(f"{gpu.node} {gpu.uuid.removeprefix('GPU-')[:8]}", 18), "dim"),
            (bar(share, room), style),
            (f" {use:>4}  ", ""),
            (bar(full, room), "line1"),
            (f" {held}  {' '.join(part for part in rest if part)}", ""),
        ],
        width,
    )
    history = sparkline(gpu.history, max(width - 20, 8))
    return [first, *([cut([(" " * 18, ""), (history, "dim")], width)] if history else [])]
