"""How things look in a terminal: data on stdout, talk on stderr, colour only where it is wanted."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from onward.model.quantity import duration_text

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
    "free": "32",
    "partly": "36",
    "full": "33",
    "draining": "31",
    "drained": "31",
    "down": "31",
}
_LAST_COLUMN = 12  # characters below which it is not worth having
_SGR = re.compile(r"\x1b\[[0-9;]*m")
_OTHER_ESCAPES = re.compile(
    r"\x1b(?!\[[0-9;]*m)(?:\[[0-9;:<=>?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])?"
    r"|[\x00-\x08\x0a-\x1a\x1c-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


def to_stderr(text: str = "") -> None:
    """Messages go to stderr, so that stdout holds only data. Flushes stdout first, to keep the order."""
    sys.stdout.flush()
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def to_stdout(text: str) -> None:
    sys.stdout.write(text + "\n")


def save(text: str, output: Path | None) -> bool:
    """To a file, or to stdout where none is named or it is `-`. Whether there is a file of it now."""
    from onward.errors import StorageError
    from onward.sdk.atomic_files import write_whole

    if output is None or str(output) == "-":
        to_stdout(text.rstrip("\n"))
        return False
    try:
        write_whole(output, text)
    except OSError as error:
        raise StorageError(f"{output} cannot be written: {error.strerror}", hint="choose another place by -o") from error
    return True


def json_to_stdout(data: Mapping[str, Any]) -> None:
    to_stdout(json.dumps(_finite(data), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity, and a diverged training logs them: null, which everyone can read."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def colours_wanted() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str, word: str | None = None) -> str:
    code = _COLOURS.get(word or text.strip())
    return f"\x1b[{code}m{text}\x1b[0m" if code and colours_wanted() else text


def bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if colours_wanted() else text


def dim(text: str) -> str:
    return f"\x1b[2m{text}\x1b[0m" if colours_wanted() else text


def safe(line: str) -> str:
    """A line of another program, for a terminal: colours may stay if colours are on, other control characters are removed."""
    shown = line.rstrip("\r").rsplit("\r", 1)[-1]  # what a progress bar wrote over is not shown
    shown = _OTHER_ESCAPES.sub("", shown)
    if not colours_wanted():
        return _SGR.sub("", shown)
    return f"{shown}\x1b[0m" if _SGR.search(shown) else shown


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, state_columns: Sequence[int] = ()) -> None:
    """Columns as wide as their texts; in a terminal the last one is cut to the width that is left, or left out."""
    rows = [[safe(" ".join(cell.split())) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]
    last = len(header) - 1
    room = max(terminal_width() - sum(widths[:last]) - 2 * last, 0) if terminal_width() else widths[last]
    if room < min(_LAST_COLUMN, widths[last]):
        room = 0
    for cells in (list(header), *rows):
        plain = [cell.ljust(width) for cell, width in zip(cells[:last], widths, strict=False)]
        shown = [coloured(cell, cells[i]) if i in state_columns else cell for i, cell in enumerate(plain)]
        final = cells[last] if len(cells[last]) <= room else cells[last][: room - 1] + "…" if room else ""
        line = "  ".join([*shown, coloured(final, cells[last]) if last in state_columns else final]).rstrip()
        to_stdout(dim(line) if cells == list(header) else line)


def field(label: str, text: str) -> None:
    """A labelled text of any length, wrapped under itself in a terminal."""
    width = terminal_width()
    first = True
    for line in text.splitlines() or [""]:
        room = max(width - 14, 20)
        parts = textwrap.wrap(safe(line), room, break_on_hyphens=False, break_long_words=False) if width else [safe(line)]
        for part in parts or [""]:
            to_stdout(f"  {dim(label.ljust(10)) if first else ' ' * 10}  {part.rstrip()}")
            first = False


def age_text(moment: float | None) -> str:
    if moment is None:
        return "–"
    return f"{duration_text(max(0.0, time.time() - moment))} ago"


def time_text(moment: float) -> str:
    """The clock for today, the date with it otherwise."""
    try:
        same_day = time.strftime("%Y-%m-%d", time.localtime(moment)) == time.strftime("%Y-%m-%d")
        return time.strftime("%H:%M" if same_day else "%Y-%m-%d %H:%M", time.localtime(moment))
    except (OverflowError, ValueError, OSError):  # at this rate, beyond any calendar
        return "the distant future"


def progress_words(progress: Mapping[str, Any]) -> str:
    step, total, rate, eta = (progress.get(key) for key in ("step", "total", "steps_per_second", "eta"))
    if step is None:
        return "no step logged yet"
    words = f"step {step}" + (f" of {total} ({percent(step, total)} %)" if total else "")
    if rate:
        words += f", {rate:.3g} steps/s"
    if eta:
        words += f", done about {time_text(eta)} if nothing waits"
    return words


def percent(step: int, total: int) -> int:
    """Whole percent, and 100 only when the last step is done."""
    return max(0, min(100, 100 * (step + 1) // total))


def terminal_height() -> int:
    """0 where nobody looks."""
    return shutil.get_terminal_size().lines if sys.stdout.isatty() else 0


def terminal_width() -> int:
    """0 unless stdout is a terminal: files and pipes get everything."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
