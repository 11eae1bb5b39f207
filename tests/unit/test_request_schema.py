"""The JSON Schema of requests says yes and no where Onward does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from onward.errors import InvalidInput
from onward.inputs.recipes.catalog import read_recipe
from onward.inputs.recipes.definition import Recipe
from onward.inputs.recipes.request_body import read_request
from onward.inputs.recipes.request_schema import recipe_schema, request_schema
from onward.inputs.yaml_lines import load_yaml
from onward.model.requests.request import RequestInput
from tests.unit.test_recipe import HOSTS, PAGES, install

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
IMAGE = {"Image": "https://rodan.example.org/uploads/page.png"}
LAYER = {"rgba PNG - Layer 0": {"url": "https://store:8080/0.png", "sha256": "0" * 64, "size": 9}}
GOOD: dict[str, Any] = {"id": "r-1", "recipe": "pages", "inputs": {**IMAGE, **LAYER}, "settings": {}, "priority": 3}


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    return read_recipe(install(tmp_path))


def taken(recipe: Recipe, message: dict[str, Any]) -> bool:
    """Whether Onward takes it."""
    try:
        read = read_request(message)
        inputs = [RequestInput(name=name, url=one.url, sha256=one.sha256, size=one.size) for name, one in read.inputs.items()]
        recipe.fill(settings=read.settings, inputs=inputs, resources=read.resources, hosts=HOSTS)
    except InvalidInput:
        return False
    return read.recipe == recipe.name


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({}, True),
        ({"settings": {"CPUs": 2, "Maximum time (D-HH:MM)": "0-01:00", "Backend": "torch", "Rate": None}}, True),
        ({"resources": {"gpus": 1, "partition": "gpu"}}, True),
        ({"inputs": {**IMAGE, "Music Layer": "https://rodan.example.org/m.png"}}, True),
        ({"recipe": "other"}, False),
        ({"id": "a b"}, False),
        ({"priority": 12}, False),
        ({"unknown": 1}, False),
        ({"inputs": IMAGE}, False),
        ({"inputs": LAYER}, False),
        ({"inputs": {**IMAGE, **LAYER, "rgba PNG - Layer 12": "https://rodan.example.org/x"}}, False),
        ({"inputs": {**IMAGE, **LAYER, "Other": "https://rodan.example.org/x"}}, False),
        ({"inputs": {**IMAGE, "rgba PNG - Layer 0": {"url": "https://store:8080/0.png", "sha256": "x"}}}, False),
        ({"settings": {"CPUs": 0}}, False),
        ({"settings": {"CPUs": "two"}}, False),
        ({"settings": {"Backend": "theano"}}, False),
        ({"settings": {"CPU": 2}}, False),
        ({"settings": {"Note": "x" * 41}}, False),
        ({"resources": {"gpus": 9}}, False),
        ({"resources": {"nodes": 2}}, False),
    ],
)
def test_the_schema_and_onward_say_the_same(recipe: Recipe, change: dict[str, Any], good: bool) -> None:
    message = {**GOOD, **change}
    assert taken(recipe, message) is good
    assert jsonschema_rs.validator_for(request_schema([recipe])).is_valid(message) is good


def test_what_is_required_is_asked_for_even_where_a_message_has_no_inputs_at_all(recipe: Recipe) -> None:
    bare = {"id": "r-1", "recipe": "pages"}
    assert not jsonschema_rs.validator_for(request_schema([recipe])).is_valid(bare)
    assert jsonschema_rs.validator_for(request_schema()).is_valid(bare)


@pytest.mark.parametrize("change", [{"id": 7}, {"recipe": 7}, {"sender": 7}, {"inputs": {"Image": 7}}, {"inputs": {"Image": {"url": 7}}}])
def test_a_number_is_no_word_in_a_message(change: dict[str, Any]) -> None:
    assert not jsonschema_rs.validator_for(request_schema()).is_valid({"id": "r-1", "recipe": "pages", **change})


def test_the_schemas_of_the_reference_are_up_to_date() -> None:
    again = "write json.dumps(…, indent=2) and a newline into docs/reference/"
    assert json.loads((REFERENCE / "request.schema.json").read_text()) == request_schema(), again
    assert json.loads((REFERENCE / "recipe.schema.json").read_text()) == recipe_schema(), again


def test_an_editor_accepts_a_recipe_and_refuses_an_unknown_key() -> None:
    def beside(uri: str) -> Any:
        return json.loads((REFERENCE / uri.rpartition("/")[2]).read_text())

    schema = jsonschema_rs.validator_for({**recipe_schema(), "$id": "https://example.org/recipe.schema.json"}, retriever=beside)
    data = load_yaml(PAGES, "recipe.yaml").data
    assert schema.is_valid(data), [error.message for error in schema.iter_errors(data)]
    assert not schema.is_valid({**data, "recipe": {**data["recipe"], "inptus": {}}})
    assert not schema.is_valid({**data, "train": {**data["train"], "comand": "x"}})
