"""Usage: what a run asked for beside what it used, with flags to copy for the next one; and when its GPUs did nothing. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onward.model.quantity import format_duration, format_size
from onward.model.run import LegEnd, Run

IDLE_BELOW = 5.0  # percent
IDLE_FOR = 300.0  # seconds
_ROOM = 1.25  # of a peak, for the next run
_GIB = 1024  # MiB


@dataclass(frozen=True, kw_only=True)
class MeasuredUse:
    """What was sampled; None where nothing was. Memory in MiB, CPUs as how many were busy on average, GPU use in percent by UUID."""

    mem_peak: int | None = None
    cpus: float | None = None
    gpus: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ResourceComparison:
    """One thing that was asked for. `flag`: what to ask for instead; empty where it is right as it is."""

    what: str  # memory, cpus, gpus, time
    asked: str
    used: str
    share: float  # used of asked
    flag: str = ""
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class IdleBand:
    start: float
    end: float


def idle_bands(
    times: Sequence[float], percents: Sequence[float | None], *, below: float = IDLE_BELOW, least: float = IDLE_FOR
) -> list[IdleBand]:
    """Stretches in which a GPU was allocated and did nothing. Where nothing was sampled, nothing is said."""
    bands: list[IdleBand] = []
    began: float | None = None
    last = 0.0
    for time, percent in [*zip(times, percents, strict=True), (math.inf, None)]:
        idle = percent is not None and percent < below
        if idle and began is None:
            began = time
        if not idle and began is not None:
            if last - began >= least:
                bands.append(IdleBand(start=began, end=last))
            began = None
        last = time
    return bands


def compare_usage(run: Run, used: MeasuredUse) -> list[ResourceComparison]:
    found = (_memory(run, used), _cpus(run, used), _gpus(run, used), _time(run))
    return [one for one in found if one is not None]


def _memory(run: Run, used: MeasuredUse) -> ResourceComparison | None:
    last = run.last_leg
    asked = next((s.mem for s in last.submissions.values() if last.claimed and s.job == last.claimed.job), None) if last else None
    asked = asked or run.resources.mem
    peak = used.mem_peak
    if not asked or not peak:
        return None
    share, better = peak / asked, _rounded(peak * _ROOM)
    flag = words = ""
    if share > 0.95:
        flag, words = f"--mem {format_size(better)}", "close to its limit: with slightly more, the job would have been killed"
    elif share < 0.5 and asked - peak >= _GIB and better < asked:
        flag, words = f"--mem {format_size(better)}", "a job that asks for less starts sooner"
    return ResourceComparison(what="memory", asked=format_size(asked), used=format_size(peak), share=share, flag=flag, words=words)


def _cpus(run: Run, used: MeasuredUse) -> ResourceComparison | None:
    each = run.resources.cpus_per_task
    if not each or used.cpus is None:
        return None
    tasks = (run.resources.ntasks_per_node or run.resources.ntasks or 1) if (run.resources.nodes or 1) == 1 else 1
    asked = each * tasks
    better = max(1, math.ceil(used.cpus / tasks * 1.2))
    few = used.cpus < asked / 2 and better < each
    return ResourceComparison(
        what="cpus",
        asked=str(asked),
        used=f"{used.cpus:.1f}",
        share=used.cpus / asked,
        flag=f"--cpus-per-task {better}" if few else "",
        words="most of them were idle" if few else "",
    )


def _gpus(run: Run, used: MeasuredUse) -> ResourceComparison | None:
    if not used.gpus:
        return None
    count, mean = len(used.gpus), sum(used.gpus.values()) / len(used.gpus)
    idle = sum(1 for percent in used.gpus.values() if percent < IDLE_BELOW)
    flag = words = ""
    if idle == count:
        words = "all were idle: does the training run on the CPU?"
    elif idle and run.resources.gpus:
        kind, colon, _ = run.resources.gpus.rpartition(":")
        flag, words = f"--gpus {kind}{colon}{count - idle}", f"{idle} of {count} were idle"
    elif mean < 30:
        words = "idle most of the time, probably waiting for data: more CPUs or data loader processes may help"
    return ResourceComparison(what="gpus", asked=str(count), used=f"{mean:.0f}%", share=mean / 100, flag=flag, words=words)


def _time(run: Run) -> ResourceComparison | None:
    """Of a run that was done within one leg: else its legs use their time by design."""
    last, asked = run.last_leg, run.resources.time
    if last is None or last.end is not LegEnd.DONE or last.number != 1 or not asked or not last.claimed or last.ended is None:
        return None
    took = last.ended - last.claimed.at
    better = math.ceil(took * 1.3 / 600) * 600
    short = took < asked / 2 and better < asked
    return ResourceComparison(
        what="time",
        asked=format_duration(asked),
        used=format_duration(took),
        share=took / asked,
        flag=f"--time {format_duration(better)}" if short else "",
        words="a shorter job can start in a gap of the schedule" if short else "",
    )


def _rounded(mib: float) -> int:
    """Up to whole GiB, or to 256 MiB below two."""
    unit = _GIB if mib > 2 * _GIB else 256
    return math.ceil(mib / unit) * unit
