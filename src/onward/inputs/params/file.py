"""The params file: YAML in, RunDraft out.

An error tells everything that is wrong at once, a line each, with its place: `params.yaml:7: train.resources.tiem:
unknown key (did you mean time?)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from onward.errors import InvalidInput
from onward.inputs.params.sections import ParamsIn
from onward.inputs.problems import problems_of
from onward.inputs.values import OF_PIPELINES
from onward.inputs.yaml_lines import KeyPath, load_yaml, read_text
from onward.model.spec import RunDraft

_REFERENCE = "`onward help params` describes every key"
Read = TypeVar("Read", bound=ParamsIn)
_AS_TEXT = (("train", "command"), ("train", "environment", "variables"))


def read_params(path: Path) -> RunDraft:
    """The params file at `path`, or InvalidInput with everything that is wrong with it."""
    return parse_params(read_text(path), str(path))


def parse_params(text: str, source: str) -> RunDraft:
    return read_as(ParamsIn, text, source, hint=_REFERENCE).to_draft()


def read_as(model: type[Read], text: str, source: str, *, hint: str) -> Read:
    """A file of this shape: of params, or of a recipe, which has params in it."""
    document = load_yaml(text, source, as_text=_AS_TEXT)
    problems = list(document.problems)

    def position(keys: KeyPath) -> str:
        return ".".join(document.find(keys)[1])

    try:
        read = model.model_validate(document.data)
    except ValidationError as error:
        problems += [(document.find(keys)[0], sentence) for keys, sentence in problems_of(error, model, position)]
    if problems:
        lines = [f"{source}:{line}: {sentence}" for line, sentence in sorted(problems, key=lambda problem: problem[0])]
        pipeline = any(sentence.endswith(OF_PIPELINES) for _, sentence in problems)
        raise InvalidInput("\n".join(lines), hint=f"as a pipeline: onward pipeline run {source}" if pipeline else hint)
    return read


def params_from_data(data: Mapping[str, Any]) -> RunDraft:
    """What a params file holds, handed over as data: the same rules, and problems with the keys for their place."""
    try:
        return ParamsIn.model_validate(data).to_draft()
    except ValidationError as error:
        said = [sentence for _, sentence in problems_of(error, ParamsIn, lambda keys: ".".join(keys).replace("_", "-"))]
        raise InvalidInput("\n".join(said), hint=_REFERENCE) from error
