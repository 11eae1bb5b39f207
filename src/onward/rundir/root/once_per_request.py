"""The marks of a request in its root: one says which run it has, one how it was answered. Each is made once, by whoever is first.

Gateways on several machines may share a root and a broker, and have each a store of its own. What keeps them from making two runs of one
request, or from answering it twice, is here: a file that only one of them can make.

A run's mark is made when its folder is whole but for the name of its spec. So whoever finds the mark can finish the run: by one rename.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from onward.errors import StorageError
from onward.rundir.claim import take_file
from onward.rundir.layout import RunDir, is_dated
from onward.rundir.root.layout import RootDir
from onward.sdk.atomic_files import sync_folder


@dataclass(frozen=True, kw_only=True)
class RequestMark:
    """Which run a request has."""

    request: str
    body_sha256: str  # of the message that asked: another message of the same id is another request
    run: str
    folder: str  # kept as its name alone: the root may have another path on another machine


@dataclass(frozen=True, kw_only=True)
class AnswerMark:
    """How a request was answered, and which store sends that answer."""

    request: str
    body_sha256: str
    store: str
    outcome: Mapping[str, Any]


def mark_request(root: Path, mark: RequestMark) -> RequestMark:
    """The mark that the request has from now on: this one, or that of whoever was first."""
    path = RootDir(root).request(mark.request)
    _take(path, {**asdict(mark), "folder": Path(mark.folder).name})
    return _request_mark(root, path, _read_made(path))


def find_request(roots: Iterable[Path], id: str) -> RequestMark | None:
    """None: surely none in these roots, as far as they can be seen. OSError where one cannot be read."""
    for root in roots:
        path = RootDir(root).request(id)
        if found := _read(path):
            return _request_mark(root, path, found)
    return None


def _request_mark(root: Path, path: Path, found: Mapping[str, Any]) -> RequestMark:
    try:
        mark = RequestMark(**found)
    except TypeError as error:
        raise _damaged(path, str(error)) from error
    if not is_dated(mark.folder) or "/" in mark.folder:
        raise _damaged(path, f"{mark.folder!r} is not a run folder")
    return replace(mark, folder=str(root / mark.folder))


def mark_answer(root: Path, mark: AnswerMark) -> AnswerMark:
    """The same for its answer."""
    path = RootDir(root).answer(mark.request)
    _take(path, asdict(mark))
    return _answer_mark(path, _read_made(path))


def find_answer(roots: Iterable[Path], id: str) -> AnswerMark | None:
    for root in roots:
        path = RootDir(root).answer(id)
        if found := _read(path):
            return _answer_mark(path, found)
    return None


def _answer_mark(path: Path, found: Mapping[str, Any]) -> AnswerMark:
    try:
        return AnswerMark(**found)
    except TypeError as error:
        raise _damaged(path, str(error)) from error


def publish_spec(run: RunDir) -> None:
    """From here on the folder is a run. Anybody may do it, also twice."""
    try:
        os.replace(run.prepared_spec, run.spec)
    except FileNotFoundError:
        if not run.is_run():
            raise
    sync_folder(run.params)


def is_marked(run: RunDir) -> bool:
    """Whether a request has this folder for its run, made or half made."""
    try:
        spec = json.loads((run.spec if run.is_run() else run.prepared_spec).read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    id = spec.get("request") if isinstance(spec, dict) else None
    mark = find_request([run.path.parent], id) if isinstance(id, str) else None
    return mark is not None and mark.folder == str(run.path)


def _take(path: Path, content: Mapping[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        take_file(path, json.dumps(content))
    except OSError:
        if not path.exists():  # else it was made, by us or another, and only tidying up after it failed
            raise


def _read_made(path: Path) -> dict[str, Any]:
    found = _read(path)
    if found is None:
        raise StorageError(f"{path} was created but cannot be seen", hint="is the file system healthy? Onward checks again")
    return found


def _read(path: Path) -> dict[str, Any] | None:
    """Only what this user wrote: in a root that others may write to, nobody else decides which run a request has."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with open(handle, "rb") as file:
        if os.fstat(handle).st_uid != os.getuid():
            raise StorageError(f"{path} was created by another user", hint="delete it, and do not let others write to the runs folder")
        text = file.read()
    try:
        found = json.loads(text)
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(found, dict):
        raise _damaged(path, "it contains no mark")
    return found


def _damaged(path: Path, words: str) -> StorageError:
    return StorageError(f"{path} is damaged: {words}", hint="delete it once you know which run the request belongs to")
