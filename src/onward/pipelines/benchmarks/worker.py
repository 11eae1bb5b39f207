"""A worker: the command of a run that drains a pipeline's benchmark tasks, as many at once as its CPUs allow, until none is open.

It ends itself before its limit, as a training does: what is half done, the next leg or another worker goes on with.
Its steps are items and tasks done, so a leg that got some done has made progress.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from onward.clock import Clock, SystemClock
from onward.errors import OnwardError
from onward.model.pipelines.attempt import Attempt, AttemptEnd, AttemptOwner
from onward.model.pipelines.plan import Benchmark, PipelinePlan
from onward.model.pipelines.policy import StageState
from onward.model.pipelines.task import Task, TaskState, tasks_of, trainings
from onward.pipelines.advance import member_state, read_plan
from onward.pipelines.benchmarks.slots import Slots, worth_beginning
from onward.pipelines.benchmarks.trial import Trial, WorkerContext
from onward.pipelines.checkpoints import note_checkpoints
from onward.rundir.journal import read_spec
from onward.rundir.layout import own_run
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.pipeline.tasks import AttemptOwners, take_attempt, task_dir, task_history
from onward.sdk import contract
from onward.sdk.process_run import init
from onward.sdk.run import TrainingRun

log = logging.getLogger(__name__)

_TICK = 0.1
_SCAN_SECONDS = 2.0  # between looks for tasks while nothing was found
_SAVE_SECONDS = 5.0

Tasks = Callable[[], Sequence[Task]]  # all that are known by now


class Worker:
    def __init__(self, bench: WorkerContext, run: TrainingRun, tasks: Tasks, slots: Slots) -> None:
        self._bench = bench
        self._run = run
        self._tasks = tasks
        self._slots = slots
        self._trials: list[Trial] = []
        self._open: deque[Task] = deque()
        self._settled: set[str] = set()  # done for good
        self._took: dict[str, float] = {}  # seconds of the longest task that could not be stopped between items, by benchmark
        self._progress = WorkerProgress(run, bench.clock)
        self._benchmarks: Mapping[str, Benchmark] = {benchmark.name: benchmark for benchmark in bench.plan.benchmarks}
        self._scan_at = 0.0
        self._nothing_open = False
        self._idle_since: float | None = None

    def work(self) -> int:
        """The exit code: done, or again where tasks were left open because the time is over."""
        while True:
            stop = self._run.should_stop()
            self._look(stop)
            left = not stop and self._begin_more()
            self._progress.save(last=False)
            if not self._trials and (stop or left or self._is_idle()):
                break
            self._bench.woken.wait(_TICK)
            self._bench.woken.clear()
        self._progress.save(last=True)
        return contract.EXIT_AGAIN if self._scan() else contract.EXIT_DONE

    # ── trials ────────────────────────────────────────────────────────────────

    def _look(self, stop: bool) -> None:
        for trial in list(self._trials):
            before = trial.items
            ended = trial.look(stop=stop)
            self._progress.add(trial.items - before)
            if ended is None and (trial.running or not trial.fenced):
                continue
            self._trials.remove(trial)
            self._slots.give_back(trial.slot)
            if ended is None:
                log.warning("%s was taken over by another worker; this one drops it", trial.task.id)
            else:
                self._note(trial.task, ended)

    def _note(self, task: Task, ended: Attempt) -> None:
        how = f"{ended.end}: {ended.reason}" if ended.reason else str(ended.end)
        log.info("%s, attempt %d: %s; %d items in %.1f s", task.id, ended.number, how, ended.items, ended.seconds)
        if ended.end is AttemptEnd.DONE:
            self._settled.add(task.id)
            self._progress.add(1)
            if not ended.items:
                self._took[task.benchmark] = max(ended.seconds, self._took.get(task.benchmark, 0.0))

    def _begin_more(self) -> bool:
        """Whether tasks are open that this worker has no time for."""
        now = self._bench.clock.now()
        if not self._open and self._slots.free and now >= self._scan_at:
            self._open.extend(self._scan())
            self._nothing_open = not self._open
            self._scan_at = now + (_SCAN_SECONDS if self._nothing_open else 0.0)
        no_time: list[Task] = []
        while self._open and self._slots.fits(self._benchmarks[self._open[0].benchmark].cpus):
            task = self._open.popleft()
            if worth_beginning(self._bench.deadline, now, self._took.get(task.benchmark)):
                self._begin(task)
            else:
                no_time.append(task)
        if no_time:
            self._scan_at = now + _SCAN_SECONDS
        return bool(no_time) and not self._open

    def _begin(self, task: Task) -> None:
        bench, now = self._bench, self._bench.clock.now()
        benchmark, folder = self._benchmarks[task.benchmark], task_dir(bench.dir, task)
        before = task_history(folder, AttemptOwners(bench.dir.path.parent))
        standing = before.standing(benchmark.retries)
        if standing.state is not TaskState.OPEN or not take_attempt(folder, standing.next, bench.owner, host=bench.host, at=now):
            return  # another was first
        if folder.result.exists():  # a network file system may show late that it was done
            self._settled.add(task.id)
            return
        attempt = Attempt(number=standing.next, owner=bench.owner, host=bench.host, at=now)
        trial = Trial(bench, task, attempt, before, slot=self._slots.take(benchmark.cpus))
        try:
            trial.begin()
        except OnwardError as error:
            self._slots.give_back(trial.slot)
            self._note(task, trial.give_up(error))
            return
        self._idle_since = None
        self._trials.append(trial)

    def _scan(self) -> list[Task]:
        """The tasks that are open now. Those under which workers went away come last: one that kills them keeps no other waiting."""
        owners = AttemptOwners(self._bench.dir.path.parent)
        found: list[tuple[int, Task]] = []
        for task in self._tasks():
            if task.id in self._settled:
                continue
            standing = task_history(task_dir(self._bench.dir, task), owners).standing(self._benchmarks[task.benchmark].retries)
            if standing.state is TaskState.OPEN:
                found.append((standing.losses, task))
            elif standing.state is TaskState.DONE:
                self._settled.add(task.id)
        return [task for _, task in sorted(found, key=lambda pair: pair[0])]

    def _is_idle(self) -> bool:
        """The last look found nothing open, and none has for as long as workers are to wait."""
        if self._open or not self._nothing_open:
            return False
        now = self._bench.clock.now()
        if self._idle_since is None:
            self._idle_since = now
        return now - self._idle_since >= self._bench.plan.workers.idle


class WorkerProgress:
    """Items and tasks done by this run, over all its legs: told as steps, and saved as checkpoints, so that a leg's work counts."""

    def __init__(self, run: TrainingRun, clock: Clock) -> None:
        self._run = run
        self._clock = clock
        self._step = run.resume_step or 0
        self._saved = self._step
        self._saved_at = 0.0

    def add(self, count: int) -> None:
        self._step += count

    def save(self, *, last: bool) -> None:
        now = self._clock.now()
        if self._step == self._saved or not (last or now - self._saved_at >= _SAVE_SECONDS):
            return
        self._saved, self._saved_at = self._step, now
        self._run.log({"done": float(self._step)}, self._step)
        with self._run.checkpoint(self._step) as folder:
            (folder / "progress.json").write_text(json.dumps({"done": self._step}))


def pool_tasks(dir: PipelineDir, plan: PipelinePlan, pool: str) -> tuple[Task, ...]:
    """The tasks of one pool that are known by now."""
    names = {benchmark.name for benchmark in plan.benchmarks if benchmark.pool == pool}
    finished = {
        name: plan.stage(name).done_by is not None or member_state(dir.member(name)) is StageState.FINISHED for name in trainings(plan)
    }
    return tuple(task for task in tasks_of(plan, note_checkpoints(dir, plan, finished=finished)) if task.benchmark in names)


def main(argv: Sequence[str]) -> int:
    """`supervisor.pyz worker PIPELINE POOL`: what the run of a worker starts."""
    if len(argv) != 2 or contract.RUN_DIR not in os.environ:
        sys.stderr.write("usage: supervisor.pyz worker PIPELINE_FOLDER POOL, inside a run\n")
        return 2
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", force=True)
    dir, pool, clock = PipelineDir(Path(argv[0])), argv[1], SystemClock()
    plan, run, own = read_plan(dir), init(agree=False), own_run(Path(os.environ[contract.RUN_DIR]))
    deadline = os.environ.get(contract.DEADLINE)
    bench = WorkerContext(
        dir=dir,
        plan=plan,
        owner=AttemptOwner(run=own.path.name, leg=run.leg),
        host=socket.gethostname(),
        cwd=Path.cwd(),
        env=dict(os.environ),
        scratch=Path(os.environ[contract.CHECKPOINT_DIR]).parent / "tasks",
        clock=clock,
        woken=threading.Event(),
        began=clock.now(),
        deadline=float(deadline) if deadline else None,
    )
    devices = tuple(part for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part)
    slots = Slots(cpus=read_spec(own).resources.cpus_per_task or 1, gpus=devices)
    code = Worker(bench, run, lambda: pool_tasks(dir, plan, pool), slots).work()
    if code == contract.EXIT_DONE:
        run.finish()
    return code
