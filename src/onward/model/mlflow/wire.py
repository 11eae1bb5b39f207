"""MLflow's JSON as our values and our values as its JSON, with its limits and names. Pure."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from onward.errors import InvalidInput
from onward.model.experiment import Experiment
from onward.model.metric import Point
from onward.model.mlflow.records import Dataset, LoggedModelMetric, LoggedModelRecord, MlflowRun
from onward.model.storable_text import LONGEST_KEY, check_key

MOST_METRICS: Final = 1000
MOST_PARAMS: Final = 100
MOST_ENTITIES: Final = 1000
LONGEST: Final = {"param": 6000, "tag": 8000, "experiment tag": 20000}
_KEY: Final = re.compile(rf"[\w .:/\-]{{1,{LONGEST_KEY}}}")
_VIEWS: Final[Mapping[str, bool | None]] = {"ACTIVE_ONLY": False, "DELETED_ONLY": True, "ALL": None}
RUN_NAME: Final = "mlflow.runName"
PARENT: Final = "mlflow.parentRunId"
USER: Final = "mlflow.user"
MODEL_HISTORY: Final = "mlflow.log-model.history"

# its words for how a run is, and its numbers for them
STATES: Final = {"RUNNING": "running", "SCHEDULED": "submitted", "FINISHED": "finished", "FAILED": "failed", "KILLED": "cancelled"}
STATUSES: Final = {**{state: status for status, state in STATES.items()}, "waiting": "SCHEDULED"}
NUMBERED: Final = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}


# ── reading ───────────────────────────────────────────────────────────────────


def text(body: Mapping[str, Any], *names: str, needed: bool = True) -> str:
    """A text by the first of its names that is there. Numbers are taken for what they print as, as protobuf's JSON does."""
    for name in names:
        value = body.get(name)
        if value not in (None, ""):
            if isinstance(value, bool | dict | list):
                raise InvalidInput(f"Invalid value {json.dumps(value)} for parameter '{name}' supplied", hint="a string is expected")
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
        raise InvalidInput(f"Invalid value for parameter '{name}' supplied", hint="a list of strings is expected")
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
        as_text = value_text(value)
        found[name] = as_text if any_key else fitted(name, as_text, kind)
    return found


def value_text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def key(name: str, kind: str) -> str:
    """A key that MLflow would take: no path that goes up, no characters but these."""
    if len(name) > LONGEST_KEY:
        raise InvalidInput(f"{kind} key {name[:40]!r}… exceeds the maximum length of {LONGEST_KEY} characters")
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
    most = LONGEST[kind]
    if len(value) > most and kind == "experiment tag":
        raise InvalidInput(f"{kind} value of {name!r} exceeds the maximum length of {most} characters: it has {len(value)}")
    return value[:most]


def points(items: Sequence[Mapping[str, Any]]) -> list[Point]:
    return [point(item) for item in items]


def point(item: Mapping[str, Any]) -> Point:
    at = whole(item, "timestamp", 0)
    if at < 0:
        raise InvalidInput(f"Invalid value {at} for parameter 'timestamp' supplied", hint="a metric's time must not be before 1970")
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
    known = {**STATES, **{str(number): STATES[word] for number, word in NUMBERED.items()}}
    if str(status) not in known:
        raise InvalidInput(f"Invalid run status {str(status)[:40]!r}", hint=f"Valid ones are {', '.join(STATES)}")
    return known[str(status)]


def dataset_of(item: Mapping[str, Any]) -> Dataset:
    dataset = item.get("dataset")
    if not isinstance(dataset, dict):
        raise InvalidInput("Missing value for required parameter 'dataset'.")
    return Dataset(
        name=_short(dataset, "name", 500),
        digest=_short(dataset, "digest", 36),
        source_type=_short(dataset, "source_type", 250),
        source=text(dataset, "source", needed=False),
        schema=text(dataset, "schema", needed=False) or None,
        profile=text(dataset, "profile", needed=False) or None,
        tags={_short(tag, "key", 255): _short(tag, "value", 500) for tag in rows(item, "tags")},
    )


def _short(body: Mapping[str, Any], name: str, most: int) -> str:
    found = text(body, name, needed=False)
    if len(found) > most:
        raise InvalidInput(f"The dataset's {name} exceeds the maximum length of {most} characters: it has {len(found)}")
    return found


def model_metric(item: Mapping[str, Any], point: Point) -> LoggedModelMetric:
    key, step, at, value = point
    dataset, digest = (text(item, name, needed=False) or None for name in ("dataset_name", "dataset_digest"))
    return LoggedModelMetric(key=key, value=value, step=step, time=at, dataset=dataset, digest=digest)


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
    raise InvalidInput("Invalid page token, could not base64-decode", hint="pass the previous page's token unchanged")


def page_size(body: Mapping[str, Any], default: int, most: int) -> int:
    size = whole(body, "max_results", default)
    if not 1 <= size <= most:
        raise InvalidInput(f"Invalid value {size} for parameter 'max_results' supplied", hint=f"It must be at least 1 and at most {most}")
    return size


# ── writing ───────────────────────────────────────────────────────────────────


def value_json(value: float) -> float | str:
    """As protobuf's JSON writes it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def milliseconds(at: float) -> int:
    return round(at * 1000)


def entries(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": k, "value": v} for k, v in values.items()]


def point_json(point: Point, **more: str) -> dict[str, Any]:
    key, step, at, value = point
    return {"key": key, "value": value_json(value), "timestamp": milliseconds(at), "step": step, **more}


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


def artifact_uri(experiment: int, run: str, location: str = "") -> str:
    """`location`: of the experiment, where its files are not the server's to keep."""
    return f"{location.rstrip('/') or f'mlflow-artifacts:/{experiment}'}/{run}/artifacts"


def info_json(run: MlflowRun) -> dict[str, Any]:
    shown = {
        "run_uuid": run.id,
        "experiment_id": str(run.experiment),
        "run_name": run.name,
        "user_id": run.user,
        "status": run.status,
        "start_time": milliseconds(run.started),
        "artifact_uri": run.artifact_uri,
        "lifecycle_stage": "deleted" if run.deleted else "active",
        "run_id": run.id,
    }
    return shown if run.ended is None else {**shown, "end_time": milliseconds(run.ended)}


def run_json(run: MlflowRun) -> dict[str, Any]:
    data = {"metrics": [point_json(point) for point in run.metrics], "params": entries(run.params), "tags": entries(run.tags)}
    inputs = {
        "dataset_inputs": [dataset_json(dataset) for dataset in run.datasets],
        "model_inputs": [{"model_id": id} for id in run.input_models],
    }
    outputs = {"model_outputs": [{"model_id": id, "step": step} for id, step in run.output_models]}
    return {"info": info_json(run), "data": _filled(data), "inputs": _filled(inputs), "outputs": _filled(outputs)}


def dataset_json(found: Dataset) -> dict[str, Any]:
    fields = {name: value for name, value in vars(found).items() if name != "tags" and value is not None}
    return {"tags": entries(found.tags), "dataset": fields}


def model_uri(experiment: int, model: str) -> str:
    return f"mlflow-artifacts:/{experiment}/models/{model}/artifacts"


def model_json(found: LoggedModelRecord) -> dict[str, Any]:
    info = {
        "model_id": found.id,
        "experiment_id": str(found.experiment),
        "name": found.name,
        "creation_timestamp_ms": milliseconds(found.created),
        "last_updated_timestamp_ms": milliseconds(found.updated),
        "artifact_uri": model_uri(found.experiment, found.id),
        "status": f"LOGGED_MODEL_{found.status}",
        "status_message": found.status_message,
        "model_type": found.kind,
        "source_run_id": found.run or "",
        "tags": entries(found.tags),
    }
    return {"info": info, "data": _filled({"params": entries(found.params), "metrics": [_metric_json(found.id, m) for m in found.metrics]})}


def _metric_json(model: str, m: LoggedModelMetric) -> dict[str, Any]:
    more = {"model_id": model, "run_id": m.run, "dataset_name": m.dataset, "dataset_digest": m.digest}
    return point_json((m.key, m.step, m.time, m.value), **{name: value for name, value in more.items() if value is not None})


def _filled(shown: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """What is empty is left out, as protobuf does."""
    return {name: found for name, found in shown.items() if found}
