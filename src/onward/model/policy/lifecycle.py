"""Policy: what a run does now: the next leg, or its end and why. Pure: every question here has a test without a file or a clock."""

from __future__ import annotations

import re
from dataclasses import dataclass

from onward.model.policy.leg_history import (
    cancelled_by_others,
    counted_legs,
    leg_seconds,
    legs_since_progress,
    not_stored,
    saves_by_itself,
    time_used_up,
    used_time,
    wrote_own_files,
)
from onward.model.policy.next_resources import excluded_nodes, memory_of, wanted_mem
from onward.model.quantity import format_duration, format_size
from onward.model.run import Leg, LegEnd, Run, RunState

MOST_CANCELLED_BY_OTHERS = 3  # jobs in a row: an administrator who cancels that often means it
MOST_UNKNOWN_ENDS = 10  # in a row and without a new checkpoint: legs whose end is not counted as the run's own failure
_INCOMPLETE = ("incomplete", "not whole")  # in warnings about saves; the second in journals of earlier versions
_USUAL_LEG = 86400.0  # seconds, where a leg has no limit

_BAD_ENDS = {
    LegEnd.CRASHED: "crashed",
    LegEnd.STALLED: "stalled",
    LegEnd.LOST: "was lost",
    LegEnd.AGAIN: "asked for another leg without saving anything new",
}


@dataclass(frozen=True, kw_only=True)
class NothingToDo:
    """Nothing to do: the run is over, or its leg is at work."""


@dataclass(frozen=True, kw_only=True)
class Continue:
    """Let this leg run, with these resources."""

    leg: int
    mem: int | None  # MiB
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Close:
    """End the run: with a cause, the evidence and the next action, in words."""

    state: RunState
    cause: str
    evidence: str = ""
    next: str = ""


RunAction = NothingToDo | Continue | Close


def decide(run: Run) -> RunAction:
    """What a run needs now, from nothing but what is written of it."""
    last = run.last_leg
    if run.closed or (last and last.number >= run.first_leg and last.end is None and not run.cancel):
        return NothingToDo()
    if run.cancel:
        return Close(state=RunState.CANCELLED, cause=f"cancelled by {run.cancel.by}", next=_resuming(run))
    if last is None or last.number < run.first_leg:
        return Continue(leg=run.first_leg, mem=wanted_mem(run), exclude=excluded_nodes(run))
    assert last.end is not None
    match last.end:
        case LegEnd.DONE if not_stored(last) is not None:
            if not _next_leg_can_publish(run, last):
                step = not_stored(last)
                return _store_full(run, last, f"the training finished, but its last checkpoint (step {step}) could not be stored")
            closing = None
        case LegEnd.DONE:
            return Close(state=RunState.FINISHED, cause=last.reason or "the training finished")
        case LegEnd.CANCELLED if last.cancelled_by:
            closing = _cancelled_by_others(run, last)
        case LegEnd.CANCELLED:
            return Close(
                state=RunState.CANCELLED,
                cause=f"leg {last.number} was cancelled: {last.reason}",
                evidence=last.evidence,
                next=_resuming(run),
            )
        case LegEnd.OUT_OF_MEMORY:
            closing = _memory_exhausted(run, last)
        case LegEnd.TIME_LIMIT:
            closing = _too_short(run, last)
        case LegEnd.CRASHED | LegEnd.STALLED | LegEnd.LOST | LegEnd.AGAIN:
            closing = _hopeless(run, last)
        case LegEnd.PREEMPTED | LegEnd.NODE_LOST:
            closing = None
    if run.stop:
        closing = Close(
            state=RunState.CANCELLED,
            cause=f"stopped by {run.stop.by}{_saved(run)}",
            next=_resuming(run),
        )
    closing = closing or _nothing_stored(run, last) or _limits_reached(run, last)
    return closing or Continue(leg=last.number + 1, mem=wanted_mem(run), exclude=excluded_nodes(run))


def crash_signature(evidence: str) -> str:
    """What makes two crashes the same: the last lines, without numbers and addresses."""
    lines = [line.strip() for line in evidence.strip().splitlines() if line.strip()]
    return re.sub(r"0x[0-9a-fA-F]+|\d+", "#", " | ".join(lines[-3:]))


# ── reasons to stop ───────────────────────────────────────────────────────────


def _cancelled_by_others(run: Run, last: Leg) -> Close | None:
    count = cancelled_by_others(run)
    if count < MOST_CANCELLED_BY_OTHERS:
        return None
    return Close(
        state=RunState.CANCELLED,
        cause=f"{last.cancelled_by} cancelled its jobs {count} times in a row",
        evidence=last.reason,
        next=f"ask {last.cancelled_by} why; then {_resuming(run)}",
    )


def _memory_exhausted(run: Run, last: Leg) -> Close | None:
    had, most = memory_of(last, run), run.limits.mem_max
    peak = last.own.peak_mem if last.own else None
    if most and had != 0 and (had or peak or 0) < most:
        return None
    with_what = "the default memory" if had is None else format_size(had) if had else "all of its node's memory"
    more = f"--mem {format_size(2 * (had or peak or 0))}" if had or peak else "--mem SIZE"
    used = f"; it used at least {format_size(peak)}" if peak else ""
    return Close(
        state=RunState.FAILED,
        cause=f"leg {last.number} ran out of memory with {with_what}" + (", the most that mem-max allows" if most and had else ""),
        evidence=last.reason + used + (f"\n{last.evidence}" if last.evidence else ""),
        next=f"onward resume {run.spec.id} {more}"
        if had != 0
        else f"onward resume {run.spec.id} --partition NAME, where NAME has larger nodes",
    )


def _nothing_stored(run: Run, last: Leg) -> Close | None:
    """Legs whose saves could not be stored, one after another, until a whole leg's time was spent on them.

    A full disk may have room again at any moment, so a leg trains on without being stored. But not leg after leg.
    """
    legs = [leg for leg in legs_since_progress(run) if not_stored(leg) is not None]
    if len(legs) < 2 or legs[-1] is not last or sum(map(leg_seconds, legs)) < (run.resources.time or _USUAL_LEG):
        return None
    return _store_full(run, last, f"legs {legs[0].number} to {last.number} saved checkpoints, and none could be stored")


def _next_leg_can_publish(run: Run, last: Leg) -> bool:
    """The training finished so near the limit that there was no time to publish: one more leg does that, and has nothing left to train."""
    newest = max(last.missed, key=lambda missed: (missed.step, bool(missed.kept)))
    before = run.legs.get(last.number - 1)
    again = before is not None and before.number >= run.first_leg and before.end is LegEnd.DONE
    return bool(newest.kept) and not again and not run.stop and _limits_reached(run, last) is None


def _store_full(run: Run, last: Leg, cause: str) -> Close:
    where = f"\nwhat was saved is in {last.claimed.local} on {', '.join(last.claimed.hosts)}" if last.claimed else ""
    return Close(
        state=RunState.FAILED,
        cause=cause,
        evidence=(last.missed[-1].reason if last.missed else last.reason) + where,
        next=f"make room, then {_resuming(run)}",
    )


def _too_short(run: Run, last: Leg) -> Close | None:
    met = [leg for leg in legs_since_progress(run) if leg.end is LegEnd.TIME_LIMIT]
    if len(met) < 2:
        return None
    if not_stored(last) is not None:
        return _store_full(run, last, f"legs {met[-2].number} and {last.number} saved checkpoints, and none could be stored")
    before = met[-2]
    limit = format_duration(run.resources.time) if run.resources.time else "the queue's own limit"
    steps = f" and reached step {last.own.last_step}" if last.own and last.own.last_step is not None else ""
    ever = any(leg.published for leg in run.legs.values())
    refused = next((words for words in reversed(last.warnings) if any(mark in words for mark in _INCOMPLETE)), "")
    nothing = "no checkpoint was ever saved to ONWARD_CHECKPOINT_DIR, and no file of its own that looks like one was written"
    lack = "the last checkpoint is older than both legs" if ever else refused or nothing
    return Close(
        state=RunState.FAILED,
        cause=f"legs {before.number} and {last.number} both reached their time limit without a new checkpoint, so it makes no progress",
        evidence=f"leg {last.number} ran {_ran(last)}{steps}; {lack}",
        next=f"raise the leg's time (now {limit}; --time) above the time to a first checkpoint, "
        f"or save more often; then onward resume {run.spec.id} --time HH:MM:SS, or submit again"
        + ("" if ever else f". {own_checkpoints_advice(run)}"),
    )


def own_checkpoints_advice(run: Run) -> str:
    if run.checkpoints.paths:
        return f"No complete file was found at checkpoints.paths ({', '.join(run.checkpoints.paths)}): is that where the training saves?"
    return (
        f"If the training keeps its own checkpoints: onward resume {run.spec.id} --checkpoints own trusts it; "
        "with `checkpoints: {paths: [FILE]}` in a params file they are also published, and restored where they are missing"
    )


def _hopeless(run: Run, last: Leg) -> Close | None:
    if last.own and last.own.final:
        return Close(
            state=RunState.FAILED,
            cause=f"leg {last.number} failed for good: {last.reason}",
            evidence=last.evidence,
            next=f"to continue anyway, onward resume {run.spec.id}",
        )
    if not last.counts:
        return _never_known(run, last)
    bad = [leg for leg in legs_since_progress(run) if leg.end in _BAD_ENDS and leg.counts]
    if not bad:
        return _crashes_wherever_it_saves(run, last)
    what = "the code" if last.started else "what comes before the training (its environment or launcher)"
    advice = (
        f"fix {what} and submit again; if {'the code' if last.started else 'that'} was not the cause, "
        f"onward resume {run.spec.id} continues with it as it was at submit"
        if last.end is not LegEnd.AGAIN
        else "exit code 75 means: saved, run me again; save to ONWARD_CHECKPOINT_DIR before that, or exit 0 when done; "
        f"then submit again, or onward resume {run.spec.id}"
    )
    twin = next((leg for leg in bad if leg is not last and leg.end is last.end is LegEnd.CRASHED and _crash(leg) == _crash(last)), None)
    if twin:
        return Close(
            state=RunState.FAILED,
            cause=f"legs {twin.number} and {last.number} crashed in the same way, without a new checkpoint between them: {last.reason}",
            evidence=last.evidence,
            next=advice,
        )
    if len(bad) <= run.limits.max_restarts:
        return None
    if not_stored(last) is not None:
        return _store_full(run, last, f"leg {last.number} {_BAD_ENDS[last.end or LegEnd.LOST]}, and what it saved could not be stored")
    count = f"{len(bad)} failures in a row" if len(bad) > 1 else "a failure"
    return Close(
        state=RunState.FAILED,
        cause=f"leg {last.number} {_BAD_ENDS[last.end or LegEnd.LOST]}: {count} without a new checkpoint"
        f" (max-restarts {run.limits.max_restarts})",
        evidence=last.reason + (f"\n{last.evidence}" if last.evidence else ""),
        next=advice,
    )


def _crashes_wherever_it_saves(run: Run, last: Leg) -> Close | None:
    """It writes files of its own, and may never go on from them: whether they are newer than before, only it knows."""
    if not last.self_saved or last.published:
        return None
    alike = 0
    for leg in reversed(counted_legs(run)):
        if leg.end is not LegEnd.CRASHED or _crash(leg) != _crash(last):
            break
        alike += 1
    if alike <= max(run.limits.max_restarts, 1):
        return None
    return Close(
        state=RunState.FAILED,
        cause=f"the last {alike} legs crashed in the same way, though each wrote files of its own: {last.reason}",
        evidence=last.evidence,
        next=f"fix the code, or make the training continue from its own files; then submit again, or onward resume {run.spec.id}",
    )


def _never_known(run: Run, last: Leg) -> Close | None:
    """Ends that nobody could explain say nothing about the run. But one that never gets anywhere must not go on for ever."""
    legs = [leg for leg in legs_since_progress(run) if not leg.counts]
    if len(legs) < MOST_UNKNOWN_ENDS:
        return None
    return Close(
        state=RunState.FAILED,
        cause=f"{len(legs)} legs ended without a new checkpoint, for reasons outside the run",
        evidence=last.reason + (f"\n{last.evidence}" if last.evidence else ""),
        next=f"check the scheduler and the storage (onward doctor), then {_resuming(run)}",
    )


def _limits_reached(run: Run, last: Leg) -> Close | None:
    legs = counted_legs(run)
    if len(legs) >= run.limits.max_legs:
        return Close(
            state=RunState.FAILED,
            cause=f"the run used all of its max-legs ({run.limits.max_legs}){_saved(run)}",
            evidence=last.reason,
            next=f"onward resume {run.spec.id} --max-legs N",
        )
    if run.limits.total_time and time_used_up(run):
        return Close(
            state=RunState.FAILED,
            cause=f"the run used {format_duration(used_time(run))} of its total-time {format_duration(run.limits.total_time)}{_saved(run)}",
            evidence=last.reason,
            next=f"onward resume {run.spec.id} --total-time D-HH:MM:SS",
        )
    return None


# ── reading a run ─────────────────────────────────────────────────────────────


def _crash(leg: Leg) -> str:
    return crash_signature(leg.evidence or leg.reason)


def _resuming(run: Run) -> str:
    """What resume would do: without a checkpoint there is nothing to go on from."""
    if any(leg.published for leg in run.legs.values()):
        return f"onward resume {run.spec.id} continues from the last checkpoint"
    if saves_by_itself(run) or wrote_own_files(run):
        what = "the script" if run.spec.script else "it"
        return f"onward resume {run.spec.id} starts {what} again, which continues if it saves its own state"
    last = run.last_leg
    if run.cancel and last and last.own is None and last.claimed:
        return f"onward resume {run.spec.id} starts it from the beginning, unless its last leg stored a checkpoint while it was ended"
    return f"onward resume {run.spec.id} starts it from the beginning: no checkpoint was stored"


def _saved(run: Run) -> str:
    steps = [p.step for leg in run.legs.values() for p in leg.published]
    if not steps:
        return "" if saves_by_itself(run) or wrote_own_files(run) else " without a checkpoint"  # what it saved, only it knows
    return f" after checkpoint at step {max(steps)}"


def _ran(leg: Leg) -> str:
    return format_duration((leg.ended or 0) - leg.claimed.at) if leg.claimed and leg.ended else "an unknown time"
