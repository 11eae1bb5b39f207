"""The last lines of a file, read from its end: what it costs depends on them, not on how long the file is."""

from __future__ import annotations

from typing import BinaryIO

LONGEST_LINE = 1 << 20  # bytes; a longer one is cut: progress bars may print for a day without ending a line
_BLOCK = 1 << 16


def last_lines(file: BinaryIO, size: int, count: int, *, rest: bool, longest: int = LONGEST_LINE) -> tuple[list[bytes], int]:
    """At most `count` lines before `size`, oldest first, and the byte after them. With `rest`, also a last line that has no end yet."""
    end = size if rest else line_end(file, size, longest=longest)
    blocks: list[bytes] = []  # the last first
    at, newlines, since = end, 0, 0  # since: bytes without the end of a line
    while at > 0 and newlines <= count and since < longest:
        start = max(at - _BLOCK, 0)
        file.seek(start)
        block = file.read(at - start)
        found = block.count(b"\n")
        newlines += found
        since = since + len(block) if not found else block.index(b"\n")
        blocks.append(block)
        at = start
    lines = b"".join(reversed(blocks)).split(b"\n")
    if lines and not lines[-1]:
        lines.pop()  # what follows the last line's end
    return (lines[-count:] if count else []), end


def line_end(file: BinaryIO, size: int, *, longest: int = LONGEST_LINE) -> int:
    """Where the last whole line before `size` ends. Of a line that is longer than any should be, `size`: it is cut here."""
    at = size
    while at > 0 and size - at < longest:
        start = max(at - _BLOCK, 0)
        file.seek(start)
        found = file.read(at - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        at = start
    return size if at > 0 else 0
