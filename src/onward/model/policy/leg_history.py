"""What a run's legs amount to: which of them count, which made progress, what they saved in vain, how long they took. Pure."""

from __future__ import annotations

from onward.model.run import Leg, LegEnd, Run

_NO_LEG, _NO_LEG_SHARE = 60.0, 0.05  # seconds, and share of the total-time: a leg takes that to start and to stop


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


def made_progress(run: Run, leg: Leg) -> bool:
    """The leg published a checkpoint beyond the one it began with. That need not be the newest: damaged ones are passed over.

    A training that keeps its own checkpoints saves where only it knows: a leg that was seen to write such files, or that is trusted
    and had its time, made progress.
    """
    if saves_by_itself(run) and leg.end in (LegEnd.TIME_LIMIT, LegEnd.PREEMPTED, LegEnd.AGAIN):
        return True
    if leg.self_saved and not any(other.published for other in run.legs.values()):
        return True
    if leg.last_published is None:
        return False
    if leg.restored:
        return leg.last_published > leg.restored.step
    before = [p.step for other in run.legs.values() if other.number < leg.number for p in other.published]
    return not before or leg.last_published > max(before)


def saves_by_itself(run: Run) -> bool:
    """A batch script, or a training of which its owner says so, is trusted to save its own way until it saves a checkpoint with us."""
    trusted = run.spec.script is not None or run.checkpoints.own
    return trusted and not any(leg.published for leg in run.legs.values())


def wrote_own_files(run: Run) -> bool:
    return any(leg.self_saved for leg in run.legs.values())


def not_stored(leg: Leg) -> int | None:
    """The newest step that the leg saved and nobody could store, where none after it was stored."""
    steps = [m.step for m in leg.missed if leg.last_published is None or m.step > leg.last_published]
    return max(steps, default=None)


def time_used_up(run: Run) -> bool:
    """Whether its legs, summed, have had all of its total-time, or what is left of it is no leg.

    A leg that met its limit had its time up to its deadline: what it did not use, it needed to stop.
    """
    total = run.limits.total_time
    if not total:
        return False
    last = run.last_leg
    spare = 0.0
    if last and last.end is LegEnd.TIME_LIMIT and last.claimed and last.claimed.deadline and last.ended:
        spare = max(last.claimed.deadline - last.ended, 0.0)
    return used_time(run) + spare >= total - min(_NO_LEG, total * _NO_LEG_SHARE)


def time_left(run: Run) -> float | None:
    """Seconds of its total-time that the next leg may take; None: as many as it likes."""
    return None if not run.limits.total_time else max(run.limits.total_time - used_time(run), 0.0)


def used_time(run: Run) -> float:
    return sum(map(leg_seconds, counted_legs(run)))


def leg_seconds(leg: Leg) -> float:
    return (leg.ended or leg.claimed.at) - leg.claimed.at if leg.claimed else 0.0


def counted_legs(run: Run) -> list[Leg]:
    """Legs that took place since the run was submitted or last resumed, in order."""
    return [leg for number, leg in sorted(run.legs.items()) if number >= run.first_leg and leg.claimed and leg.end]


def legs_since_progress(run: Run) -> list[Leg]:
    """The last legs in a row of which none made progress, whatever ended them."""
    legs = counted_legs(run)
    for index in range(len(legs), 0, -1):
        if made_progress(run, legs[index - 1]):
            return legs[index:]
    return legs


def lacks_progress(run: Run) -> Leg | None:
    """The leg that met its limit without progress, where another such leg ends the run."""
    if run.closed or run.cancel or run.stop:
        return None
    return next((leg for leg in legs_since_progress(run) if leg.end is LegEnd.TIME_LIMIT), None)
