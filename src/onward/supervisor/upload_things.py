"""What of a pipeline is uploaded, and is whole by now: paths under the runs' root, with a name for each thing that goes together."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from onward.checkpoints.find import names
from onward.model.advance import MemberState
from onward.model.pipeline import Plan, StageKind, UploadRule
from onward.rundir.closing import is_over
from onward.rundir.pipeline_layout import PipelineDir
from onward.rundir.task_layout import TaskDir
from onward.supervisor.advance import member_state

SUMMARY_FORMATS = ("md", "csv", "json", "html")


@dataclass(frozen=True, kw_only=True)
class Thing:
    key: str  # the name of its note; what can change once more, as logs of a run that is resumed, has a moment in it
    paths: tuple[str, ...]  # seen from the root; none: it is not made yet


def waiting(dir: PipelineDir, plan: Plan, rule: UploadRule, arrived: Collection[str]) -> list[Thing]:
    """All that is there, whole, and has not arrived."""
    found = (thing for kind in rule.what for thing in _of_kind(kind, dir, plan, arrived))
    return [thing for thing in found if thing.key not in arrived]


def _of_kind(kind: str, dir: PipelineDir, plan: Plan, arrived: Collection[str]) -> Iterator[Thing]:
    match kind:
        case "results":
            yield from _tasks(dir, arrived)
            yield from _artifacts(dir, plan, arrived)
        case "checkpoints":
            for folder in sorted(dir.checkpoints.glob("[!.]*.step-*")):
                yield Thing(key=f"checkpoint-{folder.name}", paths=(_seen(dir, folder),))
            yield from _last_checkpoints(dir, plan)
        case "logs":
            yield from _logs(dir, plan)
        case "summary":
            yield from _summary(dir)
        case _:  # of a newer Onward
            return


def _tasks(dir: PipelineDir, arrived: Collection[str]) -> Iterator[Thing]:
    for name in _inside(dir.tasks):
        if f"task-{name}" not in arrived and TaskDir(dir.tasks / name).result.exists():
            yield Thing(key=f"task-{name}", paths=(_seen(dir, dir.tasks / name),))


def _last_checkpoints(dir: PipelineDir, plan: Plan) -> Iterator[Thing]:
    """Of stages that are finished and that nothing measures."""
    for stage in plan.stages:
        run = dir.member(stage.name)
        if stage.done_by or stage.kind is not StageKind.STAGE or member_state(run) is not MemberState.FINISHED:
            continue
        if found := names(run.checkpoints):
            yield Thing(key=f"checkpoint-{stage.name}.{found[-1]}", paths=(_seen(dir, run.checkpoints / str(found[-1])),))


def _artifacts(dir: PipelineDir, plan: Plan, arrived: Collection[str]) -> Iterator[Thing]:
    for stage in plan.stages:
        key, run = f"artifacts-{stage.name}", dir.member(stage.name)
        if stage.done_by or stage.kind is StageKind.ENVIRONMENT or key in arrived or member_state(run) is not MemberState.FINISHED:
            continue
        if _inside(run.artifacts):
            yield Thing(key=key, paths=(_seen(dir, run.artifacts),))


def _logs(dir: PipelineDir, plan: Plan) -> Iterator[Thing]:
    """Of the runs that are over, and in the end of the pipeline itself."""
    members = [dir.member(stage.name) for stage in plan.stages if not stage.done_by]
    for run in (*members, *dir.workers()):
        if is_over(run) and (at := _moment(run.done)) is not None:
            yield Thing(key=f"logs-{run.path.name.removeprefix(f'{dir.path.name}-')}-{at:.3f}", paths=(_seen(dir, run.logs),))
    if (at := _moment(dir.over)) is not None:
        yield Thing(key=f"logs-{at:.3f}", paths=(_seen(dir, dir.log),))


def _summary(dir: PipelineDir) -> Iterator[Thing]:
    if (at := _moment(dir.over)) is None:
        return
    made = [path for path in map(dir.summary, SUMMARY_FORMATS) if path.exists() and path.stat().st_mtime >= dir.over.stat().st_mtime]
    whole = len(made) == len(SUMMARY_FORMATS)
    yield Thing(key=f"summary-{at:.3f}", paths=tuple(_seen(dir, path) for path in made) if whole else ())


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


def _seen(dir: PipelineDir, path: Path) -> str:
    return str(path.relative_to(dir.path.parent))
