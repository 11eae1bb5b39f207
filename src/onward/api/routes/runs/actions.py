"""What a person may ask of runs that Onward executes: submit, clone, cancel, stop, resume. The verbs of the command line, over HTTP.

Code is never uploaded. A clone runs what another run froze; a submit names a folder on the server's machine, which must be one that this
caller may use (`run_folders/code`). What only these verbs need is loaded by them: a server should be ready soon.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from onward.api.access.caller import ApiCaller
from onward.api.dependencies import Svc, Who
from onward.api.routes.path_params import RunId, run_of
from onward.api.run_folders.code import allowed_folder
from onward.api.run_folders.locate import must_have_folder
from onward.api.schemas.base import In, Text, json_response
from onward.api.schemas.run_details import run_details
from onward.api.schemas.runs import RunDetails
from onward.api.server_log import note
from onward.api.services import Services
from onward.errors import InvalidInput, NotAllowed
from onward.model.checkpoint import CheckpointName
from onward.model.spec import RunDraft
from onward.operations.runs import control
from onward.operations.runs.damaged import cancel_damaged, spec_damage
from onward.operations.runs.find import labels
from onward.rundir.layout import RunDir

if TYPE_CHECKING:
    from onward.operations.submit.new_run import SubmitPreview

router = APIRouter(prefix="/api/v1/runs", tags=["runs"])

_RESOURCES = "As in a params file's `train.resources`; those that are given replace."
Given = dict[Annotated[Text, Field(max_length=250)], Any]
DryRun = Annotated[bool, Field(description="Answer with the exact job script and command; queue nothing.")]


class SubmitIn(In):
    """A run for Onward to execute: a params file as text or as data, and the folder that its command starts in."""

    file: Annotated[Text, Field(max_length=500_000)] | None = Field(default=None, description="A params file's text, in YAML or JSON.")
    draft: dict[str, Any] | None = Field(default=None, description="The same as data: name, experiment, cluster, train.")
    folder: Annotated[Text, Field(min_length=1, max_length=4096)] = Field(
        description="Where the command starts, and the code to freeze: on the server's machine, in one of `/api/v1/drafts/folders`."
    )
    dry_run: DryRun = False


class BranchIn(In):
    """One of a run's checkpoints."""

    leg: int = Field(ge=0, le=1_000_000)
    step: int = Field(ge=0, le=1 << 53)


class CloneIn(In):
    name: Annotated[Text, Field(max_length=250)] | None = Field(default=None, description="A new name; default: the same.")
    experiment: Annotated[Text, Field(max_length=250)] | None = Field(default=None, description="Another experiment; default: the same.")
    params: Given = Field(default_factory=dict, max_length=2000, description="Params with other values; the others stay.")
    resources: Given = Field(default_factory=dict, max_length=100, description=_RESOURCES)
    limits: Given = Field(default_factory=dict, max_length=100, description="As in a params file's `train.limits`; those given replace.")
    checkpoint: BranchIn | None = Field(default=None, description="Continue from a copy of this one; otherwise start from the beginning.")
    dry_run: DryRun = False


class ResumeIn(In):
    resources: Given = Field(default_factory=dict, max_length=100, description=_RESOURCES)
    limits: Given = Field(default_factory=dict, max_length=100, description="As in a params file's `train.limits`; those given replace.")


class PreviewOut(BaseModel):
    """Exactly what a submit would do."""

    folder: str
    command: list[str]
    script: str
    notes: list[str] = Field(description="Notes to read before it is queued.")


PREVIEW: dict[int | str, dict[str, Any]] = {200: {"model": PreviewOut, "description": "For a dry run."}}


@router.post("/{run_id}/clone", summary="Clone a run", status_code=201, response_model=RunDetails, responses=PREVIEW)
def clone(svc: Svc, who: Who, run_id: RunId, asked: CloneIn) -> Response:
    """Queue a new run of the code that this one froze, with the changes given: checked as at submit; all problems are reported at once."""
    from onward.inputs.params.changes import changed_draft
    from onward.operations.submit.clone import clone as clone_run
    from onward.operations.submit.clone import clone_preview, draft_of

    _, dir = _executed(svc, run_id)
    source = draft_of(dir)
    draft = changed_draft(source, asked.model_dump(exclude={"dry_run", "checkpoint"}))
    must_run_the_same_program(source, draft)
    since = CheckpointName(asked.checkpoint.leg, asked.checkpoint.step) if asked.checkpoint else None
    must_be_near(svc, draft)
    if asked.dry_run:
        return _previewed(clone_preview(svc.context, dir, draft))
    return _queued(svc, who, clone_run(svc.context, dir, draft, since=since))


@router.post("/{run_id}/cancel", summary="Cancel a run", response_model=RunDetails)
def cancel(svc: Svc, run_id: RunId) -> Response:
    """End a run that Onward executes, now. It stays cancelled, whatever jobs were queued."""
    return _act(svc, run_id, lambda dir: cancel_damaged(svc.context, dir) if spec_damage(dir) else control.cancel(svc.context, dir))


@router.post("/{run_id}/stop", summary="Stop a run", response_model=RunDetails)
def stop(svc: Svc, run_id: RunId) -> Response:
    """Have the training save a checkpoint, then end the run."""
    return _act(svc, run_id, lambda dir: control.stop(svc.context, dir))


@router.post("/{run_id}/resume", summary="Resume a run", response_model=RunDetails)
def resume(svc: Svc, run_id: RunId, asked: ResumeIn | None = None) -> Response:
    """Continue a stopped, failed or cancelled run as its next leg, from its newest verified checkpoint, optionally with other resources."""
    changes = _changes(asked) if asked else {}
    return _act(svc, run_id, lambda dir: control.resume(svc.context, dir, changes=changes))


def submitted(svc: Services, who: ApiCaller, asked: SubmitIn) -> Response:
    """`POST /api/v1/runs` with something to execute."""
    from onward.inputs.params.file import params_from_data, parse_params
    from onward.operations.submit.new_run import preview, submit

    if (asked.file is None) == (asked.draft is None):
        raise InvalidInput("a submit needs either `file` or `draft`", hint="`file` is a params file's text, `draft` the same as data")
    folder = allowed_folder(svc, who, asked.folder)
    draft = parse_params(asked.file, "file") if asked.file is not None else params_from_data(asked.draft or {})
    must_be_near(svc, draft)
    if asked.dry_run:
        return _previewed(preview(svc.context, draft, cwd=folder))
    return _queued(svc, who, submit(svc.context, draft, cwd=folder))


def must_run_the_same_program(source: RunDraft, draft: RunDraft) -> None:
    """A clone over HTTP has other params, not another program: where a param names it, its owner changes it."""
    from onward.model.commands.placeholders import params_that_choose_the_program

    for name in sorted(params_that_choose_the_program(source.command)):
        if source.params.get(name) != draft.params.get(name):
            raise NotAllowed(
                f"params.{name}: this param names the program that the run starts, which a clone over HTTP cannot change",
                hint=f"`onward clone RUN -P {name}=…` by the run's owner can change it",
            )


def must_be_near(svc: Services, draft: RunDraft) -> None:
    cluster, _ = svc.context.settings.cluster(draft.cluster)
    if cluster.ssh:
        raise InvalidInput(
            f"cluster {cluster.name} is reached through ssh, but this server submits only on its own machine",
            hint="use `onward submit`, or a server on that host",
        )


def _changes(asked: ResumeIn) -> Mapping[str, Any]:
    from onward.inputs.params.changes import changed_draft

    bare = RunDraft(name="run", experiment="run", cluster="auto", command=("true",))
    wanted = changed_draft(bare, asked.model_dump())
    parts = ((asked.resources, wanted.resources), (asked.limits, wanted.limits))
    given = [(part, key.replace("-", "_")) for section, part in parts for key, value in section.items() if value is not None]
    return {key: getattr(part, key) for part, key in given}


def _act(svc: Services, run_id: str, do: Callable[[RunDir], object]) -> Response:
    run, dir = _executed(svc, run_id)
    try:
        do(dir)
    finally:
        _look(svc)
    return json_response(run_details(svc, run))


def _executed(svc: Services, run_id: str) -> tuple[str, RunDir]:
    run = run_of(svc, run_id)
    return run.run_id, must_have_folder(svc, run.run_id, run.folder)


def _previewed(seen: SubmitPreview) -> Response:
    return json_response({"folder": str(seen.folder), "command": list(seen.command), "script": seen.script, "notes": list(seen.notes)})


def _queued(svc: Services, who: ApiCaller, dir: RunDir) -> Response:
    id, _ = labels(dir)
    note(logging.INFO, "submit", f"run {id} was queued over HTTP", token=who.token, folder=str(dir.path))
    _look(svc)
    answer = json_response(run_details(svc, id))
    answer.status_code = 201
    return answer


def _look(svc: Services) -> None:
    """What was done shows at once: the folder is read before the answer."""
    svc.tracker.files.look(svc.context.roots)
    svc.hinted()
