"""A run again with other values: what a clone changes, by the same rules and in the same words as a params file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from onward.errors import InvalidInput
from onward.inputs.params.sections import ParamsIn
from onward.inputs.problems import problems_of
from onward.inputs.scripts.contradictions import replaced
from onward.inputs.yaml_lines import KeyPath
from onward.model.spec import RunDraft

_TOP = ("name", "experiment")
_SECTIONS = ("params", "resources", "limits")


def changed_draft(draft: RunDraft, changes: Mapping[str, Any]) -> RunDraft:
    """The draft with what `changes` says instead: `name`, `experiment`, and of `params`, `resources` and `limits` the keys that it has."""
    top = {key: changes[key] for key in _TOP if changes.get(key) is not None}
    sections = {key: changes.get(key) or {} for key in _SECTIONS}
    try:
        read = ParamsIn.model_validate({"name": draft.name, **top, "train": {"command": ["true"], **sections}})
    except ValidationError as error:
        raise InvalidInput("\n".join(sentence for _, sentence in problems_of(error, ParamsIn, _dotted))) from error
    if "extra" in read.train.resources.model_fields_set:
        raise InvalidInput("resources.extra: a clone keeps the scheduler's own options", hint="submit again to change them")
    resources = read.train.resources.model_fields_set
    limits = read.train.limits.model_fields_set
    return replace(
        draft,
        **{key: getattr(read, key) for key in top},
        params={**draft.params, **read.train.params},
        resources=replace(replaced(draft.resources, resources), **{key: getattr(read.train.resources, key) for key in resources}),
        limits=replace(draft.limits, **{key: getattr(read.train.limits, key) for key in limits}),
    )


def _dotted(keys: KeyPath) -> str:
    return ".".join(keys[1:] if keys[0] == "train" else keys).replace("_", "-")
