"""The tracker's server, as a job reaches it: by an address frozen with the run and a token in a file that only its owner can read."""

from __future__ import annotations

import json
import logging
import os
import stat
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from onward.errors import NotAllowed
from onward.supervisor.relay.http_messages import RelayAnswer

log = logging.getLogger(__name__)

_PATIENCE = 3.0  # seconds a client of the relay is made to wait
_AFTER_A_FAILURE = 15.0  # seconds in which nobody is made to wait again


def read_token(path: Path, *, folder: bool = True) -> str:
    """NotAllowed where somebody else could have read or written it. `folder`: the one it lies in must be its owner's alone too."""
    for folder_or_file, mode in ((path.parent, 0o700), (path, 0o600)) if folder else ((path, 0o600),):
        seen = os.stat(folder_or_file, follow_symlinks=False)
        if seen.st_uid != os.getuid() or stat.S_IMODE(seen.st_mode) & ~mode & 0o777 or stat.S_ISLNK(seen.st_mode):
            raise NotAllowed(
                f"other users can read or change {folder_or_file}: mode {stat.S_IMODE(seen.st_mode):o}, of user {seen.st_uid}",
                hint=f"chmod {mode:o} {folder_or_file}, and replace the secret in it: others may have read it",
            )
    return path.read_text().strip()


class TrackerUnreachable(Exception):
    """No answer, or one that says to try again."""


class TrackerConnection:
    def __init__(self, url: str, token: str) -> None:
        self._parts = urlsplit(url.rstrip("/"))
        self._token = token
        self._server_numbers: dict[str, str] = {}
        self._not_before = 0.0
        self._guard = threading.Lock()

    def call(
        self, method: str, target: str, body: bytes | None = None, *, kind: str = "application/json", timeout: float = 10.0
    ) -> tuple[int, bytes, str]:
        """Status, body and its type; Unreachable where there is none."""
        import http.client  # seldom needed, and slow to load

        secure = self._parts.scheme == "https"
        made = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = made(self._parts.hostname or "", self._parts.port, timeout=timeout)
        try:
            headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
            connection.request(method, self._parts.path + target, body=body, headers=headers)
            answer = connection.getresponse()
            data = answer.read()
            if answer.status in (408, 425, 429) or answer.status >= 500:
                raise TrackerUnreachable(f"it answered {answer.status}")
            return answer.status, data, answer.getheader("content-type") or "application/json"
        except (OSError, http.client.HTTPException) as error:
            raise TrackerUnreachable(str(error) or type(error).__name__) from error
        finally:
            connection.close()

    # ── questions that the relay passes on ────────────────────────────────────

    def ask(self, method: str, path: str, query: str, body: bytes, *, experiment: tuple[str, str]) -> RelayAnswer | None:
        """None: no answer now. `experiment`: the relay's number for it, and its name."""
        with self._guard:
            if time.monotonic() < self._not_before:
                return None
        try:
            number = self._number_of(experiment[1]) if experiment[0].encode() in body or experiment[0] in query else ""
            if number:
                body, query = body.replace(experiment[0].encode(), number.encode()), query.replace(experiment[0], number)
            target = f"{path}?{query}" if query else path
            status, data, kind = self.call(method, target, body or None, timeout=_PATIENCE)
            return RelayAnswer(status=status, body=data, kind=kind)
        except (TrackerUnreachable, ValueError, KeyError) as error:
            log.info("the tracker's server does not answer (%s); the relay answers instead", error)
            with self._guard:
                self._not_before = time.monotonic() + _AFTER_A_FAILURE
            return None

    def _number_of(self, experiment: str) -> str:
        if experiment not in self._server_numbers:
            target = f"/api/2.0/mlflow/experiments/get-by-name?{urlencode({'experiment_name': experiment})}"
            answer: Mapping[str, Any] = json.loads(self.call("GET", target, timeout=_PATIENCE)[1])
            self._server_numbers[experiment] = str(answer["experiment"]["experiment_id"])
        return self._server_numbers[experiment]


def tracker_connection_of(url: str | None, token: Path) -> TrackerConnection | None:
    """The server that a run's spec names, if its token is there and is its owner's alone."""
    if not url or not token.exists():
        return None
    try:
        return TrackerConnection(url, read_token(token))
    except (OSError, NotAllowed) as error:
        log.warning("the tracker's server is not used: %s", error)
        return None
