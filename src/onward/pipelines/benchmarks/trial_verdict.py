"""How a trial of a benchmark task ended, from how its command left. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from onward.model.pipelines.attempt import AttemptEnd
from onward.model.pipelines.plan import Benchmark
from onward.sdk.contract import EXIT_AGAIN
from onward.supervisor.leg.verdict import describe_exit

_NOT_STARTED = 126  # exit codes from here on are the shell's: nothing ran


@dataclass(frozen=True, kw_only=True)
class CommandExit:
    """How a command left."""

    code: int
    asked: bool = False  # its worker had to stop
    termed: bool = False  # and it did not leave by itself
    late: int | None = None  # the timeout that it exceeded
    items: int = 0  # done in this attempt
    before: int = 0  # and in earlier ones
    code_counts: bool = False  # its exit code is what it has to say


def judge_trial(ended: CommandExit) -> tuple[AttemptEnd, str]:
    """After being asked to stop, exit code 0 of a command that tells its items is no claim: the next attempt finds nothing left to do."""
    if ended.late is not None:
        return AttemptEnd.TIMEOUT, f"it took longer than its timeout of {ended.late} s"
    if ended.asked and (ended.code != 0 or ended.termed or ended.items + ended.before):
        return AttemptEnd.STOPPED, "its worker had to stop"
    if ended.code == EXIT_AGAIN:
        if ended.items:
            return AttemptEnd.STOPPED, "the command asked to be run again"
        return AttemptEnd.FAILED, f"the command asked to be run again (exit code {ended.code}) without finishing an item"
    if ended.code == 0 or (ended.code_counts and 0 < ended.code < _NOT_STARTED):
        return AttemptEnd.DONE, ""
    return AttemptEnd.FAILED, f"the command failed ({describe_exit(ended.code)})"


def expected_score(benchmark: Benchmark) -> str:
    """What a score would have looked like."""
    match benchmark.adapter.kind:
        case "jsonl":
            where = f"lines of {benchmark.adapter.file}" if benchmark.adapter.file else "printed lines"
            return f'expected {where} like {{"item": "q1", "{benchmark.metric}": 0.5}}'
        case "regex":
            return f"no line matches {benchmark.adapter.pattern}"
        case kind:
            return f"the adapter {kind} found no number"
