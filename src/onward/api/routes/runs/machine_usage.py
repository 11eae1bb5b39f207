"""What a run's machines did: per node and GPU, when GPUs were idle, and what was asked for beside what was used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from onward.api.dependencies import Svc
from onward.api.routes.path_params import RunId, run_of
from onward.api.run_folders.history import RunHistory, history_of
from onward.api.schemas.base import finite, json_response
from onward.api.services import Services
from onward.model.analysis.usage import MeasuredUse, compare_usage, idle_bands
from onward.tracker.series.charts import Chart
from onward.tracker.series.machine_samples import SampledMachine, sampled

router = APIRouter(prefix="/api/v1/runs", tags=["runs"])

_FINE = 2000  # buckets by which idle stretches are told
_MOST_GPUS = 64
_UNITS = {"percent": "%", "mib": "MiB", "w": "W", "c": "°C", "1m": ""}


class Figure(BaseModel):
    """Columns side by side; times are unix seconds."""

    name: str = Field(
        description="Such as cpu_percent, rss_mib, mem_anon_mib, mem_cache_mib, percent, mem_used_mib, power_w, temperature_c."
    )
    unit: str
    times: list[int]
    means: list[float | None]
    lows: list[float | None]
    highs: list[float | None]


class BandOut(BaseModel):
    start: float
    end: float


class GpuUsageOut(BaseModel):
    uuid: str
    mean: float | None = Field(description="Percent, over the whole run.")
    idle: list[BandOut] = Field(description="Below 5 % for five minutes or longer.")
    idle_s: float
    figures: list[Figure]


class NodeUsageOut(BaseModel):
    node: str
    figures: list[Figure]
    gpus: list[GpuUsageOut]


class StretchOut(BaseModel):
    leg: int
    nodes: list[str]
    gpus: list[str]
    start: float
    end: float | None


class ComparisonOut(BaseModel):
    what: str = Field(description="memory, cpus, gpus or time.")
    asked: str
    used: str
    share: float
    flag: str = Field(description="What to ask for instead; empty if no change is needed.")
    words: str


class SystemOut(BaseModel):
    nodes: list[NodeUsageOut]
    legs: list[StretchOut] = Field(description="Where each leg ran, and when.")
    compared: list[ComparisonOut]
    advice: str = Field(description="All flags in one line, to copy; empty if there are none.")


@router.get("/{run_id}/system", summary="Show a run's machines", response_model=SystemOut)
def shown(
    svc: Svc,
    run_id: RunId,
    buckets: Annotated[int, Query(ge=1, le=5000, description="The most points: the resolution.")] = 300,
    first: Annotated[int | None, Query(ge=0, le=1 << 53, description="From this unix second on.")] = None,
    last: Annotated[int | None, Query(ge=0, le=1 << 53, description="Up to this unix second.")] = None,
) -> Response:
    """Samples are taken every ten seconds by the leg's supervisor. Empty if there are none."""
    history = history_of(svc, run_of(svc, run_id))
    with svc.tracker.reading_points() as connection:
        found = sampled(connection, history.info)
    nodes = [_node(svc, history, machine, buckets, first, last) for machine in found]
    compared = compare_usage(history.run, _used(found, nodes, history))
    return json_response(
        finite(
            {
                "nodes": nodes,
                "legs": _stretches(history),
                "compared": [asdict(one) for one in compared],
                "advice": " ".join(one.flag for one in compared if one.flag),
            }
        )
    )


def _node(svc: Services, history: RunHistory, machine: SampledMachine, buckets: int, first: int | None, last: int | None) -> dict[str, Any]:
    run = history.info.run_id
    gpus = dict(sorted(machine.gpus.items())[:_MOST_GPUS])
    keys = [m.key for m in machine.figures.values()] + [m.key for figures in gpus.values() for m in figures.values()]
    drawn = {chart.key: chart for chart in svc.tracker.series.charts([run], keys, buckets=buckets, first=first, last=last)} if keys else {}
    uses = [figures["percent"].key for figures in gpus.values() if "percent" in figures]
    fine = {chart.key: chart for chart in svc.tracker.series.charts([run], uses, buckets=_FINE)} if uses else {}
    return {
        "node": machine.node or _first_node(history),
        "figures": [_figure(name, drawn[m.key]) for name, m in sorted(machine.figures.items()) if m.key in drawn],
        "gpus": [
            {
                "uuid": uuid,
                **_idle(fine.get(figures["percent"].key) if "percent" in figures else None),
                "figures": [_figure(name, drawn[m.key]) for name, m in sorted(figures.items()) if m.key in drawn],
            }
            for uuid, figures in gpus.items()
        ],
    }


def _figure(name: str, chart: Chart) -> dict[str, Any]:
    return {
        "name": name,
        "unit": _UNITS.get(name.rsplit("_", 1)[-1], ""),
        "times": chart.steps,
        "means": _short(chart.means),
        "lows": _short(chart.lows),
        "highs": _short(chart.highs),
    }


def _idle(chart: Chart | None) -> dict[str, Any]:
    if chart is None:
        return {"mean": None, "idle": [], "idle_s": 0.0}
    bands = idle_bands(chart.steps, chart.means)
    known = [mean for mean in chart.means if mean is not None]
    mean = sum(known) / len(known) if known else None
    return {"mean": mean, "idle": [asdict(band) for band in bands], "idle_s": sum(band.end - band.start for band in bands)}


def _used(found: list[SampledMachine], nodes: list[dict[str, Any]], history: RunHistory) -> MeasuredUse:
    peaks = [m.figures["rss_mib"].high for m in found if "rss_mib" in m.figures]
    leg_peaks = [leg.own.peak_mem for leg in history.run.legs.values() if leg.own and leg.own.peak_mem]
    peak = max((*(int(high) for high in peaks if high is not None), *leg_peaks), default=None)
    busy = [_mean(figure["means"]) for node in nodes for figure in node["figures"] if figure["name"] == "cpu_percent"]
    cpus = [value / 100 for value in busy if value is not None]
    last = history.run.last_leg
    hosts, own = (last.claimed.hosts, last.claimed.gpus) if last and last.claimed else ([], [])
    lately = [node for node in nodes if len(hosts) < 2 or node["node"] in hosts]
    own = own if len(hosts) < 2 else []  # those of the first node alone
    gpus = {gpu["uuid"]: gpu["mean"] for node in lately for gpu in node["gpus"] if gpu["mean"] is not None and _is_mine(gpu["uuid"], own)}
    return MeasuredUse(mem_peak=peak, cpus=max(cpus, default=None), gpus=gpus)


def _is_mine(uuid: str, own: Sequence[str]) -> bool:
    """Of the last leg, where it names its GPUs by UUID; earlier legs may have had others."""
    named = [one for one in own if not one.isdigit()]
    return not named or any(uuid.startswith(one) for one in named)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _first_node(history: RunHistory) -> str:
    last = history.run.last_leg
    return last.claimed.hosts[0] if last and last.claimed and last.claimed.hosts else ""


def _stretches(history: RunHistory) -> list[dict[str, Any]]:
    return [
        {
            "leg": leg.number,
            "nodes": leg.claimed.hosts,
            "gpus": leg.claimed.gpus,
            "start": leg.claimed.at,
            "end": leg.ended if leg.end else None,
        }
        for _, leg in sorted(history.run.legs.items())
        if leg.claimed
    ]


def _short(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else float(f"{value:.5g}") for value in values]
