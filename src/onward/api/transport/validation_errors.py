"""What is wrong with a request, a place and a sentence each: in the words of who sent it, not of the library that reads it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_LONGEST = 60  # characters of a key that are told
_KEY = "[key]"  # as the library marks the key of an object, where it is the key that is wrong

_WANTED = {
    **dict.fromkeys(("string_type", "string_sub_type"), "a string"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "list_type": "a list",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "mapping_type"), "an object"),
    "none_required": "null",
}
_SAID = {
    "missing": "it is missing",
    "extra_forbidden": "unknown field",
    "json_invalid": "this is not JSON",
    "too_short": "it is too short: at least {min_length}",
    "string_too_short": "it is too short: at least {min_length}",
    "too_long": "it is too long: at most {max_length}",
    "string_too_long": "it is too long: at most {max_length}",
    "finite_number": "it is not finite",
}


def validation_problems(errors: Sequence[Mapping[str, Any]], body: Any) -> list[dict[str, str]]:
    """`at` and `problem` of each place that is wrong. `body`: what was sent, to tell its keys from the library's own marks."""
    wanted: dict[str, list[str]] = {}
    said: dict[str, list[str]] = {}
    for error in errors:
        at = _place(list(error["loc"]), body, str(error["type"]))
        kind = _WANTED.get(error["type"])
        into, words = (wanted, kind) if kind else (said, _sentence(error))
        known = into.setdefault(at, [])
        if words not in known:
            known.append(words)
    found = []
    for at in dict.fromkeys((*wanted, *said)):  # what fits one of several kinds but for its length or the like, is told by that
        problem = "; ".join(said[at]) if at in said else f"{' or '.join(wanted[at])} is expected"
        found.append({"at": at, "problem": problem})
    return found


def _sentence(error: Mapping[str, Any]) -> str:
    wording = _SAID.get(error["type"])
    return wording.format_map(error.get("ctx") or {}) if wording else str(error["msg"]).removeprefix("Value error, ")


def _place(loc: list[Any], body: Any, kind: str) -> str:
    where, *parts = loc or ["body"]
    if where != "body":
        return ".".join(str(part) for part in loc)
    found = [str(where)]
    value = body
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == _KEY:
            found.append("(a key)")
        elif isinstance(value, dict) and (part in value or (last and kind == "missing")):
            found.append(str(part)[:_LONGEST])
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            found.append(str(part))
            value = value[part]
    return ".".join(found)
