"""A run for a report, from the server: the same that its folder would tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onward.model.analysis.timeline import Mark, Segment, Timeline
from onward.operations.reports.subjects import BUCKETS, ReportCurve, ReportLeg, ReportSubject, chosen_metrics, requested_resources

if TYPE_CHECKING:
    from onward.client import Client


def from_server(client: Client, run: str, metrics: Sequence[str]) -> ReportSubject:
    told = client.ask(f"runs/{run}/overview")
    row, id = told["run"], told["run"]["id"]
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
        legs=[_leg(job) for job in told["jobs"] if job["started"] is not None],
        facts=_facts(told, row),
        evidence="\n".join(told["evidence"]),
    )


def _curve(chart: Mapping[str, Any]) -> ReportCurve:
    if not chart["exact"]:
        return ReportCurve(**{name: chart[name] for name in ("steps", "means", "lows", "highs", "points", "exact")})
    values = [None if isinstance(value, str) else value for value in chart["values"]]  # NaN and infinities are texts
    return ReportCurve(steps=chart["steps"], means=values, lows=values, highs=values, points=chart["points"], exact=True)


def _timeline(told: Mapping[str, Any]) -> Timeline:
    segments = (Segment(**{**one, "log": None}) for one in told["segments"])
    marks = (Mark(**{**one, "log": None}) for one in told["marks"])
    return Timeline(start=told["start"], end=told["end"], segments=tuple(segments), marks=tuple(marks), checkpoints=told["checkpoints"])


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


def _facts(told: Mapping[str, Any], row: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = [("command", told["command"]), ("cluster", row["cluster"] or ""), ("user", row["user"]), ("folder", told["folder"] or "")]
    if row["source"] == "onward" and told["effort"]["goodput"] is not None:
        facts.append(("goodput", f"{told['effort']['goodput']:.0%} of the time in jobs was useful"))
    facts += requested_resources("resources", told["resources"])
    facts += requested_resources("environment", told["environment"])
    return [*facts, *((f"code: {name}", str(value)) for name, value in told["code"].items())]
