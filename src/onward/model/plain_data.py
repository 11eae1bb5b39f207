"""Frozen dataclasses as plain data, for JSON, and back again. Pure."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def is_nested_deeper(value: Any, levels: int) -> bool:
    """Whether plain data has more lists and mappings inside each other. Looked at level by level: Python's own stack is not deep."""
    level = [value]
    for _ in range(levels + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return False
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    return True


def value_to_json(value: Any) -> Any:
    """A frozen dataclass of ours, and what it is made of."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple | list):
        return [value_to_json(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {name: value_to_json(getattr(value, name)) for name in _names(typing.cast(Any, type(value)))}
    if isinstance(value, Mapping):
        return {str(key): value_to_json(item) for key, item in value.items()}
    return str(value) if isinstance(value, Path) else value


def value_from_json(cls: type[T], data: Mapping[str, Any]) -> T:
    """The dataclass again. Unknown keys are passed over, missing ones have their defaults."""
    made: T = _reader(typing.cast(Any, cls))(data)  # mypy takes no class for hashable
    return made


@cache  # of our own classes, which are few
def _names(cls: type[Any]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


@cache
def _reader(hint: Any) -> Callable[[Any], Any]:
    """What makes a value of this type from plain data. Worked out once a type: a large cluster has 100,000 values to read."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        kinds = [kind for kind in typing.get_args(hint) if kind is not types.NoneType]
        return _reader(kinds[0]) if len(kinds) == 1 else _as_it_is
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return _reader_of_tuple(_reader(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _reader_of_mapping(_reader(arguments[1]))
    if isinstance(hint, type) and is_dataclass(hint):
        return _reader_of_dataclass(hint)
    if isinstance(hint, type) and (issubclass(hint, Enum) or hint is Path):
        return lambda data: None if data is None else hint(data)
    return _as_it_is


def _as_it_is(data: Any) -> Any:
    return data


def _reader_of_tuple(item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    if item is _as_it_is:
        return lambda data: None if data is None else tuple(data)
    return lambda data: None if data is None else tuple(map(item, data))


def _reader_of_mapping(item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda data: None if data is None else {key: item(value) for key, value in data.items()}


def _reader_of_dataclass(cls: type[Any]) -> Callable[[Any], Any]:
    parts = {name: _reader(hint) for name, hint in typing.get_type_hints(cls).items()}
    return lambda data: None if data is None else cls(**{name: read(data[name]) for name, read in parts.items() if name in data})
