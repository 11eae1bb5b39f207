"""Read a checkpoint file in parallel, straight into its tensors, and verify every byte on the way."""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from onward.checkpoints.copying import ALGORITHM, PIECE
from onward.errors import CheckpointDamaged
from onward.torch.safetensors_file import StateFile, read_header
from onward.torch.state_tree import decode

_FIRST_LOOK = 1 << 16  # bytes
_AT_ONCE = 1 << 20  # bytes: they are hashed while the processor's cache still has them


@dataclass(frozen=True, kw_only=True)
class _Part:
    """A stretch of the file and the memory into which it is read."""

    start: int
    memory: memoryview


def read_state(path: Path, *, map_location: torch.device | str | None = None) -> Any:
    """The state in this file, with its tensors on `map_location` (default: the CPU). Raises CheckpointDamaged, or OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        file = _header(handle)
        device = torch.device(map_location or "cpu")
        tensors = {stored.name: torch.empty(stored.shape, dtype=stored.dtype, pin_memory=device.type == "cuda") for stored in file.tensors}
        parts = [_Part(start=0, memory=memoryview(bytearray(len(file.header))))]
        parts += [_Part(start=stored.start, memory=_bytes_of(tensors[stored.name])) for stored in file.tensors if stored.bytes]
        hashed = _read(handle, file.size, parts)
    except CheckpointDamaged as error:
        raise CheckpointDamaged(f"{path}: {error.message}", hint="an older checkpoint may be whole") from error
    finally:
        os.close(handle)
    expected = _expected_hash(path)
    if expected and hashed != expected:
        raise CheckpointDamaged(f"{path} does not match its hash", hint="an older checkpoint may be whole")
    if device.type != "cpu":
        tensors = {name: tensor.to(device, non_blocking=True) for name, tensor in tensors.items()}
        torch.accelerator.synchronize(device)
    return decode(file.tree, tensors)


def _header(handle: int) -> StateFile:
    size = os.fstat(handle).st_size
    found = read_header(os.pread(handle, _FIRST_LOOK, 0), size)
    if isinstance(found, int):
        found = read_header(os.pread(handle, found, 0), size)
    assert not isinstance(found, int)
    return found


def _expected_hash(path: Path) -> str:
    """Written beside it by the save writer. A file that somebody put there without one is taken as it is."""
    try:
        return path.with_suffix(f".{ALGORITHM}").read_text().strip()
    except FileNotFoundError:
        return ""


def _bytes_of(tensor: torch.Tensor) -> memoryview:
    size = tensor.numel() * tensor.element_size()
    return memoryview((ctypes.c_ubyte * size).from_address(tensor.data_ptr())).cast("B")


def _read(handle: int, size: int, parts: list[_Part]) -> str:
    """Fill the parts, and return the hash of the file."""
    with ThreadPoolExecutor(min(8, len(os.sched_getaffinity(0)) + 2)) as threads:
        digests = list(
            threads.map(lambda start: _read_piece(handle, start, min(start + PIECE, size), parts), range(0, max(size, 1), PIECE))
        )
    return hashlib.sha256(b"".join(digests)).hexdigest()


def _read_piece(handle: int, start: int, end: int, parts: list[_Part]) -> bytes:
    digest = hashlib.sha256()
    for at, memory in _within(start, end, parts):
        while memory:
            count = os.preadv(handle, [memory[:_AT_ONCE]], at)
            if not count:
                raise CheckpointDamaged("the file became shorter while it was read")
            digest.update(memory[:count])
            at, memory = at + count, memory[count:]
    return digest.digest()


def _within(start: int, end: int, parts: list[_Part]) -> Iterator[tuple[int, memoryview]]:
    for part in parts:
        first, last = max(start, part.start), min(end, part.start + len(part.memory))
        if first < last:
            yield first, part.memory[first - part.start : last - part.start]
