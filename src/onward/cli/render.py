"""How things look in a terminal: data on stdout, talk on stderr, colour only where it is wanted."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_COLOURS = {
    "finished": "32",
    "done": "32",
    "running": "36",
    "waiting": "33",
    "submitted": "33",
    "queued": "33",
    "held": "33",
    "failed": "31",
    "cancelled": "35",
    "published": "32",
    "verified": "32",
    "damaged": "31",
}
_SGR = re.compile(r"\x1b\[[0-9;]*m")
_OTHER_ESCAPES = re.compile(
    r"\x1b(?!\[[0-9;]*m)(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])?|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]"
)


def say(text: str = "") -> None:
    """Talk: to stderr, so that stdout stays data."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def out(text: str) -> None:
    sys.stdout.write(text + "\n")


def out_json(data: Mapping[str, Any]) -> None:
    out(json.dumps(data, indent=2, allow_nan=True))


def colours_wanted(stream: Any = None) -> bool:
    return (stream or sys.stdout).isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def coloured(text: str, word: str | None = None) -> str:
    code = _COLOURS.get(word or text.strip())
    return f"\x1b[{code}m{text}\x1b[0m" if code and colours_wanted() else text


def bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if colours_wanted() else text


def dim(text: str) -> str:
    return f"\x1b[2m{text}\x1b[0m" if colours_wanted() else text


def safe(text: str) -> str:
    """Text of others, for a terminal: colours may stay where colours are wanted, every other control is taken out."""
    text = _OTHER_ESCAPES.sub("", text)
    return text if colours_wanted() else _SGR.sub("", text)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, state_columns: Sequence[int] = ()) -> None:
    """Columns as wide as they must be; the last one may be cut to the width of the terminal."""
    rows = [[safe(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]
    room = _terminal_width()
    last = len(header) - 1
    before = sum(widths[:last]) + 2 * last
    out(dim("  ".join(cell.ljust(width) for cell, width in zip(header, widths, strict=True)).rstrip()))
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        if room and before + len(row[last]) > room:
            cells[last] = row[last][: max(room - before - 1, 10)] + "…"
        out("  ".join(coloured(cell, row[i]) if i in state_columns else cell for i, cell in enumerate(cells)).rstrip())


def ago(moment: float | None) -> str:
    if moment is None:
        return "–"
    return f"{span(max(0.0, time.time() - moment))} ago"


def span(seconds: float) -> str:
    """For people: 45 s, 12 min, 3 h 20 min, 2 d 4 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    if minutes < 100:
        return f"{minutes:.0f} min"
    hours, rest = divmod(round(minutes), 60)
    if hours < 48:
        return f"{hours} h {rest:02d} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"


def when(moment: float) -> str:
    """The clock for today, the date with it otherwise."""
    same_day = time.strftime("%Y-%m-%d", time.localtime(moment)) == time.strftime("%Y-%m-%d")
    return time.strftime("%H:%M" if same_day else "%Y-%m-%d %H:%M", time.localtime(moment))


def progress_words(progress: Mapping[str, Any]) -> str:
    step, total, rate, eta = (progress.get(key) for key in ("step", "total", "steps_per_second", "eta"))
    if step is None:
        return "no step logged yet"
    words = f"step {step}" + (f" of {total} ({100 * (step + 1) / total:.0f} %)" if total else "")
    if rate:
        words += f", {rate:.3g} steps/s"
    if eta:
        words += f", done about {when(eta)} if nothing waits"
    return words


def _terminal_width() -> int:
    if not sys.stdout.isatty():
        return 0
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except OSError:
        return 0
