"""The copy of a state in memory that another process can read."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from onward.sdk.background_save.state_memory import StateMemory
from onward.torch.safetensors_file import StateFile


def copy_state(file: StateFile, tensors: Mapping[str, torch.Tensor], memory: StateMemory) -> None:
    """All tensors are in the memory when this returns: the training may change them."""
    memory.view[: len(file.header)] = file.header
    for stored in file.tensors:
        if stored.bytes:
            target = torch.frombuffer(memory.view, dtype=stored.dtype, offset=stored.start, count=stored.bytes // stored.dtype.itemsize)
            target.view(stored.shape).copy_(tensors[stored.name], non_blocking=True)
    if any(tensor.is_cuda for tensor in tensors.values()):
        torch.cuda.synchronize()
