"""A state becomes a safetensors file without pickle, and comes back as it was; what cannot be stored is refused with its place."""

from __future__ import annotations

import json
import math
import random
import struct
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from onward.errors import CheckpointDamaged
from onward.sdk.background_save.state_memory import StateMemory
from onward.torch import StateNotStorable, capture, restore
from onward.torch.host_copy import copy_state
from onward.torch.reading import read_state
from onward.torch.safetensors_file import lay_out
from onward.torch.state_tree import StateTree


def stored(state: object, path: Path) -> Path:
    tree = StateTree(state)
    file = lay_out(tree.json, tree.tensors)
    memory = StateMemory(file.size)
    copy_state(file, tree.tensors, memory)
    path.write_bytes(memory.view[: file.size])
    memory.close()
    return path


def through_a_file(state: object, folder: Path) -> Any:
    return read_state(stored(state, folder / "state.safetensors"))


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)
    if isinstance(one, (numpy.ndarray, numpy.generic)):
        return type(one) is type(other) and one.dtype == other.dtype and bool(numpy.array_equal(one, other))
    if isinstance(one, dict):
        return type(one) is type(other) and list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    return type(one) is type(other) and bool(one == other)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(2**70),
        0.1,
        math.inf,
        math.nan,
        "ä\n",
        b"\0\xff",
        [],
        (),
        {},
        {1: "int key", (2, "x"): "tuple key", None: 0},
        {"$tensor": "a key that looks like ours"},
        OrderedDict([("b", 1), ("a", 2)]),
        torch.bfloat16,
        torch.device("cpu"),
        numpy.arange(6, dtype="uint32").reshape(2, 3),
        numpy.float64(0.1),
        numpy.array(3, dtype="int16"),
        numpy.zeros((0, 2)),
        (1, [2.0, {"x": (None,)}]),
    ],
    ids=repr,
)
def test_a_value_comes_back_as_it_was(value: object, tmp_path: Path) -> None:
    assert same(through_a_file({"value": value}, tmp_path)["value"], value)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).contiguous().view(torch.uint8)


FLOATS = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64", "complex128"]
OTHERS = ["int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"]


@pytest.mark.parametrize("dtype", FLOATS + OTHERS)
def test_a_tensor_of_any_type_and_layout_comes_back_to_the_bit(dtype: str, tmp_path: Path) -> None:
    values = torch.randint(0, 2, (3, 5)).to(getattr(torch, dtype))
    state = {"plain": values, "transposed": values.t(), "slice": values[:, 1:3], "scalar": values[0, 0], "empty": values[:0]}
    back = through_a_file(state, tmp_path)
    for name, tensor in state.items():
        assert back[name].dtype == tensor.dtype and back[name].shape == tensor.shape
        assert torch.equal(bits(back[name]), bits(tensor)), name


def test_two_names_of_one_tensor_are_stored_once(tmp_path: Path) -> None:
    weights = torch.randn(1000)
    state = {"encoder": weights, "decoder": weights, "part": weights[:10]}
    assert stored(state, tmp_path / "state.safetensors").stat().st_size < 4096 + 4 * 1010 + 8
    assert same(through_a_file(state, tmp_path), state)


def test_keys_that_join_to_one_name_do_not_collide(tmp_path: Path) -> None:
    state = {"a.b": torch.zeros(1), "a": {"b": torch.ones(1)}, "c": {1: torch.zeros(2), "1": torch.ones(2)}}
    assert same(through_a_file(state, tmp_path), state)


class Custom:
    pass


@pytest.mark.parametrize(
    ("state", "where", "what"),
    [
        ({"model": {"head": Custom()}}, "state['model']['head']", "Custom"),
        ({"list": [1, {2, 3}]}, "state['list']['1']", "set"),
        ({"f": lambda: 0}, "state['f']", "function"),
        ({"text": numpy.array(["a"])}, "state['text']", "ndarray"),
        ({"sparse": torch.eye(3).to_sparse()}, "state['sparse']", "sparse"),
        ({"meta": torch.empty(2, device="meta")}, "state['meta']", "meta"),
        ({Custom(): 1}, "state['a key']", "Custom"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_stored_is_refused_with_its_place(state: object, where: str, what: str) -> None:
    with pytest.raises(StateNotStorable) as refused:
        StateTree(state)
    assert where in str(refused.value) and what in str(refused.value)


def test_the_file_is_safetensors_for_everyone(tmp_path: Path) -> None:
    state = {"weights": torch.arange(6.0).reshape(2, 3), "step": 7, "flags": torch.tensor([True, False, True])}
    data = stored(state, tmp_path / "state.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    ends = sorted(tuple(entry["data_offsets"]) for name, entry in header.items() if name != "__metadata__")
    assert all(isinstance(value, str) for value in header["__metadata__"].values())
    assert [start for start, _ in ends] == [0, *(end for _, end in ends[:-1])] and ends[-1][1] == len(data) - 8 - length
    start, end = header["weights"]["data_offsets"]
    assert header["weights"]["dtype"] == "F32" and header["weights"]["shape"] == [2, 3]
    assert struct.unpack("<6f", data[8 + length + start : 8 + length + end]) == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[:-1], "bytes, expected"),
        (lambda data: data + b"x", "bytes, expected"),
        (lambda data: data[:5], "fewer than a header"),
        (lambda data: b"\xff" * 8 + data[8:], "is said to have"),
        (lambda data: data[:9] + b"\0" + data[10:], "cannot be read"),
        (lambda data: data.replace(b'"F32"', b'"F33"'), "cannot be read"),
    ],
    ids=["cut", "longer", "empty", "length", "header", "type"],
)
def test_a_damaged_file_is_refused(damage: Any, words: str, tmp_path: Path) -> None:
    path = stored({"weights": torch.zeros(10)}, tmp_path / "state.safetensors")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointDamaged, match=words):
        read_state(path)


def test_a_changed_byte_is_found_by_the_hash_beside_the_file(tmp_path: Path) -> None:
    path = stored({"weights": torch.zeros(10)}, tmp_path / "state.safetensors")
    path.with_suffix(".sha256-tree").write_text("0" * 64)
    with pytest.raises(CheckpointDamaged, match="does not match its hash"):
        read_state(path)


def model_and_optimizer() -> tuple[torch.nn.Module, torch.optim.Optimizer, Any]:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 3)


def train(model: Any, optimizer: Any, scheduler: Any, steps: int) -> list[float]:
    losses = []
    for _ in range(steps):
        batch = torch.randn(16, 4) * random.random() + float(numpy.random.rand())
        optimizer.zero_grad()
        loss = (model(batch) - batch.sum(dim=1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


def test_a_training_goes_on_to_the_bit_from_what_capture_took(tmp_path: Path) -> None:
    numpy.random.seed(1)
    model, optimizer, scheduler = model_and_optimizer()
    train(model, optimizer, scheduler, 5)
    path = stored(capture(model=model, optimizer=optimizer, scheduler=scheduler, step=5), tmp_path / "state.safetensors")
    unbroken = train(model, optimizer, scheduler, 5)
    state = read_state(path)
    again, its_optimizer, its_scheduler = model_and_optimizer()
    restore(state, model=again, optimizer=its_optimizer, scheduler=its_scheduler)
    assert state["step"] == 5
    assert train(again, its_optimizer, its_scheduler, 5) == unbroken
    assert all(map(torch.equal, again.state_dict().values(), model.state_dict().values()))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch.compile's own
def test_a_wrapped_model_loads_without_its_wrapper(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    state = capture(model=torch.nn.DataParallel(model), compiled=torch.compile(model))
    assert list(state["model"]) == list(state["compiled"]) == ["weight", "bias"]


def test_restore_says_what_the_checkpoint_lacks() -> None:
    state = capture(model=torch.nn.Linear(1, 1), step=3)
    with pytest.raises(KeyError, match="no optimizer; it has model, step, rng"):
        restore(state, optimizer=torch.nn.Linear(1, 1))
    with pytest.raises(TypeError, match=r"use state\['step'\]"):
        restore(state, step=3)
