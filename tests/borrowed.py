"""Tests of one file run again in another, with fixtures of its own: the same sentences, on another database."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any


def borrowed(*modules: ModuleType) -> dict[str, Callable[..., Any]]:
    """By name, for `globals().update(…)`. Two of one name would be one test less: refused."""
    found: dict[str, Callable[..., Any]] = {}
    for module in modules:
        mine = {name: thing for name, thing in vars(module).items() if name.startswith("test_") and callable(thing)}
        assert not found.keys() & mine.keys(), f"{module.__name__}: {sorted(found.keys() & mine.keys())} again"
        found |= mine
    assert found
    return found
