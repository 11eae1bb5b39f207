"""Clone: a new run of the code that another run froze, with other params or resources. Nobody has to have that code any more."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from onward.checkpoints.branch import branch
from onward.errors import Conflict, NotAllowed, NotFound
from onward.model.checkpoint import CheckpointName
from onward.model.identity import new_id
from onward.model.spec import RunDraft, RunSpec
from onward.operations.context import OperationsContext
from onward.operations.runs.record import is_ours
from onward.operations.submit.arriving_code import ArrivedCode
from onward.operations.submit.code_snapshot import CodeSnapshot
from onward.operations.submit.new_run import SubmitPreview, preview, submit
from onward.rundir.files.no_links import read_beneath
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir
from onward.rundir.request_inputs import read_inputs


@dataclass(frozen=True, kw_only=True)
class CopiedCode(ArrivedCode):
    """The frozen code of another run, which stays where it is."""

    since: float  # what came into its folder later was written by the training, and is not code

    def move(self, target: Path) -> CodeSnapshot:
        os.chmod(target, 0o700)  # until it has the original's mode, when all is there
        shutil.copytree(self.code, target, symlinks=True, dirs_exist_ok=True, ignore=self._later())
        return self.frozen

    def _later(self) -> Callable[[str, list[str]], list[str]] | None:
        """None, so that all is copied, where times say nothing: in a folder that was itself copied, everything came later."""

        def later(folder: str, names: list[str]) -> list[str]:
            paths = [os.path.join(folder, name) for name in names]
            return [name for name, path in zip(names, paths, strict=True) if _is_file(path) and os.lstat(path).st_ctime > self.since]

        left = sum(len(names) - len(later(folder, names)) for folder, _, names in os.walk(self.code))
        return later if left >= int(self.frozen.facts.get("files") or 0) else None


def draft_of(dir: RunDir) -> RunDraft:
    """What was asked for when this run was submitted. Its variables may be secrets, so it must be our own."""
    if os.geteuid() != 0 and not is_ours(dir):
        raise NotAllowed(f"the run in {dir.path} belongs to {dir.path.owner()}", hint="only its owner can clone it")
    spec = read_run(dir).spec
    if given := read_inputs(dir):
        raise Conflict(
            f"the run in {dir.path} serves the request {given.request}, whose inputs cannot be reused",
            hint=f"send the request again, or onward resume {spec.id}",
        )
    return RunDraft(
        name=spec.name,
        experiment=spec.experiment,
        cluster=spec.cluster.name,
        command=spec.command,
        params=spec.params,
        resources=spec.resources,
        limits=spec.limits,
        checkpoints=spec.checkpoints,
        variables=json.loads(read_beneath(dir.root, dir.environment)) if dir.environment.exists() else {},
        stop_signal=spec.stop_signal,
        stop_lead=spec.stop_lead,
        launcher=spec.launcher,
        environment=spec.environment,
        outputs=spec.outputs,
        script=spec.script,
        script_text=read_beneath(dir.root, dir.batch_script).decode(errors="surrogateescape") if spec.script else "",
        parent=spec.id,
        carry=False,  # it is among the variables
        freeze=_is_frozen(spec),
    )


def clone(context: OperationsContext, dir: RunDir, draft: RunDraft, *, since: CheckpointName | None = None) -> RunDir:
    """Queue `draft`, which was made from this run's, with this run's code; from the beginning, or from its checkpoint `since`."""
    spec = read_run(dir).spec
    begin = _branch(dir, since) if since else None
    if not _is_frozen(spec):
        return submit(context, draft, cwd=_start(dir, spec), begin=begin)
    diff = dir.code_diff
    frozen = CodeSnapshot(workdir=spec.workdir, facts=dict(spec.code), diff="")
    if diff.exists():
        frozen = replace(frozen, diff=read_beneath(dir.root, diff).decode(), diff_mode=stat.S_IMODE(diff.stat().st_mode))
    copied = CopiedCode(id=new_id(), code=dir.code, frozen=frozen, since=dir.spec.stat().st_ctime)
    return submit(context, draft, cwd=_start(dir, spec), arrived=copied, begin=begin)


def clone_preview(context: OperationsContext, dir: RunDir, draft: RunDraft) -> SubmitPreview:
    return preview(context, draft, cwd=_start(dir, read_run(dir).spec))


def _branch(dir: RunDir, since: CheckpointName) -> Callable[[RunDir], object]:
    folder = dir.checkpoints / str(since)
    if not folder.is_dir():
        raise NotFound(
            f"the run in {dir.path} has no checkpoint of step {since.step} of leg {since.leg}",
            hint="old checkpoints are deleted over time; `onward checkpoints` lists the existing ones",
        )
    return lambda made: branch(folder, made.checkpoints)


def _start(dir: RunDir, spec: RunSpec) -> Path:
    start = dir.code / spec.workdir if _is_frozen(spec) else Path(spec.workdir)
    if not start.is_dir():
        raise Conflict(f"the code of {spec.name} is no longer at {start}", hint="submit again from where the code is")
    return start


def _is_frozen(spec: RunSpec) -> bool:
    return bool(spec.code.get("frozen"))


def _is_file(path: str) -> bool:
    return os.path.islink(path) or not os.path.isdir(path)
