"""What a stage makes follows from its content: the hash of its command, params, environment, inputs and of all that it needs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from onward.errors import InvalidInput
from onward.model.pipelines.plan import Stage
from onward.model.plain_data import value_to_json

_READ_WHOLE = 64 * 1024 * 1024  # bytes; of a larger file, its size and when it was changed stand for its content
_FORMAT = 1


def content_hash(stage: Stage, *, folder: Path, above: Sequence[str]) -> str:
    """Empty where it cannot be known: the stage does not say what it reads, or needs one that does not (`above` are their hashes)."""
    if stage.inputs is None or "" in above[: len(stage.needs)]:
        return ""
    draft = stage.draft
    content = {
        "format": _FORMAT,
        "command": draft.command,
        "params": draft.params,
        "variables": draft.variables,
        "environment": value_to_json(draft.environment),
        "launcher": draft.launcher,
        "outputs": stage.outputs,
        "above": list(above),
        "files": dict(_files(stage, folder)),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]


def digests(patterns: Sequence[str], folder: Path) -> Iterator[tuple[str, str]]:
    """Every file that these files, folders and patterns name, by its path and what is in it."""
    for pattern in patterns:
        found = [folder / pattern] if (folder / pattern).exists() else sorted(folder.glob(pattern)) if not pattern.startswith("/") else []
        if not found:
            raise InvalidInput(f"found no {pattern} in {folder}, expected a file that the stage reads")
        for path in found:
            for file in [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file()):
                yield str(file.relative_to(folder) if file.is_relative_to(folder) else file), _digest(file)


def _files(stage: Stage, folder: Path) -> Iterator[tuple[str, str]]:
    """What it says it reads, and the files that its command names."""
    yield from ((word, _digest(folder / word)) for word in stage.draft.command if word and (folder / word).is_file())
    yield from digests(stage.inputs or (), folder)


def _digest(path: Path) -> str:
    try:
        status = path.stat()
        return _content(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error


@lru_cache(maxsize=100_000)  # every point of a sweep reads the same
def _content(path: Path, size: int, changed: int) -> str:
    if size > _READ_WHOLE:
        return f"{size} bytes, changed {changed}"
    return hashlib.sha256(path.read_bytes()).hexdigest()
