"""A small writer of TensorBoard's event files, for tests: framing and protobuf by hand, independent of the reader."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path


def crc32c(data: bytes) -> int:
    """Bit by bit, as the standard writes it down."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(content: bytes) -> bytes:
    length = struct.pack("<Q", len(content))
    return length + masked(length) + content + masked(content)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def text(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def event(time: float, step: int, *parts: bytes) -> bytes:
    return varint(1 << 3 | 1) + struct.pack("<d", time) + (number(2, step) if step else b"") + b"".join(parts)


def version(time: float, step: int = 0) -> bytes:
    return event(time, step, text(3, "brain.Event:2"))


def session_start(time: float, step: int) -> bytes:
    return event(time, step, text(7, number(1, 1)))


def scalar(time: float, step: int, tag: str, value: float) -> bytes:
    """As torch and TensorFlow 1 write it."""
    return event(time, step, text(5, text(1, text(1, tag) + varint(2 << 3 | 5) + struct.pack("<f", value))))


def plugin(name: str) -> bytes:
    return text(9, text(1, text(1, name)))


def tensor(time: float, step: int, tag: str, content: bytes, *, of: str | None = "scalars") -> bytes:
    """As TensorFlow 2 writes it; `content` is a TensorProto."""
    return event(time, step, text(5, text(1, text(1, tag) + text(8, content) + (plugin(of) if of is not None else b""))))


def write(path: Path, records: Iterable[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        for record in records:
            file.write(frame(record))
    return path


def training(path: Path, steps: Iterable[int], *, at: float, tag: str = "loss", purge: int | None = None, fresh: bool = True) -> Path:
    """A file as torch's SummaryWriter leaves it: one scalar a step, a second apart; its value is its step plus a half."""
    first = [version(at, purge or 0)] if fresh else []
    if purge is not None:
        first.append(session_start(at, purge))
    return write(path, [*first, *(scalar(at + 1 + step, step, tag, step + 0.5) for step in steps)])
