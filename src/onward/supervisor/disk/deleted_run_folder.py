"""What is saved of a run whose folder was deleted while it trained: a folder beside it, with all that this node still has.

The deletion stands. The run is not continued, and its next job is taken out of the queue.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import shutil
import stat
import time
from pathlib import Path

from onward.checkpoints.unpublished import unpublished
from onward.errors import OnwardError
from onward.model.job import JobId
from onward.model.policy.lifecycle import Close
from onward.model.policy.unrecorded_jobs import note_unrecorded, unrecorded_jobs
from onward.model.run import Run, RunState
from onward.model.spec import spec_to_json
from onward.rundir.journal import desk_journal
from onward.rundir.layout import RESCUED, LegLocal, RunDir
from onward.rundir.mirror import carry
from onward.rundir.run_end import close_run
from onward.schedulers.base import live_jobs_of
from onward.sdk.atomic_files import write_whole
from onward.supervisor.disk.salvage import journal_report, publish_left
from onward.supervisor.leg.context import LegContext
from onward.supervisor.relay.artifacts import carry_artifacts, has_pending_artifacts

log = logging.getLogger(__name__)

NOTE = "RESCUED.txt"


def rescue(context: LegContext, local: LegLocal) -> None:
    """Never raises: what cannot be saved stays on the node, and the log says where."""
    log.error("%s was deleted while leg %d trained: the run ends here", context.dir.path, context.leg)
    withdraw_queued(context)
    saved = RunDir(context.dir.root / f"{RESCUED}{context.dir.path.name}")
    try:
        try:
            saved.path.mkdir(mode=0o700)
        except FileExistsError:  # of an earlier time
            saved = RunDir(saved.path.with_name(f"{saved.path.name}-{secrets.token_hex(2)}"))
            saved.path.mkdir(mode=0o700)
        words = _save(context, local, saved)
    except (OnwardError, OSError) as error:
        log.error("not all of it could be saved in %s: %s; the rest is in %s", saved.path, error, local.path)
        words = f"Not all of it could be saved: {error}. The rest is in {local.path} on {context.allocation.hosts[0]}."
    log.error("what was saved of it is in %s. %s", saved.path, words)
    when = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(context.clock.now()))
    who, job = f"leg {context.leg} of {context.spec.name} ({context.spec.id})", context.allocation.job
    text = (
        f"{context.dir.path} was deleted while {who} trained in job {job}.\n"
        f"Onward ended the training at {when} and queues no further job.\n{words}\n"
        "Its code and its earlier checkpoints were in the deleted folder. Delete this folder too if you do not need it.\n"
    )
    try:
        write_whole(saved.path / NOTE, text)
        _save_own_log(saved)
    except OSError as error:
        log.error("%s cannot be written: %s", saved.path / NOTE, error)


def withdraw_queued(context: LegContext) -> None:
    """Every other job of the run: only the scheduler knows them now."""
    try:
        run = Run(spec=context.spec)
        note_unrecorded([run], live_jobs_of(context.scheduler))
        queued = [JobId(entry.job) for _, entry in unrecorded_jobs(run) if entry.job and entry.job != context.allocation.job]
        context.scheduler.cancel(queued)
        if queued:
            log.info("removed job %s from the queue", ", ".join(queued))
    except OnwardError as error:
        log.warning("jobs of the run may still be queued; each finds no folder, and exits: %s", error)


def _save(context: LegContext, local: LegLocal, saved: RunDir) -> str:
    """In words: which checkpoint it holds."""
    for folder in (saved.params, saved.journals, saved.spool, saved.logs, saved.checkpoints, saved.tensorboard, saved.artifacts):
        folder.mkdir(parents=True, exist_ok=True)
    write_whole(saved.spec, json.dumps(spec_to_json(context.spec), indent=1))
    published: list[int] = []
    for report in publish_left(
        saved, context.spec.checkpoints, local, leg=context.leg, by_leg=context.leg, clock=context.clock, moved=None
    ):
        journal_report(report, context.leg, context.journal, context.clock)
        published += [report.step] if report.kind == "published" else []
    history = "".join(f"{event.line()}\n" for event in context.history).encode()
    write_whole(saved.journals / "rescued.jsonl", history + context.journal.written)
    over = Close(state=RunState.CANCELLED, cause=f"its folder was deleted while leg {context.leg} trained", next=f"see {saved.path / NOTE}")
    close_run(saved, desk_journal(saved), over, leg=context.leg, at=context.clock.now())
    carry(local, saved)  # after the checkpoint, which is worth more
    carry_artifacts(local, saved)
    resumed = saved.results / "resumed-checkpoint"
    if not published and any(local.resume.glob("*")) and not local.resume.is_symlink():
        shutil.copytree(local.resume, resumed, symlinks=True)
    if unpublished(local.checkpoints, saved.checkpoints, leg=context.leg) or has_pending_artifacts(local):
        raise OSError("some checkpoints or artifacts could not be copied")
    shutil.rmtree(local.path, ignore_errors=True)
    if published:
        return f"Its newest checkpoint on the node, of step {max(published)}, is in {saved.checkpoints}."
    if resumed.exists():
        return f"The newest checkpoint on the node was the one that the leg resumed from. It is in {resumed}."
    return "This node had no checkpoint of it."


def _save_own_log(saved: RunDir) -> None:
    """The log of this process was in the deleted folder; the open file still holds it."""
    if stat.S_ISREG(os.fstat(2).st_mode):
        shutil.copyfile(Path("/proc/self/fd/2"), saved.supervisor_log)
