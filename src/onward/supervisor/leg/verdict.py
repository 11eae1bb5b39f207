"""Why this leg ended, judged by the supervisor that lived it. Pure, but for the reading of the last lines."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from onward.model.quantity import format_size
from onward.model.run import LegEnd
from onward.model.stop_reason import StopReason
from onward.sdk.contract import EXIT_AGAIN

_TAIL = 1 << 15
_MOST_LINES = 40
_LONGEST_LINE = 500
_MEMORY_ERROR = re.compile(
    r"^(numpy\.[\w.]+)?MemoryError\b|std::bad_alloc|\b[Cc]an(no|')t allocate memory\b"
    r"|failed to map segment from shared object|can't start new thread",  # where address space is what is limited
    re.MULTILINE,
)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, kw_only=True)
class TrainingOutcome:
    """What the supervisor saw."""

    code: int  # exit code of the training, or minus the signal that ended it
    asked: StopReason | None  # None: it was not asked to stop
    finished: bool  # it said that it was complete
    stalled: bool = False
    lost_nodes: tuple[str, ...] = ()  # other nodes of the job that fell silent when the training failed
    memory_killed: bool = False  # the kernel killed something of this job for its memory
    peak_mem: int | None = None  # MiB
    mem: int | None = None  # MiB the job has
    evidence: str = ""  # the last lines it wrote
    stall_seconds: int | None = None
    again_code: int | None = None  # exit codes of this scheduler's own: run me again
    final_code: int | None = None  # and: do not
    who: str = "the training"  # of several processes, the rank that failed first, with its node
    said: str = ""  # its last line
    ended_by_us: bool = False  # it did not stop when it was asked, and none of it had failed by then
    stayed: str = ""  # of several processes, those that had to be ended, and those that had not

    @property
    def final(self) -> bool:
        """It was not asked to end, and said that it is not to be run again."""
        return self.final_code is not None and self.code == self.final_code and self.asked is None and not self.stalled

    @property
    def again(self) -> bool:
        return self.code == EXIT_AGAIN or (self.again_code is not None and self.code == self.again_code)

    @property
    def saved(self) -> bool:
        """By its exit code."""
        return self.code == 0 or self.again

    @property
    def last_line(self) -> str:
        return f": {self.said}" if self.said else ""


def judge_leg(outcome: TrainingOutcome) -> tuple[LegEnd, str] | None:
    """The end and its reason. None where a signal of the scheduler's ended it: then only the scheduler knows why."""
    died = describe_exit(outcome.code)
    if outcome.stalled:
        return LegEnd.STALLED, f"the training showed no progress for {outcome.stall_seconds} s and was ended"
    if outcome.code == 0 and (outcome.finished or outcome.asked is None):
        return LegEnd.DONE, "the training finished"
    if not outcome.saved and out_of_memory(outcome):
        peak = f", after using {format_size(outcome.peak_mem)}" if outcome.peak_mem else ""
        if outcome.code > 0 and not outcome.memory_killed:  # address space ran out: nobody is killed, and little memory may be in use
            return LegEnd.OUT_OF_MEMORY, f"the training was refused more memory ({died})"
        return LegEnd.OUT_OF_MEMORY, f"the training was killed for running out of memory ({died}){peak}"
    if outcome.asked is None:
        return _unasked(outcome, died)
    return _asked(outcome, outcome.asked, died)


def _asked(outcome: TrainingOutcome, asked: StopReason, died: str) -> tuple[LegEnd, str] | None:
    """How a training ended that was asked to stop."""
    left = outcome.saved or outcome.code < 0 or outcome.ended_by_us
    stopped, by_force = "stopped", ""
    if left and not outcome.saved:
        stopped, by_force = "ended", f": it did not stop by itself ({outcome.stayed or died})"
    saved_or_died = "; the training saved and stopped" if outcome.saved else f" ({died})"
    match asked:
        case StopReason.SIGNAL:
            return None
        case StopReason.DELETED:
            return LegEnd.CANCELLED, "its job was deleted" + saved_or_died
        case StopReason.FOLDER_GONE:
            return LegEnd.CANCELLED, "the run's folder was deleted" + saved_or_died
        case StopReason.GIVEN_UP:
            return LegEnd.NODE_LOST, "the scheduler had lost contact with its host" + saved_or_died
        case StopReason.DEADLINE if left:
            return LegEnd.TIME_LIMIT, f"{stopped} before the time limit{by_force}"
        case StopReason.DEADLINE:
            return LegEnd.CRASHED, f"{outcome.who} failed while stopping before the time limit ({died}){outcome.last_line}"
        case StopReason.WARNING if left:
            return LegEnd.PREEMPTED, f"{stopped} after the scheduler warned that the job will end{by_force}"
        case StopReason.REQUEST if left:
            return LegEnd.AGAIN, f"{stopped} on request{by_force}"
        case StopReason.WARNING | StopReason.REQUEST | StopReason.STORAGE:
            return LegEnd.CRASHED, f"{outcome.who} failed ({died}){outcome.last_line}"
        case _:
            assert_never(asked)


def _unasked(outcome: TrainingOutcome, died: str) -> tuple[LegEnd, str]:
    """How a training ended that nobody had asked to stop."""
    if outcome.lost_nodes:
        return LegEnd.NODE_LOST, f"{', '.join(outcome.lost_nodes)} were lost during the training ({died})"
    if outcome.again:
        return LegEnd.AGAIN, f"the training asked for another leg (exit code {outcome.code})"
    if outcome.final:
        return LegEnd.CRASHED, f"the training asked not to be run again (exit code {outcome.code})"
    return LegEnd.CRASHED, f"{outcome.who} failed ({died}){outcome.last_line}"


def out_of_memory(outcome: TrainingOutcome) -> bool:
    if outcome.memory_killed:
        return True
    if outcome.code == -signal.SIGKILL and outcome.asked is None and outcome.mem and outcome.peak_mem:
        return outcome.peak_mem >= 0.9 * outcome.mem
    return bool(outcome.mem) and _MEMORY_ERROR.search(outcome.evidence) is not None


def describe_exit(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def last_words(err: Path, out: Path) -> str:
    """The traceback, if the last lines of stderr hold one; else its last lines; else those of stdout."""
    for path in (err, out):
        lines = _tail(path)
        if not lines:
            continue
        for index in range(len(lines) - 1, -1, -1):
            if lines[index].startswith("Traceback (most recent call last)"):
                return "\n".join(_shortened(lines[index:]))
        return "\n".join(lines[-_MOST_LINES // 2 :])
    return ""


def _shortened(traceback: list[str]) -> list[str]:
    """Of a long stack its inner end, and always the exception itself: the first line after it that is not indented."""
    exception = next((i for i, line in enumerate(traceback) if i and not line[0].isspace()), len(traceback))
    stack = traceback[1:exception]
    return [traceback[0], *stack[-_MOST_LINES // 2 :], *traceback[exception:][: _MOST_LINES // 2]]


def _tail(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL))
            data = file.read()
    except OSError:
        return []
    text = _ESCAPES.sub("", data.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n"))
    return [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…" for line in text.split("\n") if line.strip()]
