"""What MLflow's clients know of a run: its datasets, its logged models, and the run itself in their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onward.model.metric import Point


@dataclass(frozen=True, kw_only=True)
class Dataset:
    name: str
    digest: str
    source_type: str = ""
    source: str = ""
    schema: str | None = None
    profile: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LoggedModelMetric:
    key: str
    value: float
    step: int
    time: float
    run: str | None = None  # hex id
    dataset: str | None = None
    digest: str | None = None


@dataclass(frozen=True, kw_only=True)
class LoggedModelRecord:
    id: str  # m-…
    experiment: int
    run: str | None  # hex id of the run that made it
    name: str
    kind: str
    status: str
    created: float
    updated: float
    status_message: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    metrics: Sequence[LoggedModelMetric] = ()


@dataclass(frozen=True, kw_only=True)
class MlflowRun:
    id: str  # 32 hex digits
    experiment: int
    name: str
    user: str
    status: str  # RUNNING, SCHEDULED, FINISHED, FAILED, KILLED
    started: float
    ended: float | None = None
    deleted: bool = False
    artifact_uri: str
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    metrics: Sequence[Point] = ()  # the last of each
    datasets: Sequence[Dataset] = ()
    input_models: Sequence[str] = ()
    output_models: Sequence[tuple[str, int]] = ()  # and their steps
