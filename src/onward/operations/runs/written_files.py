"""What a training wrote into its working folder, for whoever looks at its run."""

from __future__ import annotations

from typing import Any

from onward.rundir.files.written import written_files
from onward.rundir.layout import RunDir

_MOST_NAMED = 20


def written_record(dir: RunDir) -> dict[str, Any] | None:
    """How many there are, and the newest. None where nothing tells them from the code."""
    written = written_files(dir)
    found = written.newest(_MOST_NAMED) if written else None
    if found is None:
        return None
    newest = [{"path": one.path, "bytes": one.size, "modified": one.modified} for one in found.newest]
    return {"folder": str(dir.code), "count": found.count, "all": found.all, "newest": newest}
