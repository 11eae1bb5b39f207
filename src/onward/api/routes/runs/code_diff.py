"""What was changed in a run's code and not committed when it was submitted."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from onward.api.dependencies import Svc
from onward.api.routes.files.artifacts import send_file
from onward.api.routes.path_params import RunId, run_of
from onward.api.run_folders.locate import must_have_folder
from onward.tracker.runs.artifact_files import ArtifactFiles

router = APIRouter(prefix="/api/v1/runs", tags=["runs"])


@router.get(
    "/{run_id}/code-diff",
    summary="Download uncommitted changes",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
def diff(svc: Svc, run_id: RunId) -> StreamingResponse:
    """As `git diff` writes them; 404 if everything was committed, or the code was not under version control."""
    run = run_of(svc, run_id)
    dir = must_have_folder(svc, run.run_id, run.folder)
    return send_file(ArtifactFiles(dir.params, root=dir.root), dir.code_diff.name)
