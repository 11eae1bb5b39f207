"""A trial: one attempt at a benchmark task, by a command of the user's, from the items that are done to the result.

An item is done when its line is whole in the file that the command prints to, which is its own and nobody else's. So the
command and its worker may be killed at any moment: what is there is done, what is not there is not.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from onward.clock import Clock
from onward.errors import OnwardError
from onward.model.commands.placeholders import BENCHMARK_PLACEHOLDERS, fill, value_text
from onward.model.pipelines.attempt import Attempt, AttemptEnd, AttemptOwner, time_spent
from onward.model.pipelines.plan import PipelinePlan
from onward.model.pipelines.score import BenchmarkItem, ParsedOutput, TaskResult, scores_of
from onward.model.pipelines.task import Task
from onward.pipelines.benchmarks.adapters import CommandOutput, items_done, line_reader, read_output
from onward.pipelines.benchmarks.growing_file import GrowingFile, end_the_line
from onward.pipelines.benchmarks.slots import Slot
from onward.pipelines.benchmarks.trial_verdict import CommandExit, expected_score, judge_trial
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.pipeline.task_layout import TaskDir
from onward.rundir.pipeline.tasks import TaskHistory, end_attempt, newest_attempt, task_dir, write_result
from onward.sdk import contract
from onward.sdk.atomic_files import write_whole
from onward.supervisor.leg.verdict import last_words
from onward.supervisor.processes.child import Child
from onward.supervisor.processes.guard import end_marked

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
_ASK_TO_TERM = 2.0  # a command that heeds the stop file ends its item and leaves
_TERM_TO_KILL = 2.0


@dataclass(frozen=True, kw_only=True)
class WorkerContext:
    """What the trials of one worker share."""

    dir: PipelineDir
    plan: PipelinePlan
    owner: AttemptOwner
    host: str
    cwd: Path
    env: Mapping[str, str]
    scratch: Path  # on the node
    clock: Clock
    woken: threading.Event
    began: float
    deadline: float | None = None

    def early(self, now: float) -> bool:
        """Whether most of the worker's time is left."""
        return self.deadline is None or self.deadline - now > 0.5 * (self.deadline - self.began)


class Trial:
    """At work from `begin` on; `look` says when it is over, and how it ended."""

    def __init__(self, bench: WorkerContext, task: Task, attempt: Attempt, before: TaskHistory, *, slot: Slot) -> None:
        self.task = task
        self.benchmark = next(one for one in bench.plan.benchmarks if one.name == task.benchmark)
        self.slot = slot
        self.items = 0  # done in this attempt
        self.fenced = False
        self._bench = bench
        self._attempt = attempt
        self._before = before
        self._folder = task_dir(bench.dir, task)
        self._scratch = bench.scratch / task.id
        self._child: Child | None = None
        self._done: set[str] = set()
        self._growing: GrowingFile | None = None
        self._asked_at: float | None = None
        self._termed_at: float | None = None
        self._late = False
        self._look_at = 0.0

    # ── its beginning ─────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Raises OnwardError where the command cannot even be started; `give_up` writes that down."""
        folder, number = self._folder, self._attempt.number
        ended, _ = end_marked([{contract.ATTEMPT: _mark(folder, earlier)} for earlier in range(1, number)])
        if ended:
            log.warning("%s: ended %d processes that an earlier attempt had left running", self.task.id, ended)
        folder.files.mkdir(exist_ok=True)
        rule = self.benchmark.adapter
        self._done = {item.id for item in items_done(rule, self._output(0))}
        write_whole(folder.items_done(number), "".join(f"{id}\n" for id in sorted(self._done)))
        out = folder.files / rule.file if rule.file else folder.out(number)
        if rule.file:
            end_the_line(out)
        self._growing = GrowingFile(out)
        command = fill(self.benchmark.command, self._values(), also=BENCHMARK_PLACEHOLDERS)
        try:
            self._child = Child(
                command,
                cwd=self._bench.cwd,
                env=self._environment(),
                mark={contract.ATTEMPT: _mark(folder, number)},
                out=folder.out(number),
                err=folder.err(number),
                woken=self._bench.woken,
            )
        except OSError as error:
            raise OnwardError(
                f"the command cannot be started: {error.strerror}: {error.filename}", hint="does it exist on the nodes?"
            ) from error

    def _checkpoint(self) -> Path:
        task, bench = self.task, self._bench
        if task.step is None:
            return Path(next(model.path for model in bench.plan.models if model.name == task.of))
        return bench.dir.checkpoint(task.of, task.step)

    def _values(self) -> dict[str, str]:
        task = self.task
        given = {
            "checkpoint": str(self._checkpoint()),
            "step": "" if task.step is None else str(task.step),
            "shard": str(task.shard),
            "shards": str(task.shards),
            "seed": str(task.seed),
            "items.done": str(self._folder.items_done(self._attempt.number)),
            "results": str(self._folder.files),
        }
        return given | {f"params.{name}": value_text(value) for name, value in self.benchmark.params.items()}

    def _environment(self) -> dict[str, str]:
        """The worker's, with what is the task's own. A script that resumes as in a training gets the checkpoint it is to judge."""
        scratch = self._scratch
        for folder in ("checkpoints", "spool", "artifacts"):
            (scratch / folder).mkdir(parents=True, exist_ok=True)
        env = {
            **self._bench.env,
            contract.TASK: self.task.id,
            contract.ITEMS_DONE: str(self._folder.items_done(self._attempt.number)),
            contract.RESUME_DIR: str(self._checkpoint()),
            contract.RESUME_STEP: str(self.task.step or 0),
            contract.CHECKPOINT_DIR: str(scratch / "checkpoints"),
            contract.SPOOL_DIR: str(scratch / "spool"),
            contract.ARTIFACTS_DIR: str(scratch / "artifacts"),
        }
        if self.slot.gpus:
            env["CUDA_VISIBLE_DEVICES"] = ",".join(self.slot.gpus)
        return env

    # ── while it runs ─────────────────────────────────────────────────────────

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running

    def look(self, *, stop: bool) -> Attempt | None:
        """None while it runs. An attempt that another has taken over ends without a word: `fenced`."""
        assert self._child is not None and self._growing is not None
        now = self._bench.clock.now()
        if self._child.running:
            if stop:
                self._make_it_leave(now)
            if now >= self._look_at:
                self._look_at = now + _LOOK_SECONDS
                self._count()
                self._look_for_reasons(now)
            return None
        self._child.kill()  # what it left behind
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._count()
        return self._end(self._child.code or 0)

    def _make_it_leave(self, now: float) -> None:
        assert self._child is not None
        if self._asked_at is None:
            self._asked_at = now
        elif self._termed_at is None and now - self._asked_at >= _ASK_TO_TERM:
            self._termed_at = now
            self._child.kill(signal.SIGTERM)
        elif self._termed_at is not None and now - self._termed_at >= _TERM_TO_KILL:
            self._child.kill()

    def _look_for_reasons(self, now: float) -> None:
        assert self._child is not None
        with contextlib.suppress(OSError):  # storage that does not answer now says nothing
            self.fenced = newest_attempt(self._folder) > self._attempt.number
        if self.fenced:
            self._child.kill()
        limit = self.benchmark.timeout
        spent = time_spent(self._before.attempts, forgiven=self._before.forgiven) + now - self._attempt.at
        if limit is not None and spent > limit:
            self._late = True
            self._child.kill()

    def _count(self) -> None:
        assert self._growing is not None
        reader = line_reader(self.benchmark.adapter)
        if reader is None:
            return
        for line in self._growing.lines():
            said = reader(line)
            if isinstance(said, BenchmarkItem) and said.id not in self._done:
                self._done.add(said.id)
                self.items += 1

    # ── its end ───────────────────────────────────────────────────────────────

    def _end(self, code: int) -> Attempt | None:
        if self.fenced or newest_attempt(self._folder) > self._attempt.number:
            self.fenced = True
            return None
        end, reason = judge_trial(
            CommandExit(
                code=code,
                asked=self._asked_at is not None,
                termed=self._termed_at is not None,
                late=self.benchmark.timeout if self._late else None,
                items=self.items,
                before=len(self._done) - self.items,
                code_counts=self.benchmark.adapter.kind == "exit-code",
            )
        )
        if end is AttemptEnd.DONE:
            try:
                self._write_result(code)
            except OnwardError as error:
                end, reason = AttemptEnd.FAILED, f"{error.message} ({error.hint})"
        return self._write_end(end, reason)

    def give_up(self, error: OnwardError) -> Attempt:
        """For one that could not begin."""
        return self._write_end(AttemptEnd.FAILED, f"{error.message} ({error.hint})" if error.hint else error.message)

    def _write_result(self, code: int) -> None:
        reading = read_output(self.benchmark.adapter, self._output(code))
        if reading.empty:
            raise OnwardError("the command wrote no score", hint=expected_score(self.benchmark))
        write_result(self._folder, self._result(reading))

    def _result(self, reading: ParsedOutput) -> TaskResult:
        now = self._bench.clock.now()
        return TaskResult(
            scores=scores_of(reading),
            items=len(reading.items),
            errors=sum(bool(item.error) for item in reading.items),
            repeated=reading.repeated,
            seconds=sum(attempt.seconds for attempt in self._before.attempts) + now - self._attempt.at,
            cpus=self.slot.cpus,
            gpus=len(self.slot.gpus),
            at=now,
            attempt=self._attempt.number,
        )

    def _write_end(self, end: AttemptEnd, reason: str) -> Attempt:
        now, folder, number = self._bench.clock.now(), self._folder, self._attempt.number
        evidence = last_words(folder.err(number), folder.out(number)) if end in (AttemptEnd.FAILED, AttemptEnd.TIMEOUT) else ""
        ended = replace(
            self._attempt,
            end=end,
            reason=reason,
            evidence=evidence,
            items=self.items,
            seconds=round(now - self._attempt.at, 3),
            early=self._bench.early(self._attempt.at),
            ended=now,
        )
        end_attempt(folder, ended)
        return ended

    def _output(self, code: int) -> CommandOutput:
        printed = [self._folder.out(number) for number in range(1, self._attempt.number + 1)]
        return CommandOutput(printed=printed, files=self._folder.files, code=code)


def _mark(folder: TaskDir, number: int) -> str:
    return f"{folder.path}#{number}"
