"""Params files for a form: their schema, and data as the text of one. `drafts` reads and checks the text."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from onward.api.schemas.base import In
from onward.errors import InvalidInput

router = APIRouter(prefix="/api/v1", tags=["runs"])

_DEEPEST = 40


class ParamsData(In):
    data: dict[str, Any] = Field(description="The contents of a params file; not checked here.")


class ParamsText(BaseModel):
    file: str


@router.get("/params-schema", summary="Show the schema of a params file")
def schema() -> dict[str, Any]:
    """JSON Schema, as `onward schema` prints it."""
    from onward.inputs.params.sections import json_schema

    return dict(json_schema())


@router.post("/drafts/text", summary="Write a params file")
def written(asked: ParamsData) -> ParamsText:
    """YAML that parses to the same data, in the given order. Changes nothing."""
    from onward.inputs.yaml_lines import to_yaml

    if _depth(asked.data) > _DEEPEST:
        raise InvalidInput("data: nested too deeply to be a params file")
    return ParamsText(file=to_yaml(asked.data))


def _depth(value: Any) -> int:
    deepest, left = 0, [(value, 1)]
    while left:
        one, depth = left.pop()
        deepest = max(deepest, depth)
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        left += [(item, depth + 1) for item in inner]
    return deepest
