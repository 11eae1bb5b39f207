"""How requests and answers travel between two machines: a line of JSON each, told from other people's lines by its first byte.

A login shell may print whatever its owner wrote into its profile. So a line of ours begins with a record separator (as in
RFC 7464), and every other line is noise.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from onward import errors
from onward.errors import OnwardError

MARK = b"\x1e"
T = TypeVar("T")


def encode(data: Mapping[str, Any]) -> bytes:
    return MARK + json.dumps(data).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any] | None:
    """None for noise. A shell's last words without a newline may stand before ours."""
    start = line.find(MARK)
    if start < 0 or not line.endswith(b"\n"):
        return None
    try:
        data = json.loads(line[start + 1 :])
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


# ── errors ────────────────────────────────────────────────────────────────────


def error_to_json(error: OnwardError) -> dict[str, Any]:
    return {"classes": [cls.__name__ for cls in type(error).__mro__], "message": error.message, "hint": error.hint}


def error_from_json(data: Mapping[str, Any], *, host: str) -> OnwardError:
    """Of the nearest class that this side knows, and with the host's name: its words may speak of a PATH or a disk."""
    message = str(data.get("message", ""))
    message = message if host in message else f"{message} (on {host})"
    for name in data.get("classes", ()):
        cls = getattr(errors, str(name), None)
        if isinstance(cls, type) and issubclass(cls, OnwardError):
            return cls(message, hint=str(data.get("hint", "")))
    return OnwardError(message, hint=str(data.get("hint", "")))


# ── values ────────────────────────────────────────────────────────────────────


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
    hints = typing.get_type_hints(cls)
    return cls(**{name: _rebuilt(hint, data[name]) for name, hint in hints.items() if name in data})


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
