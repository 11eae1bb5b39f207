"""A run that is still being written: read, checked and shown as it would be submitted, as often as its author types. Changes nothing.

What is wrong with a draft is no error of the call: the answer tells all of it, with its lines, and what the draft says so far.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from onward.api.access.caller import ApiCaller
from onward.api.dependencies import Svc, Who
from onward.api.routes.runs.actions import must_be_near
from onward.api.run_folders.code import allowed_folder, code_folders, how_to_get_one, params_files
from onward.api.schemas.base import In, Text, finite
from onward.api.services import Services
from onward.errors import OnwardError

router = APIRouter(prefix="/api/v1/drafts", tags=["runs"])

_USUAL = "params.yaml"
_PLACED = re.compile(r"(?:file:(?P<line>\d+): )?(?:(?P<at>[\w.\"'-]+): )?(?P<problem>.+)", re.DOTALL)


class ParamsFile(BaseModel):
    name: str
    text: str


class CodeFolder(BaseModel):
    path: str = Field(description="Runs may be started from it, and from folders under it.")
    file: str | None = Field(description="The text of its `params.yaml`, if it has one.")
    files: list[ParamsFile] = Field(description="All params files that lie in it, `params.yaml` first.")


class CodeFolders(BaseModel):
    folders: list[CodeFolder] = Field(description="Empty: you can start no runs here; `advice` says what to do.")
    advice: str = Field(description="If there is none: how to get one, in one sentence.")


class DraftIn(In):
    file: Annotated[Text, Field(max_length=500_000)] = Field(description="A params file's text.")
    folder: Annotated[Text, Field(max_length=4096)] = Field(default="", description="Where its command would start.")


class DraftProblem(BaseModel):
    line: int | None = Field(description="Of the file, from 1.")
    at: str = Field(description="Which key; empty: the whole file.")
    problem: str
    hint: str = ""


class DraftOut(BaseModel):
    data: dict[str, Any] | None = Field(description="The file's contents; null if it is not YAML.")
    problems: list[DraftProblem] = Field(description="Its problems; empty: it can be submitted.")
    script: str = Field(description="The exact job script that would be queued.")
    command: list[str] = Field(description="The exact command that would queue it.")
    run_folder: str
    notes: list[str]


@router.get("/folders", summary="List folders that runs may be started from")
def folders(svc: Svc, who: Who) -> CodeFolders:
    """Those in the settings' `server.code`.

    For the browser of the user who runs the server: also those that this user submitted runs from, and the one where it was started."""
    found = [_folder(folder) for folder in code_folders(svc, who)]
    return CodeFolders(folders=found, advice="" if found else how_to_get_one(svc, who))


def _folder(folder: Path) -> CodeFolder:
    files = [ParamsFile(name=name, text=text) for name, text in params_files(folder)]
    return CodeFolder(path=str(folder), file=next((one.text for one in files if one.name == _USUAL), None), files=files)


@router.post("/search", summary="Check a draft")
def check(svc: Svc, who: Who, asked: DraftIn) -> DraftOut:
    """Its contents, its problems, and what would be queued. Queues nothing."""
    found = DraftOut(data=_data(asked.file), problems=[], script="", command=[], run_folder="", notes=[])
    try:
        _preview(svc, who, asked, found)
    except OnwardError as error:
        found.problems += problems_of(error)
    return found


def problems_of(error: OnwardError) -> list[DraftProblem]:
    """One line each, with its place if it has one; the first has the hint."""
    lines = [match for match in map(_PLACED.fullmatch, error.message.splitlines()) if match]
    problems = [DraftProblem(line=int(m["line"]) if m["line"] else None, at=m["at"] or "", problem=m["problem"]) for m in lines]
    if problems and not problems[0].line:
        problems[0].hint = error.hint
    return problems


def _preview(svc: Services, who: ApiCaller, asked: DraftIn, found: DraftOut) -> None:
    from onward.inputs.params.file import parse_params
    from onward.operations.submit.new_run import preview

    draft = parse_params(asked.file, "file")
    folder = allowed_folder(svc, who, asked.folder)
    must_be_near(svc, draft)
    seen = preview(svc.context, draft, cwd=folder)
    found.script, found.command, found.run_folder = seen.script, list(seen.command), str(seen.folder)
    found.notes = list(seen.notes)


def _data(text: str) -> dict[str, Any] | None:
    from onward.inputs.yaml_lines import load_yaml

    try:
        data = load_yaml(text, "file", as_text=()).data
    except OnwardError:
        return None
    return finite(data) if isinstance(data, dict) else None
