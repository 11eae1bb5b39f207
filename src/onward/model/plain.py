"""Frozen dataclasses as plain data, for JSON, and back again. Pure."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def value_to_json(value: Any) -> Any:
    """A frozen dataclass of ours, and what it is made of."""
    if value is None or isinstance(value, str | int | float):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: value_to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): value_to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [value_to_json(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def value_from_json(cls: type[T], data: Mapping[str, Any]) -> T:
    """The dataclass again. Unknown keys are passed over, missing ones have their defaults."""
    hints = _hints(typing.cast(Any, cls))  # mypy takes no class for hashable
    return cls(**{name: _rebuilt(hint, data[name]) for name, hint in hints.items() if name in data})


@cache  # of our own classes, which are few
def _hints(cls: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _rebuilt(hint: Any, data: Any) -> Any:
    if data is None:
        return None
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        kinds = [kind for kind in typing.get_args(hint) if kind is not types.NoneType]
        return _rebuilt(kinds[0], data) if len(kinds) == 1 else data
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return tuple(_rebuilt(arguments[0], item) for item in data)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: _rebuilt(arguments[1], item) for key, item in data.items()}
    if isinstance(hint, type) and is_dataclass(hint):
        return value_from_json(hint, data)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(data)
    return Path(data) if hint is Path else data
