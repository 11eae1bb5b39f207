"""MLflow's wire: our values as its JSON, its JSON as our values, with its limits and names. Pure."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from onward.errors import InvalidInput
from onward.tracker.db.storable_text import check_key
from onward.tracker.ingest.receive import Point
from onward.tracker.runs.experiments import Experiment
from onward.tracker.runs.logged_models import Dataset, LoggedModelMetric, LoggedModelRecord
from onward.tracker.runs.rows import RunInfo, RunView
from onward.tracker.search.mlflow_search import STATES, STATUSES

MOST_METRICS: Final = 1000
MOST_PARAMS: Final = 100
MOST_ENTITIES: Final = 1000
_KEY: Final = re.compile(r"[\w .:/\-]{1,250}")
_LONGEST: Final = {"param": 6000, "tag": 8000, "experiment tag": 20000}
_VIEWS: Final[Mapping[str, bool | None]] = {"ACTIVE_ONLY": False, "DELETED_ONLY": True, "ALL": None}
RUN_NAME: Final = "mlflow.runName"
USER: Final = "mlflow.user"


# ── reading ───────────────────────────────────────────────────────────────────


def text(body: Mapping[str, Any], *names: str, needed: bool = True) -> str:
    """A text by the first of its names that is there. Numbers are taken for what they print as, as protobuf's JSON does."""
    for name in names:
        value = body.get(name)
        if value not in (None, ""):
            if isinstance(value, bool | dict | list):
                raise InvalidInput(f"Invalid value {json.dumps(value)} for parameter '{name}' supplied", hint="a text is expected")
            return str(value)
    if needed:
        raise InvalidInput(f"Missing value for required parameter '{names[0]}'.")
    return ""


def whole(body: Mapping[str, Any], name: str, default: int) -> int:
    value = body.get(name)
    if value is None:
        return default
    try:
        number = int(value) if not isinstance(value, float) or value.is_integer() else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or isinstance(value, bool) or abs(number) >= 1 << 63:
        raise InvalidInput(
            f"Invalid value {json.dumps(value, default=str)[:60]} for parameter '{name}' supplied", hint="a whole number is expected"
        )
    return number


def number(body: Mapping[str, Any], name: str) -> float:
    """NaN and the infinities travel as texts."""
    value = body.get(name)
    try:
        if isinstance(value, bool | dict | list) or value is None:
            raise ValueError
        return float(value)
    except (ValueError, OverflowError):
        shown = json.dumps(value, default=str)[:60]
        raise InvalidInput(f"Invalid value {shown} for parameter '{name}' supplied", hint="a number is expected") from None


def rows(body: Mapping[str, Any], name: str, *, most: int = MOST_ENTITIES) -> list[Mapping[str, Any]]:
    value = body.get(name) or []
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise InvalidInput(f"Invalid value for parameter '{name}' supplied", hint="a list of objects is expected")
    if len(value) > most:
        raise InvalidInput(f"A batch logging request can contain at most {most} {name}. Got {len(value)} {name}.")
    return value


def words(body: Mapping[str, Any], name: str) -> list[str]:
    value = body.get(name) or []
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(word, str | int) and not isinstance(word, bool) for word in value):
        raise InvalidInput(f"Invalid value for parameter '{name}' supplied", hint="a list of texts is expected")
    return [str(word) for word in value]


def pairs(items: Sequence[Mapping[str, Any]], kind: str, *, any_key: bool = False) -> dict[str, str]:
    """Params or tags: key and value of each. `any_key`: MLflow looks at the keys of what is set later, not of a new run's tags."""
    found: dict[str, str] = {}
    for item in items:
        name = text(item, "key")
        (check_key if any_key else key)(name, kind)
        if kind == "param" and name in found:
            raise InvalidInput(f"Duplicate parameter keys have been submitted: {name!r}", hint="send each param of a request once")
        value = item.get("value")
        told = "" if value is None else value if isinstance(value, str) else json.dumps(value)
        found[name] = told if any_key else fitted(name, told, kind)
    return found


def key(name: str, kind: str) -> str:
    """A key that MLflow would take: no path that goes up, no characters but these."""
    if len(name) > 250:
        raise InvalidInput(f"{kind} key {name[:40]!r}… exceeds the maximum length of 250 characters")
    plain = "/".join(part for part in name.split("/"))
    if (
        not _KEY.fullmatch(name)
        or name.startswith("/")
        or "//" in plain
        or any(part in (".", "..") for part in name.split("/"))
        or name.endswith("/")
    ):
        raise InvalidInput(
            f"Invalid {kind} name: {name!r}",
            hint="Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), colon(:) and slashes (/).",
        )
    return name


def fitted(name: str, value: str, kind: str) -> str:
    """Values of params and tags are cut where they are too long, as MLflow's own server does; an experiment's tags are not."""
    most = _LONGEST[kind]
    if len(value) > most and kind == "experiment tag":
        raise InvalidInput(f"{kind} value of {name!r} exceeds the maximum length of {most} characters: it has {len(value)}")
    return value[:most]


def points(items: Sequence[Mapping[str, Any]]) -> list[Point]:
    return [point(item) for item in items]


def point(item: Mapping[str, Any]) -> Point:
    at = whole(item, "timestamp", 0)
    if at < 0:
        raise InvalidInput(f"Invalid value {at} for parameter 'timestamp' supplied", hint="a metric's time is no earlier than 1970")
    return key(text(item, "key"), "metric"), whole(item, "step", 0), _seconds(at), number(item, "value")


def _seconds(milliseconds: int) -> float:
    if not -(10**15) < milliseconds < 10**16:
        raise InvalidInput(f"Invalid value {milliseconds} for parameter 'timestamp' supplied", hint="milliseconds since 1970 are expected")
    return milliseconds / 1000


def seconds(body: Mapping[str, Any], name: str) -> float | None:
    return _seconds(whole(body, name, 0)) if body.get(name) is not None else None


def experiment_number(value: str) -> int:
    if not re.fullmatch(r"[-+]?[0-9]+", value):
        raise InvalidInput(f"Invalid experiment ID {value[:60]!r}: it must be a whole number", hint="experiments/search lists them")
    return int(value) if len(value) <= 18 else -1  # no experiment of ours: there is none


def archived(body: Mapping[str, Any], name: str) -> bool | None:
    view = body.get(name) or "ACTIVE_ONLY"
    view = {"1": "ACTIVE_ONLY", "2": "DELETED_ONLY", "3": "ALL"}.get(str(view), view)  # the enumeration's numbers
    if not isinstance(view, str) or view not in _VIEWS:
        raise InvalidInput(f"Invalid view type {str(view)[:40]!r}", hint=f"Valid ones are {', '.join(_VIEWS)}")
    return _VIEWS[view]


def state(status: Any) -> str:
    known = {**STATES, "1": "running", "2": "submitted", "3": "finished", "4": "failed", "5": "cancelled"}
    if str(status) not in known:
        raise InvalidInput(f"Invalid run status {str(status)[:40]!r}", hint=f"Valid ones are {', '.join(STATES)}")
    return known[str(status)]


# ── pages ─────────────────────────────────────────────────────────────────────


def page_token(offset: int) -> str:
    return base64.urlsafe_b64encode(json.dumps({"offset": offset}).encode()).decode()


def offset_of(token: Any) -> int:
    if not token:
        return 0
    try:
        offset = json.loads(base64.urlsafe_b64decode(str(token)))["offset"]
        if isinstance(offset, int) and 0 <= offset < 1 << 62:
            return offset
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise InvalidInput("Invalid page token, could not base64-decode", hint="pass the token of the page before as it was")


def page_size(body: Mapping[str, Any], default: int, most: int) -> int:
    size = whole(body, "max_results", default)
    if not 1 <= size <= most:
        raise InvalidInput(f"Invalid value {size} for parameter 'max_results' supplied", hint=f"It must be at least 1 and at most {most}")
    return size


# ── writing ───────────────────────────────────────────────────────────────────


def value_json(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def milliseconds(at: float | None) -> int | None:
    return None if at is None else round(at * 1000)


def entries(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": k, "value": v} for k, v in values.items()]


def experiment_json(found: Experiment) -> dict[str, Any]:
    shown = {
        "experiment_id": str(found.id),
        "name": found.name,
        "artifact_location": found.artifact_location or f"mlflow-artifacts:/{found.id}",
        "lifecycle_stage": "active" if found.archived is None else "deleted",
        "last_update_time": milliseconds(found.updated),
        "creation_time": milliseconds(found.created),
    }
    return {**shown, "tags": entries(found.tags)} if found.tags else shown


def artifact_uri(info: RunInfo) -> str:
    place = info.artifact_location.rstrip("/") or f"mlflow-artifacts:/{info.experiment}"
    return f"{place}/{info.hex_id}/artifacts"


def info_json(info: RunInfo) -> dict[str, Any]:
    shown = {
        "run_uuid": info.hex_id,
        "experiment_id": str(info.experiment),
        "run_name": info.name,
        "user_id": info.user,
        "status": STATUSES.get(info.state, "RUNNING"),
        "start_time": milliseconds(info.started if info.started is not None else info.created),
        "artifact_uri": artifact_uri(info),
        "lifecycle_stage": "active" if info.archived is None else "deleted",
        "run_id": info.hex_id,
    }
    return {**shown, "end_time": milliseconds(info.ended)} if info.ended is not None else shown


def run_json(
    view: RunView, *, inputs: tuple[Iterable[Dataset], Iterable[str]] | None = None, outputs: Iterable[tuple[str, int]] = ()
) -> dict[str, Any]:
    metrics = [
        {"key": m.key, "value": value_json(m.value), "timestamp": milliseconds(m.time), "step": m.step} for m in view.metrics.values()
    ]
    named = view.info.source != "mlflow" or RUN_NAME in view.tags  # a client may have taken the tag away
    tags = {**view.tags, RUN_NAME: view.info.name} if named else view.tags
    data = {"metrics": metrics, "params": entries(view.params), "tags": entries(tags)}
    datasets, models = inputs or ((), ())
    return {
        "info": info_json(view.info),
        "data": {name: found for name, found in data.items() if found},
        "inputs": {
            name: found
            for name, found in (
                ("dataset_inputs", [dataset_json(d) for d in datasets]),
                ("model_inputs", [{"model_id": m} for m in models]),
            )
            if found
        },
        "outputs": {"model_outputs": [{"model_id": m, "step": s} for m, s in outputs]} if outputs else {},
    }


def dataset_json(found: Dataset) -> dict[str, Any]:
    same = {"name": found.name, "digest": found.digest, "source_type": found.source_type, "source": found.source}
    more = {name: value for name, value in (("schema", found.schema), ("profile", found.profile)) if value is not None}
    return {"tags": entries(found.tags), "dataset": {**same, **more}}


def dataset_of(item: Mapping[str, Any]) -> Dataset:
    told = item.get("dataset")
    if not isinstance(told, dict):
        raise InvalidInput("Missing value for required parameter 'dataset'.")
    return Dataset(
        name=_short(told, "name", 500),
        digest=_short(told, "digest", 36),
        source_type=_short(told, "source_type", 250),
        source=text(told, "source", needed=False),
        schema=text(told, "schema", needed=False) or None,
        profile=text(told, "profile", needed=False) or None,
        tags={_short(tag, "key", 255): _short(tag, "value", 500) for tag in rows(item, "tags")},
    )


def _short(body: Mapping[str, Any], name: str, most: int) -> str:
    found = text(body, name, needed=False)
    if len(found) > most:
        raise InvalidInput(f"The dataset's {name} exceeds the maximum length of {most} characters: it has {len(found)}")
    return found


def model_place(found: LoggedModelRecord) -> str:
    return f"mlflow-artifacts:/{found.experiment}/models/{found.id}/artifacts"


def model_json(found: LoggedModelRecord) -> dict[str, Any]:
    info = {
        "model_id": found.id,
        "experiment_id": str(found.experiment),
        "name": found.name,
        "creation_timestamp_ms": milliseconds(found.created),
        "last_updated_timestamp_ms": milliseconds(found.updated),
        "artifact_uri": model_place(found),
        "status": f"LOGGED_MODEL_{found.status}",
        "status_message": found.status_message,
        "model_type": found.kind,
        "source_run_id": found.run or "",
        "tags": entries(found.tags),
    }
    data = {"params": entries(found.params), "metrics": [model_metric_json(found.id, metric) for metric in found.metrics]}
    return {"info": info, "data": {name: value for name, value in data.items() if value}}


def model_metric_json(model: str, metric: LoggedModelMetric) -> dict[str, Any]:
    shown = {
        "key": metric.key,
        "value": value_json(metric.value),
        "timestamp": milliseconds(metric.time),
        "step": metric.step,
        "model_id": model,
        "run_id": metric.run,
        "dataset_name": metric.dataset,
        "dataset_digest": metric.digest,
    }
    return {name: value for name, value in shown.items() if value is not None}


def model_metric(item: Mapping[str, Any], point: Point) -> LoggedModelMetric:
    key, step, at, value = point
    dataset, digest = (text(item, name, needed=False) or None for name in ("dataset_name", "dataset_digest"))
    return LoggedModelMetric(key=key, value=value, step=step, time=at, run=None, dataset=dataset, digest=digest)
