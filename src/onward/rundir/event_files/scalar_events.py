"""Events of TensorBoard's files, out of their protobuf: scalars, and where a writer began. Pure, and by hand: no package is needed.

A scalar is a `simple_value`, or a tensor of one element whose plugin is "scalars". Pictures, histograms, texts and the like are passed
over without being looked into.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_NOTHING = memoryview(b"")
_DOUBLE = struct.Struct("<d")
_FLOAT = struct.Struct("<f")
_CONTENT = {1: "f", 2: "d", 3: "i", 4: "B", 5: "h", 6: "b", 9: "q", 10: "?", 17: "H", 19: "e", 22: "I", 23: "Q"}  # by a tensor's type
_BFLOAT16, _HALF = 14, 19
_SESSION_START = 1
_SCALARS = b"scalars"


@dataclass(frozen=True, slots=True)
class ScalarEvent:
    """`values`: (tag, value). `begins`: a writer says that it begins at this step: what was written from there on before does not stand."""

    time: float
    step: int
    values: tuple[tuple[str, float], ...] = ()
    begins: bool = False


def read_event(data: memoryview) -> ScalarEvent | None:
    """None where it holds nothing for us but its time. Raises ValueError, IndexError or struct.error where it is no event."""
    time, step, begins, has_summary = 0.0, 0, False, False
    values: list[tuple[str, float]] = []
    for number, kind, whole, part in fields(data):
        if number == 1 and kind == _FIXED64:
            (time,) = _DOUBLE.unpack(part)
        elif number == 2 and kind == _VARINT:
            step = _signed(whole)
        elif number == 3 and kind == _BYTES:
            has_summary = True  # the version: the first event of a file, by which it is known when that began
        elif number == 5 and kind == _BYTES:
            values += _summary(part)
        elif number == 7 and kind == _BYTES:
            begins = any(n == 1 and k == _VARINT and v == _SESSION_START for n, k, v, _ in fields(part))
    if not values and not begins and not has_summary:
        return None
    if not math.isfinite(time) or not 0 <= time < 1e11:
        time = 0.0
    return ScalarEvent(time, step, tuple(values), begins)


def _summary(data: memoryview) -> list[tuple[str, float]]:
    found = (_value(part) for number, kind, _, part in fields(data) if number == 1 and kind == _BYTES)
    return [one for one in found if one is not None]


def _value(data: memoryview) -> tuple[str, float] | None:
    tag = ""
    plugin: bytes | None = None
    value: float | None = None
    tensor: memoryview | None = None
    for number, kind, _, part in fields(data):
        if number == 1 and kind == _BYTES:
            tag = bytes(part).decode("utf-8", "replace")
        elif number == 2 and kind == _FIXED32:
            (value,) = _FLOAT.unpack(part)
        elif number == 8 and kind == _BYTES:
            tensor = part
        elif number == 9 and kind == _BYTES:
            plugin = _plugin(part)
    if value is None and tensor is not None and plugin in (None, _SCALARS):  # a writer may name the plugin only once
        value = _tensor(tensor)
    return None if value is None else (tag, value)


def _plugin(data: memoryview) -> bytes | None:
    for number, kind, _, part in fields(data):
        if number == 1 and kind == _BYTES:
            return next((bytes(name) for n, k, _, name in fields(part) if n == 1 and k == _BYTES), b"")
    return None


def _tensor(data: memoryview) -> float | None:
    """Its one number; None where it has more, or is of none."""
    dtype, size = 0, 1
    content = _NOTHING
    listed: tuple[int, int, int, memoryview] | None = None
    for field in fields(data):
        number, kind, whole, part = field
        if number == 1 and kind == _VARINT:
            dtype = whole
        elif number == 2 and kind == _BYTES:
            size = _size(part)
        elif number == 4 and kind == _BYTES:
            content = part
        elif number in (5, 6, 7, 10, 11, 13, 16, 17):
            listed = field
    if size != 1 or (dtype not in _CONTENT and dtype != _BFLOAT16):
        return None
    if len(content):
        return _one(dtype, bytes(content))
    return 0.0 if listed is None else _listed(dtype, *listed)  # protobuf leaves zeros out


def _one(dtype: int, content: bytes) -> float | None:
    if dtype == _BFLOAT16:
        return float(_FLOAT.unpack(b"\0\0" + content)[0]) if len(content) == 2 else None
    shape = f"<{_CONTENT[dtype]}"
    return float(struct.unpack(shape, content)[0]) if len(content) == struct.calcsize(shape) else None


def _listed(dtype: int, number: int, kind: int, whole: int, part: memoryview) -> float:
    """A number out of float_val, double_val, int_val …: packed, or by itself."""
    if number == 5:
        return float(_FLOAT.unpack_from(part)[0])
    if number == 6:
        return float(_DOUBLE.unpack_from(part)[0])
    if kind == _BYTES:
        whole, _ = _varint(part, 0)
    if number == 13 and dtype in (_HALF, _BFLOAT16):  # half_val: the bits of one, of either kind
        return _one(dtype, struct.pack("<H", whole & 0xFFFF)) or 0.0
    return float(whole if number in (16, 17) else _signed(whole))


def _size(shape: memoryview) -> int:
    size = 1
    for number, kind, whole, part in fields(shape):
        if number == 2 and kind == _BYTES:
            size *= next((_signed(v) for n, k, v, _ in fields(part) if n == 1 and k == _VARINT), 0)
        elif number == 3 and whole:
            return 0  # of unknown rank
    return size


# ── the wire ──────────────────────────────────────────────────────────────────


def fields(data: memoryview) -> Iterator[tuple[int, int, int, memoryview]]:
    """Of each field of a message its number, its kind, and its value: a whole number, or bytes."""
    at, end = 0, len(data)
    while at < end:
        key = data[at]
        at += 1
        if key & 0x80:
            key, at = _varint(data, at - 1)
        kind = key & 7
        if kind == _VARINT:
            whole, at = _varint(data, at)
            yield key >> 3, kind, whole, _NOTHING
            continue
        if kind == _BYTES:
            length = data[at]
            at += 1
            if length & 0x80:
                length, at = _varint(data, at - 1)
        elif kind == _FIXED32:
            length = 4
        elif kind == _FIXED64:
            length = 8
        else:
            raise ValueError(f"no field is of kind {kind}")
        if at + length > end:
            raise ValueError("a field goes beyond its message")
        yield key >> 3, kind, 0, data[at : at + length]
        at += length


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number goes beyond 64 bits")


def _signed(value: int) -> int:
    value &= 0xFFFFFFFFFFFFFFFF
    return value - (1 << 64) if value >> 63 else value
