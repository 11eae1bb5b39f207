"""Everything that a resumed training needs to go on as if it had not stopped, as one state; and back."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import torch

_RNG = "rng"


@runtime_checkable
class Stateful(Protocol):
    def state_dict(self) -> Mapping[str, Any]: ...
    def load_state_dict(self, state: Any, /) -> object: ...


def capture(*, rng: bool = True, **parts: object) -> dict[str, Any]:
    """The states of `model=`, `optimizer=`, `scheduler=`, `scaler=`, `ema=`, `sampler=`: whatever has a state_dict(), by any name.

    Numbers, strings, tensors, lists and dicts are stored as they are. None is stored as None. `rng`: also the states of all random
    number generators of this process.
    """
    state = {name: _state_of(name, part) for name, part in parts.items()}
    if rng:
        if _RNG in parts:
            raise ValueError(f"capture({_RNG}=…): True or False; the name is taken by the random number generators")
        state[_RNG] = _rng_state()
    return state


def restore(state: Mapping[str, Any], **parts: Any) -> None:
    """Give each part its state again, then the random number generators theirs. Values that have no load_state_dict() stay in `state`."""
    for name, part in parts.items():
        if name not in state:
            raise KeyError(f"the checkpoint has no {name}; it has {', '.join(state)}")
        if part is None and state[name] is None:
            continue
        part = _unwrapped(part)
        if not isinstance(part, Stateful):
            raise TypeError(f"restore({name}=…): a {type(part).__name__} has no load_state_dict(); use state[{name!r}]")
        part.load_state_dict(state[name])
    if _RNG in state:
        _restore_rng(state[_RNG])


def _state_of(name: str, part: object) -> Any:
    part = _unwrapped(part)
    return part.state_dict() if isinstance(part, Stateful) else part


def _unwrapped(part: Any) -> Any:
    """The user's own module, without what DistributedDataParallel and torch.compile put around it: so it loads with and without them."""
    while True:
        if isinstance(part, (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)):
            part = part.module
        elif isinstance(part, torch.nn.Module) and hasattr(part, "_orig_mod"):
            part = part._orig_mod
        else:
            return part


def _rng_state() -> dict[str, Any]:
    numpy = sys.modules.get("numpy")
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {
        "python": random.getstate(),
        "numpy": numpy.random.get_state() if numpy else None,
        "torch": torch.get_rng_state(),
        "cuda": devices,
    }


def _restore_rng(state: Mapping[str, Any]) -> None:
    """With fewer GPUs than before, those that are there get theirs."""
    random.setstate(state["python"])
    if state["numpy"] is not None:
        import numpy

        numpy.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"].cpu())
    for device, generator in enumerate(state["cuda"][: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(generator.cpu(), device)
