"""Servers of the tracker's bench, each on a free port of the loopback and ended by its id: `onward up`, MLflow's at its leanest, trackio's.

The peers live in an environment of their own, `.venv-peers`, made here with pip when it is not there.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

HOUSE = Path(__file__).resolve().parents[1]
PEERS = HOUSE / ".venv-peers"
PEER_PACKAGES = ("mlflow>=3,<4", "trackio")
_READY_WITHIN = 180.0


def peers_python() -> str:
    """The peers' Python. Made on first use, which takes minutes and needs pip's index."""
    python = PEERS / "bin" / "python"
    if not (PEERS / "made").exists():
        print(f"making {PEERS.name} with {', '.join(PEER_PACKAGES)} …", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PEER_PACKAGES], check=True, timeout=1800)
        (PEERS / "made").write_text("")
    return str(python)


def peers_versions() -> dict[str, str]:
    asked = "import importlib.metadata as m, json; print(json.dumps({n: m.version(n) for n in ('mlflow', 'trackio')}))"
    done = subprocess.run([peers_python(), "-c", asked], check=True, capture_output=True, text=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


@dataclass(kw_only=True)
class Server:
    """One that answers, with the way to ask it."""

    name: str
    port: int
    pid: int
    ready: float  # seconds from its start to its first answer
    folder: Path
    headers: Mapping[str, str] = field(default_factory=dict)
    db: Path | None = None
    _connection: http.client.HTTPConnection | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def call(self, method: str, path: str, body: Any = None, *, timeout: float = 180) -> tuple[int, bytes]:
        """By one connection that is kept."""
        fields = {"Content-Type": "application/json", **self.headers}
        text = None if body is None else json.dumps(body)
        for again in (True, False):
            connection = self._connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
            again = again and self._connection is not None  # it may have been closed for want of use
            self._connection = None
            try:
                connection.request(method, path, text, fields)
                answer = connection.getresponse()
                found = answer.status, answer.read()
            except (ConnectionError, http.client.HTTPException):
                connection.close()
                if again:
                    continue
                raise
            self._connection = connection
            return found
        raise AssertionError("one of the two ways out was taken")

    def asked(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's JSON; anything but a success ends the bench."""
        status, text = self.call(method, path, body)
        if status >= 300:
            raise RuntimeError(f"{self.name}: {method} {path[:80]} answered {status}: {text[:300]!r}")
        return json.loads(text or b"null")

    @property
    def processes(self) -> list[int]:
        """It and its children."""
        found = [self.pid]
        for pid in found:
            with suppress(OSError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    found += [int(child) for child in (task / "children").read_text().split()]
        return found

    @property
    def memory(self) -> float:
        """MB in memory of all its processes together."""
        return sum(_memory(pid) for pid in self.processes)

    @property
    def cpu(self) -> float:
        """Seconds of processors that they have used."""
        return sum(_cpu(pid) for pid in self.processes)


def _cpu(pid: int) -> float:
    with suppress(OSError):
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _memory(pid: int) -> float:
    with suppress(OSError):
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0
    return 0.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def onward_up(folder: Path, *more: str) -> Iterator[Server]:
    folder.mkdir(parents=True, exist_ok=True)
    db = folder / "onward.db"
    env = {**os.environ, "HOME": str(folder), "ONWARD_ROOT": str(folder / "runs"), "XDG_CONFIG_HOME": str(folder / "config")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed one has its bytecode, as the peers have theirs
    onward = [sys.executable, "-m", "onward"]
    token = folder / "token"
    if not token.exists():
        made = [*onward, "token", "create", "--db", str(db), "--json", "--rights", "admin"]
        done = subprocess.run(made, env=env, capture_output=True, text=True, check=True)
        token.write_text(json.loads(done.stdout)["secret"])
    headers = {"Authorization": f"Bearer {token.read_text()}"}
    with _started([*onward, "up", "--port", "{port}", "--db", str(db), "--no-tend", *more], folder, env, "/healthz", headers) as (
        port,
        pid,
        ready,
    ):
        yield Server(name="onward", port=port, pid=pid, ready=ready, folder=folder, headers=headers, db=db)


@contextmanager
def mlflow_up(folder: Path) -> Iterator[Server]:
    """One worker, SQLite, no runners of jobs: its cheapest setting."""
    folder.mkdir(parents=True, exist_ok=True)
    db = folder / "mlflow.db"
    env = {**os.environ, "HOME": str(folder), "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    program = str(Path(peers_python()).with_name("mlflow"))
    words = [program, "server", "--workers", "1", "--backend-store-uri", f"sqlite:///{db}", "--host", "127.0.0.1", "--port", "{port}"]
    with _started(words, folder, env, "/health", {}) as (port, pid, ready):
        yield Server(name="mlflow", port=port, pid=pid, ready=ready, folder=folder, db=db)


@contextmanager
def trackio_up(folder: Path) -> Iterator[Server]:
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    env = {**os.environ, "HOME": str(folder), "TRACKIO_DIR": str(folder / "trackio"), "GRADIO_SERVER_PORT": f"{port}", "BROWSER": "true"}
    program = str(Path(peers_python()).with_name("trackio"))
    with _started([program, "show", "--host", "127.0.0.1"], folder, env, "/", {}, port=port) as (port, pid, ready):
        yield Server(name="trackio", port=port, pid=pid, ready=ready, folder=folder)


@contextmanager
def _started(
    words: list[str], folder: Path, env: Mapping[str, str], path: str, headers: Mapping[str, str], port: int | None = None
) -> Iterator[tuple[int, int, float]]:
    """A server in a session of its own, from its first answer on; with it end all that it started."""
    port = port or free_port()
    with (folder / "server.log").open("a") as log:
        began = time.perf_counter()
        argv = [word.replace("{port}", f"{port}") for word in words]
        process = subprocess.Popen(argv, cwd=folder, env=dict(env), stdout=log, stderr=log, start_new_session=True)
    try:
        while not _answers(port, path, headers):
            if process.poll() is not None or time.perf_counter() - began > _READY_WITHIN:
                raise RuntimeError(f"{words[0]} did not come up:\n{(folder / 'server.log').read_text()[-2000:]}")
            time.sleep(0.01)
        yield port, process.pid, time.perf_counter() - began
    finally:
        end(process)


def _answers(port: int, path: str, headers: Mapping[str, str]) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path, headers=dict(headers))
        return connection.getresponse().status < 400
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def end(process: subprocess.Popen[Any], *, grace: float = 20) -> None:
    """A process that we started as the leader of a session, and what is left of that session."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def netloc(url: str) -> str:
    return urlsplit(url).netloc
