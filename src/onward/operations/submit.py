"""Submit: from a draft to a run folder with everything frozen, and leg 1 queued, once."""

from __future__ import annotations

import getpass
import json
import secrets
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

from onward.errors import InvalidInput, SubmitRefused
from onward.model.lifecycle import Continue
from onward.model.run import Run
from onward.model.spec import RunDraft, RunSpec, spec_to_json
from onward.operations.code import Frozen, freeze_code
from onward.operations.wiring import Desk
from onward.pipelines.command_line import check_entry
from onward.rundir.freeze import build_archive
from onward.rundir.journal import desk_journal, read_run
from onward.rundir.layout import RunDir, folder_name, letter
from onward.sdk.files import write_whole
from onward.supervisor.handover import Handover, render_script
from onward.supervisor.surroundings import carried

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What submit would do, to the letter."""

    folder: Path
    script: str
    command: tuple[str, ...]


def submit(desk: Desk, draft: RunDraft, *, cwd: Path) -> RunDir:
    """Queue a run. Refused by the scheduler, nothing stays behind; unclear, the folder stays and `tend` goes on with it."""
    spec, root = _specify(desk, draft, cwd)
    dir = _make_folder(root, spec)
    try:
        frozen = _freeze(draft, cwd, dir, root)
        spec = replace(spec, workdir=frozen.workdir, code=frozen.facts)
        _write(desk, dir, spec, frozen)
        run = read_run(dir)
        handover = Handover(dir=dir, scheduler=desk.scheduler(spec.cluster), journal=desk_journal(dir), clock=desk.clock)
        handover.ensure(run, Continue(leg=1, mem=run.resources.mem), after=None)
    except (InvalidInput, SubmitRefused):
        shutil.rmtree(dir.path, ignore_errors=True)
        raise
    return dir


def preview(desk: Desk, draft: RunDraft, *, cwd: Path) -> Preview:
    spec, root = _specify(desk, draft, cwd)
    dir = RunDir(root / _next_name(root, spec))
    scheduler = desk.scheduler(spec.cluster)
    script = render_script(dir, Run(spec=spec), scheduler, Continue(leg=1, mem=spec.resources.mem))
    command = scheduler.submit_command(dir.script(1), name=f"{spec.name}.1.TOKEN")
    return Preview(folder=dir.path, script=script, command=tuple(command))


def _specify(desk: Desk, draft: RunDraft, cwd: Path) -> tuple[RunSpec, Path]:
    cluster, profile = desk.settings.cluster(draft.cluster)
    check_entry(draft.command, cwd, desk.env.get("PATH", ""))
    root = desk.settings.root(desk.env, profile).absolute()
    resources = profile.with_defaults(draft.resources)
    if draft.limits.mem_max and resources.mem and draft.limits.mem_max < resources.mem:
        raise InvalidInput(
            f"mem-max ({draft.limits.mem_max} MiB) is below mem ({resources.mem} MiB)", hint="raise mem-max, or leave it out"
        )
    desk.scheduler(cluster).directives(resources, output=root / "x")  # says now what the scheduler can never do
    spec = RunSpec(
        id="".join(secrets.choice(_ALPHABET) for _ in range(8)),
        name=draft.name,
        experiment=draft.experiment,
        cluster=cluster,
        command=draft.command,
        workdir=str(cwd),
        created=desk.clock.now(),
        user=getpass.getuser(),
        params=draft.params,
        resources=resources,
        limits=draft.limits,
        checkpoints=draft.checkpoints,
        variables=draft.variables,
        stop_signal=draft.stop_signal,
    )
    return spec, root


def _next_name(root: Path, spec: RunSpec) -> str:
    date = time.strftime("%Y-%m-%d", time.localtime(spec.created))
    taken = {path.name.split("_")[1] for path in root.glob(f"{date}_*_*")} if root.is_dir() else set()
    n = 0
    while letter(n) in taken:
        n += 1
    return folder_name(date, letter(n), spec.name)


def _make_folder(root: Path, spec: RunSpec) -> RunDir:
    """The day's next free letter. Two submits at once settle it by who makes the folder first."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        while True:
            path = root / _next_name(root, spec)
            try:
                path.mkdir()
                break
            except FileExistsError:
                continue
    except OSError as error:
        raise InvalidInput(
            f"runs cannot be kept in {root}: {error.strerror}", hint="set ONWARD_ROOT to a folder you may write to"
        ) from error
    dir = RunDir(path)
    dir.make()
    return dir


def _freeze(draft: RunDraft, cwd: Path, dir: RunDir, root: Path) -> Frozen:
    if draft.freeze:
        return freeze_code(cwd, dir.code, exclude=draft.exclude, runs=root)
    return Frozen(workdir=str(cwd), facts={"frozen": False}, diff="")


def _write(desk: Desk, dir: RunDir, spec: RunSpec, frozen: Frozen) -> None:
    if frozen.diff:
        write_whole(dir.params / "code.diff", frozen.diff)
    write_whole(dir.environment, json.dumps(carried(desk.env)), mode=0o600)
    build_archive(dir.supervisor)
    write_whole(dir.spec, json.dumps(spec_to_json(spec), indent=1))
