"""The far side of a place that is reached through ssh: one request from stdin, done here, answered on stdout.

Runs on a login node from a carried archive, by `python3 -I -S agent-….pyz agent`: the standard library and nothing else.
A request is a line of JSON: the profiles of this host, a verb and what it is given. The answer is one line, or for what
is followed a line for each piece and one at the end. A connection that breaks does not end an act that has begun.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from onward.errors import InvalidInput, OnwardError, StorageError, StorageFull
from onward.model.plain_data import value_from_json, value_to_json
from onward.model.spec import RunDraft
from onward.operations.context import OperationsContext
from onward.operations.fetch.result_files import as_json
from onward.operations.hosts.answers import ArrivalFolder, EntrustedRun, PreviewedRun, SubmittedRun, UnpackedCode
from onward.operations.hosts.local import Data, LocalHost, await_submitted_run, previewed_run, submitted_run
from onward.operations.runs.find import labels
from onward.operations.ssh.login_shell import ensure_programs, login_environment, with_resolved_root
from onward.operations.ssh.wire_format import encode, error_to_json
from onward.operations.submit import arriving_code
from onward.operations.submit.code_snapshot import CodeSnapshot
from onward.operations.submit.new_run import check_request, preview, submit
from onward.operations.tracker_access.server import write_job_token
from onward.rundir.journal import read_spec
from onward.rundir.layout import RunDir
from onward.schedulers.cluster_settings import ClusterSettings, Settings, TrackerSettings

BEAT = 5.0  # seconds between signs of life where there is nothing to say: writing tells us whether anyone still listens

_LOOKS = (
    *("runs", "open_runs", "matches", "show", "checkpoints", "own_files", "examine", "snapshot", "watch", "logs"),
    "result_files",
)
_ACTS = ("cancel", "cancel_many", "stop", "resume", "adopt", "tend")


class _Gone(Exception):
    """Nobody listens any more."""


class HostAgent:
    """The verbs of this machine as a stranger may ask for them, and those of a submit that comes in parts."""

    def __init__(self, context: OperationsContext, stdin: IO[bytes]) -> None:
        self._context = context
        self._stdin = stdin

    def serve(self, verb: str, given: Mapping[str, Any]) -> Any:
        """A value, or the pieces of what is followed."""
        if verb in (*_LOOKS, *_ACTS):
            return getattr(LocalHost(self._context), verb)(**given)
        match verb:
            case "file_pieces":
                return map(as_json, LocalHost(self._context).file_pieces(**given))
            case "arrive":
                return self._arrive(**given)
            case "unpack":
                return self._unpack(**given)
            case "discard":
                return self._discard(**given)
            case "preview":
                return self._preview(**given)
            case "submit":
                return self._submit(**given)
            case "spec":
                return read_spec(RunDir(Path(given["run"])))
            case "entrust":
                return self._entrust(**given)
            case "draft":
                return LocalHost(self._context).draft(**given)
            case "clone" | "clone_preview":
                draft = value_from_json(RunDraft, given["draft"])
                return getattr(LocalHost(self._context), verb)(draft, run=given["run"])
            case _:
                raise InvalidInput(f"there is no verb {verb!r}")

    def _arrive(self, *, id: str, draft: Data) -> ArrivalFolder:
        """What can be refused is refused before code is carried."""
        asked = value_from_json(RunDraft, draft)
        _, _, root = check_request(self._context, asked)
        return ArrivalFolder(folder=str(arriving_code.prepare(root, id)))

    def _unpack(self, *, folder: str, files: int) -> UnpackedCode:
        arriving_code.unpack_code(Path(folder), self._stdin, files=files)
        return UnpackedCode(folder=folder, files=files)

    def _discard(self, *, folder: str) -> ArrivalFolder:
        room = Path(folder)
        arriving_code.discard_arrival(room.parents[1], room.name)
        return ArrivalFolder(folder=folder)

    def _preview(self, *, draft: Data, workdir: str) -> PreviewedRun:
        asked = value_from_json(RunDraft, draft)
        return previewed_run(self._context, asked.cluster, preview(self._context, asked, cwd=Path(workdir), code_is_here=False))

    def _submit(self, *, id: str, draft: Data, folder: str, frozen: Data) -> SubmittedRun:
        """Asked twice is asked once: the answer to the first may have been lost, or the first may still be at it."""
        asked = value_from_json(RunDraft, draft)
        _, _, root = check_request(self._context, asked)
        with arriving_code.submit_lock(root, id):
            for run in self._context.runs():
                if labels(run)[0] == id:
                    return await_submitted_run(run)
            room = Path(folder)
            arrived = arriving_code.ArrivedCode(id=id, code=room, frozen=value_from_json(CodeSnapshot, frozen)) if folder else None
            cwd = room / arrived.frozen.workdir if arrived else Path(frozen["workdir"])
            if not cwd.is_dir():
                raise InvalidInput(
                    f"the folder {cwd} does not exist", hint="leave out `freeze: false` (--no-freeze), so that the code is copied"
                )
            return submitted_run(submit(self._context, asked, cwd=cwd, arrived=arrived, id=id))

    def _entrust(self, *, run: str, secret: str) -> EntrustedRun:
        """The token that whoever submitted has got for this run: through ssh's own channel, never in an argument."""
        dir = RunDir(Path(run))
        spec = read_spec(dir)
        write_job_token(dir, secret)
        return EntrustedRun(id=spec.id)


def main() -> int:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    out = _own_stdout()
    try:
        try:
            send(out, _answered(out, sys.stdin.buffer))
        except OnwardError as error:
            send(out, {"error": error_to_json(error)})
        except OSError as error:
            send(out, {"error": error_to_json(_storage_error(error))})
        except Exception as error:
            send(out, {"fault": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()})
    except _Gone:
        return 1
    return 0


def _answered(out: IO[bytes], stdin: IO[bytes]) -> Data:
    request = json.loads(stdin.readline())
    os.chdir(os.path.expanduser("~"))
    _tidy_archives()
    context = open_context(request)
    answer = HostAgent(context, stdin).serve(request["verb"], request["with"])
    if not isinstance(answer, Iterator):
        return {"answer": value_to_json(answer)}
    last: Data | None = None
    last_sent = time.monotonic()
    for piece in answer:
        if piece and piece != last:
            send(out, {"piece": piece})
            last, last_sent = piece, time.monotonic()
        elif time.monotonic() - last_sent > BEAT:
            send(out, {"beat": True})
            last_sent = time.monotonic()
    return {"answer": {}}


def open_context(request: Mapping[str, Any]) -> OperationsContext:
    """A desk with the profiles that came with the request: what is set up on this machine does not count."""
    profiles = [replace(value_from_json(ClusterSettings, data), ssh=None) for data in request["profiles"]]
    for name in [name for name in os.environ if name.startswith("ONWARD_") and name != "ONWARD_STATE_DIR"]:
        del os.environ[name]
    ensure_programs(profile.scheduler for profile in profiles)
    env = login_environment() if request["verb"] in ("submit", "preview", "clone", "clone_preview") else None
    profiles = [with_resolved_root(profile) for profile in profiles]
    url = request.get("tracker")
    tracker = TrackerSettings(url=url, token_file=None) if url else None
    settings = Settings(clusters={profile.name: profile for profile in profiles}, tracker=tracker)
    return OperationsContext(env=dict(env or os.environ), _settings=settings, anywhere=False)


def send(out: IO[bytes], data: Data) -> None:
    try:
        out.write(encode(data))
        out.flush()
    except (BrokenPipeError, ConnectionError) as error:
        raise _Gone from error


def _own_stdout() -> IO[bytes]:
    """What anything else prints goes to stderr, and cannot stand between our lines."""
    own = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return own


def _storage_error(error: OSError) -> StorageError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(f"there is no room left: {error}", hint="make room there, or set the profile's `root` to another disk")
    return StorageError(str(error), hint="is the disk mounted and not full, and does the folder belong to you?")


def _tidy_archives() -> None:
    """Mark the archive we run from as used, and remove those that nobody has used for two months."""
    mine = Path(sys.argv[0]).absolute()
    try:
        os.utime(mine)
        for other in mine.parent.glob("agent-*.pyz*"):
            if time.time() - other.stat().st_mtime > 60 * 86_400:
                other.unlink()
    except OSError:
        pass
