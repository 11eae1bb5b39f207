"""Start a pipeline: from a plan to folders with everything frozen, and the first stages queued."""

from __future__ import annotations

import difflib
import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from onward.errors import InvalidInput
from onward.model.pipelines.environment_build import Build, build_to_json
from onward.model.pipelines.plan import PipelinePlan, Stage, StageKind, WorkerPool, fill_stages, plan_to_json
from onward.model.pipelines.policy import StageState
from onward.model.spec import Cluster, Environment, PipelineMembership, RunDraft
from onward.operations.context import OperationsContext
from onward.operations.pipelines.upload import check_upload
from onward.operations.runs.record import is_ours
from onward.operations.submit.code_snapshot import freeze_code
from onward.operations.submit.new_run import make_held_run
from onward.operations.submit.run_folders import removed_if_it_fails, run_day, take_folder
from onward.pipelines.advance import PipelineAdvance, member_state
from onward.pipelines.build import Environments
from onward.pipelines.checkpoints import run_of
from onward.rundir.freeze import build_archive
from onward.rundir.journal import read_spec
from onward.rundir.layout import RunDir, runs_under
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.root.layout import RootDir
from onward.schedulers.registry import files_to_freeze
from onward.sdk.atomic_files import write_whole
from onward.supervisor.preparation.setup_steps import check_setup_paths, with_absolute_paths


def start_pipeline(context: OperationsContext, plan: PipelinePlan, *, source: str, cwd: Path) -> PipelineDir:
    """Everything is made and frozen before anything is queued. What cannot be made leaves nothing behind."""
    cluster, root = _place(context, plan)
    check_upload(plan, cluster)
    plan = _with_what_is_done(replace(plan, created=context.clock.now()), root)
    dir = PipelineDir(take_folder(root, run_day(plan.created), plan.name, lambda path: PipelineDir(path).make()))
    with _removed_if_it_fails(dir):
        frozen = freeze_code(cwd, dir.code, exclude=(), runs=root)
        build_archive(dir.supervisor, also=files_to_freeze(cluster.scheduler), share=RootDir(root).supervisors)
        for build in plan.builds:
            write_whole(dir.build(build.name), json.dumps(build_to_json(build), indent=1))
        making = _Making(context=context, plan=plan, dir=dir, cluster=cluster, root=root, cwd=dir.code / frozen.workdir, given=cwd)
        making.all()
        if plan.upload:
            dir.uploads.mkdir()
        write_whole(dir.source, source)
        write_whole(dir.started, json.dumps({"workdir": frozen.workdir, "by": context.user, "code": frozen.facts}, indent=1))
        write_whole(dir.plan, json.dumps(plan_to_json(plan), indent=1))
    context.remember_root(root)
    advance_pipeline(context, dir)
    return dir


def mark_done_stages(context: OperationsContext, plan: PipelinePlan) -> PipelinePlan:
    """The plan with the stages that are done already, as far as one can tell from here. Nothing is made."""
    cluster, profile = context.settings.cluster(plan.cluster)
    return plan if cluster.ssh else _with_what_is_done(plan, context.settings.root(context.env, profile).absolute())


def stages_from(plan: PipelinePlan, name: str) -> set[str]:
    """The stage of this name, all points of one that is swept, and everything that needs them, however far down."""
    found = {stage.name for stage in plan.stages if stage.name == name or (stage.matrix and stage.name.rpartition("-")[0] == name)}
    if not found:
        known = [stage.name for stage in plan.stages]
        near = difflib.get_close_matches(name, known, n=1)
        guess = f"did you mean {near[0]}? " if near else ""
        raise InvalidInput(f"there is no stage {name!r} in {plan.name}", hint=f"{guess}it has {', '.join(known)}")
    for stage in plan.stages:  # each comes after all that it needs
        if found & set(stage.needs):
            found.add(stage.name)
    return found


def from_stage(plan: PipelinePlan, name: str) -> PipelinePlan:
    """The plan, with this stage and all that need it done whether or not they have changed."""
    again = stages_from(plan, name)
    changed = (replace(stage, content_hash="", done_by=None) if stage.name in again else stage for stage in plan.stages)
    return replace(plan, stages=tuple(changed))


def advance_pipeline(context: OperationsContext, dir: PipelineDir) -> list[str]:
    """Look, and queue what is ready; what was done, in words."""
    return PipelineAdvance(dir=dir, clock=context.clock, make_scheduler=context.scheduler).work()


# ── making ────────────────────────────────────────────────────────────────────


def _place(context: OperationsContext, plan: PipelinePlan) -> tuple[Cluster, Path]:
    cluster, profile = context.settings.cluster(plan.cluster)
    if cluster.ssh:
        raise InvalidInput(
            f"cluster: {cluster.name} is reached through ssh, but a pipeline must be started where its runs are",
            hint=f"ssh {cluster.ssh}, and `onward pipeline run` there",
        )
    return cluster, context.settings.root(context.env, profile).absolute()


def _with_what_is_done(plan: PipelinePlan, root: Path) -> PipelinePlan:
    """Stages that an earlier run of ours has done, with the same content, are not done again. What others made is theirs to change."""
    wanted = {stage.content_hash: stage for stage in plan.stages if stage.content_hash and stage.kind is not StageKind.ENVIRONMENT}
    found: dict[str, str] = {}
    for run in runs_under(root) if wanted else ():
        member = _member_of(run)
        left = member.content in wanted and is_ours(run) and member_state(run) is StageState.FINISHED if member else False
        if member and left and all(any(run.results.glob(pattern)) for pattern in wanted[member.content].outputs):
            found[member.content] = str(run.path)
    builds = {build.name: build for build in plan.builds}
    environments = Environments(root)

    def done_by(stage: Stage) -> str | None:
        if stage.done_by:
            return stage.done_by
        if stage.kind is StageKind.ENVIRONMENT and stage.environment:
            key = builds[stage.environment].key
            return str(environments.link(key)) if environments.is_whole(key) else None
        return found.get(stage.content_hash)

    return replace(plan, stages=tuple(replace(stage, done_by=done_by(stage)) for stage in plan.stages))


def _member_of(run: RunDir) -> PipelineMembership | None:
    """None also where its folder cannot be read: what is damaged, or another's, has done nothing for us."""
    try:
        return read_spec(run).member
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


class _Making:
    """The runs of a pipeline: whole, and held."""

    def __init__(
        self, *, context: OperationsContext, plan: PipelinePlan, dir: PipelineDir, cluster: Cluster, root: Path, cwd: Path, given: Path
    ) -> None:
        self._context, self._plan, self._dir, self._cwd, self._given = context, plan, dir, cwd, given
        self._python = cluster.python or sys.executable
        self._scheduler = cluster.scheduler
        self._environments = Environments(root)
        self._builds: Mapping[str, Build] = {build.name: build for build in plan.builds}
        self._results = {stage.name: str(run_of(dir, plan, stage.name).results) for stage in plan.stages}

    def all(self) -> None:
        for stage in self._plan.stages:
            if not stage.done_by:
                member = PipelineMembership(pipeline=str(self._dir.path), stage=stage.name, content=stage.content_hash)
                self._hold(self._stage(stage), self._dir.member(stage.name).path, member)
        for pool in self._plan.pools:
            member = PipelineMembership(pipeline=str(self._dir.path), stage=pool.name)
            self._hold(self._pool(pool), self._dir.template(pool.name).path, member)

    def _hold(self, draft: RunDraft, folder: Path, member: PipelineMembership) -> None:
        here = self._context.settings.cluster(draft.cluster)[0].scheduler == self._scheduler
        archive = self._dir.supervisor if here else None  # another scheduler may need files of its own
        make_held_run(self._context, draft, cwd=self._cwd, folder=folder, member=member, archive=archive)

    def _stage(self, stage: Stage) -> RunDraft:
        draft = replace(stage.draft, name=f"{self._plan.name}-{stage.name}")
        if stage.kind is StageKind.ENVIRONMENT and stage.environment:
            command = (*self._ours("build"), str(self._environments.root), str(self._dir.build(stage.environment)))
            return self._without_gpus(replace(draft, command=command))
        return self._inside(fill_stages(draft, self._results), stage.environment)

    def _pool(self, pool: WorkerPool) -> RunDraft:
        command = (*self._ours("worker"), str(self._dir.path), pool.name)
        draft = replace(pool.draft, name=f"{self._plan.name}-worker", command=command)
        return self._without_gpus(self._inside(draft, pool.environment))

    def _without_gpus(self, draft: RunDraft) -> RunDraft:
        """The local queue gives all GPUs to a job that asks for no number. Builds and workers must not hold them while a training waits."""
        cluster, profile = self._context.settings.cluster(draft.cluster)
        if cluster.scheduler != "local" or profile.with_defaults(draft.resources).asks_gpus():
            return draft
        return replace(draft, resources=replace(draft.resources, gpus="0"))

    def _ours(self, verb: str) -> tuple[str, ...]:
        return (self._python, str(self._dir.supervisor), verb)

    def _inside(self, draft: RunDraft, environment: str | None) -> RunDraft:
        """The draft, run in what was built for it. What it names itself must be there now."""
        own = with_absolute_paths(draft.environment, self._given)
        check_setup_paths(own)
        build = self._builds.get(environment or "")
        if build is None:
            return replace(draft, environment=own)
        used = build.used(str(self._environments.prefix(build.key)))
        both = Environment(
            modules=(*used.modules, *own.modules),
            conda=own.conda or used.conda,
            venv=own.venv or used.venv,
            setup=(*used.setup, *own.setup),
        )
        return replace(draft, environment=both, command=(*build.prefix_command(), *draft.command))


@contextmanager
def _removed_if_it_fails(dir: PipelineDir) -> Iterator[None]:
    try:
        with removed_if_it_fails(dir.path):
            yield
    except BaseException:
        for member in dir.path.parent.glob(f"{dir.path.name}-*"):
            shutil.rmtree(member, ignore_errors=True)
        raise
