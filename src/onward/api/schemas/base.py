"""What the native API takes and gives. Numbers that JSON has no word for are the texts NaN, Infinity and -Infinity."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from onward.model.experiment import Experiment
from onward.model.plain_data import is_nested_deeper
from onward.tracker.runs.rows import Metric, RunInfo, RunView


def _storable(text: str) -> str:
    """Databases take neither NUL nor halves of characters."""
    if "\x00" in text:
        raise ValueError("contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("contains a broken character") from error
    return text


Text = Annotated[str, AfterValidator(_storable)]
Key = Annotated[Text, Field(min_length=1, max_length=250)]
TagValue = Annotated[Text, Field(max_length=8000)]
ParamValue = Annotated[Text, Field(max_length=6000)] | bool | int | float | None | list[Any] | dict[str, Any]
Number = float | Literal["NaN", "Infinity", "-Infinity"]
State = Literal["submitted", "running", "waiting", "finished", "failed", "cancelled"]


DEEPEST = 64  # lists and objects inside each other, in anything that is sent


def shallow(data: Any) -> Any:
    """Unchanged; deeper nesting would break later readers."""
    if is_nested_deeper(data, DEEPEST):
        raise ValueError(f"it is nested too deeplyly: more than {DEEPEST} levels")
    return data


class Shallow(BaseModel):
    @model_validator(mode="before")
    @classmethod
    def _shallow(cls, data: Any) -> Any:
        return shallow(data)


class In(Shallow):
    model_config = ConfigDict(extra="forbid")


class MetricOut(BaseModel):
    """A series' key figures."""

    value: Number = Field(description="The last value, by step and time.")
    step: int
    time: float = Field(description="Unix seconds.")
    low: float | None = Field(description="The lowest finite value.")
    low_step: int | None
    high: float | None = Field(description="The highest finite value.")
    high_step: int | None
    points: int = Field(description="How many points there are, superseded ones too.")


class RunOut(BaseModel):
    id: str
    hex_id: str = Field(description="The same id for clients that need 32 hex digits.")
    name: str
    experiment: int
    experiment_name: str
    state: State
    reason: str
    user: str
    source: str = Field(description="What created it: onward, by-hand, seed, mlflow, tensorboard, import.")
    cluster: str | None
    created: float
    started: float | None
    ended: float | None
    updated: float
    archived: float | None
    total_steps: int | None
    last_step: int | None
    leg: int = Field(description="The current or last leg; 0: none yet. A queued successor does not count.")
    params: dict[str, str] = Field(default_factory=dict)
    tags: dict[str, str] = Field(default_factory=dict)
    metrics: dict[str, MetricOut] = Field(default_factory=dict)


class LegOut(BaseModel):
    leg: int
    job: str | None
    cluster: str | None
    state: str
    end: str | None
    reason: str
    submitted: float | None
    started: float | None
    ended: float | None
    resumed_step: int | None
    last_step: int | None
    details: dict[str, Any]


class ExperimentOut(BaseModel):
    id: int
    name: str
    runs: int = Field(description="Those that are not archived.")
    archived: float | None
    created: float
    updated: float
    tags: dict[str, str]


def number(value: float) -> Number:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def run_record(view: RunView) -> dict[str, Any]:
    return {
        **_info(view.info),
        "params": dict(view.params),
        "tags": dict(view.tags),
        "metrics": {key: metric_record(metric) for key, metric in view.metrics.items()},
    }


def metric_record(metric: Metric) -> dict[str, Any]:
    return {
        "value": number(metric.value),
        "step": metric.step,
        "time": metric.time,
        "low": metric.low,
        "low_step": metric.low_step,
        "high": metric.high,
        "high_step": metric.high_step,
        "points": metric.points,
    }


def experiment_record(experiment: Experiment, runs: int) -> ExperimentOut:
    return ExperimentOut(
        id=experiment.id,
        name=experiment.name,
        runs=runs,
        archived=experiment.archived,
        created=experiment.created,
        updated=experiment.updated,
        tags=dict(experiment.tags),
    )


_KEPT = (
    *("hex_id", "name", "experiment", "experiment_name", "state", "reason", "user", "source", "cluster", "created", "started", "ended"),
    *("updated", "archived", "total_steps", "last_step", "leg"),
)


def _info(info: RunInfo) -> dict[str, Any]:
    return {"id": info.run_id, **{name: getattr(info, name) for name in _KEPT}}


def finite(value: Any) -> Any:
    """Any value as JSON can say it."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value


def json_response(data: Mapping[str, Any]) -> Response:
    """Large answers are sent without a second validation."""
    return Response(json.dumps(data, separators=(",", ":"), allow_nan=False), media_type="application/json")
