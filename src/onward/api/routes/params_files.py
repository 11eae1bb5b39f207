"""Params files for a form: their schema, a check of one as it is typed, the same as data and as text, and where code may be run from."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from onward.api.deps import Svc
from onward.api.shapes import In, Text, finite
from onward.errors import InvalidInput

router = APIRouter(prefix="/api/v1", tags=["runs"])

_PLACED = re.compile(r"file:(?P<line>\d+): (?:(?P<at>[\w.-]+): )?(?P<problem>.+)", re.DOTALL)
_KEYED = re.compile(r"(?P<at>[\w.-]+): (?P<problem>.+)", re.DOTALL)
_DEEPEST = 40


class ParamsFileIn(In):
    """One of the two; the other comes back."""

    file: Annotated[Text, Field(max_length=300_000)] | None = Field(default=None, description="A params file's text.")
    data: dict[str, Any] | None = Field(default=None, description="The same as data.")


class ParamsProblem(BaseModel):
    line: int | None = Field(description="In the text; null where data was given.")
    at: str = Field(description="The key, such as train.resources.mem; empty where it is the file as a whole.")
    problem: str


class ParamsFileOut(BaseModel):
    valid: bool
    problems: list[ParamsProblem] = Field(description="Everything that is wrong, by line.")
    data: dict[str, Any] | None = Field(description="Null where the text is no YAML.")
    file: str = Field(description="The text as it was given, or the data as a text.")


class CodeFolders(BaseModel):
    folders: list[str] = Field(description="Code under these may be submitted over HTTP; none: only clones are.")


@router.get("/params-schema", summary="Show the schema of a params file")
def schema() -> dict[str, Any]:
    """JSON Schema, as `onward schema` prints it."""
    from onward.pipelines.sections import json_schema

    return dict(json_schema())


@router.get("/code-folders", summary="List folders whose code may be submitted")
def folders(svc: Svc) -> CodeFolders:
    """`server.code` of the server's settings."""
    return CodeFolders(folders=[str(place) for place in svc.desk.settings.server.code])


@router.post("/params-files/check", summary="Check a params file")
def check(asked: ParamsFileIn) -> ParamsFileOut:
    """Whether it could be submitted, as far as the file alone tells; a dry run tells the rest. Changes nothing."""
    from onward.pipelines.params import params_from_data, parse_params
    from onward.pipelines.yaml_lines import load_yaml, to_yaml

    if (asked.file is None) == (asked.data is None):
        raise InvalidInput("a check has either `file` or `data`", hint="`file` is a params file's text, `data` the same as data")
    if asked.data is not None:
        data: dict[str, Any] | None = asked.data
        if _depth(asked.data) > _DEEPEST:
            raise InvalidInput("data: nested too deeply to be a params file")
        text, problems = to_yaml(asked.data), _told(lambda: params_from_data(asked.data or {}))
    else:
        text = asked.file or ""
        try:
            data = json.loads(json.dumps(finite(load_yaml(text, "file").data)))
        except InvalidInput:
            data = None
        problems = _told(lambda: parse_params(text, "file"))
    return ParamsFileOut(valid=not problems, problems=problems, data=data, file=text)


def _told(parse: Any) -> list[ParamsProblem]:
    try:
        parse()
    except InvalidInput as error:
        return [_problem(line) for line in error.message.splitlines() if line.strip()]
    return []


def _problem(line: str) -> ParamsProblem:
    placed = _PLACED.fullmatch(line)
    if placed:
        return ParamsProblem(line=int(placed["line"]), at=placed["at"] or "", problem=placed["problem"])
    keyed = _KEYED.fullmatch(line)
    return ParamsProblem(line=None, at=keyed["at"] if keyed else "", problem=keyed["problem"] if keyed else line)


def _depth(value: Any) -> int:
    deepest, left = 0, [(value, 1)]
    while left:
        one, depth = left.pop()
        deepest = max(deepest, depth)
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        left += [(item, depth + 1) for item in inner]
    return deepest
