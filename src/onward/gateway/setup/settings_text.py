"""Adding keys to the text of a settings file. Pure. What the file says stays as it is, comments included."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from onward.errors import Conflict, InvalidInput

Tables = Mapping[str, Mapping[str, str | bool]]  # by the table's name: `gateway`, `gateway.v1`


def with_keys(text: str, wanted: Tables, source: str) -> str:
    """`text` with the keys of `wanted` that it lacks. Conflict where it has one with another value."""
    before = _read(text, source)
    after = text
    for name, keys in wanted.items():
        there = _table(before, name)
        for key, value in keys.items():
            if there.get(key, value) != value:
                raise Conflict(
                    f"{source} has {name}.{key} = {_toml(there[key])}, not {_toml(value)}",
                    hint="what is there is never overwritten: change it yourself, or leave the option out",
                )
        missing = {key: value for key, value in keys.items() if key not in there}
        if missing:
            after = _inserted(after, name, missing)
    if not _same(after, before, wanted):
        lines = "\n  ".join(line for name, keys in wanted.items() if keys for line in [f"[{name}]", *_lines(keys)])
        raise InvalidInput(f"{source}: no keys can be added to its [gateway], as it is written", hint=f"write there yourself:\n  {lines}")
    return after


def _inserted(text: str, name: str, keys: Mapping[str, str | bool]) -> str:
    """Below the header of the table, or as a table at the end."""
    header = re.search(rf"^[ \t]*\[[ \t]*{re.escape(name)}[ \t]*\][ \t]*(?:#.*)?$", text, re.MULTILINE)
    lines = "".join(f"{line}\n" for line in _lines(keys))
    if header is None:
        end = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{end}{chr(10) if text.strip() else ''}[{name}]\n{lines}"
    rest = text[header.end() :].removeprefix("\n")
    return f"{text[: header.end()]}\n{lines}{rest}"


def _lines(keys: Mapping[str, str | bool]) -> list[str]:
    return [f"{key} = {_toml(value)}" for key, value in keys.items()]


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _same(text: str, before: Mapping[str, Any], wanted: Tables) -> bool:
    """Whether the text says what it said before and what is wanted, and nothing else."""
    try:
        found: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    expected = json.loads(json.dumps(before, default=str))
    for name, keys in wanted.items():
        if keys:
            table = expected
            for part in name.split("."):
                table = table.setdefault(part, {})
            table.update(keys)
    return bool(json.loads(json.dumps(found, default=str)) == expected)


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Keys with dashes, as the reference has them; the file may have them with underscores."""
    found: Any = data
    for part in name.split("."):
        found = found.get(part, {}) if isinstance(found, dict) else {}
    return {key.replace("_", "-"): value for key, value in found.items()} if isinstance(found, dict) else {}


def _read(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{source}: not TOML: {error}", hint="`onward help settings` describes every key") from error
