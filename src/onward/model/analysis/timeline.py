"""Timeline: a run from its events as stretches and moments, each with words and with the log that tells more. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from onward.model import events as ev
from onward.model.analysis.effort import queue_waits
from onward.model.analysis.why import state_words
from onward.model.run import Leg, LegEnd, Run

SegmentKind = Literal["queue", "prepare", "leg", "sync", "stall"]
MarkKind = Literal["checkpoint", "missed", "end", "request", "resume", "warning", "closed"]

MOST_CHECKPOINTS = 1000  # that are drawn
_PAUSE = 300.0  # seconds without a point, at least
_TIMES_USUAL = 10  # and so many times what is usual in the leg
_FEW = 5  # gaps from which nothing can be said to be usual
_GOOD = (LegEnd.DONE, LegEnd.AGAIN, LegEnd.TIME_LIMIT)


@dataclass(frozen=True, kw_only=True)
class LogReference:
    """Where to read more: `stream` of `leg`; the supervisor's is one for all legs."""

    leg: int
    stream: Literal["out", "err", "supervisor"]


@dataclass(frozen=True, kw_only=True)
class Segment:
    kind: SegmentKind
    leg: int
    start: float
    end: float | None  # None: it goes on
    words: str
    job: str | None = None
    state: str = ""  # of a leg: its end, or running
    log: LogReference | None = None


@dataclass(frozen=True, kw_only=True)
class Mark:
    kind: MarkKind
    leg: int
    at: float
    words: str
    step: int | None = None
    log: LogReference | None = None


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """In the order of time; `start` and `end` are what a drawing spans."""

    start: float
    end: float
    segments: tuple[Segment, ...]
    marks: tuple[Mark, ...]
    checkpoints: int  # all; of very many, some are drawn


def timeline(run: Run, events: Iterable[ev.Event], *, now: float, logged: Sequence[float] = ()) -> Timeline:
    """`logged`: moments at which the training logged something, in order; where they pause for long, it stalled."""
    segments = [
        Segment(
            kind="queue",
            leg=wait.leg,
            start=wait.since,
            end=wait.until,
            words=f"leg {wait.leg} {'waited' if wait.until is not None else 'waits'} in the queue",
            job=run.legs[wait.leg].job,
            log=LogReference(leg=0, stream="supervisor"),
        )
        for wait in queue_waits(run, now=now)
    ]
    marks: list[Mark] = []
    count = sum(len(leg.published) for leg in run.legs.values())
    every = -(-count // MOST_CHECKPOINTS) or 1
    for leg in run.legs.values():
        if leg.claimed:
            drawn = sorted(leg.published, key=lambda p: p.at)[::-every][::-1]  # the last of each leg is always there
            segments += _segments(run, leg, drawn)
            segments += _pauses(leg, logged, now)
            marks += _marks(leg, drawn)
    marks += [mark for event in events if (mark := _request(event))]
    if run.closed:
        marks.append(Mark(kind="closed", leg=run.closed.leg, at=run.closed.at, words=f"{run.closed.state}: {run.closed.cause}"))
    segments.sort(key=lambda s: (s.start, s.leg))
    marks.sort(key=lambda m: (m.at, m.leg))
    times = [*(s.start for s in segments), *(s.end for s in segments if s.end is not None), *(m.at for m in marks)]
    times.append(min(run.spec.created, *times) if times else run.spec.created)  # one that was imported took place before
    end = max(times) if run.closed else max(*times, now)
    return Timeline(start=min(times), end=end, segments=tuple(segments), marks=tuple(marks), checkpoints=count)


def _segments(run: Run, leg: Leg, drawn: Sequence[ev.Published]) -> list[Segment]:
    assert leg.claimed is not None
    end = leg.ended if leg.end else None
    where = f" on {', '.join(leg.claimed.hosts)}" if leg.claimed.hosts else ""
    ended = f"{state_words(leg.end)}: {leg.reason}" if leg.end and leg.reason else state_words(leg.end) if leg.end else "running"
    log = LogReference(leg=leg.number, stream="out" if leg.end is None or leg.end in _GOOD else "err")
    name, state = f"leg {leg.number}", str(leg.end) if leg.end else "running"
    found = [
        Segment(
            kind="leg", leg=leg.number, start=leg.claimed.at, end=end, words=f"{name}{where}, {ended}", job=leg.job, state=state, log=log
        )
    ]
    if leg.started is not None and leg.started > leg.claimed.at:
        step = f", restored step {leg.restored.step}" if leg.restored else ""
        words = f"{name}: preparation{step}"
        found.append(Segment(kind="prepare", leg=leg.number, start=leg.claimed.at, end=leg.started, words=words, log=_SUPERVISOR))
    for one in drawn:
        words = f"publishing the checkpoint of step {one.step}"
        found.append(Segment(kind="sync", leg=leg.number, start=one.at - one.stage_seconds, end=one.at, words=words, log=_SUPERVISOR))
    if leg.end is LegEnd.STALLED and leg.ended is not None:
        since = max(leg.claimed.at, leg.ended - (run.limits.stall_time or 0))
        found.append(Segment(kind="stall", leg=leg.number, start=since, end=leg.ended, words=f"{name}: no progress", log=log))
    return found


def _pauses(leg: Leg, logged: Sequence[float], now: float) -> list[Segment]:
    """Stretches of a leg in which nothing was logged for far longer than usual. Before its first point it may be loading."""
    assert leg.claimed is not None
    end = leg.ended if leg.end and leg.ended is not None else now
    mine = [at for at in logged if leg.claimed.at <= at <= end]
    gaps = [after - before for before, after in pairwise(mine)]
    if len(gaps) < _FEW:
        return []
    long = max(_PAUSE, _TIMES_USUAL * sorted(gaps)[len(gaps) // 2])
    last = [] if leg.end is LegEnd.STALLED else [end]
    log = LogReference(leg=leg.number, stream="out")
    return [
        Segment(
            kind="stall",
            leg=leg.number,
            start=before,
            end=None if after == end and not leg.end else after,
            words=f"leg {leg.number}: nothing was logged",
            log=log,
        )
        for before, after in pairwise([*mine, *last])
        if after - before > long
    ]


def _marks(leg: Leg, drawn: Sequence[ev.Published]) -> list[Mark]:
    found = [Mark(kind="checkpoint", leg=p.leg, at=p.at, step=p.step, words=f"checkpoint of step {p.step}") for p in drawn]
    found += [
        Mark(kind="missed", leg=m.leg, at=m.at, step=m.step, words=f"step {m.step} was not stored: {m.reason}", log=_SUPERVISOR)
        for m in leg.missed
    ]
    if leg.end and leg.ended is not None:
        words = f"leg {leg.number} ended: {state_words(leg.end)}" + (f", {leg.reason}" if leg.reason else "")
        stream: Literal["out", "err"] = "out" if leg.end in _GOOD else "err"
        found.append(Mark(kind="end", leg=leg.number, at=leg.ended, words=words, log=LogReference(leg=leg.number, stream=stream)))
    return found


def _request(event: ev.Event) -> Mark | None:
    match event:
        case ev.CancelRequested():
            return Mark(kind="request", leg=event.leg, at=event.at, words=f"{event.by} cancelled the run")
        case ev.StopRequested():
            return Mark(kind="request", leg=event.leg, at=event.at, words=f"{event.by} asked to save and stop")
        case ev.Resumed():
            changes = ", ".join(f"{key} {value}" for key, value in event.changes.items())
            return Mark(
                kind="resume", leg=event.leg, at=event.at, words=f"{event.by} resumed the run" + (f" with {changes}" if changes else "")
            )
        case ev.AskedToStop():
            return Mark(
                kind="request", leg=event.leg, at=event.at, words=f"leg {event.leg} was asked to stop: {event.why}", log=_SUPERVISOR
            )
        case ev.Warned() | ev.LimitMoved():
            return Mark(kind="warning", leg=event.leg, at=event.at, words=event.text, log=_SUPERVISOR)
        case ev.Limited():
            words = f"leg {event.leg} waits for a place in the queue: {event.reason}"
            return Mark(kind="warning", leg=event.leg, at=event.at, words=words)
        case ev.Refused():
            return Mark(kind="warning", leg=event.leg, at=event.at, words=f"the scheduler refused leg {event.leg}: {event.reason}")
        case _:
            return None


_SUPERVISOR = LogReference(leg=0, stream="supervisor")
