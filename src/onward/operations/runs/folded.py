"""A list of runs in which those that a pipeline queued stand as one line: that of their pipeline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onward.rundir.files.no_links import read_beneath
from onward.rundir.layout import RunDir
from onward.rundir.pipeline.layout import PipelineDir

_LOOKED_AT = 20  # folders for each line that is wanted, at most: a pipeline may have thousands of runs


@dataclass(frozen=True, kw_only=True)
class FoldedRuns:
    runs: list[RunDir]  # oldest first
    pipelines: list[PipelineDir]
    older: int  # runs that were not looked at


def fold_runs(dirs: Sequence[RunDir], *, newest: int) -> FoldedRuns:
    """The newest of these, which are in order of their age: so many runs and pipelines together."""
    runs: list[RunDir] = []
    pipelines: dict[Path, PipelineDir] = {}
    looked = 0
    for dir in reversed(dirs):
        if len(runs) + len(pipelines) >= newest or looked >= newest * _LOOKED_AT:
            break
        looked += 1
        pipeline = _pipeline_of(dir)
        if pipeline is None:
            runs.append(dir)
        else:
            pipelines[pipeline.path] = pipeline
    return FoldedRuns(runs=runs[::-1], pipelines=list(pipelines.values())[::-1], older=len(dirs) - looked)


def _pipeline_of(dir: RunDir) -> PipelineDir | None:
    """None also where the pipeline's own folder is gone: then nothing else would tell of the run."""
    try:
        member = json.loads(read_beneath(dir.root, dir.spec)).get("member")
        pipeline = PipelineDir(Path(member["pipeline"])) if member else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return pipeline if pipeline and pipeline.is_pipeline() else None
