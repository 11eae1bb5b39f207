"""Telling what is wrong with a params file, a flag line or the settings: every problem, each with its place and what was expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import ValidationError

from onward.inputs.params.sections import Section
from onward.inputs.values import LATER, OF_PIPELINES, did_you_mean
from onward.inputs.yaml_lines import MOST_PROBLEMS, KeyPath


def problems_of(error: ValidationError, model: type[Section], position_of: Callable[[KeyPath], str]) -> list[tuple[KeyPath, str]]:
    """Each thing pydantic found, as the keys to it and a sentence that begins with its place; of very many, the first ones."""
    found: list[tuple[KeyPath, str]] = []
    errors = error.errors(include_url=False)
    for one in errors[:MOST_PROBLEMS]:
        keys = tuple(str(part) for part in one["loc"] if part != "[key]")
        context = one.get("ctx", {})
        match one["type"]:
            case "said":
                text = context["sentence"]
            case "wrong":
                text = f"found {_shown(one['input'])}, expected {context['expected']}"
            case "missing":
                text = f"missing, expected: {_field(model, keys)}"
            case "extra_forbidden":
                text = _unknown_key(keys[-1], _section(model, keys[:-1]))
            case "model_type" | "dict_type":
                text = f"found {_shown(one['input'])}, expected keys and values"
            case "list_type":
                text = f"found {_shown(one['input'])}, expected a list"
            case _:
                text = f"found {_shown(one['input'])}: {one['msg']}"
        found.append((keys, f"{position_of(keys)}: {text}"))
    if len(errors) > MOST_PROBLEMS:
        found.append((found[-1][0], f"and {len(errors) - MOST_PROBLEMS} more problems"))
    return found


def _unknown_key(key: str, section: type[Section] | None) -> str:
    if section is None:
        return "unknown key"
    if key in section.later:
        return LATER
    if key in section.of_pipelines:
        return OF_PIPELINES
    if key.replace("-", "_") in section.model_fields:
        return "found in two spellings, expected one"
    known = [name.replace("_", "-") for name in section.model_fields]
    return f"unknown key{did_you_mean(key.replace('_', '-'), known)}; expected one of {', '.join(known)}"


def _shown(value: Any) -> str:
    match value:
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case bool() | None:
            return {True: "true", False: "false", None: "nothing"}[value]
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _section(model: Any, keys: KeyPath) -> type[Section] | None:
    """The section at these keys; also below a mapping or a list of sections, as the settings file and a pipeline have."""
    if get_origin(model) is Annotated:
        return _section(get_args(model)[0], keys)
    if not keys or not (isinstance(model, type) and issubclass(model, Section)):
        return model if isinstance(model, type) and issubclass(model, Section) else None
    kind = model.model_fields[keys[0]].annotation
    if get_origin(kind) in (dict, list):
        return _section(get_args(kind)[-1], keys[2:])
    inner = [arg for arg in get_args(kind) if arg is not type(None)]
    return _section(inner[0] if inner else kind, keys[1:])


def _field(model: type[Section], keys: KeyPath) -> str:
    section = _section(model, keys[:-1])
    return (section.model_fields[keys[-1]].description if section else None) or "a value"
