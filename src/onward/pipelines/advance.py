"""Advance a pipeline: look at what lies there, decide, act. Whoever sees that something has ended does it; twice is once.

A member of the pipeline does it when its run is over, a training also when a checkpoint was published, and `onward tend`
for what no job lives to do. Only names keep two of them apart: a member is queued by whoever takes its hold away, a
worker made by whoever makes its folder first.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from onward.clock import Clock
from onward.errors import SchedulerError, StorageError, SubmitLimitReached, SubmitRefused
from onward.model.identity import new_id
from onward.model.pipelines.plan import PipelinePlan, plan_from_json
from onward.model.pipelines.policy import (
    ClosePipeline,
    PipelineAction,
    PipelineFacts,
    PoolWorkers,
    StageState,
    StartWorker,
    SubmitStage,
    decide,
)
from onward.model.pipelines.task import tasks_of
from onward.model.policy.lifecycle import Close, Continue
from onward.model.run import Run, RunState
from onward.model.spec import Cluster, spec_to_json
from onward.pipelines.checkpoints import note_checkpoints
from onward.rundir.claim import claimed_legs, take_file
from onward.rundir.files.no_links import read_beneath
from onward.rundir.journal import Journal, desk_journal, read_run, read_spec
from onward.rundir.layout import RunDir
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.pipeline.tasks import task_states
from onward.rundir.run_end import close_run, end_of, is_over
from onward.schedulers.base import Scheduler
from onward.sdk.atomic_files import same_file, write_whole
from onward.supervisor.leg.handover import Handover, QueuedLegCancelled

log = logging.getLogger(__name__)

_MAKING = 10.0  # seconds in which a worker is surely made
_STRANDED = 120.0  # seconds: whoever took a hold away and queued nothing by then is gone


def read_plan(dir: PipelineDir) -> PipelinePlan:
    try:
        return plan_from_json(json.loads(read_beneath(dir.path, dir.plan)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise StorageError(f"{dir.path} cannot be read as a pipeline: {error}", hint=f"check {dir.plan}") from error


@dataclass(kw_only=True)
class PipelineAdvance:
    """One look at one pipeline, and what follows from it."""

    dir: PipelineDir
    clock: Clock
    make_scheduler: Callable[[Cluster], Scheduler]
    own: str | None = None  # the job that this process is in
    patience: float = 30.0  # seconds for a scheduler that does not answer
    said: list[str] = field(default_factory=list)

    def work(self) -> list[str]:
        """What was done, in words; nothing where nothing had to be."""
        if self.dir.over.exists():
            return []
        plan = read_plan(self.dir)
        facts = gather_facts(self.dir, plan)
        for action in decide(plan, facts):
            try:
                self._act(action, facts)
            except (SchedulerError, QueuedLegCancelled, OSError) as error:
                log.warning("the pipeline %s cannot continue yet: %s", plan.name, error)
                self._say(f"{_words(action)} is not possible yet: {error}")
        for run in self._stranded(plan):
            self._queue(run)
        return self.said

    # ── acts ──────────────────────────────────────────────────────────────────

    def _act(self, action: PipelineAction, facts: PipelineFacts) -> None:
        match action:
            case SubmitStage():
                run = self.dir.member(action.stage)
                if _release(run):
                    self._queue(run)
            case StartWorker():
                if make_worker(self.dir, action, created=self.clock.now()):
                    self._queue(self.dir.worker(action.number))
            case ClosePipeline():
                end = {"state": action.state, "cause": action.cause, "at": self.clock.now()}
                if take_file(self.dir.over, json.dumps(end)):
                    self._say(f"the pipeline is over, {action.state}: {action.cause}")
                    self._send_home()

    def _queue(self, dir: RunDir) -> None:
        """Ask for the job of its first leg. One that the scheduler will never take closes the run, and its cause is the pipeline's."""
        run, journal = read_run(dir), desk_journal(dir)
        handover = Handover(
            dir=dir,
            scheduler=self.make_scheduler(run.spec.cluster),
            journal=journal,
            clock=self.clock,
            own=self.own,
            patience=self.patience,
        )
        try:
            job = handover.ensure_ahead(run, Continue(leg=run.first_leg, mem=run.resources.mem), after=None)
        except SubmitLimitReached as error:
            self._say(f"{run.spec.name} waits for a place in the queue, `onward tend` submits it: {error.message}")
            return
        except SubmitRefused as error:
            self._refused(dir, run, journal, error)
            return
        self._say(f"{run.spec.name} is queued as job {job}")

    def _send_home(self) -> None:
        """Workers that still wait in the queue have nothing to come for."""
        for dir in self.dir.workers():
            if dir.is_run() and not is_over(dir) and not claimed_legs(dir):
                run, journal = read_run(dir), desk_journal(dir)
                handover = Handover(dir=dir, scheduler=self.make_scheduler(run.spec.cluster), journal=journal, clock=self.clock)
                handover.withdraw(run, from_leg=1, reason="the pipeline is over")
                close_run(dir, journal, Close(state=RunState.FINISHED, cause="there was no task left for it"), leg=1, at=self.clock.now())

    def _refused(self, dir: RunDir, run: Run, journal: Journal, error: SubmitRefused) -> None:
        refusal = Close(
            state=RunState.FAILED,
            cause=f"the scheduler refused its first leg: {error.message}",
            next=f"onward resume {run.spec.id}, with other resources",
        )
        close_run(dir, journal, refusal, leg=1, at=self.clock.now())
        self._say(f"{run.spec.name}: {refusal.cause}")

    def _stranded(self, plan: PipelinePlan) -> Iterable[RunDir]:
        """Members that were let go of by somebody who died before a job was asked for."""
        for dir in [*(self.dir.member(stage.name) for stage in plan.stages), *self.dir.workers()]:
            let_go = _released(dir)
            idle = dir.is_run() and not is_over(dir) and let_go.exists() and not any(dir.journals.iterdir())
            if idle and self.clock.now() - let_go.stat().st_mtime > _STRANDED:
                os.utime(let_go)
                yield dir

    def _say(self, words: str) -> None:
        self.said.append(words)
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.clock.now()))
        with self.dir.log.open("a") as file:  # a line is one write: several may append at once
            file.write(f"{stamp} {words}\n")


# ── what lies there ───────────────────────────────────────────────────────────


def gather_facts(dir: PipelineDir, plan: PipelinePlan, *, note: bool = True) -> PipelineFacts:
    """Without `note` nothing is written: for those who only look."""
    members = {stage.name: member_state(dir.member(stage.name)) for stage in plan.stages if not stage.done_by}
    finished = {stage.name: stage.done_by is not None or members[stage.name] is StageState.FINISHED for stage in plan.stages}
    checkpoints = note_checkpoints(dir, plan, finished=finished, note=note)
    stamped = (
        dir.workers()
    )  # listed once: one that another makes meanwhile is neither at work nor counted, so its number is decided on again
    return PipelineFacts(
        members=members,
        causes={name: _cause(dir.member(name)) for name, state in members.items() if state in (StageState.FAILED, StageState.CANCELLED)},
        checkpoints=checkpoints,
        tasks=task_states(dir, plan, tasks_of(plan, checkpoints)),
        workers=_worker_counts(stamped, forgiven=_forgiven(dir)),
        workers_made=max((_number(run) for run in stamped), default=0),
        cancelled=_by(dir),
    )


def member_state(run: RunDir) -> StageState:
    """Unknown is never finished: a folder that cannot be read, or is gone, says nothing."""
    try:
        done = end_of(run)
        if done is not None:
            return StageState(done["state"])
    except (OSError, ValueError, KeyError):
        return StageState.UNKNOWN
    if run.held.exists():
        return StageState.HELD
    return StageState.LIVE if run.is_run() else StageState.UNKNOWN


def _worker_counts(workers: list[RunDir], *, forgiven: int) -> dict[str, PoolWorkers]:
    """By pool. Those that someone makes just now are of no pool that could be told, but take up room as others do."""
    pool_workers: dict[str, PoolWorkers] = {}
    for run in workers:
        if not run.is_run():
            if _in_the_making(run):
                pool_workers[""] = PoolWorkers(queued=pool_workers.get("", PoolWorkers()).queued + 1)
            continue
        member, state = read_spec(run).member, member_state(run)
        if member is None:
            continue
        group = pool_workers.get(member.stage, PoolWorkers())
        match state:
            case StageState.FINISHED:
                group = replace(group, failures=0, cause="")
            case StageState.FAILED | StageState.CANCELLED if _number(run) <= forgiven:
                pass
            case StageState.FAILED | StageState.CANCELLED:
                group = replace(group, failures=group.failures + 1, cause=_cause(run))
            case _ if claimed_legs(run):
                group = replace(group, running=group.running + 1)
            case _:
                group = replace(group, queued=group.queued + 1)
        pool_workers[member.stage] = group
    return pool_workers


def _in_the_making(run: RunDir) -> bool:
    """Its folder is new. An old one without a run was left so by someone who died."""
    try:
        return time.time() - run.path.stat().st_mtime < _MAKING
    except FileNotFoundError:
        return False


def _cause(run: RunDir) -> str:
    """With the last line that it wrote, which says most."""
    closed = read_run(run).closed
    if closed is None:
        return ""
    last = closed.evidence.strip().rpartition("\n")[2]
    return f"{closed.cause}: {last}" if last and last not in closed.cause else closed.cause


def _by(dir: PipelineDir) -> str:
    try:
        return str(json.loads(dir.cancelled.read_bytes()).get("by", "someone"))
    except FileNotFoundError:
        return ""


def _forgiven(dir: PipelineDir) -> int:
    try:
        return int(json.loads(dir.forgiven.read_bytes())["workers"])
    except FileNotFoundError:
        return 0


def _number(run: RunDir) -> int:
    return int(run.path.name.rpartition("-")[2])


# ── what keeps two apart ──────────────────────────────────────────────────────


def _released(run: RunDir) -> Path:
    return run.held.with_name("released.json")


def _release(run: RunDir) -> bool:
    """Take the hold away; False where another did."""
    try:
        os.rename(run.held, _released(run))
    except FileNotFoundError:
        return False
    return True


def make_worker(dir: PipelineDir, wanted: StartWorker, *, created: float) -> bool:
    """Make a worker's run from its pool's template, all but the asking for a job. False where another makes it."""
    worker, template = dir.worker(wanted.number), dir.template(wanted.pool)
    try:
        worker.path.mkdir()
    except FileExistsError:
        return False
    try:
        _fill(worker, template, wanted, created=created)
    except OSError:  # a full disk most of all: what is half made would fill it further, with each look
        shutil.rmtree(worker.path, ignore_errors=True)
        raise
    return True


def _fill(worker: RunDir, template: RunDir, wanted: StartWorker, *, created: float) -> None:
    worker.make()
    spec = read_spec(template)
    assert spec.member is not None
    member = replace(spec.member, worker=wanted.number)
    spec = replace(spec, id=new_id(), name=f"{spec.name}-{wanted.number:03d}", created=created, member=member)
    same_file(template.supervisor, worker.supervisor)
    write_whole(worker.environment, template.environment.read_bytes(), mode=0o600)
    write_whole(_released(worker), json.dumps({"pool": wanted.pool}))
    write_whole(worker.spec, json.dumps(spec_to_json(spec), indent=1))


def _words(action: PipelineAction) -> str:
    match action:
        case SubmitStage():
            return f"queueing {action.stage}"
        case StartWorker():
            return f"starting worker {action.number}"
        case ClosePipeline():
            return "ending it"


def live_members(dir: PipelineDir, plan: PipelinePlan) -> Mapping[str, RunDir]:
    """The runs that are not over, by name: stages and workers."""
    runs = {stage.name: dir.member(stage.name) for stage in plan.stages if not stage.done_by}
    runs |= {run.path.name.removeprefix(f"{dir.path.name}-"): run for run in dir.workers()}
    return {name: run for name, run in runs.items() if run.is_run() and not is_over(run)}
