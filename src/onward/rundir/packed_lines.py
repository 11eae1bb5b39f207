"""Lines of spools on the wire, in few bytes.

A record is taken apart into its numbers and its skeleton, which is all the rest: the same for every record with the same metrics. Numbers
are sent compressed; a skeleton is sent once, and after that by its digest, as long as the server remembers it. What is unpacked is the
same, byte by byte, so that offsets in files mean what they always do.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import threading
import zlib
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

KIND = "application/x-onward-lines"
LONGEST = 16 << 20  # bytes of a piece, unpacked
_NUMBER = re.compile(rb'(?<=":)( ?-?[0-9][0-9.eE+-]*)')
_SIZES = struct.Struct("<III")
_MOST_SKELETONS = 64  # of one piece
_REMEMBERED = 32 << 20  # bytes of skeletons


class UnknownSkeleton(Exception):
    """The piece names a skeleton that is not remembered: it must be sent again, with its skeletons."""


@dataclass(frozen=True, kw_only=True)
class PackedLines:
    body: bytes
    digests: frozenset[str]
    complete: bool  # all skeletons are in it


def pack_lines(data: bytes, known: Collection[str] = ()) -> PackedLines | None:
    """`data`: whole lines. `known`: digests that the server remembers. None where packing is of no use."""
    if not data.endswith(b"\n") or b"\0" in data or len(data) > LONGEST:
        return None
    places: dict[bytes, int] = {}
    order: list[int] = []
    numbers: list[bytes] = []
    for line in data[:-1].split(b"\n"):
        parts = _NUMBER.split(line)
        order.append(places.setdefault(b"\0".join(parts[::2]), len(places)))
        numbers += parts[1::2]
        if len(places) > _MOST_SKELETONS:
            return None
    digests = {_digest(skeleton): skeleton for skeleton in places}
    given = [skeleton for digest, skeleton in digests.items() if digest not in known]
    head = json.dumps({"skeletons": list(digests), "lines": order}, separators=(",", ":")).encode()
    names = b"".join(skeleton + b"\n" for skeleton in given)
    streams = [_squeezed(head), _squeezed(b"\n".join(numbers), zlib.Z_FILTERED), _squeezed(names)]
    body = _SIZES.pack(*map(len, streams)) + b"".join(streams)
    return PackedLines(body=body, digests=frozenset(digests), complete=len(given) == len(digests)) if len(body) < len(data) else None


def unpack_lines(body: bytes, memory: SkeletonMemory) -> bytes:
    """The lines as they were. Raises UnknownSkeleton, and ValueError for what is no such piece or too long."""
    try:
        sizes = _SIZES.unpack_from(body)
        ends = [_SIZES.size, _SIZES.size + sizes[0], _SIZES.size + sizes[0] + sizes[1], _SIZES.size + sum(sizes)]
        head, numbers, given = (_relaxed(body[start:end]) for start, end in pairwise(ends))
        header = json.loads(head)
        memory.remember(given.split(b"\n")[:-1])
        skeletons = [memory.recall(digest).split(b"\0") for digest in header["skeletons"]]
        return _together(skeletons, header["lines"], numbers.split(b"\n") if numbers else [])
    except json.JSONDecodeError as error:
        raise ValueError(f"these are not packed lines: {error}") from error
    except (struct.error, zlib.error, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise ValueError(f"these are not packed lines: {error!r}") from error


class SkeletonMemory:
    """What a server remembers of them: the newest, up to some MB. Forgotten with the process."""

    def __init__(self, most: int = _REMEMBERED) -> None:
        self._most = most
        self._held: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._guard = threading.Lock()

    def remember(self, skeletons: Collection[bytes]) -> None:
        with self._guard:
            for skeleton in skeletons:
                digest = _digest(skeleton)
                if digest not in self._held:
                    self._held[digest] = skeleton
                    self._size += len(skeleton)
            while self._size > self._most and len(self._held) > len(skeletons):
                self._size -= len(self._held.popitem(last=False)[1])

    def recall(self, digest: str) -> bytes:
        with self._guard:
            if digest not in self._held:
                raise UnknownSkeleton(digest)
            self._held.move_to_end(digest)
            return self._held[digest]


def _together(skeletons: list[list[bytes]], lines: list[int], numbers: list[bytes]) -> bytes:
    made: list[bytes] = []
    at = size = 0
    for index in lines:
        if index < 0:
            raise IndexError(index)
        parts = skeletons[index]
        line = [b""] * (2 * len(parts) - 1)
        line[::2] = parts
        line[1::2] = numbers[at : at + len(parts) - 1]  # raises ValueError where there are too few
        at += len(parts) - 1
        made.append(b"".join(line))
        size += len(made[-1]) + 1
        if size > LONGEST:
            raise ValueError(f"a piece must be at most {LONGEST >> 20} MiB unpacked")
    if at != len(numbers):
        raise ValueError(f"{len(numbers)} numbers for {at} places")
    return b"\n".join([*made, b""])


def _squeezed(data: bytes, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> bytes:
    made = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS, 9, strategy)
    return made.compress(data) + made.flush()


def _relaxed(data: bytes) -> bytes:
    made = zlib.decompressobj()
    found = made.decompress(data, LONGEST + 1)
    if len(found) > LONGEST or not made.eof:
        raise ValueError(f"a piece must be complete and at most {LONGEST >> 20} MiB unpacked")
    return found


def _digest(skeleton: bytes) -> str:
    return hashlib.sha256(skeleton).hexdigest()
