"""MLflow's artifacts, proxied: `<experiment>/<run>/artifacts/<path>` and `<experiment>/models/<model>/artifacts/<path>`.

A client names a place by ids of ours and a path beneath it, nothing else; which folder that is, is ours to know.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import StreamingResponse

from onward.api.access.caller import ApiCaller
from onward.api.dependencies import Svc, Who
from onward.api.mlflow.runs import run_artifact_uri
from onward.api.routes.files.artifacts import send_file, store_stream
from onward.api.run_folders.locate import LARGEST, files_of, model_folder, room_for, room_for_model
from onward.api.services import Services
from onward.errors import InvalidInput, NotFound
from onward.model.mlflow import wire
from onward.model.mlflow.records import LoggedModelRecord
from onward.tracker.runs.artifact_files import ArtifactFiles, components
from onward.tracker.runs.artifacts import ArtifactRecord, forget_artifact, put_artifact

router = APIRouter(prefix="/api/2.0", tags=["MLflow: artifacts"])
_FILES = "/mlflow-artifacts/artifacts"
FilePath = Annotated[str, Path(description="EXPERIMENT/RUN/artifacts/PATH", max_length=2048)]
_BODY = {"requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}}


@dataclass(frozen=True, kw_only=True)
class Located:
    """Files of a run or of a model, and the path among them; `run` is the id of the run, None for a model's."""

    files: ArtifactFiles
    path: str
    run: str | None


@router.put(_FILES + "/{path:path}", openapi_extra=_BODY)
async def upload(request: Request, path: FilePath, svc: Svc, who: Who) -> dict[str, Any]:
    """Store a file: the body is its content."""
    located = await asyncio.to_thread(_locate, svc, who, path, write=True, put=True)
    components(located.path)
    stored = await store_stream(located.files, located.path, request.stream())
    if located.run:
        artifact = ArtifactRecord(path=located.path, kind="", bytes=stored.size, sha256=stored.sha256, stored=True, created=svc.clock.now())
        await asyncio.to_thread(put_artifact, svc.tracker, located.run, artifact)
    return {}


@router.get(_FILES, summary="List a folder")
def listed(svc: Svc, who: Who, path: Annotated[str, Query(max_length=2048)] = "") -> dict[str, Any]:
    """What is directly in a folder; names are relative to it."""
    located = _locate(svc, who, unquote(path))  # clients ask for a%2Fb.txt where they sent one of that name, which was a/b.txt
    return {"files": [_entry(file, PurePosixPath(file.path).name) for file in located.files.list(located.path)]}


@router.get(_FILES + "/{path:path}", response_class=StreamingResponse)
def download(path: FilePath, svc: Svc, who: Who) -> StreamingResponse:
    """The content of a file."""
    located = _locate(svc, who, path)
    return send_file(located.files, located.path)


@router.delete(_FILES + "/{path:path}")
def delete(path: FilePath, svc: Svc, who: Who) -> dict[str, Any]:
    """Remove a file."""
    located = _locate(svc, who, path, write=True)
    located.files.delete(located.path)
    if located.run:
        forget_artifact(svc.tracker, located.run, located.path)
    return {}


@router.get("/mlflow/artifacts/list", summary="List a run's artifacts")
def list_of_run(svc: Svc, who: Who, run_id: str = "", run_uuid: str = "", path: str = "") -> dict[str, Any]:
    """What is directly in a folder of a run; names are relative to the run's artifacts."""
    info = svc.tracker.runs.get(wire.text({"run_id": run_id, "run_uuid": run_uuid}, "run_id", "run_uuid"))
    who.must_read(info.run_id)
    files = files_of(svc, info.run_id, info.folder).list(path.strip("/"))
    return {"root_uri": run_artifact_uri(info), "files": [_entry(file, file.path) for file in files]}


@router.get("/mlflow/logged-models/{model_id}/artifacts/directories", summary="List a model's artifacts")
def list_of_model(model_id: str, svc: Svc, who: Who, artifact_directory_path: str = "") -> dict[str, Any]:
    """What is directly in a folder of a logged model."""
    model = svc.tracker.models.get(model_id)
    who.must_own(model.run, f"model {model_id}")
    files = _model_files(svc, model).list(artifact_directory_path.strip("/"))
    return {
        "root_uri": f"mlflow-artifacts:/{model.experiment}/models/{model.id}/artifacts",
        "files": [_entry(file, file.path) for file in files],
    }


def _entry(file: Any, path: str) -> dict[str, Any]:
    shown: dict[str, Any] = {"path": path, "is_dir": file.is_dir}
    return shown if file.is_dir else {**shown, "file_size": file.size}


def _locate(svc: Services, who: ApiCaller, path: str, *, write: bool = False, put: bool = False) -> Located:
    parts = components(path.strip("/") or "x")
    match parts:
        case [_, "models", id, "artifacts", *rest]:
            model = svc.tracker.models.get(id)
            who.must_own(model.run, f"model {id}")
            path = "/".join(rest)
            room = room_for_model(svc, model, path) if put and path else LARGEST
            return Located(files=_model_files(svc, model, largest=room), path=path, run=None)
        case [experiment, run, "artifacts", *rest]:
            info = svc.tracker.runs.get(run)
            if experiment != str(info.experiment):
                raise NotFound(f"run {run} is not in experiment {experiment}")
            (who.must_write if write else who.must_read)(info.run_id)
            path = "/".join(rest)
            room = room_for(svc, info.run_id, path) if put and path else LARGEST
            return Located(files=files_of(svc, info.run_id, info.folder, largest=room), path=path, run=info.run_id)
        case _:
            raise InvalidInput("Invalid path", hint="artifacts are under EXPERIMENT/RUN/artifacts")


def _model_files(svc: Services, model: LoggedModelRecord, *, largest: int = LARGEST) -> ArtifactFiles:
    folder, root = model_folder(svc, model)
    return ArtifactFiles(folder, root=root, largest=largest, private=root == svc.files)
