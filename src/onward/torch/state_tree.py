"""A training's state as a JSON tree and the tensors that it names: no pickle, so that reading a checkpoint never runs code."""

from __future__ import annotations

import base64
import math
import sys
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import torch

_SEPARATOR = "."


class StateNotStorable(TypeError):
    """The state holds something that cannot be stored without pickle. Says where."""


class StateTree:
    """What `encode` found: `json`, and the tensors by their names. A tensor that is there twice is stored once."""

    def __init__(self, state: object) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self._names: dict[tuple[object, ...], str] = {}
        self.json = self._encode(state, ())

    def _encode(self, value: Any, path: tuple[str, ...]) -> object:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"$float": repr(value)}
        if isinstance(value, torch.Tensor):
            return self._tensor(value, path)
        if kind in (dict, OrderedDict):
            return self._mapping(value, path)
        if kind is list:
            return [self._encode(item, (*path, str(index))) for index, item in enumerate(value)]
        if kind in (tuple, torch.Size):
            return {"$tuple": [self._encode(item, (*path, str(index))) for index, item in enumerate(value)]}
        if kind in (bytes, bytearray):
            return {"$bytes": base64.b64encode(value).decode("ascii")}
        if kind is torch.dtype:
            return {"$dtype": str(value).removeprefix("torch.")}
        if kind is torch.device:
            return {"$device": str(value)}
        return self._of_numpy(value, path)

    def _mapping(self, value: Mapping[Any, Any], path: tuple[str, ...]) -> object:
        plain = type(value) is dict and all(type(key) is str and not key.startswith("$") for key in value)
        if plain:
            return {key: self._encode(item, (*path, key)) for key, item in value.items()}
        pairs = [[self._encode(key, (*path, "a key")), self._encode(item, (*path, str(key)))] for key, item in value.items()]
        if type(value) is dict:
            return {"$dict": pairs}
        metadata = getattr(value, "_metadata", None)  # the versions of a module's state_dict()
        return {"$ordered": pairs, **({"metadata": self._encode(metadata, (*path, "_metadata"))} if metadata else {})}

    def _tensor(self, value: torch.Tensor, path: tuple[str, ...]) -> object:
        tensor = value.detach()
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            raise _refused(path, f"a {type(tensor).__name__}", "save each rank's own part of it (`to_local()`), or `full_tensor()`")
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.device.type == "meta":
            kind = "a quantized" if tensor.is_quantized else f"a {tensor.layout if tensor.device.type != 'meta' else tensor.device.type}"
            raise _refused(path, f"{kind} tensor", "convert it to a dense tensor, or leave it out")
        made_of = {}
        if tensor.is_complex():
            made_of = {"complex": True}
            tensor = torch.view_as_real(tensor.resolve_conj())
        return {"$tensor": self._name(tensor.resolve_neg(), path), **made_of}

    def _name(self, tensor: torch.Tensor, path: tuple[str, ...]) -> str:
        where = (tensor.device, tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
        if tensor.numel() and where in self._names:
            return self._names[where]
        name = first = _SEPARATOR.join(path) or "state"
        number = 2
        while name in self.tensors:
            name, number = f"{first}#{number}", number + 1
        self.tensors[name] = tensor
        self._names[where] = name
        return name

    def _of_numpy(self, value: Any, path: tuple[str, ...]) -> object:
        numpy = sys.modules.get("numpy")
        plain = numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind in "biuf"
        if numpy is None or not plain:
            kind = type(value)
            hint = "store its state_dict(), or numbers, strings, lists and dicts made from it"
            raise _refused(path, f"a {kind.__module__}.{kind.__qualname__}", hint)
        array = numpy.array(value, dtype=value.dtype.newbyteorder("="), order="C")
        shape = None if isinstance(value, numpy.generic) else list(value.shape)
        data = torch.from_numpy(array.reshape(-1).view(numpy.uint8))
        return {"$array": self._name(data, path), "dtype": array.dtype.str, "shape": shape}


def _refused(path: tuple[str, ...], what: str, hint: str) -> StateNotStorable:
    where = "state" + "".join(f"[{part!r}]" for part in path)
    return StateNotStorable(f"{where} is {what}, which a checkpoint cannot hold: {hint}")


def decode(tree: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    """The state again. Names of tensors that are missing raise KeyError."""
    if isinstance(tree, list):
        return [decode(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    special = next((key for key in tree if key.startswith("$")), None)
    if special is None:
        return {key: decode(item, tensors) for key, item in tree.items()}
    value = tree[special]
    match special:
        case "$tensor":
            return torch.view_as_complex(tensors[value]) if tree.get("complex") else tensors[value]
        case "$tuple":
            return tuple(decode(item, tensors) for item in value)
        case "$dict":
            return {decode(key, tensors): decode(item, tensors) for key, item in value}
        case "$ordered":
            ordered = OrderedDict((decode(key, tensors), decode(item, tensors)) for key, item in value)
            if "metadata" in tree:
                ordered._metadata = decode(tree["metadata"], tensors)  # type: ignore[attr-defined]
            return ordered
        case "$float":
            return float(value)
        case "$bytes":
            return base64.b64decode(value)
        case "$dtype":
            return getattr(torch, value)
        case "$device":
            return torch.device(value)
        case "$array":
            return _array(tensors[value], tree)
    raise ValueError(f"a checkpoint of a newer version: {special}")


def _array(data: torch.Tensor, tree: Mapping[str, Any]) -> Any:
    import numpy

    array = data.cpu().numpy().view(numpy.dtype(tree["dtype"]))
    return array[0] if tree["shape"] is None else array.reshape(tree["shape"])
