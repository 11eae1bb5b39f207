"""Uploads: a slow client holds nobody up, and one that falls silent or leaves leaves nothing behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fastapi import HTTPException

from onward.api.routes.files import artifacts
from onward.api.routes.files.artifacts import store_stream
from onward.tracker.runs.artifact_files import ArtifactFiles


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


async def slow(go_on: asyncio.Event) -> AsyncIterator[bytes]:
    yield b"first"
    await go_on.wait()
    yield b"last"


def test_many_slow_uploads_leave_threads_for_everybody_else(tmp_path: Path) -> None:
    files = ArtifactFiles(tmp_path / "files", root=tmp_path)

    async def harness() -> None:
        go_on = asyncio.Event()
        uploads = [asyncio.create_task(store_stream(files, f"g{n}", slow(go_on))) for n in range(64)]
        while len(left(tmp_path)) < len(uploads):
            await asyncio.sleep(0.01)
        await asyncio.wait_for(asyncio.to_thread(threading.get_ident), 60)
        assert files.list() == [], "none is there before it is whole"
        go_on.set()
        assert {stored.size for stored in await asyncio.gather(*uploads)} == {9}

    asyncio.run(harness())
    assert left(tmp_path) == sorted(f"g{n}" for n in range(64))


def test_an_upload_that_falls_silent_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "SILENCE", 0.05)

    async def harness() -> None:
        await store_stream(ArtifactFiles(tmp_path, root=tmp_path), "a", slow(asyncio.Event()))

    with pytest.raises(HTTPException, match="silent") as refusal:
        asyncio.run(harness())
    assert refusal.value.status_code == 408 and refusal.value.headers == {"connection": "close"}
    assert left(tmp_path) == []


def test_a_client_that_leaves_leaves_nothing(tmp_path: Path) -> None:
    async def harness() -> None:
        task = asyncio.create_task(store_stream(ArtifactFiles(tmp_path, root=tmp_path), "a", slow(asyncio.Event())))
        while not left(tmp_path):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(harness())
    assert left(tmp_path) == []


def test_a_large_body_arrives_whole_in_whatever_pieces(tmp_path: Path) -> None:
    body = bytes(range(256)) * 10_000

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 60_001):
            yield body[start : start + 60_001]
        yield b""

    stored = asyncio.run(store_stream(ArtifactFiles(tmp_path, root=tmp_path), "a", pieces()))
    assert stored.size == len(body) and (tmp_path / "a").read_bytes() == body


def test_an_upload_that_was_ended_writes_nothing_more(tmp_path: Path) -> None:
    upload = ArtifactFiles(tmp_path, root=tmp_path).upload("a/b")
    upload.begin()
    upload.abort()
    upload.abort()
    for late in (upload.begin, lambda: upload.write(b"x"), upload.commit):
        with pytest.raises(ConnectionError):
            late()
    assert left(tmp_path) == []
