"""Artifacts: a run's files, put, listed and read; never outside its folder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import PurePosixPath
from typing import Annotated, BinaryIO, Protocol
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.routes.path_params import RunId, run_of
from onward.api.run_folders.locate import files_of, room_for
from onward.errors import NotFound
from onward.tracker.runs.artifact_files import ArtifactFiles, StoredFile, components
from onward.tracker.runs.artifacts import ArtifactRecord, artifacts_of, forget_artifact, put_artifact

router = APIRouter(prefix="/api/v1/runs/{run_id}/artifacts", tags=["artifacts"])

_CHUNK = 1 << 20
SILENCE = 60  # seconds after which an upload that sends nothing is given up
FilePath = Annotated[str, Path(description="Relative, with slashes.", max_length=2048)]


class ArtifactOut(BaseModel):
    path: str
    is_dir: bool = False
    bytes: int | None
    sha256: str | None = Field(default=None, description="For a file that was uploaded here.")
    kind: str = ""
    stored: bool = Field(description="The bytes are here; otherwise the run only reported the file.")
    created: float | None


class ArtifactList(BaseModel):
    artifacts: list[ArtifactOut]


@router.get("", summary="List artifacts")
def listed(
    svc: Svc, run_id: RunId, path: Annotated[str, Query(description="Only what is directly in this folder.", max_length=2048)] = ""
) -> ArtifactList:
    """Files and folders of one level, by name; at the top also what the run reported but did not upload."""
    run = run_of(svc, run_id)
    known = {one.path: one for one in artifacts_of(svc.tracker, run.run_id)}
    found = [
        ArtifactOut(
            path=file.path,
            is_dir=file.is_dir,
            bytes=None if file.is_dir else file.size,
            sha256=known[file.path].sha256 if file.path in known else None,
            kind=known[file.path].kind if file.path in known else "",
            stored=True,
            created=file.modified,
        )
        for file in files_of(svc, run.run_id, run.folder).list(path)
    ]
    not_stored = [one for one in known.values() if not one.stored] if not path else []
    return ArtifactList(artifacts=found + [ArtifactOut(**{**vars(one), "is_dir": False}) for one in not_stored])


@router.put(
    "/{path:path}",
    summary="Upload a file",
    status_code=201,
    openapi_extra={"requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}},
)
async def upload(svc: Svc, request: Request, run_id: RunId, path: FilePath) -> ArtifactOut:
    """The body is the file. It appears only when it is complete, and replaces an older file of that path."""
    components(path)
    run = await asyncio.to_thread(run_of, svc, run_id)
    files = files_of(svc, run.run_id, run.folder, largest=await asyncio.to_thread(room_for, svc, run.run_id, path))
    stored = await store_stream(files, path, request.stream())
    artifact = ArtifactRecord(path=path, kind="", bytes=stored.size, sha256=stored.sha256, stored=True, created=svc.clock.now())
    await asyncio.to_thread(put_artifact, svc.tracker, run.run_id, artifact)
    return ArtifactOut(**{**vars(artifact), "is_dir": False})


@router.get(
    "/{path:path}",
    summary="Download a file",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
def download(svc: Svc, run_id: RunId, path: FilePath) -> StreamingResponse:
    """Always as an attachment, so that an HTML file does not run as a page of this server."""
    run = run_of(svc, run_id)
    return send_file(files_of(svc, run.run_id, run.folder), path)


@router.delete("/{path:path}", summary="Delete a file", status_code=204)
def delete(svc: Svc, run_id: RunId, path: FilePath) -> None:
    """Also deletes what the run reported about it."""
    run = run_of(svc, run_id)
    try:
        files_of(svc, run.run_id, run.folder).delete(path)
    except NotFound:
        if not any(one.path == path and not one.stored for one in artifacts_of(svc.tracker, run.run_id)):
            raise
    forget_artifact(svc.tracker, run.run_id, path)


class FileReader(Protocol):
    def open(self, path: str) -> tuple[BinaryIO, StoredFile]: ...


def send_file(files: FileReader, path: str) -> StreamingResponse:
    """A file that someone else wrote, made harmless for browsers."""
    file, seen = files.open(path)
    name = quote(PurePosixPath(path).name)
    headers = {
        "content-length": str(seen.size),
        "content-disposition": f"attachment; filename*=UTF-8''{name}",
        "content-security-policy": "sandbox; default-src 'none'",
    }
    return StreamingResponse(_pieces(file, seen.size), media_type="application/octet-stream", headers=headers)


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    """As many bytes as were promised, though the file may be growing."""
    with file:
        while size > 0 and (data := file.read(min(_CHUNK, size))):
            size -= len(data)
            yield data


async def store_stream(files: ArtifactFiles, path: str, stream: AsyncIterator[bytes]) -> StoredFile:
    """Write a body as it arrives, in short calls in threads: a slow client blocks none. An interrupted upload leaves nothing."""
    upload = files.upload(path)
    try:
        await asyncio.to_thread(upload.begin)
        async for piece in _gathered(stream):
            await asyncio.to_thread(upload.write, piece)
        return await asyncio.to_thread(upload.commit)
    except BaseException:
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, upload.abort))
        raise


async def _gathered(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces of a body in larger ones: fewer calls, and little in memory."""
    some = bytearray()
    while True:
        try:
            async with asyncio.timeout(SILENCE):
                some += await anext(stream)
        except StopAsyncIteration:
            break
        except TimeoutError:
            raise HTTPException(408, f"the upload was silent for {SILENCE} seconds; it was cancelled", {"connection": "close"}) from None
        if len(some) >= _CHUNK:
            yield bytes(some)
            some.clear()
    if some:
        yield bytes(some)
