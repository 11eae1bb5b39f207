"""A server in a process of its own, as `onward up` starts it, on a free port."""

from __future__ import annotations

import http.client
import json as jsonlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 120.0


class Running:
    """`with Running(folder) as server:`; its output lies in the folder. It does not outlive the block."""

    def __init__(
        self,
        folder: Path,
        *flags: str,
        db: str | None = None,
        port: int = 0,
        settings: str = "",
        root: Path | None = None,
        state: Path | None = None,
    ) -> None:
        """`settings`: the text of its settings file. `root` and `state`: where runs and its own things are, if not in its folder."""
        self.folder = folder
        self.db = db or str(folder / "tracker.db")
        self._flags = flags
        self._port = port
        self._settings = settings
        self._root = root or folder / "runs"
        self._state = state or folder / "state"
        self.link = ""
        self.url = ""

    def __enter__(self) -> Running:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "settings.toml").write_text(self._settings)
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    @property
    def env(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("ONWARD_")}
        own = {"ONWARD_STATE_DIR": str(self._state), "ONWARD_SETTINGS": str(self.folder / "settings.toml")}
        return {**kept, **own, "ONWARD_ROOT": str(self._root), "ONWARD_DB": self.db}

    @property
    def log(self) -> str:
        return (self.folder / "err").read_text()

    def start(self) -> None:
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Begin to start, and wait for nothing."""
        with (self.folder / "out").open("wb") as out, (self.folder / "err").open("ab") as err:
            command = [sys.executable, "-m", "onward", "up", "--db", self.db, "--port", str(self._port), *self._flags]
            self.process = subprocess.Popen(command, env=self.env, stdout=out, stderr=err, stdin=subprocess.DEVNULL)

    def wait_until_ready(self) -> None:
        until = time.monotonic() + PATIENCE
        while "\n" not in (said := (self.folder / "out").read_text()):
            assert self.process.poll() is None, f"it ended with {self.process.returncode}: {self.log}"
            assert time.monotonic() < until, f"it is not ready: {self.log}"
            time.sleep(0.02)
        self.link = said.strip()
        self.url = self.link.partition("/login")[0]
        self._port = urlsplit(self.url).port or 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)

    def onward(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "onward", *words]
        return subprocess.run(command, cwd=cwd, env=self.env, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def token(self, *flags: str) -> str:
        done = self.onward("token", "create", *flags)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def ask(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        json: Any = None,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """One request on a connection of its own, its target sent as it is."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
        try:
            sent = dict(headers or {})
            if token:
                sent["authorization"] = f"Bearer {token}"
            if json is not None:
                body = jsonlib.dumps(json).encode()
                sent["content-type"] = "application/json"
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def json(self, method: str, path: str, token: str, json: Any = None) -> Any:
        status, _, body = self.ask(method, path, token=token, json=json)
        assert status < 300, body.decode()
        return jsonlib.loads(body)
