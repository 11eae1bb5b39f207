"""A run for a report, from the server: the same that its folder would tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onward.model.analysis.timeline import Mark, Segment, Timeline
from onward.operations.reports.subjects import BUCKETS, ReportCurve, ReportLeg, ReportSubject, chosen_metrics, requested_resources

if TYPE_CHECKING:
    from onward.client import Client


def from_server(client: Client, run: str, metrics: Sequence[str]) -> ReportSubject:
    overview = client.ask(f"runs/{run}/overview")
    row, id = overview["run"], overview["run"]["id"]
    held = client.ask(f"runs/{id}/metrics")["metrics"]
    keys = chosen_metrics(held, metrics)
    asked = {"run": [id], "metric": keys, "buckets": BUCKETS, "means": True}
    charts = client.ask("series", asked)["series"] if keys else []
    return ReportSubject(
        id=id,
        name=row["name"],
        experiment=row["experiment_name"],
        state=row["state"],
        why=row["why"] or row["reason"],
        created=row["created"],
        params=row["params"],
        last={key: (float(held[key]["value"]), held[key]["step"]) for key in keys},
        curves={chart["metric"]: _curve(chart) for chart in charts},
        timeline=_timeline(client.ask(f"runs/{id}/timeline")),
        legs=[_leg(job) for job in overview["jobs"] if job["started"] is not None],
        facts=_facts(overview, row),
        evidence="\n".join(overview["evidence"]),
    )


def _curve(chart: Mapping[str, Any]) -> ReportCurve:
    if not chart["exact"]:
        return ReportCurve(**{name: chart[name] for name in ("steps", "means", "lows", "highs", "points", "exact")})
    values = [None if isinstance(value, str) else value for value in chart["values"]]  # NaN and infinities are texts
    return ReportCurve(steps=chart["steps"], means=values, lows=values, highs=values, points=chart["points"], exact=True)


def _timeline(overview: Mapping[str, Any]) -> Timeline:
    segments = (Segment(**{**one, "log": None}) for one in overview["segments"])
    marks = (Mark(**{**one, "log": None}) for one in overview["marks"])
    return Timeline(
        start=overview["start"], end=overview["end"], segments=tuple(segments), marks=tuple(marks), checkpoints=overview["checkpoints"]
    )


def _leg(job: Mapping[str, Any]) -> ReportLeg:
    return ReportLeg(
        number=job["leg"],
        job=job["job"] or "",
        nodes=", ".join(job["nodes"]),
        started=job["started"],
        ended=job["ended"],
        end=job["end"] or "running",
        reason=job["reason"],
    )


def _facts(overview: Mapping[str, Any], row: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = [
        ("command", overview["command"]),
        ("cluster", row["cluster"] or ""),
        ("user", row["user"]),
        ("folder", overview["folder"] or ""),
    ]
    if row["source"] == "onward" and overview["effort"]["goodput"] is not None:
        facts.append(("goodput", f"{overview['effort']['goodput']:.0%} of the time in jobs was useful"))
    facts += requested_resources("resources", overview["resources"])
    facts += requested_resources("environment", overview["environment"])
    return [*facts, *((f"code: {name}", str(value)) for name, value in overview["code"].items())]
