"""Searching a log by pieces: the next or the last line that holds a text, or that looks like an error, in files of any size.

Only whole texts are looked for, no patterns: a pattern of someone's can take for ever, and these are a memory's speed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

MOST = 256 << 20  # bytes that one search reads
_PIECE = 1 << 20
_LONGEST = 4 << 20  # bytes of a line that are looked at for its ends: one that is longer, as a progress bar's, is cut
_LINE = 2000  # bytes of a line that are shown, to either side of the match

ERRORS: tuple[bytes, ...] = (
    *(b"Traceback (most recent call last)", b"Error:", b"ERROR", b"Exception:", b"CRITICAL", b"FATAL", b"Fatal", b"error: "),
    *(b"Segmentation fault", b"core dumped", b"ut of memory", b"CUDA error", b"oom-kill", b"No space left", b"quota exceeded"),
    *(b"command not found", b"Permission denied", b"Killed"),
)


@dataclass(frozen=True, kw_only=True)
class TextMatch:
    offset: int  # where the text begins
    length: int
    line_offset: int
    line: str  # what is around it, up to the line's ends


@dataclass(frozen=True, kw_only=True)
class TextMatches:
    matches: tuple[TextMatch, ...]
    next: int | None  # where a further search goes on; None: the log has been searched up to its end, or its beginning
    searched: int  # bytes


def search_log(
    file: BinaryIO, size: int, texts: Sequence[bytes], *, start: int, limit: int, case: bool = True, back: bool = False, most: int = MOST
) -> TextMatches:
    """One match a line, from `start` on; with `back`, of the lines that begin before it, the last first. `size`: up to where."""
    wanted = [text if case else text.lower() for text in texts if text]
    longest = max(map(len, wanted), default=1)
    start = min(max(start, 0), size)
    end = max(start - most, 0) if back else min(start + most, size)
    matches: list[TextMatch] = []
    line_done = start  # forwards, where the line of the last match ends; backwards, where it begins
    for at, piece in _pieces(file, start, end, size, longest - 1, back=back):
        shown = piece if case else piece.lower()
        for position, length in _places(shown, wanted, back=back):
            offset = at + position
            if offset >= line_done if back else offset < line_done:
                continue
            match = _match(file, offset, length, size)
            matches.append(match)
            line_done = match.line_offset if back else _line_end(file, offset, size)
            if len(matches) == limit:
                left = line_done > 0 if back else line_done < size
                return TextMatches(matches=tuple(matches), next=line_done if left else None, searched=abs(offset - start))
    over = end == 0 if back else end == size
    return TextMatches(matches=tuple(matches), next=None if over else end, searched=abs(end - start))


def _pieces(file: BinaryIO, start: int, end: int, size: int, overlap: int, *, back: bool) -> Iterator[tuple[int, bytes]]:
    """Pieces and their offsets; each with the beginning of what follows it, so that no text is cut in two."""
    if back:
        for top in range(start, end, -_PIECE):
            at = max(top - _PIECE, end)
            file.seek(at)
            yield at, file.read(min(top - at + overlap, size - at))
        return
    for at in range(start, end, _PIECE):
        file.seek(at)
        yield at, file.read(min(_PIECE + overlap, end - at + overlap, size - at))


def _places(piece: bytes, texts: Sequence[bytes], *, back: bool) -> Iterator[tuple[int, int]]:
    """Where any of the texts is, in order; a line at a time, since no more than one of each is shown."""
    find = piece.rfind if back else piece.find
    heads = [find(text) for text in texts]
    while any(head >= 0 for head in heads):
        there = [(head, n) for n, head in enumerate(heads) if head >= 0]
        offset, n = max(there) if back else min(there)
        yield offset, len(texts[n])
        edge = piece.rfind(b"\n", 0, offset) + 1 if back else piece.find(b"\n", offset)
        edge = len(piece) if edge < 0 else edge
        for m, head in enumerate(heads):
            if head >= 0 and (head >= edge if back else head < edge):
                heads[m] = piece.rfind(texts[m], 0, edge) if back else piece.find(texts[m], edge)


def _match(file: BinaryIO, offset: int, length: int, size: int) -> TextMatch:
    first = max(offset - _LINE, 0)
    file.seek(first)
    around = file.read(min(_LINE * 2 + length, size - first))
    here = offset - first
    begin = around.rfind(b"\n", 0, here) + 1
    end = around.find(b"\n", here)
    line = around[begin : len(around) if end < 0 else end]
    line_offset = first + begin if begin or not first else _line_start(file, first)
    return TextMatch(offset=offset, length=length, line_offset=line_offset, line=line.decode(errors="replace"))


def _line_start(file: BinaryIO, before: int) -> int:
    """The line is longer than what is shown of it: look on, piece by piece."""
    at = before
    while at > 0 and before - at < _LONGEST:
        first = max(at - _PIECE, 0)
        file.seek(first)
        found = file.read(at - first).rfind(b"\n")
        if found >= 0:
            return first + found + 1
        at = first
    return at


def _line_end(file: BinaryIO, offset: int, size: int) -> int:
    at = offset
    while at < size and at - offset < _LONGEST:
        file.seek(at)
        piece = file.read(min(_PIECE, size - at))
        found = piece.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(piece) or size
    return min(at, size)
