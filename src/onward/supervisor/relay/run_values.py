"""What the relay knows of its run: the last value of everything it was told, which it also writes to the run's spool, at once.

Memory is only for answering; the spool is what lasts. A new leg reads what earlier ones wrote there, so that a client that asks
for its run finds the params and tags it set in another job.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onward.model.metric import Point
from onward.sdk import contract
from onward.sdk.spool import SpoolWriter

log = logging.getLogger(__name__)

WRITER = contract.RELAY_WRITER

_MOST_REMEMBERED = 5000  # points that are known again when a client sends them once more
_MOST_READ = 256 << 20  # bytes of an earlier leg's records
_LATEST = 1e11


@dataclass(kw_only=True)
class RelayLoggedModel:
    id: str
    name: str = ""
    kind: str = ""
    status: str = "PENDING"
    created: float = 0.0
    params: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    metrics: list[dict[str, Any]] = field(default_factory=list)


class RunValues:
    def __init__(self, spool: SpoolWriter, earlier: Sequence[Path] = ()) -> None:
        self._spool = spool
        self._earlier = list(earlier)
        self._guard = threading.RLock()
        self._reading = threading.Lock()
        self._known: OrderedDict[tuple[Point, bool], None] = OrderedDict()
        self.params: dict[str, str] = {}
        self.tags: dict[str, str] = {}
        self.last: dict[str, Point] = {}
        self.models: dict[str, RelayLoggedModel] = {}
        self.datasets: dict[tuple[str, str], dict[str, Any]] = {}
        self.model_inputs: list[str] = []
        self.outputs: dict[str, int] = {}
        self.started = time.time()
        spool.write({"kind": "relay"})

    # ── told by clients ───────────────────────────────────────────────────────

    def add_points(self, points: Iterable[Point], *, timed: bool = True) -> int:
        """Those that are new. `timed`: the client said when, so that the same point sent again is known by that."""
        with self._guard:
            new = [point for point in points if not (timed and self._seen(point))]
            for at, step, values in _by_step(new):
                self._spool.write({"s": step, "m": values}, at=at)
            for point in new:
                self._keep_last(point)
            return len(new)

    def set_params(self, params: Mapping[str, str]) -> None:
        self._tell({"kind": "params", "params": dict(params)})

    def set_tags(self, tags: Mapping[str, str]) -> None:
        self._tell({"kind": "tags", "tags": dict(tags)})

    def delete_tags(self, keys: Sequence[str]) -> None:
        self._tell({"kind": "untag", "tags": list(keys)})

    def model(self, id: str, **changes: Any) -> None:
        """Make a logged model, or change what is given of one."""
        self._tell({"kind": "model", "model": {"id": id, **changes}})

    def model_metrics(self, metrics: Sequence[Mapping[str, Any]]) -> None:
        self._tell({"kind": "model-metrics", "metrics": [dict(metric) for metric in metrics]})

    def add_inputs(self, datasets: Sequence[Mapping[str, Any]], models: Sequence[str]) -> None:
        self._tell({"kind": "inputs", "datasets": [dict(one) for one in datasets], "models": list(models)})

    def add_outputs(self, models: Sequence[tuple[str, int]]) -> None:
        self._tell({"kind": "outputs", "models": [list(one) for one in models]})

    def artifact(self, path: str, **facts: Any) -> None:
        """A file that was stored, told of, or (gone=True) taken away."""
        self._tell({"kind": "artifact", "path": path, **facts})

    def note(self, text: str) -> None:
        self._tell({"kind": "alert", "title": text, "text": "", "level": "INFO"})

    def _tell(self, record: dict[str, Any]) -> None:
        with self._guard:
            self._spool.write(record)
            self._take(record)

    # ── kept in memory ────────────────────────────────────────────────────────

    def _seen(self, point: Point) -> bool:
        name = ((*point[:3], 0.0), True) if math.isnan(point[3]) else (point, False)
        if name in self._known:
            return True
        self._known[name] = None
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)
        return False

    def _keep_last(self, point: Point) -> None:
        held = self.last.get(point[0])
        if held is None or (point[1], point[2]) >= (held[1], held[2]):
            self.last[point[0]] = point

    def _take(self, record: Mapping[str, Any]) -> None:
        match record.get("kind"):
            case "params":
                self.params.update(_words(record["params"]))
            case "tags":
                self.tags.update(_words(record["tags"]))
            case "untag":
                for key in record["tags"]:
                    self.tags.pop(key, None)
            case "model":
                self._take_model(record["model"])
            case "model-metrics":
                for metric in record["metrics"]:
                    if metric["model"] in self.models:
                        self.models[metric["model"]].metrics.append(metric)
            case "inputs":
                self.datasets.update({(one["name"], one["digest"]): one for one in record["datasets"]})
                self.model_inputs = list(dict.fromkeys([*self.model_inputs, *record["models"]]))
            case "outputs":
                self.outputs.update(dict(record["models"]))
            case None if "m" in record:
                for key, value in record["m"].items():
                    self._keep_last((key, int(record["s"]), float(record["t"]), float(value)))

    def _take_model(self, values: Mapping[str, Any]) -> None:
        if values.get("deleted"):
            self.models.pop(values["id"], None)
            return
        held = self.models.setdefault(values["id"], RelayLoggedModel(id=values["id"], created=time.time()))
        for name in ("name", "kind", "status", "created"):
            if name in values:
                setattr(held, name, values[name])
        held.params.update(_words(values.get("params", {})))
        held.tags.update(_words(values.get("tags", {})))
        for key in values.get("untag", ()):
            held.tags.pop(key, None)

    # ── told by earlier legs ──────────────────────────────────────────────────

    def look_back(self) -> None:
        """Read what earlier legs were told, once. What this leg was told is newer."""
        with self._reading:
            paths, self._earlier = self._earlier, []
            records = [record for path in paths for record in _records(path)]
            if not records:
                return
            with self._guard:
                now = (dict(self.params), dict(self.tags), dict(self.last), dict(self.models), dict(self.datasets), dict(self.outputs))
                for record in records:
                    try:
                        self._take(record)
                    except (KeyError, TypeError, ValueError, AttributeError):
                        continue
                for held, newer in zip((self.params, self.tags, self.last, self.models, self.datasets, self.outputs), now, strict=True):
                    held.update(newer)  # type: ignore[attr-defined]


def history(paths: Sequence[Path], key: str) -> list[Point]:
    """The points of a metric in records of legs, oldest leg first: a later leg's steps replace an earlier one's from its first on."""
    found: list[Point] = []
    word = json.dumps(key).encode()
    for path in paths:
        mine: list[Point] = []
        for line in _lines(path):
            if word in line:
                record = _parsed(line)
                if record and "m" in record and key in record["m"]:
                    mine.append((key, int(record["s"]), float(record["t"]), float(record["m"][key])))
        if mine:
            first = min(point[1] for point in mine)
            found = [point for point in found if point[1] < first] + mine
    return sorted(found, key=lambda point: (point[1], point[2]))


def _by_step(points: Sequence[Point]) -> list[tuple[float, int, dict[str, float]]]:
    """One record for metrics of one step and time; a metric that comes twice begins another."""
    groups: list[tuple[float, int, dict[str, float]]] = []
    for key, step, at, value in points:
        at = at if 0 <= at < _LATEST else time.time()
        if not groups or groups[-1][:2] != (at, step) or key in groups[-1][2]:
            groups.append((at, step, {}))
        groups[-1][2][key] = value
    return groups


def _records(path: Path) -> list[dict[str, Any]]:
    """All that set something, and the last metrics."""
    values, metrics = [], []
    for line in _lines(path):
        if b'"kind":' in line:
            record = _parsed(line)
            if record:
                values.append(record)
        else:
            metrics.append(line)
            if len(metrics) > 2000:
                del metrics[:1000]
    return values + [record for record in map(_parsed, metrics) if record]


def _lines(path: Path) -> Iterable[bytes]:
    try:
        with path.open("rb") as file:
            read = 0
            for line in file:
                read += len(line)
                if read > _MOST_READ:
                    return
                yield line
    except OSError as error:
        log.warning("%s cannot be read: %s", path, error)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _words(values: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): value if isinstance(value, str) else json.dumps(value, default=str) for key, value in values.items()}
