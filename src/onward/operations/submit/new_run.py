"""Submit: from a draft to a run folder with everything frozen, and leg 1 queued, once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from onward.errors import Conflict, InvalidInput, SchedulerUnavailable, StorageError, SubmitRefused
from onward.inputs.command_line import check_entry
from onward.inputs.params.scheduler_options import check_extra
from onward.inputs.scripts.contradictions import without_clashes
from onward.inputs.scripts.preflight import check_folder, check_program, check_setup, check_syntax
from onward.model import events as ev
from onward.model.commands.placeholders import check_params
from onward.model.identity import new_id
from onward.model.policy.lifecycle import Continue
from onward.model.run import Run
from onward.model.spec import Cluster, PipelineMembership, Resources, RunDraft, RunSpec, Script, spec_to_json
from onward.operations.context import OperationsContext
from onward.operations.submit.arriving_code import ArrivedCode
from onward.operations.submit.code_snapshot import CodeSnapshot, freeze_code
from onward.operations.submit.missing_paths import named_words, note_on_missing
from onward.operations.submit.preflight import check_launcher_is_there, notes_on_python
from onward.operations.submit.run_folders import next_folder, removed_if_it_fails, run_day, take_folder
from onward.operations.tracker_access.server import announce_run, tracker_settings, withdraw_run
from onward.rundir.files.code_list import record_code
from onward.rundir.freeze import build_archive
from onward.rundir.home import record_home
from onward.rundir.journal import desk_journal, read_run
from onward.rundir.layout import RunDir
from onward.rundir.request_inputs import write_inputs
from onward.rundir.root.layout import RootDir
from onward.rundir.root.once_per_request import is_marked, publish_spec
from onward.schedulers.base import capabilities_of
from onward.schedulers.registry import files_to_freeze
from onward.sdk.atomic_files import same_file, write_whole
from onward.supervisor.leg.handover import SCHEDULER_PATIENCE, Handover, render_script
from onward.supervisor.preparation.environment import inherited_variables
from onward.supervisor.preparation.setup_steps import check_setup_paths, steps, with_absolute_paths
from onward.supervisor.ranks.launchers import check_launcher


@dataclass(frozen=True, kw_only=True)
class SubmitPreview:
    """What submit would do, to the letter."""

    folder: Path
    script: str
    command: tuple[str, ...]
    notes: tuple[str, ...] = ()


def submit(
    context: OperationsContext,
    draft: RunDraft,
    *,
    cwd: Path,
    id: str | None = None,
    arrived: ArrivedCode | None = None,
    begin: Callable[[RunDir], object] | None = None,
    admit: Callable[[RunDir], bool] | None = None,
    patience: float = SCHEDULER_PATIENCE,
) -> RunDir:
    """Queue a run. Refused by the scheduler, nothing stays behind; unclear, the folder stays and `tend` goes on with it.

    `id`: the one it must have, where somebody has promised it. `begin` may put into its folder what its first leg goes on from, before
    anybody can take the folder for a run. `admit` has the last word before the folder becomes a run: after False it is removed, and
    Conflict says so. `patience`: seconds to go on asking a scheduler that does not answer.
    """
    spec, root = _specify(context, draft, cwd, id=arrived.id if arrived else id or new_id())
    dir = RunDir(take_folder(root, run_day(spec.created), spec.name, lambda path: RunDir(path).make()))
    with removed_if_it_fails(dir.path):
        frozen = arrived.move(dir.code) if arrived else _freeze(draft, cwd, dir, root)
        spec = replace(spec, workdir=_start(draft, frozen.workdir), code=frozen.facts)
        if draft.script:
            write_whole(dir.batch_script, draft.script_text.encode(errors="surrogateescape"), mode=_script_mode(draft.script))
        own = inherited_variables(context.env, functions=draft.script is not None) if draft.carry else {}
        if draft.inputs:
            write_inputs(dir, draft.inputs)
        if begin:
            begin(dir)
        _write(dir, spec, frozen, environment={**own, **draft.variables})
    if admit:
        _admit(dir, admit)
    with removed_if_it_fails(dir.path) if not admit else nullcontext():  # one that was admitted is finished by whoever comes next
        publish_spec(dir)
        run = read_run(dir)
    context.remember_root(root)
    if not arrived:
        context.remember_code(cwd)
    announce_run(context, spec, dir)
    scheduler = context.scheduler(spec.cluster)
    handover = Handover(dir=dir, scheduler=scheduler, journal=desk_journal(dir), clock=context.clock, patience=patience)
    try:
        handover.ensure_ahead(run, Continue(leg=1, mem=run.resources.mem), after=None)
    except (InvalidInput, SubmitRefused):
        withdraw_run(context, spec)
        shutil.rmtree(dir.path, ignore_errors=True)
        raise
    handover.advise(run)
    for words in frozen.notes:
        handover.journal.write(ev.Warned(leg=run.first_leg, at=context.clock.now(), text=words))
    return dir


def make_held_run(
    context: OperationsContext, draft: RunDraft, *, cwd: Path, folder: Path, member: PipelineMembership, archive: Path | None = None
) -> RunDir:
    """Make a run of a pipeline, whole, and ask for no job: the pipeline does when its time has come.

    Its code is the pipeline's, frozen already; `folder` is its own, and must not be there yet. What it runs in may still have to be built.
    `archive`: the supervisor that the pipeline has frozen for all its runs.
    """
    spec, _ = _specify(context, draft, cwd, id=new_id(), built=False)
    spec = replace(spec, member=member, workdir=_start(draft, str(cwd)), code={"frozen": True, "from": str(cwd)})
    dir = RunDir(folder)
    try:
        folder.mkdir()
    except OSError as error:
        there = "already exists" if isinstance(error, FileExistsError) else f"cannot be created: {error.strerror}"
        raise StorageError(f"{folder}, for a run of a pipeline, {there}", hint="is there room, and do you have write access?") from error
    with removed_if_it_fails(dir.path):
        dir.make()
        write_whole(dir.held, json.dumps({"pipeline": member.pipeline, "stage": member.stage}))
        own = inherited_variables(context.env, functions=False) if draft.carry else {}
        frozen = CodeSnapshot(workdir=spec.workdir, facts={}, diff="")
        _write(dir, spec, frozen, environment={**own, **draft.variables}, archive=archive)
        publish_spec(dir)
    announce_run(context, spec, dir)
    return dir


def preview(context: OperationsContext, draft: RunDraft, *, cwd: Path, code_is_here: bool = True) -> SubmitPreview:
    spec, root = _specify(context, draft, cwd, id=new_id(), code_is_here=code_is_here)
    dir = RunDir(next_folder(root, run_day(spec.created), spec.name))
    scheduler = context.scheduler(spec.cluster)
    script = render_script(dir, Run(spec=spec), scheduler, Continue(leg=1, mem=spec.resources.mem))
    command = scheduler.submit_command(dir.script(1), name=f"{spec.name}.1.TOKEN")
    return SubmitPreview(folder=dir.path, script=script, command=tuple(command), notes=tuple(notes_on_python(spec.cluster)))


def check_request(context: OperationsContext, draft: RunDraft) -> tuple[Cluster, Resources, Path]:
    """What can be said of a request before its code is looked at: the cluster it goes to, what it asks for, and the runs folder."""
    cluster, profile = context.settings.cluster(draft.cluster)
    _check_programs(context, cluster)
    root = context.settings.root(context.env, profile).absolute()
    if draft.script is None:  # a script's own options were judged as it was read
        check_extra(draft.resources, cluster.scheduler)
    check_extra(profile.defaults, cluster.scheduler, f"clusters.{profile.name}.defaults")
    resources = without_clashes(draft.resources, profile.with_defaults(draft.resources))
    if draft.limits.mem_max and resources.mem and draft.limits.mem_max < resources.mem:
        raise InvalidInput(
            f"mem-max ({draft.limits.mem_max} MiB) is below mem ({resources.mem} MiB)", hint="raise mem-max, or leave it out"
        )
    scheduler = context.scheduler(cluster)
    check_launcher(draft.launcher, resources, srun_steps=capabilities_of(scheduler).srun_steps, scheduler=cluster.scheduler)
    scheduler.directives(resources, output=root)  # says now what the scheduler can never do
    return cluster, resources, root


def _specify(
    context: OperationsContext, draft: RunDraft, cwd: Path, *, id: str, code_is_here: bool = True, built: bool = True
) -> tuple[RunSpec, Path]:
    context.settings.cluster(draft.cluster)  # a name that nobody knows is said first
    if draft.script:
        check_start(draft, cwd, context.env.get("PATH", ""), code_is_here=code_is_here)
    else:
        check_params(draft.command, draft.params)
    if not draft.script and code_is_here:
        check_entry(draft.command, cwd, context.env.get("PATH", ""), prepared=bool(steps(draft.environment)))
        if not steps(draft.environment):
            check_launcher_is_there(draft.launcher, context.env.get("PATH", ""))
    environment = with_absolute_paths(draft.environment, cwd)
    if built:
        check_setup_paths(environment)
    check_setup(environment.setup)
    cluster, resources, root = check_request(context, draft)
    spec = RunSpec(
        id=id,
        name=draft.name,
        experiment=draft.experiment,
        cluster=cluster,
        command=draft.command,
        workdir=str(cwd),
        created=context.clock.now(),
        user=context.user,
        params=draft.params,
        resources=resources,
        limits=draft.limits,
        checkpoints=draft.checkpoints,
        stop_signal=draft.stop_signal,
        stop_lead=draft.stop_lead,
        launcher=draft.launcher,
        environment=environment,
        outputs=draft.outputs,
        script=replace(draft.script, submitted_from=str(cwd) if code_is_here and not draft.freeze else "") if draft.script else None,
        parent=draft.parent,
        tracker=tracker.url if (tracker := tracker_settings(context)) else None,
        request=draft.inputs.request if draft.inputs else None,
    )
    return spec, root


def check_start(draft: RunDraft, cwd: Path, path: str, *, code_is_here: bool) -> None:
    """Of a batch script: what it is written in can be said anywhere; its folder and its program are where its code is."""
    if draft.script and code_is_here:
        check_folder(draft.script, cwd / (draft.folder or "."))
        check_program(draft.script, cwd / (draft.folder or "."), path)
    if draft.script:
        check_syntax(draft.script, draft.script_text)


def _script_mode(script: Script) -> int:
    """Others may read and start the copy where they may read the script; where that is on another machine, we alone."""
    try:
        readers = (Path(script.folder) / script.name).stat().st_mode & 0o044
    except OSError:
        readers = 0
    return 0o700 | readers | readers >> 2


def _start(draft: RunDraft, workdir: str) -> str:
    return os.path.normpath(os.path.join(workdir, draft.folder)) if draft.folder else workdir


def _check_programs(context: OperationsContext, cluster: Cluster) -> None:
    """A machine that has no sbatch will not have one in two minutes: say so, rather than wait for an answer."""
    program = {"slurm": "sbatch", "gridengine": "qsub"}.get(cluster.scheduler)
    if program and shutil.which(program, path=context.env.get("PATH", "")) is None:
        raise SchedulerUnavailable(
            f"cluster {cluster.name}: the program {program} is not on the PATH here",
            hint="submit from a machine of the cluster, or use --cluster local",
        )


# ── the folder ────────────────────────────────────────────────────────────────


def _freeze(draft: RunDraft, cwd: Path, dir: RunDir, root: Path) -> CodeSnapshot:
    if draft.freeze:
        words, alone = named_words(draft), draft.inputs is not None
        frozen = freeze_code(cwd, dir.code, exclude=draft.exclude, runs=root, alone=alone, words=words)
        return frozen if alone else replace(frozen, notes=(*frozen.notes, *note_on_missing(cwd, dir.code / frozen.workdir, words)))
    return CodeSnapshot(workdir=str(cwd), facts={"frozen": False}, diff="")


def _admit(dir: RunDir, admit: Callable[[RunDir], bool]) -> None:
    """Removed if it is surely not admitted. Where that cannot be told, it stays: the next look tells."""
    try:
        admitted = admit(dir)
    except OSError as error:
        if not is_marked(dir):
            shutil.rmtree(dir.path, ignore_errors=True)
        raise StorageError(
            f"the run could not be stored in {dir.path}: {error}", hint="is there room, and do you have write access?"
        ) from error
    if not admitted:
        shutil.rmtree(dir.path, ignore_errors=True)
        raise Conflict(f"the run in {dir.path} is not needed: another one was created first")


def _write(dir: RunDir, spec: RunSpec, frozen: CodeSnapshot, *, environment: Mapping[str, str], archive: Path | None = None) -> None:
    """All of a run but the name of its spec. Variables may be secrets, so they stand in a file that nobody else can read."""
    if frozen.diff:
        write_whole(dir.code_diff, frozen.diff, mode=frozen.diff_mode)
    write_whole(dir.environment, json.dumps(environment), mode=0o600)
    record_home(dir)
    if spec.code.get("frozen") and spec.member is None:
        record_code(dir, mode=frozen.diff_mode)
    if archive:
        same_file(archive, dir.supervisor)
    else:
        build_archive(dir.supervisor, also=files_to_freeze(spec.cluster.scheduler), share=RootDir(dir.path.parent).supervisors)
    write_whole(dir.prepared_spec, json.dumps(spec_to_json(spec), indent=1))
