"""The relay: a tracker on the node's own loopback, for clients that know nothing of us, which always accepts.

MLflow's client, the calls of older scripts and our own API find here the run of this job, and nothing else. What they log is in a file
before they get their answer; from there it goes the way of all records. No call waits for a server, and none needs one: what only a
server knows is asked there, shortly, where there is one. Everybody on a node shares its loopback, so the address has a secret in it.
"""

from __future__ import annotations

import base64
import json
import logging
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onward.errors import OnwardError
from onward.model.mlflow import wire
from onward.model.plain_data import is_nested_deeper
from onward.model.spec import RunSpec
from onward.rundir.files.artifacts import components
from onward.rundir.layout import LegLocal, RunDir, leg_of
from onward.sdk import contract
from onward.sdk.atomic_files import write_whole
from onward.sdk.spool import SpoolWriter
from onward.supervisor.background import MIRROR_SECONDS, Repeating, never_hurts_training
from onward.supervisor.relay.artifacts import RelayArtifacts, carry_artifacts, has_pending_artifacts
from onward.supervisor.relay.http_messages import RelayAnswer, RelayRequest
from onward.supervisor.relay.mlflow import MlflowCalls, run_as_mlflow
from onward.supervisor.relay.run_values import WRITER, RunValues
from onward.supervisor.relay.script_calls import ScriptCalls
from onward.supervisor.relay.server import LoopbackServer
from onward.supervisor.telemetry.tracker_server import TrackerConnection

log = logging.getLogger(__name__)

_MOST_JSON = 64 << 20
_DEEPEST = 64  # lists and objects inside each other
_ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
_MLFLOW = "/api/2.0/mlflow/"
_READS = ("GET", "HEAD")


class Relay:
    def __init__(
        self, spec: RunSpec, run: RunDir, local: LegLocal, *, leg: int, node: int = 0, upstream: TrackerConnection | None = None
    ) -> None:
        self._local = local
        self._run = run
        self._secret = secrets.token_hex(16)
        writer = f"{WRITER}-n{node}" if node else WRITER
        mine = local.spool / f"leg-{leg:04d}.{writer}.jsonl"
        facts = RunValues(SpoolWriter(str(local.spool), leg=leg, name=writer), _of_earlier_legs(run, leg))
        self._me, self._experiment_name = run_as_mlflow(spec), spec.experiment or "Default"
        self._facts = facts
        self._mlflow = MlflowCalls(self._me, self._experiment_name, facts, lambda: [*_of_earlier_legs(run, leg), mine])
        self._scripts = ScriptCalls(spec.id, leg, facts, self._files(None))
        self._upstream = upstream
        self._server = LoopbackServer(self._answer, self._refuse)
        self._carrying = Repeating("copying artifacts", lambda: carry_artifacts(local, run), every=MIRROR_SECONDS)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.port}/t/{self._secret}"

    def variables(self, own: Mapping[str, str]) -> dict[str, str]:
        """What a training is told of the relay. What the user set himself stays his; then the rest of that family is his too."""
        write_whole(self._local.relay_token, self._secret, mode=0o600)
        families = (
            {contract.TRACKER_URL: f"http://127.0.0.1:{self._server.port}", contract.TOKEN_FILE: str(self._local.relay_token)},
            {"TRACKER_API": self.url, "TRACKER_API_KEY": self._secret},
            {
                "MLFLOW_TRACKING_URI": self.url,
                "MLFLOW_RUN_ID": self._me.id,
                "MLFLOW_EXPERIMENT_ID": str(self._me.experiment),
                "MLFLOW_EXPERIMENT_NAME": self._experiment_name,
                "MLFLOW_TRACKING_TOKEN": self._secret,
                "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # the address has the secret in it, and others may read logs
            },
        )
        fields: dict[str, str] = {}
        for family in families:
            if next(iter(family)) not in own:  # the address: what goes with ours would not go with his
                fields.update({name: value for name, value in family.items() if name not in own})
        return fields

    def close(self, *, within: float) -> bool:
        """No more calls; carry what is left. False: some files still lie on the node."""
        self._server.close()
        self._carrying.stop(within=within)
        with never_hurts_training("copying the last artifacts"):
            if self._carrying.stopped:
                carry_artifacts(self._local, self._run)
        return not has_pending_artifacts(self._local)

    # ── answering ─────────────────────────────────────────────────────────────

    def _refuse(self, request: RelayRequest) -> RelayAnswer | None:
        if self._admitted(request) is not None:
            return None
        return RelayAnswer.of({"error_code": "UNAUTHENTICATED", "message": "this is not the address or token of this run's relay"}, 401)

    def _answer(self, request: RelayRequest) -> RelayAnswer:
        path = self._admitted(request) or ""
        try:
            return self._route(request, path)
        except OnwardError as error:
            return _refused(error.message, 404 if error.exit_code == 3 else 400)
        except OSError as error:
            log.warning("the relay could not store what was sent to %s: %s", path, error)
            return _refused(str(error), 400)

    def _admitted(self, request: RelayRequest) -> str | None:
        """The path without the secret, if it was shown in any of the usual ways."""
        if request.path.startswith("/t/"):
            shown, _, rest = request.path[3:].partition("/")
            return f"/{rest}" if secrets.compare_digest(shown.encode(), self._secret.encode()) else None
        kind, _, word = request.headers.get("authorization", "").partition(" ")
        shown = request.headers.get("x-api-key", "")
        if kind.lower() == "bearer":
            shown = word.strip()
        elif kind.lower() == "basic":
            try:
                shown = base64.b64decode(word).decode().partition(":")[2]
            except ValueError:
                shown = ""
        return request.path if secrets.compare_digest(shown.encode(), self._secret.encode()) else None

    def _route(self, request: RelayRequest, path: str) -> RelayAnswer:
        path = path.replace("/ajax-api/", "/api/", 1) if path.startswith("/ajax-api/") else path
        if path == _ARTIFACTS or path.startswith(f"{_ARTIFACTS}/"):
            return self._artifacts(request, path[len(_ARTIFACTS) :].strip("/"))
        stored = self._scripts.store(request, path)
        if stored is not None:
            return stored
        raw = request.body.read(_MOST_JSON)
        if raw is None:
            return _refused("the body is too long", 413)
        body = _decoded(request, raw)
        if body is None:
            return _refused(f"the body is not a JSON object, or is nested more than {_DEEPEST} levels deep", 400)
        if path.startswith(_MLFLOW):
            found = self._on_mlflow(request, path.removeprefix(_MLFLOW), body)
        else:
            found = self._scripts.answer(request.method, path, body)
        if found is None or _a_search(path):
            asked = self._ask_above(request, path, raw)
            if asked is not None:
                return asked
        if found is None:
            return _refused("the run's relay has nothing at this address", 404)
        status, value = found if isinstance(found, tuple) else (200, found)
        return RelayAnswer.of(value, status)

    def _on_mlflow(self, request: RelayRequest, path: str, body: Mapping[str, Any]) -> Any | None:
        match path.split("/"):
            case ["artifacts", "list"]:
                files = self._files(None).list(str(body.get("path", "")).strip("/"))
                return {"root_uri": self._me.artifact_uri, "files": [_entry(file, file.path) for file in files]}
            case ["logged-models", id, "artifacts", "directories"]:
                files = self._files(id).list(str(body.get("artifact_directory_path", "")).strip("/"))
                return {"root_uri": wire.model_uri(self._me.experiment, id), "files": [_entry(file, file.path) for file in files]}
            case _:
                return self._mlflow.answer(request.method, path, body)

    def _ask_above(self, request: RelayRequest, path: str, raw: bytes) -> RelayAnswer | None:
        """What only a server knows: reading, nothing else."""
        if self._upstream is None or not (request.method in _READS or _a_search(path)):
            return None
        query = request.target.partition("?")[2]
        return self._upstream.ask(request.method, path, query, raw, experiment=(str(self._me.experiment), self._experiment_name))

    # ── files ─────────────────────────────────────────────────────────────────

    def _files(self, model: str | None) -> RelayArtifacts:
        if model is None:
            return RelayArtifacts(self._local.artifacts, self._run.artifacts)
        name = components(model)[0]
        return RelayArtifacts(self._local.models / name, self._run.models / name)

    def _artifacts(self, request: RelayRequest, path: str) -> RelayAnswer:
        """`EXPERIMENT/RUN/artifacts/PATH`, or `EXPERIMENT/models/MODEL/artifacts/PATH`."""
        asked = path or request.query.get("path", "").strip("/")
        match components(asked or "x"):
            case [_, "models", model, "artifacts", *rest]:
                files, of_run = self._files(model), False
            case [_, _, "artifacts", *rest]:
                files, of_run = self._files(None), True
            case _:
                return _refused("artifacts are under EXPERIMENT/RUN/artifacts", 400)
        name = "/".join(rest)
        match request.method:
            case "PUT":
                stored = files.put(name, request.body.pieces())
                if of_run:
                    self._facts.artifact(name, bytes=stored.size, sha256=stored.sha256, stored=True)
                return RelayAnswer()
            case "GET" | "HEAD" if not path:
                return RelayAnswer.of({"files": [_entry(file, file.path.rpartition("/")[2]) for file in files.list(name)]})
            case "GET" | "HEAD":
                file, seen = files.open(name)
                return RelayAnswer(kind="application/octet-stream", file=file, size=seen.size)
            case "DELETE":
                files.delete(name)
                if of_run:
                    self._facts.artifact(name, gone=True)
                return RelayAnswer()
            case _:
                return _refused("this address does not accept this method", 400)


def start_relay(
    spec: RunSpec, run: RunDir, local: LegLocal, *, leg: int, node: int = 0, upstream: TrackerConnection | None = None
) -> Relay | None:
    """With its variables in the node's folder, where every task of the training finds them. None: it cannot be, and nobody is hurt."""
    with never_hurts_training("starting the relay"):
        relay = Relay(spec, run, local, leg=leg, node=node, upstream=upstream)
        own = json.loads(run.environment.read_bytes()) if run.environment.exists() else {}
        write_whole(local.relay, json.dumps(relay.variables(own)), mode=0o600)
        return relay
    return None


def _of_earlier_legs(run: RunDir, leg: int) -> list[Path]:
    found = [path for path in run.spool.glob(f"leg-*.{WRITER}*.jsonl") if 0 < (leg_of(path.name) or 0) < leg]
    return sorted(found, key=lambda path: (leg_of(path.name) or 0, path.name))


def _decoded(request: RelayRequest, raw: bytes) -> dict[str, Any] | None:
    """The body's fields, with those of the address."""
    query: dict[str, Any] = request.query
    if not raw.strip():
        return query
    if "form-urlencoded" in request.headers.get("content-type", ""):
        return query
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return {**query, **fields} if isinstance(fields, dict) and not is_nested_deeper(fields, _DEEPEST) else None


def _a_search(path: str) -> bool:
    return path.endswith("/search")


def _entry(file: Any, path: str) -> dict[str, Any]:
    return {"path": path, "is_dir": True} if file.is_dir else {"path": path, "is_dir": False, "file_size": file.size}


def _refused(words: str, status: int) -> RelayAnswer:
    """In MLflow's shape, and with the word by which problems of our own API say what is wrong."""
    code = {404: "RESOURCE_DOES_NOT_EXIST", 401: "UNAUTHENTICATED"}.get(status, "INVALID_PARAMETER_VALUE")
    return RelayAnswer.of({"error_code": code, "message": words, "detail": words, "status": status}, status)
