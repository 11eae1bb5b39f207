"""The tracker's server as a desk knows it: runs are announced there at submit, and folders sent to it by hand.

Only where the settings, or ONWARD_TRACKER_URL and ONWARD_TOKEN_FILE, name one: a server that sees the runs folder needs none of this.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from onward.errors import HostUnreachable, InvalidInput, NotAllowed, NotFound, OnwardError
from onward.model.spec import RunSpec, spec_to_json
from onward.operations.context import OperationsContext
from onward.rundir.journal import read_spec
from onward.rundir.layout import RunDir
from onward.schedulers.cluster_settings import TrackerSettings
from onward.sdk import contract
from onward.sdk.atomic_files import write_whole
from onward.supervisor.telemetry.push import Push, PushRefused
from onward.supervisor.telemetry.push_files import SPOOL, push_areas
from onward.supervisor.telemetry.tracker_server import TrackerConnection, TrackerUnreachable, read_token

log = logging.getLogger(__name__)

_HINT = "set `tracker.url` and `tracker.token-file` in the settings, or ONWARD_TRACKER_URL and ONWARD_TOKEN_FILE"


def tracker_settings(context: OperationsContext) -> TrackerSettings | None:
    """The variables, else the settings. A job's own variables name its relay, which is no server."""
    url, token = context.env.get(contract.TRACKER_URL), context.env.get(contract.TOKEN_FILE)
    if url and token and contract.RUN_ID not in context.env:
        return TrackerSettings(url=url.rstrip("/"), token_file=Path(token).expanduser())
    return context.settings.tracker


def announce_run(context: OperationsContext, spec: RunSpec, dir: RunDir) -> None:
    """Make the run known, and get its jobs a token; again when it is resumed, since the token that they had ended with the run.

    A server that does not answer keeps no run from starting."""
    named = tracker_settings(context)
    if named is None or named.token_file is None or spec.tracker is None:
        return
    try:
        write_job_token(dir, register_run(named, spec))
    except (OnwardError, OSError) as error:
        log.warning(
            "onward: the run starts, but its jobs cannot send to %s: %s; `onward sync %s` sends it later", named.url, error, dir.path
        )


def register_run(named: TrackerSettings, spec: RunSpec) -> str:
    """Make a run known to the server; the secret of a token of its own."""
    server = TrackerServerClient.of(named)
    server.announce(spec_to_json(spec))
    return server.token(spec.id)


def write_job_token(dir: RunDir, secret: str) -> None:
    """Give a run's jobs their token: in a folder and a file for its owner alone."""
    dir.tracker_token.parent.mkdir(mode=0o700, exist_ok=True)
    os.chmod(dir.tracker_token.parent, 0o700)
    write_whole(dir.tracker_token, secret, mode=0o600)


def withdraw_run(context: OperationsContext, spec: RunSpec) -> None:
    """The scheduler said no, so there is no run: out of the server's lists, if it answers."""
    named = tracker_settings(context)
    if named is None or named.token_file is None or spec.tracker is None:
        return
    try:
        TrackerServerClient.of(named).archive(spec.id)
    except (OnwardError, OSError) as error:
        log.warning("onward: %s still lists run %s, which was refused: %s", named.url, spec.id, error)


@dataclass(frozen=True, kw_only=True)
class SyncedRun:
    run_id: str
    bytes: int


def sync_folder(context: OperationsContext, folder: Path) -> SyncedRun:
    """Send a run's folder to the server: one of ours, or one that `onward.init()` made by hand. What is there already is passed over."""
    named = tracker_settings(context)
    if named is None:
        raise InvalidInput("no tracker server is configured", hint=_HINT)
    server, dir = TrackerServerClient.of(named), RunDir(folder.absolute())
    if dir.is_run():
        spec = read_spec(dir)
        server.announce(spec_to_json(spec))
        return SyncedRun(run_id=spec.id, bytes=server.send(spec.id, dir))
    if not dir.spool.is_dir():
        raise NotFound(f"{folder} is not a run folder", hint="a run folder contains a folder named spool")
    run_id = server.by_hand(dir)
    return SyncedRun(run_id=run_id, bytes=server.send(run_id, dir))


class TrackerServerClient:
    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._upstream = TrackerConnection(url, token)

    @classmethod
    def of(cls, named: TrackerSettings) -> TrackerServerClient:
        if named.token_file is None:
            raise InvalidInput(f"no token for the tracker at {named.url} on this machine", hint=_HINT)
        try:
            return cls(named.url, read_token(named.token_file, folder=False))
        except OSError as error:
            raise NotFound(f"the tracker's token cannot be read from {named.token_file}: {error.strerror}", hint=_HINT) from error

    def announce(self, spec: Mapping[str, Any]) -> None:
        self._call("PUT", f"/api/v1/runs/{spec['id']}/spec", spec)

    def archive(self, run: str) -> None:
        self._call("PATCH", f"/api/v1/runs/{run}", {"archived": True})

    def token(self, run: str) -> str:
        return str(self._call("POST", f"/api/v1/runs/{run}/tokens", {})["secret"])

    def by_hand(self, dir: RunDir) -> str:
        """The same run whenever this folder of this machine is sent."""
        name = dir.path.name
        asked = {"name": name[:200], "identity": f"by-hand:{socket.gethostname()}:{dir.path}"[:400], "state": "running"}
        return str(self._call("POST", "/api/v1/runs", asked)["id"])

    def send(self, run: str, dir: RunDir) -> int:
        try:
            rooms = push_areas(dir) if dir.is_run() else {SPOOL: [dir.spool]}
            return Push(self._upstream, run, rooms).send_all()
        except TrackerUnreachable as error:
            raise self._unreachable(error) from error
        except PushRefused as error:
            raise NotAllowed(f"the tracker at {self._url} refuses run {run}: {error}") from error

    def _call(self, method: str, path: str, body: Any) -> Any:
        try:
            status, data, _ = self._upstream.call(method, quote(path, safe="/"), json.dumps(body).encode())
        except TrackerUnreachable as error:
            raise self._unreachable(error) from error
        try:
            answer = json.loads(data)
        except ValueError:
            answer = {}
        if status >= 400:
            words = answer.get("detail") if isinstance(answer, dict) else None
            kind = NotAllowed if status in (401, 403) else InvalidInput
            raise kind(f"the tracker at {self._url} answered {status}: {words or 'no message'}", hint="is its token for another server?")
        return answer

    def _unreachable(self, error: Exception) -> HostUnreachable:
        return HostUnreachable(f"the tracker at {self._url} does not answer: {error}", hint="is `onward up` running there?")
