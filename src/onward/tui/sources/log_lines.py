"""Lines of a log, from wherever its bytes come: the end of it, or what is around a place in it. Pure but for the reader handed in."""

from __future__ import annotations

from collections.abc import Callable

from onward.tui.sources.interface import LogLine

PIECE = 1 << 16  # bytes that are looked at
_LINE = 4000  # characters of a line that are kept

Read = Callable[[int, int], bytes]  # offset and limit


def lines_of(read: Read, size: int, around: int | None) -> tuple[tuple[LogLine, ...], int]:
    """Whole lines, and the byte after them. The log's last one may have no end yet."""
    start = max((size if around is None else around + PIECE // 2) - PIECE, 0)
    data = read(start, min(PIECE, max(size - start, 0)))
    offset, found = start, []
    for index, raw in enumerate(data.split(b"\n")):
        whole = index > 0 or start == 0
        if whole and (raw or offset < start + len(data)):
            found.append(LogLine(offset=offset, text=raw.decode(errors="replace")[:_LINE]))
        offset += len(raw) + 1
    end = start + len(data)
    if end < size and len(found) > 1:  # cut within a line
        end = found.pop().offset
    if not found and data:  # one line longer than all this
        found = [LogLine(offset=start, text=data.decode(errors="replace")[:_LINE])]
    return tuple(found), end
