"""Uploads of pipelines, from outside their jobs: how they stand, and what `tend` does for those that no job is left to do."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from onward.errors import InvalidInput
from onward.model.pipeline import Plan
from onward.model.plain import value_to_json
from onward.model.spec import Cluster
from onward.model.upload import PlaceKind, place_kind
from onward.operations.wiring import Desk
from onward.rundir.pipeline_layout import PipelineDir
from onward.supervisor.advance import read_plan
from onward.supervisor.child import start_detached
from onward.supervisor.upload import has_work, is_all_there, is_summarised, standing

Start = Callable[[Desk, PipelineDir], None]


def check_upload(plan: Plan, cluster: Cluster) -> None:
    """InvalidInput where it can never work: jobs have our own Python, and that has not what a URL needs."""
    if plan.upload is None or place_kind(plan.upload.to) is not PlaceKind.URL or cluster.python:
        return
    protocol = plan.upload.to.partition("://")[0]
    try:
        importlib.import_module("fsspec").get_filesystem_class(protocol)
    except (ImportError, ValueError) as error:
        raise InvalidInput(
            f"upload: {protocol}:// is not to be reached from this Python: {error}",
            hint="install fsspec and its package for it here, such as s3fs; or upload by host:/folder",
        ) from error


def told_of_upload(dir: PipelineDir, plan: Plan) -> dict[str, Any] | None:
    """None where nothing is to be uploaded."""
    found = standing(dir, plan)
    return {"to": plan.upload.to, **value_to_json(found)} if plan.upload and found else None


def start_process(desk: Desk, dir: PipelineDir) -> None:
    """One that outlives us: `tend` must not wait for gigabytes."""
    command = (sys.executable, "-E", str(dir.supervisor), "upload", str(dir.path), "stubborn")
    start_detached(command, cwd=dir.path, env=desk.env, log=dir.upload_log)


def tend_upload(desk: Desk, dir: PipelineDir, *, start: Start = start_process) -> list[str]:
    """Have uploaded what is due, in the background; and what went wrong for so long that a person should know."""
    if not dir.uploads.is_dir() or is_all_there(dir):
        return []
    plan = read_plan(dir)
    if plan.upload is None:
        return []
    if "summary" in plan.upload.what and dir.over.exists() and not is_summarised(dir):
        _keep_summary(dir)
    if has_work(dir, plan, plan.upload, now=desk.clock.now(), stubborn=True):
        start(desk, dir)
    found = standing(dir, plan)
    return list(found.problems) if found else []


def _keep_summary(dir: PipelineDir) -> None:
    """Its page leans on packages that a host which is reached through ssh may not have: there it is left to others."""
    try:
        from onward.operations.pipeline_summary import keep_summary
    except ModuleNotFoundError:
        return
    keep_summary(dir)
