"""What a person may ask of a pipeline, and what `tend` does for all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from onward.errors import Conflict, NotFound, OnwardError, SchedulerError, SchedulerUnavailable, StorageError
from onward.model.pipelines.plan import PipelinePlan, StageKind
from onward.model.pipelines.policy import StageState
from onward.model.pipelines.task import TaskState, tasks_of
from onward.operations.context import OperationsContext
from onward.operations.pipelines.start import advance_pipeline, from_stage, stages_from, start_pipeline
from onward.operations.pipelines.upload import tend_upload
from onward.operations.remembered_roots import roots_text
from onward.operations.runs.control import cancel, reopen, resume
from onward.operations.runs.find import check_text, is_path
from onward.operations.runs.record import is_ours
from onward.operations.runs.unrecorded import unrecorded
from onward.pipelines.advance import gather_facts, live_members, member_state, read_plan
from onward.pipelines.build import Environments
from onward.pipelines.checkpoints import run_of
from onward.rundir.layout import RunDir
from onward.rundir.pipeline.layout import PipelineDir, pipelines_under
from onward.rundir.pipeline.tasks import allow_another_attempt
from onward.sdk.atomic_files import write_whole


def tend_pipelines(context: OperationsContext, among: Sequence[Path] | None = None, *, uploads: bool = True) -> tuple[list[str], list[str]]:
    """All that are ours and not over, or not uploaded: what was done, and what went wrong. `among`: the folders that may be one.

    Without `uploads` no other host is spoken to.
    """
    acted, problems = [], []
    for root in context.roots:
        for dir in pipelines_under(root) if among is None else _pipelines(root, among):
            if not is_ours(RunDir(dir.path)):
                continue
            try:
                if not dir.over.exists():
                    acted += [f"{dir.path.name}: {words}" for words in advance_pipeline(context, dir)]
                if uploads:
                    problems += [f"{dir.path.name}: {words}" for words in tend_upload(context, dir)]
            except (OnwardError, OSError, ValueError) as error:
                problems.append(f"{dir.path.name}: {error}")
    return acted, problems


def _pipelines(root: Path, among: Sequence[Path]) -> list[PipelineDir]:
    return [dir for dir in (PipelineDir(path) for path in among if path.parent == root) if dir.is_pipeline()]


def find_pipeline(context: OperationsContext, text: str) -> PipelineDir:
    """By its folder, the folder's name, or the pipeline's name: then the newest of that name."""
    check_text(text)
    if is_path(text) or PipelineDir(Path(text)).is_pipeline():
        dir = PipelineDir(Path(text).expanduser().absolute())
        if dir.is_pipeline():
            return dir
        raise NotFound(f"{text} is not a pipeline's folder", hint="`onward pipeline list` lists the pipelines")
    found = {dir.path.name: dir for root in context.roots for dir in pipelines_under(root)}
    same = [name for name in found if name.split("_", 2)[-1] == text]
    begins = [name for name in found if name.startswith(text)]
    if text in found or same:
        return found[text if text in found else same[-1]]
    if len(begins) > 1:
        raise Conflict(f"{text!r} may mean {len(begins)} pipelines", hint=f"use a folder name: {', '.join(begins[-10:])}")
    if begins:
        return found[begins[0]]
    raise NotFound(
        f"there is no pipeline {text!r} under {roots_text(list(map(str, context.roots)))}", hint="`onward pipeline list` lists them"
    )


def cancel_pipeline(context: OperationsContext, dir: PipelineDir) -> None:
    """Nothing more begins, and what runs is ended: the jobs also where nothing can be written down."""
    _mine(dir)
    name, again = dir.path.name, f"onward pipeline cancel {dir.path.name}"
    if dir.over.exists():
        raise Conflict(f"{name} is already over", hint="`onward pipeline show` says how it ended")
    unmarked: StorageError | None = None
    try:
        write_whole(dir.cancelled, json.dumps({"by": context.user, "at": context.clock.now()}))
    except OSError as error:
        done, left = f"the jobs of {name} are cancelled", "the pipeline is not marked as cancelled"
        unmarked = unrecorded(error, dir.path.parent, done=done, left=left, again=again)
    unreached: list[SchedulerError] = []
    unstored: list[StorageError] = []
    for run in live_members(dir, read_plan(dir)).values():
        try:
            cancel(context, run)
        except Conflict:  # it ended otherwise in this very moment; the others are still to be ended
            continue
        except SchedulerError as error:
            unreached.append(error)
        except StorageError as error:
            unstored.append(error)
    if unreached:
        raise SchedulerUnavailable(unreached[0].message, hint=f"run {again} again when the scheduler answers")
    if unstored:
        more = f"; {len(unstored) - 1} more runs of {name} could not be marked either" if unstored[1:] else ""
        raise StorageError(unstored[0].message + more, hint=f"free some space, or repair that disk, then run {again} again")
    if unmarked:
        raise unmarked
    advance_pipeline(context, dir)


def retry_failed(context: OperationsContext, dir: PipelineDir) -> list[str]:
    """Do once more what failed, and what was kept from beginning by it. What is done stays done. Names what is tried again."""
    _mine(dir)
    plan = read_plan(dir)
    _must_have_environments(dir, plan)
    facts = gather_facts(dir, plan)
    bad = (StageState.FAILED, StageState.CANCELLED)
    stages = [stage.name for stage in plan.stages if facts.members.get(stage.name) in bad]
    tasks = allow_another_attempt(dir, plan, tasks_of(plan, facts.checkpoints), by=context.user, at=context.clock.now())
    left = any(state is not TaskState.DONE for state in facts.tasks.values())
    if not (stages or tasks or left or facts.cancelled):
        raise Conflict(f"nothing of {dir.path.name} has failed", hint=f"`onward pipeline show {dir.path.name}` shows its status")
    write_whole(dir.forgiven, json.dumps({"workers": facts.workers_made, "by": context.user, "at": context.clock.now()}))
    dir.cancelled.unlink(missing_ok=True)
    dir.over.unlink(missing_ok=True)
    for name in stages:
        member = dir.member(name)
        if member.held.exists():
            reopen(context, member)
        else:
            resume(context, member, changes={})
    advance_pipeline(context, dir)
    return [*stages, *tasks]


def restart_from_stage(context: OperationsContext, dir: PipelineDir, stage: str) -> PipelineDir:
    """A new pipeline of the same plan and code that does this stage, and all that need it, once more; what else is done stays done."""
    before = read_plan(dir)
    plan, facts = from_stage(before, stage), gather_facts(dir, before, note=False)
    again = stages_from(before, stage)
    done = {name: str(run_of(dir, before, name).path) for name, state in facts.members.items() if state is StageState.FINISHED}
    stages = tuple(one if one.name in again else replace(one, done_by=one.done_by or done.get(one.name)) for one in plan.stages)
    started = json.loads(dir.started.read_bytes())
    return start_pipeline(context, replace(plan, stages=stages), source=dir.source.read_text(), cwd=dir.code / started["workdir"])


def _must_have_environments(dir: PipelineDir, plan: PipelinePlan) -> None:
    """What was built for it and cleaned away since is built by no stage of it any more."""
    environments = Environments(dir.path.parent)
    keys = {build.name: build.key for build in plan.builds}
    for stage in (stage for stage in plan.stages if stage.kind is StageKind.ENVIRONMENT and stage.environment):
        built = stage.done_by is not None or member_state(dir.member(stage.name)) is StageState.FINISHED
        if built and stage.environment and not environments.is_whole(keys[stage.environment]):
            raise Conflict(
                f"the environment {stage.environment} of {dir.path.name} has been removed",
                hint=f"`onward pipeline rerun {dir.path.name} --from {stage.name}` builds it again, in a new pipeline",
            )


def _mine(dir: PipelineDir) -> None:
    if not is_ours(RunDir(dir.path)):
        raise Conflict(f"{dir.path.name} belongs to another user", hint="only its owner can change it")
