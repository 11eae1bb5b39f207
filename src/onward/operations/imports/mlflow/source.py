"""What an MLflow store holds, whichever way it is kept: `mlflow_files` and `mlflow_sqlite` read it, `import_mlflow` takes it over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from onward.model.metric import Point
from onward.model.mlflow.records import Dataset, LoggedModelMetric

MODEL_STATES = {0: "UNSPECIFIED", 1: "PENDING", 2: "READY", 3: "UPLOAD_FAILED"}


@dataclass(frozen=True, kw_only=True)
class SourceExperiment:
    id: str
    name: str
    deleted: bool = False
    created: float | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SourceRun:
    id: str
    experiment: str
    name: str = ""
    status: str = "FINISHED"
    user: str = ""
    started: float | None = None
    ended: float | None = None
    deleted: bool = False
    artifact_uri: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    datasets: Sequence[Dataset] = ()
    outputs: Sequence[tuple[str, int]] = ()  # models and their steps
    mark: str = ""  # another one where its metrics changed


@dataclass(frozen=True, kw_only=True)
class SourceModel:
    id: str
    experiment: str
    run: str | None
    name: str
    kind: str = ""
    status: str = "READY"
    status_message: str = ""
    artifact_uri: str = ""
    created: float = 0.0
    updated: float = 0.0
    deleted: bool = False
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    metrics: Sequence[LoggedModelMetric] = ()


class MlflowSource(Protocol):
    """A store to read. `problems` fills with what cannot be read; the rest is."""

    words: str  # what it is, for people
    home: Path  # what relative paths in it are relative to
    roots: list[Path]  # where MLflow keeps files beside it
    problems: list[str]

    def experiments(self) -> list[SourceExperiment]: ...

    def runs(self, experiment: SourceExperiment) -> Iterator[SourceRun]: ...

    def points(self, run: SourceRun) -> Iterator[Point]:
        """Every point of every metric."""
        ...

    def models(self, experiment: SourceExperiment) -> Iterator[SourceModel]: ...

    def close(self) -> None: ...


def seconds(milliseconds: object) -> float | None:
    """MLflow counts milliseconds; 0 and nothing are no time."""
    return float(milliseconds) / 1000 if isinstance(milliseconds, int | float) and milliseconds > 0 else None
