"""Policy: why a leg ended, and what to do now. Pure: every question here has a test without a file or a clock."""

from __future__ import annotations

import re
from dataclasses import dataclass

from onward.model.job import JobState, JobStatus
from onward.model.quantity import format_duration, format_size
from onward.model.run import Leg, LegEnd, Run, RunState
from onward.model.stop_reason import StopReason

LOSSES_BEFORE_EXCLUDING = 2  # of the same node
MOST_CANCELLED_BY_OTHERS = 3  # jobs in a row: an administrator who cancels that often means it
MOST_UNKNOWN_ENDS = 10  # in a row and without a new checkpoint: legs whose end is not counted as the run's own failure
_USUAL_LEG = 86400.0  # seconds, where a leg has no limit

_BAD_ENDS = {
    LegEnd.CRASHED: "crashed",
    LegEnd.STALLED: "stalled",
    LegEnd.LOST: "was lost",
    LegEnd.AGAIN: "asked to be run again without saving anything new",
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


def classify_end(status: JobStatus | None, job: str, *, noticed: bool | None = None) -> tuple[LegEnd, str]:
    """The end of a leg that left no word itself, from the scheduler's. `None`: the scheduler does not know the job.

    `noticed`: whether a notice came that the job was deleted, where the scheduler sends one and cannot tell a deletion
    from a kill afterwards; None where it can, or sends none.
    """
    if noticed and status is None:
        return LegEnd.CANCELLED, f"job {job} was deleted"
    if status is None:
        return LegEnd.LOST, f"the scheduler no longer knows job {job}, and the leg left no word"
    where = f" on {', '.join(status.nodes)}" if status.nodes else ""
    words = f" ({status.reason})" if status.reason else ""
    if noticed and status.state in (JobState.CANCELLED, JobState.FAILED, JobState.FINISHED):
        return LegEnd.CANCELLED, f"job {job} was deleted"
    if noticed is False and status.state is JobState.CANCELLED:
        return LegEnd.LOST, f"job {job} was killed{where} without the notice that comes before a deletion, by whom is not known"
    match status.state:
        case JobState.TIMED_OUT:
            return LegEnd.TIME_LIMIT, f"job {job} was killed at its time limit before it could stop by itself"
        case JobState.PREEMPTED:
            return LegEnd.PREEMPTED, f"job {job} was preempted{where}"
        case JobState.OUT_OF_MEMORY:
            return LegEnd.OUT_OF_MEMORY, f"job {job} was killed for its memory{where}"
        case JobState.NODE_FAILED:
            return LegEnd.NODE_LOST, f"the node of job {job} failed{where}"
        case JobState.CANCELLED:
            return LegEnd.CANCELLED, f"job {job} was cancelled" + (f" by {status.cancelled_by}" if status.cancelled_by else words)
        case JobState.FAILED if status.signal:
            return LegEnd.LOST, f"job {job} was killed by signal {status.signal}{where}, by whom is not known"
        case JobState.FAILED:
            return LegEnd.LOST, f"job {job} failed with exit code {status.exit_code}{where}{words}, and the leg left no word"
        case _:
            return LegEnd.LOST, f"job {job} is {status.state}{words}, yet the leg left no word"


def cancelled_by_others(run: Run) -> int:
    """How often in a row, up to now, somebody other than the owner cancelled the run's jobs.

    A leg that took place and ended otherwise breaks the row. Legs that were queued ahead and cancelled together count once.
    """
    waiting, ran = 0, 0
    for number, leg in sorted(run.legs.items(), reverse=True):
        if number < run.first_leg or (leg.claimed and not leg.cancelled_by):
            break
        times = bool(leg.cancelled_by) + sum(1 for s in leg.submissions.values() if s.gone_by)
        waiting, ran = (waiting, ran + times) if leg.claimed else (max(waiting, times), ran)
    return waiting + ran


def wanted_mem(run: Run) -> int | None:
    """MiB for the next leg: what was asked, doubled for each leg that ran out of it, up to `mem-max`."""
    mem = run.resources.mem
    most = run.limits.mem_max
    for leg in _counted(run):
        if leg.end is LegEnd.OUT_OF_MEMORY and most:
            had = _had(leg, run) or (leg.own.peak_mem if leg.own else None)
            mem = max(mem or 0, min(had * 2, most) if had else most)
    return mem


def excluded_nodes(run: Run) -> tuple[str, ...]:
    """Nodes that were lost under this run more than once."""
    losses: dict[str, int] = {}
    for leg in _counted(run):
        if leg.end is LegEnd.NODE_LOST and leg.claimed and len(leg.claimed.hosts) == 1:
            host = leg.claimed.hosts[0]
            losses[host] = losses.get(host, 0) + 1
    return tuple(sorted(host for host, count in losses.items() if count >= LOSSES_BEFORE_EXCLUDING))


def made_progress(run: Run, leg: Leg) -> bool:
    """The leg published a checkpoint beyond the one it began with. That need not be the newest: damaged ones are passed over.

    A batch script saves where only it knows: a leg of one that had its time is trusted to have used it.
    """
    if saves_by_itself(run) and leg.end in (LegEnd.TIME_LIMIT, LegEnd.PREEMPTED, LegEnd.AGAIN):
        return True
    if leg.last_published is None:
        return False
    if leg.restored:
        return leg.last_published > leg.restored.step
    before = [p.step for other in run.legs.values() if other.number < leg.number for p in other.published]
    return not before or leg.last_published > max(before)


def saves_by_itself(run: Run) -> bool:
    """A batch script that never saved a checkpoint with us is trusted to save its own way."""
    return run.spec.script is not None and not any(leg.published for leg in run.legs.values())


def deletion_noticed(leg: Leg, *, notice_expected: bool) -> bool | None:
    """Whether the leg got the notice that its job was deleted; None where its absence proves nothing.

    `notice_expected`: the scheduler sends one before every deletion, and afterwards cannot tell a deletion from a kill.
    """
    if leg.asked and leg.asked.reason is StopReason.DELETED:
        return True
    return False if notice_expected else None


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
    had, most = _had(last, run), run.limits.mem_max
    peak = last.own.peak_mem if last.own else None
    if most and had != 0 and (had or peak or 0) < most:
        return None
    with_what = "the default memory" if had is None else format_size(had) if had else "all memory of its node"
    more = f"--mem {format_size(2 * (had or peak or 0))}" if had or peak else "--mem SIZE"
    used = f"; it used at least {format_size(peak)}" if peak else ""
    return Close(
        state=RunState.FAILED,
        cause=f"leg {last.number} ran out of memory with {with_what}" + (", the most that mem-max allows" if most and had else ""),
        evidence=last.reason + used + (f"\n{last.evidence}" if last.evidence else ""),
        next=f"onward resume {run.spec.id} {more}" if had != 0 else f"onward resume {run.spec.id} --partition, with one of larger nodes",
    )


def not_stored(leg: Leg) -> int | None:
    """The newest step that the leg saved and nobody could store, where none after it was stored."""
    steps = [m.step for m in leg.missed if leg.last_published is None or m.step > leg.last_published]
    return max(steps, default=None)


def _nothing_stored(run: Run, last: Leg) -> Close | None:
    """Legs whose saves could not be stored, one after another, until a whole leg's time was spent on them.

    A full disk may have room again at any moment, so a leg trains on without being stored. But not leg after leg.
    """
    legs = [leg for leg in _since_progress(run) if not_stored(leg) is not None]
    if len(legs) < 2 or legs[-1] is not last or sum(map(_lasted, legs)) < (run.resources.time or _USUAL_LEG):
        return None
    return _store_full(run, last, f"legs {legs[0].number} to {last.number} saved checkpoints, and none could be stored")


def _next_leg_can_publish(run: Run, last: Leg) -> bool:
    """The training finished so near the limit that there was no time to publish: one more leg does that, and has nothing left to train."""
    newest = max(last.missed, key=lambda missed: (missed.step, bool(missed.kept)))
    before = run.legs.get(last.number - 1)
    again = before is not None and before.number >= run.first_leg and before.end is LegEnd.DONE
    return bool(newest.kept) and not again and not run.stop and _limits_reached(run, last) is None


def _store_full(run: Run, last: Leg, cause: str) -> Close:
    where = f"\nwhat was saved lies in {last.claimed.local} on {', '.join(last.claimed.hosts)}" if last.claimed else ""
    return Close(
        state=RunState.FAILED,
        cause=cause,
        evidence=(last.missed[-1].reason if last.missed else last.reason) + where,
        next=f"make room, then {_resuming(run)}",
    )


def _too_short(run: Run, last: Leg) -> Close | None:
    met = [leg for leg in _since_progress(run) if leg.end is LegEnd.TIME_LIMIT]
    if len(met) < 2:
        return None
    if not_stored(last) is not None:
        return _store_full(run, last, f"legs {met[-2].number} and {last.number} saved checkpoints, and none could be stored")
    before = met[-2]
    limit = format_duration(run.resources.time) if run.resources.time else "the queue's own limit"
    steps = f" and reached step {last.own.last_step}" if last.own and last.own.last_step is not None else ""
    ever = any(leg.published for leg in run.legs.values())
    refused = next((words for words in reversed(last.warnings) if "not whole" in words), "")
    lack = "the last checkpoint is older than both legs" if ever else refused or "no checkpoint was ever saved into ONWARD_CHECKPOINT_DIR"
    return Close(
        state=RunState.FAILED,
        cause=f"legs {before.number} and {last.number} both met their time limit without a new checkpoint, so the run cannot get on",
        evidence=f"leg {last.number} ran {_ran(last)}{steps}; {lack}",
        next=f"change one of two numbers: the leg's time (now {limit}; --time), which must exceed the time to a first checkpoint, "
        f"or how often the training saves; then onward resume {run.spec.id} --time HH:MM:SS, or submit again",
    )


def _hopeless(run: Run, last: Leg) -> Close | None:
    if last.own and last.own.final:
        return Close(
            state=RunState.FAILED,
            cause=f"leg {last.number} ended for good: {last.reason}",
            evidence=last.evidence,
            next=f"if it shall go on all the same, onward resume {run.spec.id}",
        )
    if not last.counts:
        return _never_known(run, last)
    bad = [leg for leg in _since_progress(run) if leg.end in _BAD_ENDS and leg.counts]
    if not bad:
        return None
    what = "the code" if last.started else "what comes before the training (its environment, or its launcher)"
    mended = (
        f"mend {what} and submit again; if the cause was not {'the code' if last.started else 'that'}, "
        f"onward resume {run.spec.id} goes on with it as it was at submit"
        if last.end is not LegEnd.AGAIN
        else "exit code 75 means: saved, run me again; save into ONWARD_CHECKPOINT_DIR before it, or exit 0 when done; "
        f"then submit again, or onward resume {run.spec.id}"
    )
    twin = next((leg for leg in bad if leg is not last and leg.end is last.end is LegEnd.CRASHED and _crash(leg) == _crash(last)), None)
    if twin:
        return Close(
            state=RunState.FAILED,
            cause=f"legs {twin.number} and {last.number} crashed in the same way, with no new checkpoint between them: {last.reason}",
            evidence=last.evidence,
            next=mended,
        )
    if len(bad) <= run.limits.max_restarts:
        return None
    if not_stored(last) is not None:
        return _store_full(run, last, f"leg {last.number} {_BAD_ENDS[last.end or LegEnd.LOST]}, and what it saved could not be stored")
    count = f"{len(bad)} bad ends" if len(bad) > 1 else "a bad end"
    return Close(
        state=RunState.FAILED,
        cause=f"leg {last.number} {_BAD_ENDS[last.end or LegEnd.LOST]}: {count} without a new checkpoint"
        f" (max-restarts {run.limits.max_restarts})",
        evidence=last.reason + (f"\n{last.evidence}" if last.evidence else ""),
        next=mended,
    )


def _never_known(run: Run, last: Leg) -> Close | None:
    """Ends that nobody could explain say nothing about the run. But one that never gets anywhere must not go on for ever."""
    legs = [leg for leg in _since_progress(run) if not leg.counts]
    if len(legs) < MOST_UNKNOWN_ENDS:
        return None
    return Close(
        state=RunState.FAILED,
        cause=f"{len(legs)} legs ended without a new checkpoint, and not for a reason of the run's own",
        evidence=last.reason + (f"\n{last.evidence}" if last.evidence else ""),
        next=f"look at the scheduler and the storage (onward doctor), then {_resuming(run)}",
    )


def _limits_reached(run: Run, last: Leg) -> Close | None:
    legs = _counted(run)
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
            cause=f"the run used {format_duration(_spent(run))} of its total-time {format_duration(run.limits.total_time)}{_saved(run)}",
            evidence=last.reason,
            next=f"onward resume {run.spec.id} --total-time D-HH:MM:SS",
        )
    return None


# ── reading a run ─────────────────────────────────────────────────────────────


def time_used_up(run: Run) -> bool:
    """Whether its legs, summed, have had all of its total-time."""
    return bool(run.limits.total_time) and _spent(run) >= (run.limits.total_time or 0)


def _spent(run: Run) -> float:
    return sum(map(_lasted, _counted(run)))


def _lasted(leg: Leg) -> float:
    return (leg.ended or leg.claimed.at) - leg.claimed.at if leg.claimed else 0.0


def _counted(run: Run) -> list[Leg]:
    """Legs that took place since the run was submitted or last resumed, in order."""
    return [leg for number, leg in sorted(run.legs.items()) if number >= run.first_leg and leg.claimed and leg.end]


def _since_progress(run: Run) -> list[Leg]:
    """The last legs in a row of which none made progress, whatever ended them."""
    legs = _counted(run)
    for index in range(len(legs), 0, -1):
        if made_progress(run, legs[index - 1]):
            return legs[index:]
    return legs


def _crash(leg: Leg) -> str:
    return crash_signature(leg.evidence or leg.reason)


def _had(leg: Leg, run: Run) -> int | None:
    """MiB its job had; 0: all of the node; None: what the cluster gives where nothing is asked."""
    for submission in leg.submissions.values():
        if leg.claimed and submission.job == leg.claimed.job:
            return submission.mem
    standing = leg.submission
    return standing.mem if standing else run.resources.mem


def _resuming(run: Run) -> str:
    """What resume would do: without a checkpoint there is nothing to go on from."""
    if any(leg.published for leg in run.legs.values()):
        return f"onward resume {run.spec.id} goes on from the last checkpoint"
    if saves_by_itself(run):
        return f"onward resume {run.spec.id} starts the script again; it goes on if it saves by itself"
    return f"onward resume {run.spec.id} starts it from the beginning: no checkpoint was stored"


def _saved(run: Run) -> str:
    steps = [p.step for leg in run.legs.values() for p in leg.published]
    if not steps:
        return "" if saves_by_itself(run) else " without a checkpoint"  # what a script saved, only it knows
    return f" after checkpoint at step {max(steps)}"


def _ran(leg: Leg) -> str:
    return format_duration((leg.ended or 0) - leg.claimed.at) if leg.claimed and leg.ended else "an unknown time"
