"""Text for a terminal: made harmless, cut to a width in cells, and put side by side. Pure.

A line is made of spans: a text and the name of its style. Names, not colours, so that a terminal without colour loses nothing but them.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size

from onward.model.quantity import duration_text

Span = tuple[str, str]
Line = tuple[Span, ...]
Block = list[Line]

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;:<=>?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])?")
_HARMFUL = re.compile(
    r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def plain(text: str) -> str:
    """One line without escapes, controls, or characters that turn the direction of what follows."""
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPES.sub("", text.rpartition("\r")[2] if text.rstrip("\r").count("\r") else text)
    return _HARMFUL.sub("", text.expandtabs(4).replace("\n", " "))


def fit(text: str, width: int) -> str:
    """Exactly so many cells: cut with an ellipsis, or filled up."""
    if width <= 0:
        return ""
    text = plain(text)
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    return set_cell_size(text, width - 1) + "…"


def line(text: str, style: str = "") -> Line:
    return ((text, style),)


def width_of(spans: Line) -> int:
    return sum(cell_len(text) for text, _ in spans)


def cut(spans: Iterable[Span], width: int) -> Line:
    """Exactly so many cells."""
    found: list[Span] = []
    left = width
    for text, style in spans:
        cells = cell_len(text)
        if cells > left:
            found.append((set_cell_size(text, left), style))
            left = 0
            break
        found.append((text, style))
        left -= cells
    if left > 0:
        found.append((" " * left, ""))
    return tuple(found)


def boxed(lines: Sequence[Line], width: int, height: int) -> Block:
    """Exactly so wide and high."""
    shown = [cut(spans, width) for spans in lines[:height]]
    return shown + [cut((), width)] * (height - len(shown))


def beside(left: Block, right: Block, *, gap: str = " │ ") -> Block:
    """Two blocks of one height."""
    return [(*a, (gap, "dim"), *b) for a, b in zip(left, right, strict=True)]


def wrapped(text: str, width: int, *, most: int = 4) -> list[str]:
    """Whole words where they fit; no more lines than `most`."""
    words, lines = plain(text).split(), [""]
    for word in words:
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(longer) <= width:
            lines[-1] = longer
            continue
        if lines[-1]:
            lines.append("")
        while cell_len(word) > width > 0:
            head = set_cell_size(word, width)
            lines[-1] = head
            word = word[max(len(head.rstrip()), 1) :]
            lines.append("")
        lines[-1] = word
    return lines if len(lines) <= most else [*lines[: most - 1], fit(" ".join(lines[most - 1 :]), width).rstrip()]


def titled(title: str, width: int, *, focus: bool = False) -> Line:
    """A rule with a title in it; of the pane that has the keys, a double one."""
    rule, style = ("═", "focus") if focus else ("─", "dim")
    words = fit(title, max(min(cell_len(plain(title)), width - 4), 0))
    return cut([(rule, style), (f" {words} ", "focus" if focus else "head"), (rule * width, style)], width)


# ── values as words ───────────────────────────────────────────────────────────


def span(seconds: float | None) -> str:
    """As short as can be: 45s, 12m, 3h20, 2d4h."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    words = duration_text(max(seconds, 0.0)).replace(" ", "").replace("min", "m")
    return words.removesuffix("m") if "h" in words else words


def clock(moment: float, now: float) -> str:
    """The time of today, the date with it otherwise."""
    try:
        there, here = time.localtime(moment), time.localtime(now)
    except (OverflowError, ValueError, OSError):
        return "–"
    return time.strftime("%H:%M" if there[:3] == here[:3] else "%m-%d %H:%M", there)


def number(value: float) -> str:
    """Four digits or all of a whole number, in eight characters."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
    if 1000 <= abs(value) < 1e7:
        return f"{value:.0f}"
    return next((words for digits in (4, 3, 2) if len(words := f"{value:.{digits}g}") <= 8), f"{value:.1g}")


def many(count: int, one: str) -> str:
    """1 run, 2 runs."""
    return f"{count} {one}{'' if count == 1 else 's'}"


def short(count: int) -> str:
    """In five characters: 897, 12k, 1.2M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(count) >= (10 * size if unit == "k" else size):
            return f"{count / size:.1f}{unit}" if abs(count) < 100 * size and unit != "k" else f"{count / size:.0f}{unit}"
    return str(count)


def size(mib: float) -> str:
    return f"{mib / 1024:.0f}G" if mib >= 10_240 else f"{mib / 1024:.1f}G" if mib >= 1024 else f"{mib:.0f}M"


def bar(share: float | None, width: int) -> str:
    """Readable without colour: ████░░░░."""
    if share is None or not math.isfinite(share):
        return "·" * width
    full = round(max(0.0, min(share, 1.0)) * width)
    return "█" * full + "░" * (width - full)
