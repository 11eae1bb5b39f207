"""The safetensors format: how tensors lie in a file, so that the memory copy of a state is the file, byte by byte.

Written here because a library that stores tensors copies them once more, and a training's environment may not have one.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from onward.errors import CheckpointDamaged

_TREE = "onward"  # the key of the state's tree in the metadata
_DATA_ALIGNED_TO = 4096  # a page
_LONGEST_HEADER = 100_000_000  # bytes: other readers take no longer one
_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
}
_TYPES = {name: kind for kind, name in _NAMES.items()}


@dataclass(frozen=True, kw_only=True)
class StoredTensor:
    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int  # in the file
    bytes: int


@dataclass(frozen=True, kw_only=True)
class StateFile:
    header: bytes
    tree: Any
    tensors: tuple[StoredTensor, ...]

    @property
    def size(self) -> int:
        return len(self.header) + sum(tensor.bytes for tensor in self.tensors)


def lay_out(tree: object, tensors: Mapping[str, torch.Tensor]) -> StateFile:
    """Tensors of wide types first: then each lies where its type may lie, though the format allows no gaps."""
    for name, tensor in tensors.items():
        if tensor.dtype not in _NAMES:
            raise TypeError(f"{name} is a tensor of {tensor.dtype}, which safetensors does not have: convert it, or leave it out")
    names = sorted(tensors, key=lambda name: -tensors[name].element_size())
    entries: dict[str, object] = {"__metadata__": {"format": "pt", _TREE: json.dumps(tree)}}
    at = 0
    for name in names:
        tensor = tensors[name]
        size = tensor.numel() * tensor.element_size()
        entries[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % _DATA_ALIGNED_TO)
    if len(text) > _LONGEST_HEADER:
        raise ValueError(
            f"the state has {len(tensors)} tensors and {len(text) >> 20} MiB of other values: more than a checkpoint file can list"
        )
    return _stored(struct.pack("<Q", len(text)) + text)


def read_header(start: bytes, size: int) -> StateFile | int:
    """What a file of this `size` holds. `start`: its first bytes; if they are too few, how many are needed."""
    if len(start) < 8:
        raise CheckpointDamaged(f"the file has {size} bytes, fewer than a header")
    (length,) = struct.unpack("<Q", start[:8])
    if length > min(_LONGEST_HEADER, size - 8):
        raise CheckpointDamaged(f"the file's header is said to have {length} bytes, of {size}")
    if len(start) < length + 8:
        return int(length) + 8
    stored = _stored(start[: length + 8])
    if stored.size != size:
        raise CheckpointDamaged(f"the file has {size} bytes, expected {stored.size}")
    return stored


def _stored(header: bytes) -> StateFile:
    try:
        entries = json.loads(header[8:])
        tree = json.loads(entries.pop("__metadata__")[_TREE])
        tensors, at = [], 0
        for name, entry in sorted(entries.items(), key=lambda item: tuple(item[1]["data_offsets"])):
            start, end = entry["data_offsets"]
            dtype, shape = _TYPES[entry["dtype"]], tuple(int(length) for length in entry["shape"])
            if start != at or end - start != dtype.itemsize * _product(shape):
                raise ValueError(f"{name} does not lie where it should")
            tensors.append(StoredTensor(name=name, dtype=dtype, shape=shape, start=len(header) + start, bytes=end - start))
            at = end
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointDamaged(f"the file's header cannot be read: {error!r}") from error
    return StateFile(header=header, tree=tree, tensors=tuple(tensors))


def _product(shape: tuple[int, ...]) -> int:
    product = 1
    for length in shape:
        product *= length
    return product
