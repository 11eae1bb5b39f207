"""The calls of older scripts, and those of our own API that a training may make: runs, metrics, params, tags, files."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from onward.model.metric import Point
from onward.supervisor.relay.artifacts import RelayArtifacts
from onward.supervisor.relay.http_messages import RelayAnswer, RelayRequest
from onward.supervisor.relay.run_values import RunValues

_WORDS = {"nan": math.nan, "infinity": math.inf, "inf": math.inf, "+infinity": math.inf, "-infinity": -math.inf, "-inf": -math.inf}
_LATEST = 1e11  # unix seconds; what is above is milliseconds
_STEP = 1 << 63
_LONGEST_KEY = 250


class ScriptCalls:
    """Answers are those of the server's own routes: a script must not see whom it talks to."""

    def __init__(self, run: str, leg: int, facts: RunValues, files: RelayArtifacts) -> None:
        self._run = run
        self._leg = leg
        self._facts = facts
        self._files = files
        self._status = "running"

    def store(self, request: RelayRequest, path: str) -> RelayAnswer | None:
        """`PUT /api/v1/runs/RUN/artifacts/PATH`: the body is the file. None: this is none of those calls."""
        match path.split("/", 6):
            case ["", "api", "v1", "runs", _, "artifacts", name] if request.method == "PUT" and name:
                stored = self._files.put(name, request.body.pieces())
                self._facts.artifact(name, bytes=stored.size, sha256=stored.sha256, stored=True)
                return RelayAnswer.of({"path": stored.path, "bytes": stored.size, "sha256": stored.sha256, "stored": True}, 201)
            case _:
                return None

    def answer(self, method: str, path: str, body: Mapping[str, Any]) -> Any | None:
        """None: not known here. A pair: status and value."""
        parts = path.removeprefix("/api/v1").strip("/").split("/")
        match method, parts:
            case "POST", ["experiments", _, *_, "runs"]:
                return self._begin(body)
            case "POST", ["runs"]:
                return 201, {"id": self._run, **self._begin(body)}
            case "POST", ["runs", _, "metrics"]:
                rows = body["points"] if isinstance(body.get("points"), list) else [body]
                return self._log([self._point(row.get("name"), row.get("value"), row) for row in rows if isinstance(row, dict)], body)
            case "POST", ["runs", _, "metrics", "batch"]:
                metrics = body.get("metrics")
                return self._log([self._point(*pair, body) for pair in metrics.items()] if isinstance(metrics, dict) else [], body)
            case "POST", ["runs", _, "artifacts"]:
                return 201, self._tell_of(body)
            case "POST" | "PUT", ["runs", _, "params" | "tags" as what]:
                return self._set(what, body)
            case "POST", ["runs", _, "notes"]:
                self._facts.note(str(body.get("text", ""))[:8000])
                return 201, {"text": body.get("text")}
            case "PATCH", ["runs", _]:
                self._status = str(body.get("status") or body.get("state") or self._status)
                return {"run_id": self._run, "status": self._status}
            case "GET", ["runs", _] if not path.startswith("/api/v1"):
                return {"run_id": self._run, "status": self._status}
            case "POST", ["webhooks", _]:
                return {"received": True}
            case "GET", ["api", "3.0", "mlflow", "server-info"]:
                return {"store_type": "SqlStore", "workspaces_enabled": False}
            case "GET", ["version"]:
                return "3.17.2"
            case "GET", ["healthz" | "readyz"]:
                return {"status": "ok"}
            case _:
                return None

    def _begin(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The run of this job, whatever job the script believes to be in."""
        config = body.get("config") if isinstance(body.get("config"), dict) else body.get("params")
        params = dict(config) if isinstance(config, dict) else {}
        if body.get("seed") is not None:
            params.setdefault("seed", body["seed"])
        if params:
            self._facts.set_params({str(key)[:_LONGEST_KEY]: value for key, value in params.items() if str(key)})
        tags = {name: str(body[name]) for name in ("slurm_node", "gpu_type") if body.get(name)}
        if tags:
            self._facts.set_tags(tags)
        return {"run_id": self._run, "leg": self._leg}

    def _log(self, points: list[Point | None], body: Mapping[str, Any]) -> Any:
        """What is no point is passed over: a training must not end for it."""
        good = [point for point in points if point]
        self._facts.add_points(good, timed=body.get("timestamp") is not None)
        return {"stored": len(good)}

    def _point(self, name: object, value: object, params: Mapping[str, Any]) -> Point | None:
        try:
            number = _WORDS[value.strip().lower()] if isinstance(value, str) else float(value)  # type: ignore[arg-type]
            step = int(params.get("step") or 0)
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_KEY or not -_STEP <= step < _STEP:
            return None
        return name, step, _time(params.get("timestamp")), number

    def _tell_of(self, body: Mapping[str, Any]) -> Any:
        size = body.get("size_bytes")
        record = {"type": str(body.get("type", ""))[:64], "bytes": size if isinstance(size, int) else None, "stored": False}
        if body.get("path"):
            self._facts.artifact(str(body["path"])[:1000], **record)
        return {"path": body.get("path"), "type": body.get("type", ""), "size_bytes": size}

    def _set(self, what: str, body: Mapping[str, Any]) -> Any:
        given = body.get(what)
        if isinstance(given, dict) and given:
            values = {str(key)[:_LONGEST_KEY]: value for key, value in given.items() if str(key)}
            self._facts.set_params(values) if what == "params" else self._facts.set_tags(values)
        return {what: given}


def _time(value: object) -> float:
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError):
            return time.time()
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LATEST * 1000:
        return value / 1000 if value >= _LATEST else float(value)
    return time.time()
