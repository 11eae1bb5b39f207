"""What a report tells of a run, and reading it from run folders: through a tracker that lasts as long as the reading."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onward.clock import Clock
from onward.errors import StorageError
from onward.model.analysis.effort import effort
from onward.model.analysis.timeline import Timeline, timeline
from onward.model.analysis.why import why
from onward.model.run import Run, fold
from onward.rundir.journal import read_history, read_spec
from onward.rundir.layout import RunDir
from onward.tracker.series.stitch import SYSTEM_PREFIX
from onward.tracker.store import Tracker

BUCKETS = 400  # of a line
MOST_CHARTS = 40
_FIRST = re.compile(r"loss|acc|err|score|reward|f1|auc|iou|bleu|ppl|perplexity", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class ReportCurve:
    """One metric of one run: a mean, a lowest and a highest value a bucket; None where none is finite."""

    steps: Sequence[float]
    means: Sequence[float | None]
    lows: Sequence[float | None]
    highs: Sequence[float | None]
    points: int
    exact: bool


@dataclass(frozen=True, kw_only=True)
class ReportLeg:
    number: int
    job: str
    nodes: str
    started: float | None
    ended: float | None
    end: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ReportSubject:
    """A run, as a report tells of it."""

    id: str
    name: str
    experiment: str
    state: str
    why: str
    created: float
    params: Mapping[str, str]
    last: Mapping[str, tuple[float, int]]  # by metric: last value, its step
    curves: Mapping[str, ReportCurve]
    timeline: Timeline | None
    legs: Sequence[ReportLeg]
    facts: Sequence[tuple[str, str]]
    evidence: str = ""


def subjects_from_folders(dirs: Sequence[RunDir], metrics: Sequence[str], clock: Clock) -> list[ReportSubject]:
    """`metrics`: only these; none: those that people look at first."""
    with tempfile.TemporaryDirectory(prefix="onward-report-") as own, Tracker.open(Path(own) / "report.db") as tracker:
        more = True
        while more:
            looked = tracker.files.look_at(dirs)
            if looked.problems:
                raise StorageError(looked.problems[0], hint="a report needs the complete run folder")
            more = looked.more
        return [_subject(tracker, dir, metrics, clock.now()) for dir in dirs]


def chosen_metrics(keys: Iterable[str], metrics: Sequence[str]) -> list[str]:
    """Those asked for; else losses and scores first, without what was sampled of the machine."""
    if metrics:
        return [key for key in metrics if key in set(keys)]
    own = [key for key in keys if not key.startswith(SYSTEM_PREFIX)]
    return sorted(own, key=lambda key: (_FIRST.search(key) is None, key.count("/"), key))[:MOST_CHARTS]


def _subject(tracker: Tracker, dir: RunDir, metrics: Sequence[str], now: float) -> ReportSubject:
    spec, events = read_spec(dir), read_history(dir)
    run = fold(spec, events)
    view = tracker.runs.view(spec.id)
    keys = chosen_metrics(view.metrics, metrics)
    charts = tracker.series.charts([spec.id], keys, buckets=BUCKETS) if keys else []
    curves = {
        chart.key: ReportCurve(
            steps=chart.steps, means=chart.means, lows=chart.lows, highs=chart.highs, points=chart.points, exact=chart.exact
        )
        for chart in charts
    }
    last = run.last_leg
    return ReportSubject(
        id=spec.id,
        name=spec.name,
        experiment=spec.experiment,
        state=str(run.state),
        why=why(run, None, unheard=""),
        created=spec.created,
        params=view.params,
        last={key: (view.metrics[key].value, view.metrics[key].step) for key in keys},
        curves=curves,
        timeline=timeline(run, events, now=now),
        legs=[_leg(one) for _, one in sorted(run.legs.items()) if one.claimed],
        facts=_facts(run, dir, now),
        evidence=run.closed.evidence if run.closed else last.evidence if last else "",
    )


def _leg(leg: Any) -> ReportLeg:
    return ReportLeg(
        number=leg.number,
        job=leg.claimed.job,
        nodes=", ".join(leg.claimed.hosts),
        started=leg.claimed.at,
        ended=leg.ended if leg.end else None,
        end=str(leg.end or "running"),
        reason=leg.reason,
    )


def _facts(run: Run, dir: RunDir, now: float) -> list[tuple[str, str]]:
    spec, spent = run.spec, effort(run, now=now)
    facts = [("command", shlex.join(spec.command)), ("cluster", spec.cluster.name), ("user", spec.user), ("folder", str(dir.path))]
    if spent.goodput is not None:
        facts.append(("goodput", f"{spent.goodput:.0%} of the jobs' time was useful"))
    facts += requested_resources("resources", vars(run.resources))
    facts += requested_resources("environment", vars(spec.environment))
    return [*facts, *((f"code: {name}", str(value)) for name, value in spec.code.items())]


def requested_resources(what: str, record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was asked for, a line each; the rest needs no saying."""
    return [
        (f"{what}: {name.replace('_', '-')}", _words(value)) for name, value in record.items() if value not in (None, (), [], {}, "", False)
    ]


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
