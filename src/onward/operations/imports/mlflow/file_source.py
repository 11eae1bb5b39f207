"""An MLflow store in files: mlruns/<experiment>/<run>/{meta.yaml, metrics/, params/, tags/, artifacts/, inputs/, outputs/}."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onward.errors import InvalidInput
from onward.model.metric import Point
from onward.model.mlflow.records import Dataset, LoggedModelMetric
from onward.model.mlflow.wire import NUMBERED
from onward.operations.imports.mlflow.source import (
    MODEL_STATES,
    SourceExperiment,
    SourceModel,
    SourceRun,
    seconds,
)

_META = "meta.yaml"
_TRASH = ".trash"


class MlflowFileSource:
    def __init__(self, folder: Path) -> None:
        self.home = folder.resolve()
        self.roots = [self.home]
        self.words = f"MLflow's folder {folder}"
        self.problems: list[str] = []
        self._folders = {id: path for path in self._experiment_folders() for id in [path.name]}
        if not self._folders:
            raise InvalidInput(
                f"{folder} is not an MLflow store: no folder in it has a {_META}", hint="name the mlruns folder, or MLflow's database file"
            )

    def close(self) -> None:
        pass

    def experiments(self) -> list[SourceExperiment]:
        found = []
        for id, folder in self._folders.items():
            meta = self._meta(folder)
            if meta is not None and "name" in meta:
                found.append(
                    SourceExperiment(
                        id=id,
                        name=str(meta["name"]),
                        deleted=meta.get("lifecycle_stage") == "deleted" or folder.parent.name == _TRASH,
                        created=seconds(meta.get("creation_time")),
                        tags=self._pairs(folder / "tags"),
                    )
                )
        return found

    def runs(self, experiment: SourceExperiment) -> Iterator[SourceRun]:
        home = self._folders[experiment.id]
        for folder in _below(home):
            meta = self._meta(folder) if folder.name not in ("models", "datasets", "traces", "tags") else None
            if meta is None or not meta.keys() & {"run_id", "run_uuid"}:
                continue
            tags = self._pairs(folder / "tags")
            status = meta.get("status")
            yield SourceRun(
                id=folder.name,
                experiment=experiment.id,
                name=tags.get("mlflow.runName") or str(meta.get("run_name") or ""),
                status=NUMBERED.get(status, "FINISHED") if isinstance(status, int) else str(status or "FINISHED"),
                user=str(meta.get("user_id") or ""),
                started=seconds(meta.get("start_time")),
                ended=seconds(meta.get("end_time")),
                deleted=meta.get("lifecycle_stage") == "deleted",
                artifact_uri=str(meta.get("artifact_uri") or ""),
                params=self._pairs(folder / "params"),
                tags=tags,
                datasets=self._datasets(home, folder),
                outputs=self._outputs(folder),
                mark=_mark(folder / "metrics"),
            )

    def points(self, run: SourceRun) -> Iterator[Point]:
        for key, line, path in self._lines(self._folders[run.experiment] / run.id / "metrics"):
            try:
                time, value, *rest = line.split()
                yield key, int(rest[0]) if rest else 0, int(time) / 1000, float(value)
            except ValueError:
                self.problems.append(f"{path}: {line[:60]!r} is not a point; ignored")

    def models(self, experiment: SourceExperiment) -> Iterator[SourceModel]:
        for folder in _below(self._folders[experiment.id] / "models"):
            meta = self._meta(folder)
            if meta is None or "model_id" not in meta:
                continue
            status = meta.get("status")
            yield SourceModel(
                id=folder.name,
                experiment=experiment.id,
                run=meta.get("source_run_id"),
                name=str(meta.get("name") or ""),
                kind=str(meta.get("model_type") or ""),
                status=MODEL_STATES.get(status, "UNSPECIFIED") if isinstance(status, int) else str(status or "UNSPECIFIED"),
                status_message=str(meta.get("status_message") or ""),
                artifact_uri=str(meta.get("artifact_location") or ""),
                created=seconds(meta.get("creation_timestamp")) or 0.0,
                updated=seconds(meta.get("last_updated_timestamp")) or 0.0,
                deleted=meta.get("lifecycle_stage") == "deleted",
                params=self._pairs(folder / "params"),
                tags=self._pairs(folder / "tags"),
                metrics=list(self._model_metrics(folder / "metrics")),
            )

    # ── files ─────────────────────────────────────────────────────────────────

    def _experiment_folders(self) -> list[Path]:
        found = [*_below(self.home), *_below(self.home / _TRASH)]
        return [folder for folder in found if folder.name != "models" and (folder / _META).is_file()]

    def _model_metrics(self, folder: Path) -> Iterator[LoggedModelMetric]:
        for key, line, path in self._lines(folder):
            try:
                time, value, step, run, *data = line.split()
                dataset, digest = [*data, None, None][:2]
                metric = LoggedModelMetric(
                    key=key, value=float(value), step=int(step), time=int(time) / 1000, run=run, dataset=dataset, digest=digest
                )
            except ValueError:
                self.problems.append(f"{path}: {line[:60]!r} is not a value of a model; ignored")
                continue
            yield metric

    def _lines(self, folder: Path) -> Iterator[tuple[str, str, Path]]:
        """Metric, line and file."""
        for key, path in _named(folder):
            try:
                with path.open(encoding="utf-8", errors="replace") as file:
                    for line in file:
                        if line.strip():
                            yield key, line, path
            except OSError as error:
                self.problems.append(f"{path} cannot be read: {error.strerror}")

    def _pairs(self, folder: Path) -> dict[str, str]:
        found = {}
        for key, path in _named(folder):
            try:
                found[key] = path.read_text(encoding="utf-8", errors="replace")
            except OSError as error:
                self.problems.append(f"{path} cannot be read: {error.strerror}")
        return found

    def _datasets(self, experiment: Path, run: Path) -> list[Dataset]:
        found = []
        for folder in _below(run / "inputs"):
            link = self._meta(folder) or {}
            source = str(link.get("source_id") or "")
            if link.get("source_type") != "DATASET" or not source.isalnum():
                continue
            meta = self._meta(experiment / "datasets" / source) or {}
            tags = link.get("tags")
            if meta.get("name"):
                found.append(
                    Dataset(
                        name=str(meta["name"]),
                        digest=str(meta.get("digest") or ""),
                        source_type=str(meta.get("source_type") or ""),
                        source=str(meta.get("source") or ""),
                        schema=meta.get("schema"),
                        profile=meta.get("profile"),
                        tags={str(k): str(v) for k, v in tags.items()} if isinstance(tags, dict) else {},
                    )
                )
        return found

    def _outputs(self, run: Path) -> list[tuple[str, int]]:
        found = []
        for folder in _below(run / "outputs"):
            step = (self._meta(folder) or {}).get("step")
            found.append((folder.name, step if isinstance(step, int) else 0))
        return found

    def _meta(self, folder: Path) -> Mapping[str, Any] | None:
        import yaml

        path = folder / _META
        try:
            loaded = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, yaml.YAMLError) as error:
            self.problems.append(f"{path} cannot be read: {str(error).splitlines()[0]}")
            return None
        if not isinstance(loaded, dict):
            self.problems.append(f"{path} does not describe a run")
            return None
        return loaded


def _below(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError:
        return []


def _named(folder: Path) -> list[tuple[str, Path]]:
    """Files by their path below a folder: a slash in a name is a folder. Links are not followed."""
    found = []
    for inside, _, names in os.walk(folder):
        for name in names:
            path = Path(inside) / name
            if not path.is_symlink():
                found.append((path.relative_to(folder).as_posix(), path))
    return sorted(found)


def _mark(folder: Path) -> str:
    sizes = [path.stat().st_size for _, path in _named(folder)]
    return f"{len(sizes)}:{sum(sizes)}"
