"""Uploads beside the jobs of a pipeline: a process each time, which nothing waits for until the job has nothing else to do."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from onward.errors import OnwardError
from onward.model.pipelines.plan import PipelinePlan
from onward.pipelines.advance import read_plan
from onward.pipelines.upload.uploader import PassEnd, has_all_arrived, has_work
from onward.rundir.pipeline.layout import PipelineDir
from onward.schedulers.command import run_command
from onward.supervisor.background import Repeating, never_hurts_training
from onward.supervisor.leg.context import LegContext

log = logging.getLogger(__name__)

_EVERY = 20.0  # seconds
_BEFORE_THE_LIMIT = 30.0  # seconds
_LONGEST = 6 * 3600.0
_LAST_ONE = 600.0  # seconds that a job stays for it once the pipeline is over; what is left then, `onward tend` does
_TURN = 2.0
_LAST_TRIES, _ONCE_MORE = 2, 16.0
_CREDENTIALS = ("AWS_", "AZURE_", "GOOGLE_", "FSSPEC_", "SSH_AUTH_SOCK", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "https_proxy", "no_proxy")


def upload_in_background(context: LegContext) -> Repeating | None:
    """While the job trains or measures. None where nothing is to be uploaded."""
    dir = _pipeline(context)
    if dir is None:
        return None
    plans: list[PipelinePlan] = []

    def upload() -> None:
        plans[:] = plans or [read_plan(dir)]
        rule = plans[0].upload
        if rule and has_work(dir, plans[0], rule, now=context.clock.now()):
            _pass(context, dir, within=_LONGEST)

    return Repeating("uploading", upload, every=_EVERY)


def upload_last(context: LegContext) -> None:
    """When a leg leaves and the pipeline is over: the rest, if another job is not at it."""
    dir = _pipeline(context)
    if dir is None or not dir.over.exists():
        return
    with never_hurts_training("the last upload"):
        until, tries = context.clock.now() + _LAST_ONE, 0
        while not has_all_arrived(dir) and context.clock.now() < until and tries < _LAST_TRIES:
            if _pass(context, dir, within=until - context.clock.now()) is PassEnd.BUSY:
                context.clock.sleep(_TURN)
                continue
            tries += 1
            if tries < _LAST_TRIES and not has_all_arrived(dir):  # as with a log to which its job had one more word to say
                context.clock.sleep(_ONCE_MORE)


def _pipeline(context: LegContext) -> PipelineDir | None:
    dir = PipelineDir(Path(context.spec.member.pipeline)) if context.spec.member else None
    return dir if dir and dir.uploads.is_dir() else None


def _pass(context: LegContext, dir: PipelineDir, *, within: float) -> PassEnd:
    deadline = context.allocation.deadline
    left = min(within, deadline - context.clock.now() - _BEFORE_THE_LIMIT) if deadline else within
    if left <= 1.0:
        return PassEnd.LEFT
    try:
        answer = run_command(
            (sys.executable, "-E", str(dir.supervisor), "upload", str(dir.path)), timeout=left, extra=_credentials(context)
        )
    except OnwardError as error:
        log.warning("%s", error)
        return PassEnd.LEFT
    for words in answer.out.splitlines():
        log.info("upload: %s", words[20:])  # without its time: the log has one
    if answer.code not in set(PassEnd):
        log.warning("uploading failed: %s", answer.err.rpartition("\n")[2])
        return PassEnd.LEFT
    return PassEnd(answer.code)


def _credentials(context: LegContext) -> dict[str, str]:
    """What the submitting shell had for such services."""
    try:
        data = json.loads(context.dir.environment.read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(name): str(value) for name, value in data.items() if name.startswith(_CREDENTIALS)}
