"""What a training wrote into its working folder, which is a copy of the code: all that came after the copy was made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from onward.model.run import Run
from onward.rundir.layout import RunDir

_MOST_ENTRIES = 5_000  # that are looked at
_MOST_NAMED = 20
_NOT_TOLD = ("__pycache__", ".ipynb_checkpoints")


def written_files(dir: RunDir, run: Run) -> dict[str, Any] | None:
    """How many there are, and the newest. None where the code runs where it stands, or where times tell nothing: in a copied folder."""
    if not run.spec.code.get("frozen") or run.spec.member is not None:
        return None
    try:
        since = os.lstat(dir.spec).st_ctime
    except OSError:
        return None
    written: list[tuple[float, str, int]] = []
    older = left = 0
    for at, folders, names in os.walk(dir.code):
        folders[:] = [name for name in folders if name not in _NOT_TOLD]
        for name in names:
            left += 1
            path = Path(at) / name
            try:
                seen = os.lstat(path)
            except OSError:
                continue  # gone
            if seen.st_ctime <= since:
                older += 1
            elif not os.path.islink(path):
                written.append((seen.st_mtime, str(path.relative_to(dir.code)), seen.st_size))
        if left > _MOST_ENTRIES:
            break
    files = run.spec.code.get("files")
    if left <= _MOST_ENTRIES and isinstance(files, int) and older < files:
        return None
    newest = sorted(written, reverse=True)[:_MOST_NAMED]
    told = [{"path": name, "bytes": size, "modified": at} for at, name, size in newest]
    return {"folder": str(dir.code), "count": len(written), "newest": told}
