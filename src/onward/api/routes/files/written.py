"""What a training wrote into its working folder: listed and read as artifacts are. The code beside it is not served."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.routes.files.artifacts import FilePath, send_file
from onward.api.routes.path_params import RunId, run_of
from onward.api.run_folders.locate import folder_of
from onward.api.services import Services
from onward.errors import NotFound
from onward.rundir.files.written import WrittenFiles, written_files

router = APIRouter(prefix="/api/v1/runs/{run_id}/written", tags=["artifacts"])

_PAGE = 200
_LARGEST_PAGE = 1_000


class WrittenFileOut(BaseModel):
    path: str
    is_dir: bool
    bytes: int | None
    modified: float


class WrittenList(BaseModel):
    files: list[WrittenFileOut]
    more: int = Field(description="How many come after these; continue with `after` set to the last name.")


@router.get("", summary="List what the training wrote to its working folder")
def listed(
    svc: Svc,
    run_id: RunId,
    path: Annotated[str, Query(description="Only what is directly in this folder.", max_length=2048)] = "",
    after: Annotated[str, Query(description="Only names after this one.", max_length=2048)] = "",
    limit: Annotated[int, Query(ge=1, le=_LARGEST_PAGE, description="At most this many.")] = _PAGE,
) -> WrittenList:
    """Files and folders of one level, by name, without the run's code and without links. Empty if the code was not frozen."""
    written = _written(svc, run_id)
    if written is None:
        return WrittenList(files=[], more=0)
    page = written.page(path, after=after, most=limit)
    files = [
        WrittenFileOut(path=file.path, is_dir=file.is_dir, bytes=None if file.is_dir else file.size, modified=file.modified)
        for file in page.files
    ]
    return WrittenList(files=files, more=page.more)


@router.get(
    "/{path:path}",
    summary="Download a file that the training wrote",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
def download(svc: Svc, run_id: RunId, path: FilePath) -> StreamingResponse:
    """As an attachment, like artifacts; 404 for the run's code."""
    written = _written(svc, run_id)
    if written is None:
        raise NotFound(f"nothing tells what the training of run {run_id} wrote", hint="this is known of runs with frozen code")
    return send_file(written, path)


def _written(svc: Services, run_id: str) -> WrittenFiles | None:
    dir = folder_of(svc, run_of(svc, run_id).folder)
    return written_files(dir) if dir else None
