"""The keys: one table for the bindings, the help and the line at the bottom."""

from __future__ import annotations

from dataclasses import dataclass

from onward.tui.drawing.text import Block, boxed, fit, line
from onward.tui.state import ALERTS, NODES, QUEUE, RUN, RUNS, SCREENS


@dataclass(frozen=True)
class KeyBinding:
    key: str  # textual's name for it
    act: str
    shown: str
    words: str
    brief: str = ""  # for the line at the bottom
    screens: tuple[int, ...] = ()  # where that line has it; none: nowhere


_ALL = tuple(SCREENS)

KEYS = (
    KeyBinding("question_mark", "help", "?", "show these keys", "help", _ALL),
    KeyBinding("q", "quit", "q", "quit", "quit", _ALL),
    KeyBinding("1,2,3,4,5", "screen", "1 … 5", "another screen"),
    KeyBinding("enter", "open", "Enter", "open; enlarge a chart", "open", (RUNS, ALERTS)),
    KeyBinding("escape", "leave", "Esc", "back", "back", (RUN,)),
    KeyBinding("tab", "pane(1)", "Tab", "next pane; mine, all", "pane", (RUNS, RUN, QUEUE)),
    KeyBinding("shift+tab", "pane(-1)", "Shift-Tab", "previous pane"),
    KeyBinding("slash", "ask", "/", "filter; search a log", "filter", (RUNS, QUEUE, ALERTS)),
    KeyBinding("n", "match(1)", "n", "next match in the log"),
    KeyBinding("N", "match(-1)", "N", "previous match"),
    KeyBinding("l", "logs", "l", "log", "log", (RUNS, RUN)),
    KeyBinding("e", "stream", "e", "stderr, supervisor, stdout", "stderr", (RUN,)),
    KeyBinding("f", "follow", "f", "follow or pause the log", "follow", (RUN,)),
    KeyBinding("k", "stop", "k", "save and stop (asks first)", "stop", (RUNS, RUN)),
    KeyBinding("o", "link", "o", "address of its web page", "link", (RUN,)),
    KeyBinding("r", "refresh", "r", "refresh now", "refresh", (QUEUE, NODES, ALERTS)),
    KeyBinding("space", "select", "Space", "select the run", "select", (RUNS,)),
    KeyBinding("c", "compare", "c", "selected runs in one chart", "compare", (RUNS,)),
    KeyBinding("g", "group", "g", "group the runs", "group", (RUNS,)),
    KeyBinding("p", "pin", "p", "pin the run, or the chart", "pin", (RUN,)),
    KeyBinding("m", "metric(1)", "m", "next metric", "metric", (RUNS, RUN)),
    KeyBinding("M", "metric(-1)", "M", "previous metric"),
    KeyBinding("y", "log_axis", "y", "logarithmic y axis"),
    KeyBinding("x", "axis", "x", "x: step, relative, wall time"),
    KeyBinding("s", "smooth", "s", "smooth: 0.6, 0.9, 0.99", "smooth", (RUN,)),
    KeyBinding("up", "move(-1)", "↑ ↓", "move; scroll", "node", (NODES,)),
    KeyBinding("down", "move(1)", "", ""),
    KeyBinding("pageup", "page(-1)", "PgUp PgDn", "by a page"),
    KeyBinding("pagedown", "page(1)", "", ""),
    KeyBinding("home", "edge(-1)", "Home End", "first, last"),
    KeyBinding("end", "edge(1)", "", ""),
    KeyBinding("left", "side(-1)", "← →", "leg of a log; cluster"),
    KeyBinding("right", "side(1)", "", ""),
)


def help_block(width: int, height: int, scroll: int) -> Block:
    """In two columns where there is room for them."""
    rows = [(key.shown, key.words) for key in KEYS if key.shown]
    columns = 2 if width >= 76 else 1
    each = -(-len(rows) // columns)
    room = width // columns
    lines: Block = []
    for n in range(each):
        spans = []
        for shown, words in (rows[n + c * each] for c in range(columns) if n + c * each < len(rows)):
            spans += [(fit(f" {shown}", 11), "focus"), (fit(words, room - 11), "")]
        lines.append(tuple(spans))
    return boxed([line(fit(" Keys. Esc closes this.", width), "head"), *lines[scroll:]], width, height)


def brief(screen: int) -> str:
    return "  ".join(f"{key.shown} {key.brief}" for key in KEYS if key.brief and screen in key.screens)
