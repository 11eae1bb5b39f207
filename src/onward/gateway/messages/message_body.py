"""The body of a message: text, and files in base64 between, which are read piece by piece while it is sent."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from onward.errors import StorageError
from onward.model.requests.outcome import OutcomeFile

_LINE = 57  # bytes that a line of base64 holds
_PIECE = _LINE * 3 * 2048  # whole lines, and whole groups of three bytes
_BREAK = b"\\n"  # between lines, inside a JSON text


@dataclass(frozen=True, kw_only=True)
class Base64File:
    """A result as the text of a JSON string. `lines`: broken into lines, as the first protocol has it."""

    result: OutcomeFile
    lines: bool = False

    @property
    def size(self) -> int:
        return -(-self.result.size // 3) * 4 + (-(-self.result.size // _LINE) * len(_BREAK) if self.lines else 0)

    def pieces(self) -> Iterator[bytes]:
        for piece in read_whole(self.result):
            if self.lines:
                yield base64.encodebytes(piece).replace(b"\n", _BREAK)
            else:
                yield base64.b64encode(piece)


@dataclass(frozen=True)
class MessageBody:
    parts: tuple[bytes | Base64File, ...]

    @property
    def size(self) -> int:
        return sum(len(part) if isinstance(part, bytes) else part.size for part in self.parts)

    def pieces(self) -> Iterator[bytes]:
        """StorageError where a file is no longer what it was when its run was done."""
        for part in self.parts:
            if isinstance(part, bytes):
                yield part
            else:
                yield from part.pieces()

    def check(self) -> None:
        """Read all files once, before the first byte is sent."""
        for part in self.parts:
            if isinstance(part, Base64File):
                for _ in read_whole(part.result):
                    pass

    def __bytes__(self) -> bytes:
        return b"".join(self.pieces())


def read_whole(result: OutcomeFile) -> Iterator[bytes]:
    """Its bytes, as they were when the run was done; never more than it had. The last is followed by an error where they differ."""
    found, left = hashlib.sha256(), result.size
    try:
        with Path(result.path).open("rb") as file:
            while left and (piece := file.read(min(_PIECE, left))):
                found.update(piece)
                left -= len(piece)
                yield piece
            changed = bool(left or file.read(1)) or found.hexdigest() != result.sha256
    except OSError as error:
        raise StorageError(f"the result {result.name} cannot be read: {error.strerror}", hint="it was in the run's folder") from error
    if changed:
        raise StorageError(f"the result {result.name} was changed after its run was done", hint="it is in the run's folder")
