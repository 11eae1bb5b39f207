"""Shapes as JSON Schema: of a request of the second protocol, with what this site's recipes take, and of a recipe file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from onward.inputs.params.sections import schema_of
from onward.inputs.recipes.definition import Recipe, RecipeInput
from onward.inputs.recipes.numbered_names import NUMBER
from onward.inputs.recipes.request_body import RequestIn
from onward.inputs.recipes.sections import RecipeIn
from onward.inputs.recipes.settings import RecipeSetting

_MOST_LISTED = 20  # numbers that are written out


def request_schema(recipes: Iterable[Recipe] = ()) -> dict[str, Any]:
    """Without recipes: what every request has. With them: one for these alone."""
    schema: dict[str, Any] = _as_texts(schema_of(RequestIn, "Onward request"))
    properties = schema["properties"]
    address = {key: value for key, value in schema["$defs"]["RequestInputIn"]["properties"]["url"].items() if key != "description"}
    each = {"type": "object", "additionalProperties": {"anyOf": [{"$ref": "#/$defs/RequestInputIn"}, address]}}
    properties["inputs"] = {**properties["inputs"], "anyOf": [each, {"type": "null"}]}
    properties["priority"] = {"description": properties["priority"]["description"], "type": "integer", "minimum": 0, "maximum": 9}
    known = list(recipes)
    if not known:
        return schema
    described = {"description": "The recipe: " + "; ".join(_said(one) for one in known)}
    properties["recipe"] = {**described, "enum": [one.name for one in known]}
    schema["allOf"] = [_of(one) for one in known]
    return schema


def _as_texts(shape: Any) -> Any:
    """A word is a text in a message; in a file of YAML it may look like a number."""
    if isinstance(shape, list):
        return [_as_texts(one) for one in shape]
    if not isinstance(shape, dict):
        return shape
    word = shape.get("type") == ["string", "integer"] and "pattern" in shape
    return {key: "string" if word and key == "type" else _as_texts(value) for key, value in shape.items()}


def recipe_schema() -> dict[str, Any]:
    """A recipe file's shape, for editors: the section that a params file has not, and the rest as params.schema.json beside it says."""
    own = schema_of(RecipeIn, "Onward recipe")
    parts = {key: own.pop(key) for key in ("$schema", "title", "$defs")}
    shared = {key: {"$ref": f"params.schema.json#/properties/{key}"} for key in ("name", "experiment", "cluster", "train")}
    return {
        **parts,
        "$defs": {**parts["$defs"], "RecipeIn": own},
        "type": "object",
        "properties": {**shared, "recipe": {"$ref": "#/$defs/RecipeIn"}},
        "additionalProperties": False,
        "required": ["name", "recipe", "train"],
    }


def _said(recipe: Recipe) -> str:
    return f"{recipe.name} ({recipe.title})" if recipe.title else recipe.name


def _of(recipe: Recipe) -> dict[str, Any]:
    """What holds where this recipe is named."""
    then: dict[str, Any] = {
        "properties": {"inputs": _inputs(recipe), "settings": _choices(recipe.settings), "resources": _choices(recipe.resources)}
    }
    needed = [name for name, shape in then["properties"].items() if shape.get("required") or shape.get("allOf")]
    return {"if": {"properties": {"recipe": {"const": recipe.name}}}, "then": {**then, **({"required": needed} if needed else {})}}


def _inputs(recipe: Recipe) -> dict[str, Any]:
    single = [rule for rule in recipe.inputs if not rule.name.numbered]
    families = [rule for rule in recipe.inputs if rule.name.numbered]
    needs = [[rule] for rule in families if rule.required]
    needs += [[rule for rule in recipe.inputs if rule.name.text in names] for names in recipe.one_of]
    return {
        "type": "object",
        "properties": {rule.name.text: {} for rule in single},
        "patternProperties": {_pattern(rule): {} for rule in families},
        "additionalProperties": False,
        "required": [rule.name.text for rule in single if rule.required],
        "allOf": [{"anyOf": [_has(rule) for rule in rules]} for rules in needs],
    }


def _has(rule: RecipeInput) -> dict[str, Any]:
    """That there is such an input; of a family, one at least: not every name is another."""
    if not rule.name.numbered:
        return {"required": [rule.name.text]}
    return {"not": {"propertyNames": {"not": {"pattern": _pattern(rule)}}}}


def _choices(settings: Iterable[RecipeSetting]) -> dict[str, Any]:
    named = {setting.name: setting for setting in settings}
    shape: Mapping[str, Any] = {name: _or_none(setting.schema(), setting) for name, setting in named.items()}
    required = [name for name, setting in named.items() if setting.required]
    return {"type": "object", "properties": shape, "additionalProperties": False, "required": required}


def _or_none(shape: dict[str, Any], setting: RecipeSetting) -> dict[str, Any]:
    """A setting without a value is as good as absent."""
    if setting.required:
        return shape
    field: dict[str, Any] = {key: value for key, value in shape.items() if key in ("description", "default")}
    return {**field, "anyOf": [{key: value for key, value in shape.items() if key not in field}, {"type": "null"}]}


def _pattern(rule: RecipeInput) -> str:
    first, last = rule.name.first, rule.name.last
    listed = "|".join(str(number) for number in range(first, last + 1))
    numbers = f"(?:{listed})" if last - first < _MOST_LISTED else "(?:0|[1-9][0-9]{0,2})"
    before, _, after = rule.name.text.partition(NUMBER)
    return f"^{_escaped(before)}{numbers}{_escaped(after)}$"


def _escaped(text: str) -> str:
    """As both Python and JavaScript read it, which take other escapes than these for mistakes."""
    return re.sub(r"([\\^$.*+?()\[\]{}|/])", r"\\\1", text)
