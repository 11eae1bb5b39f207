"""Uploads of pipelines, from outside their jobs: how they stand, and what `tend` does for those that no job is left to do."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from onward.errors import InvalidInput
from onward.model.pipelines.plan import PipelinePlan
from onward.model.pipelines.upload import UploadTargetKind, upload_target_kind
from onward.model.plain_data import value_to_json
from onward.model.spec import Cluster
from onward.operations.context import OperationsContext
from onward.pipelines.advance import read_plan
from onward.pipelines.upload.uploader import has_all_arrived, has_work, is_summarised, upload_progress
from onward.rundir.pipeline.layout import PipelineDir
from onward.supervisor.processes.child import start_detached

StartUpload = Callable[[OperationsContext, PipelineDir], None]


def check_upload(plan: PipelinePlan, cluster: Cluster) -> None:
    """InvalidInput where it can never work: jobs have our own Python, and that has not what a URL needs."""
    if plan.upload is None or upload_target_kind(plan.upload.to) is not UploadTargetKind.URL or cluster.python:
        return
    protocol = plan.upload.to.partition("://")[0]
    try:
        importlib.import_module("fsspec").get_filesystem_class(protocol)
    except (ImportError, ValueError) as error:
        raise InvalidInput(
            f"upload: {protocol}:// is not supported by this Python: {error}",
            hint="install fsspec and its package for this protocol, such as s3fs; or upload to host:/folder",
        ) from error


def upload_record(dir: PipelineDir, plan: PipelinePlan) -> dict[str, Any] | None:
    """None where nothing is to be uploaded."""
    found = upload_progress(dir, plan)
    return {"to": plan.upload.to, **value_to_json(found)} if plan.upload and found else None


def start_upload_process(context: OperationsContext, dir: PipelineDir) -> None:
    """One that outlives us: `tend` must not wait for gigabytes."""
    command = (sys.executable, "-E", str(dir.supervisor), "upload", str(dir.path), "stubborn")
    start_detached(command, cwd=dir.path, env=context.env, log=dir.upload_log)


def tend_upload(context: OperationsContext, dir: PipelineDir, *, start: StartUpload = start_upload_process) -> list[str]:
    """Have uploaded what is due, in the background; and what went wrong for so long that a person should know."""
    if not dir.uploads.is_dir() or has_all_arrived(dir):
        return []
    plan = read_plan(dir)
    if plan.upload is None:
        return []
    if "summary" in plan.upload.what and dir.over.exists() and not is_summarised(dir):
        _keep_summary(dir)
    if has_work(dir, plan, plan.upload, now=context.clock.now(), stubborn=True):
        start(context, dir)
    found = upload_progress(dir, plan)
    return list(found.problems) if found else []


def _keep_summary(dir: PipelineDir) -> None:
    """Its page leans on packages that a host which is reached through ssh may not have: there it is left to others."""
    try:
        from onward.operations.pipelines.summary import write_summary
    except ModuleNotFoundError:
        return
    write_summary(dir)
