"""What of a pipeline is uploaded, and is whole by now: paths under the runs' root, with a name for each thing that goes together."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from onward.checkpoints.restoring.newest import published_names_of
from onward.model.pipelines.plan import PipelinePlan, StageKind, UploadRule
from onward.model.pipelines.policy import StageState
from onward.pipelines.advance import member_state
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.pipeline.task_layout import TaskDir
from onward.rundir.run_end import is_over

SUMMARY_FORMATS = ("md", "csv", "json", "html")


@dataclass(frozen=True, kw_only=True)
class UploadItem:
    key: str  # the name of its note; what can change once more, as logs of a run that is resumed, has a moment in it
    paths: tuple[str, ...]  # seen from the root; none: it is not made yet


def pending_items(dir: PipelineDir, plan: PipelinePlan, rule: UploadRule, arrived: Collection[str]) -> list[UploadItem]:
    """All that is there, whole, and has not arrived."""
    found = (thing for kind in rule.what for thing in _of_kind(kind, dir, plan, arrived))
    return [thing for thing in found if thing.key not in arrived]


def _of_kind(kind: str, dir: PipelineDir, plan: PipelinePlan, arrived: Collection[str]) -> Iterator[UploadItem]:
    match kind:
        case "results":
            yield from _tasks(dir, arrived)
            yield from _artifacts(dir, plan, arrived)
        case "checkpoints":
            for folder in sorted(dir.checkpoints.glob("[!.]*.step-*")):
                yield UploadItem(key=f"checkpoint-{folder.name}", paths=(_from_root(dir, folder),))
            yield from _last_checkpoints(dir, plan)
        case "logs":
            yield from _logs(dir, plan)
        case "summary":
            yield from _summary(dir)
        case _:  # of a newer Onward
            return


def _tasks(dir: PipelineDir, arrived: Collection[str]) -> Iterator[UploadItem]:
    for name in _inside(dir.tasks):
        if f"task-{name}" not in arrived and TaskDir(dir.tasks / name).result.exists():
            yield UploadItem(key=f"task-{name}", paths=(_from_root(dir, dir.tasks / name),))


def _last_checkpoints(dir: PipelineDir, plan: PipelinePlan) -> Iterator[UploadItem]:
    """Of stages that are finished and that nothing measures."""
    for stage in plan.stages:
        run = dir.member(stage.name)
        if stage.done_by or stage.kind is not StageKind.STAGE or member_state(run) is not StageState.FINISHED:
            continue
        if found := published_names_of(run.checkpoints):
            yield UploadItem(key=f"checkpoint-{stage.name}.{found[-1]}", paths=(_from_root(dir, run.checkpoints / str(found[-1])),))


def _artifacts(dir: PipelineDir, plan: PipelinePlan, arrived: Collection[str]) -> Iterator[UploadItem]:
    for stage in plan.stages:
        key, run = f"artifacts-{stage.name}", dir.member(stage.name)
        if stage.done_by or stage.kind is StageKind.ENVIRONMENT or key in arrived or member_state(run) is not StageState.FINISHED:
            continue
        if _inside(run.artifacts):
            yield UploadItem(key=key, paths=(_from_root(dir, run.artifacts),))


def _logs(dir: PipelineDir, plan: PipelinePlan) -> Iterator[UploadItem]:
    """Of the runs that are over, and in the end of the pipeline itself."""
    members = [dir.member(stage.name) for stage in plan.stages if not stage.done_by]
    for run in (*members, *dir.workers()):
        if is_over(run) and (at := _moment(run.done)) is not None:
            yield UploadItem(key=f"logs-{run.path.name.removeprefix(f'{dir.path.name}-')}-{at:.3f}", paths=(_from_root(dir, run.logs),))
    if (at := _moment(dir.over)) is not None:
        yield UploadItem(key=f"logs-{at:.3f}", paths=(_from_root(dir, dir.log),))


def _summary(dir: PipelineDir) -> Iterator[UploadItem]:
    if (at := _moment(dir.over)) is None:
        return
    made = [path for path in map(dir.summary, SUMMARY_FORMATS) if path.exists() and path.stat().st_mtime >= dir.over.stat().st_mtime]
    whole = len(made) == len(SUMMARY_FORMATS)
    yield UploadItem(key=f"summary-{at:.3f}", paths=tuple(_from_root(dir, path) for path in made) if whole else ())


def _inside(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def _moment(marker: Path) -> float | None:
    try:
        return float(json.loads(marker.read_bytes())["at"])
    except (FileNotFoundError, ValueError, KeyError):
        return None


def _from_root(dir: PipelineDir, path: Path) -> str:
    return str(path.relative_to(dir.path.parent))
