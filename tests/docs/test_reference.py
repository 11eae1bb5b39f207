"""The reference pages say what the code does: every key has its paragraph, every example is valid."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from onward.inputs.params.file import parse_params
from onward.inputs.params.flags import FLAGS
from onward.inputs.params.sections import json_schema
from onward.inputs.pipeline.file import read_pipeline
from onward.inputs.pipeline.sections import pipeline_schema
from onward.inputs.yaml_lines import load_yaml
from onward.settings import ClusterIn, GatewayIn, ServerIn, SettingsIn, TrackerIn, V1In, load_settings

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PARAMS = (REFERENCE / "params.md").read_text()
SETTINGS = (REFERENCE / "settings.md").read_text()
PIPELINE = (REFERENCE / "pipeline.md").read_text()
PIPELINES = re.findall(r"```yaml\n(.*?)```", PIPELINE + (REFERENCE.parent / "howto" / "pipelines.md").read_text(), re.DOTALL)
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PARAMS, re.DOTALL)


def paragraphs(page: str) -> set[str]:
    return set(re.findall(r"^\*\*`([^`]+)`\*\* ", page, re.MULTILINE))


def keys(schema: Mapping[str, Any], section: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key, described in section["properties"].items():
        yield above + key, described
        for shape in (described, *described.get("anyOf", ())):
            if "$ref" in shape:
                yield from keys(schema, schema["$defs"][shape["$ref"].removeprefix("#/$defs/")], f"{above}{key}.")


def keys_below(schema: Mapping[str, Any], section: Mapping[str, Any], above: str, been: set[str]) -> Iterator[str]:
    """As `keys`, through lists and mappings of sections too, but each kind of section once: what a stage has is told of the training."""
    for key, described in section["properties"].items():
        yield above + key
        for shape, step in inside(described):
            name = shape.get("$ref", "").removeprefix("#/$defs/")
            if name and name not in been:
                been.add(name)
                yield from keys_below(schema, schema["$defs"][name], f"{above}{key}.{step}", been)


def inside(shape: Mapping[str, Any], step: str = "") -> Iterator[tuple[Mapping[str, Any], str]]:
    yield shape, step
    named = [*shape.get("patternProperties", {}).values(), shape.get("additionalProperties")]
    for one, further in [*((one, "") for one in (*shape.get("anyOf", ()), shape.get("items"))), *((one, "NAME.") for one in named)]:
        if isinstance(one, dict):
            yield from inside(one, step + further)


def accepts(schema: Mapping[str, Any], shape: Mapping[str, Any], value: object) -> bool:
    """As much of JSON Schema as ours uses."""
    if "$ref" in shape and not accepts(schema, schema["$defs"][shape["$ref"].removeprefix("#/$defs/")], value):
        return False
    if "anyOf" in shape and not any(accepts(schema, one, value) for one in shape["anyOf"]):
        return False
    kinds: dict[str, type | tuple[type, ...]] = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "null": type(None),
        "array": list,
        "object": dict,
    }
    wanted = shape.get("type", [])
    if wanted and not any(isinstance(value, kinds[kind]) for kind in ([wanted] if isinstance(wanted, str) else wanted)):
        return False
    if "enum" in shape and value not in shape["enum"]:
        return False
    if isinstance(value, str) and not re.search(shape.get("pattern", ""), value):
        return False
    if isinstance(value, list):
        return len(value) <= shape.get("maxItems", len(value)) and all(accepts(schema, shape.get("items", {}), item) for item in value)
    if isinstance(value, dict):
        return all(key in value for key in shape.get("required", ())) and all(
            any(accepts(schema, one, item) for one in _shapes(shape, key)) for key, item in value.items()
        )
    return True


def _shapes(shape: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = [one for name, one in shape.get("properties", {}).items() if name == key]
    found += [one for pattern, one in shape.get("patternProperties", {}).items() if re.search(pattern, key)]
    rest = shape.get("additionalProperties", True)
    return found or ([rest] if isinstance(rest, dict) else [{}] if rest else [])


# ── the params file ───────────────────────────────────────────────────────────


def test_the_schema_for_editors_is_up_to_date() -> None:
    again = "write json.dumps(onward.inputs.params.file.json_schema(), indent=2) and a newline into docs/reference/params.schema.json"
    assert json.loads((REFERENCE / "params.schema.json").read_text()) == json_schema(), again


def test_every_key_of_the_schema_is_described() -> None:
    schema = json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert [key for key, described in keys(schema, schema) if not described.get("description")] == []


def test_every_key_of_the_params_file_has_a_paragraph_and_every_paragraph_a_key() -> None:
    schema = json_schema()
    assert paragraphs(PARAMS) == {key for key, _ in keys(schema, schema)}


def test_every_flag_is_named() -> None:
    implied = {flag for flag, path in FLAGS.items() if path[1] in ("resources", "limits")}
    assert [flag for flag in FLAGS if flag not in implied and f"`--{flag}`" not in PARAMS] == []


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 5


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_valid(example: str) -> None:
    assert parse_params(example, "params.md").command


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_editor_accepts_an_example(example: str) -> None:
    schema = json_schema()
    assert accepts(schema, schema, load_yaml(example, "params.md").data)


def test_an_editor_accepts_both_spellings_and_missing_values_and_refuses_unknown_keys() -> None:
    schema = json_schema()

    def accepted(**train: object) -> bool:
        return accepts(schema, schema, {"name": "a", "train": {"command": "x", **train}})

    assert accepted(resources={"cpus-per-task": 1, "mem": 0}, limits=None, code={"freeze": True})
    assert accepted(resources={"cpus_per_task": 1, "mail_type": "END"}, params={"a": 1.5, "b": None})
    assert not accepted(resources={"cpus": 1})
    assert not accepted(resources={"partition": "a b"})
    assert accepted(launcher="torchrun")
    assert not accepted(launcher="mpiexec")
    assert not accepts(schema, schema, {"name": "a"})


# ── the pipeline's file ───────────────────────────────────────────────────────


def test_the_schema_of_pipelines_for_editors_is_up_to_date() -> None:
    again = "write what `onward schema pipeline` prints into docs/reference/pipeline.schema.json"
    assert json.loads((REFERENCE / "pipeline.schema.json").read_text()) == pipeline_schema(), again


def test_every_key_of_a_pipeline_that_a_params_file_has_not_has_a_paragraph_and_every_paragraph_a_key() -> None:
    schema = pipeline_schema()
    shared = {key.split(".", 1)[-1] for key, _ in keys(json_schema(), json_schema())}
    training_first = {"properties": {"train": schema["properties"]["train"], **schema["properties"]}}
    all_keys = set(keys_below(schema, training_first, "", set()))
    answer = set(re.findall(r"\*\*`([^`]+)`\*\* ", PIPELINE))
    own = {key for key in all_keys if not any(key.endswith(f".{one}") for one in shared) and key not in shared}
    assert own - answer == set()
    assert answer - all_keys == set()


def test_every_key_of_a_pipelines_schema_is_described() -> None:
    schema = pipeline_schema()
    sections = [schema, *schema["$defs"].values()]
    assert [key for section in sections for key, described in section["properties"].items() if not described.get("description")] == []


@pytest.mark.parametrize("example", PIPELINES)
def test_an_example_of_a_pipeline_is_valid_also_for_an_editor(example: str, tmp_path: Path) -> None:
    for name in ("requirements.txt", "environment.yml", "prepare.py"):
        (tmp_path / name).write_text("numpy\n")
    (tmp_path / "pipeline.yaml").write_text(example)
    plan = read_pipeline(tmp_path / "pipeline.yaml", folder=tmp_path).plan
    assert plan.stages or plan.benchmarks
    schema = pipeline_schema()
    assert accepts(schema, schema, load_yaml(example, "pipeline.md").data)


# ── the settings file ─────────────────────────────────────────────────────────


def test_every_setting_has_a_paragraph_and_every_paragraph_a_setting() -> None:
    top = {key.replace("_", "-") for key in SettingsIn.model_fields}
    below = {f"clusters.NAME.{key.replace('_', '-')}" for key in ClusterIn.model_fields}
    for table, section in (("tracker", TrackerIn), ("server", ServerIn), ("gateway", GatewayIn), ("gateway.v1", V1In)):
        below |= {f"{table}.{key.replace('_', '-')}" for key in section.model_fields}
    assert paragraphs(SETTINGS) == top | below


def test_the_example_settings_are_valid(tmp_path: Path) -> None:
    [example] = re.findall(r"```toml\n(.*?)```", SETTINGS, re.DOTALL)
    (tmp_path / "settings.toml").write_text(example)
    settings = load_settings({"ONWARD_SETTINGS": str(tmp_path / "settings.toml"), "WORK": "/work"})
    assert settings.cluster("auto")[0].name == "lab"
