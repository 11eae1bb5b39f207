"""Why this leg ended, judged by the supervisor that lived it. Pure, but for the reading of the last lines."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path

from onward.model.policy.lifecycle import DELETED, GIVEN_UP
from onward.model.quantity import format_size
from onward.model.run import LegEnd
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
    asked: str | None  # why it was asked to stop: deadline, warning, request, signal; None: it was not
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


def judge_leg(seen: TrainingOutcome) -> tuple[LegEnd, str] | None:
    """The end and its reason. None where a signal of the scheduler's ended it: then only the scheduler knows why."""
    died = describe_exit(seen.code)
    failed = f"{seen.who} failed"
    said = f": {seen.said}" if seen.said else ""
    if seen.stalled:
        return LegEnd.STALLED, f"the training showed no progress for {seen.stall_seconds} s and was ended"
    if seen.code == 0 and (seen.finished or seen.asked is None):
        return LegEnd.DONE, "the training finished"
    if not seen.again and seen.code != 0 and out_of_memory(seen):
        peak = f", after using {format_size(seen.peak_mem)}" if seen.peak_mem else ""
        if seen.code > 0 and not seen.memory_killed:  # at the end of its address space nobody is killed, and little of it may be in use
            return LegEnd.OUT_OF_MEMORY, f"the training was refused more memory ({died})"
        return LegEnd.OUT_OF_MEMORY, f"the training was killed for its memory ({died}){peak}"
    if seen.asked == "signal":
        return None
    if seen.lost_nodes and seen.asked is None:
        return LegEnd.NODE_LOST, f"{', '.join(seen.lost_nodes)} went away under the training ({died})"
    saved = seen.code == 0 or seen.again
    left = saved or seen.code < 0 or seen.ended_by_us
    by_force = f"; it did not stop by itself ({seen.stayed or died})" if not saved and (seen.ended_by_us or seen.code < 0) else ""
    if seen.asked == DELETED:
        return LegEnd.CANCELLED, "its job was deleted" + ("; the training saved and stopped" if saved else f" ({died})")
    if seen.asked == GIVEN_UP:
        return LegEnd.NODE_LOST, "the scheduler had given its host up" + ("; the training saved and stopped" if saved else f" ({died})")
    if seen.asked == "deadline":
        if left:
            return LegEnd.TIME_LIMIT, "stopped before the time limit" + by_force
        return LegEnd.CRASHED, f"{failed} while stopping before the time limit ({died}){said}"
    if seen.asked == "warning" and left:
        return LegEnd.PREEMPTED, "stopped at the scheduler's warning that the job will end" + by_force
    if seen.asked == "request" and left:
        return LegEnd.AGAIN, "stopped on request" + by_force
    if seen.again:
        return LegEnd.AGAIN, f"the training asked to be run again (exit code {seen.code})"
    if seen.final:
        return LegEnd.CRASHED, f"the training said that it is not to be run again (exit code {seen.code})"
    return LegEnd.CRASHED, f"{failed} ({died}){said}"


def out_of_memory(seen: TrainingOutcome) -> bool:
    if seen.memory_killed:
        return True
    if seen.code == -signal.SIGKILL and seen.asked is None and seen.mem and seen.peak_mem:
        return seen.peak_mem >= 0.9 * seen.mem
    return bool(seen.mem) and _MEMORY_ERROR.search(seen.evidence) is not None


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
