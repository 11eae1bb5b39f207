"""A stand-in for Rodan, the web application behind the gateway's first message format: its login, and the files it serves.

    python examples/gateway/rodan.py --media pages --port 8000

`POST /api/auth/token/` takes a form or JSON with `username` or `email`, and `password`; `GET /api/auth/me/` says who a token is;
`GET /uploads/…` are the files of the folder, for holders of the token. Tests make it misbehave: see `Rodan.behave`.
"""

from __future__ import annotations

import argparse
import json
import secrets
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

UPLOADS = "/uploads/"


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    authorization: str | None


@dataclass
class Behaviour:
    """How one path answers, instead of as it should."""

    how: str
    times: int | None = None  # then it answers as it should; None: for ever
    to: str = ""


@dataclass
class Rodan:
    """Serves on a loopback port of the system's choice until it is closed."""

    media: Path
    username: str = "hpc"
    email: str = "hpc@example.org"
    password: str = field(default_factory=lambda: secrets.token_hex(8))
    token: str = field(default_factory=lambda: secrets.token_hex(20))
    logs_in_by: tuple[str, ...] = ("username", "email")  # old ones know `username` alone, Rodan 3.1 `email` alone
    refuses_with: int = 401  # a login that it does not know
    said: Mapping[str, object] = field(default_factory=dict)  # with the token, such as when it expires
    port: int = 0
    tls: ssl.SSLContext | None = None
    seen: list[Seen] = field(default_factory=list)
    _behaviours: dict[str, Behaviour] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._server = _Server(("127.0.0.1", self.port), _handler(self))
        if self.tls:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self._closing = threading.Event()
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def behave(self, path: str, how: str, *, times: int | None = None, to: str = "") -> None:
        """`how`: a status such as "503"; "redirect" (`to` an address); "slow" (bytes a tenth of a second apart); "silent" (never
        answers); "endless" (never stops); "short" (stops half way); "refuse" (closes the connection)."""
        self._behaviours[path] = Behaviour(how, times, to)

    def behaviour(self, path: str) -> Behaviour | None:
        found = self._behaviours.get(path)
        if found is None or found.times == 0:
            return None
        if found.times is not None:
            found.times -= 1
        return found

    def pause(self, seconds: float) -> bool:
        """False once the server is being closed."""
        return not self._closing.wait(seconds)

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Rodan:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Quiet: whoever hangs up early has his reasons."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    rodan: Rodan

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.rodan.seen.append(Seen("GET", path, self.headers["Authorization"]))
        if not self._misbehave(path):
            if path == "/api/auth/me/":
                self._json(200, self._user()) if self._known() else self._json(401, {"detail": "Invalid token."})
            elif path.startswith(UPLOADS):
                self._file(path)
            else:
                self._json(404, {"detail": "Not found."})

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        self.rodan.seen.append(Seen("POST", path, self.headers["Authorization"]))
        given = self._given(self.rfile.read(int(self.headers["Content-Length"] or 0)))
        if self._misbehave(path):
            return
        if path != "/api/auth/token/":
            self._json(404, {"detail": "Not found."})
        elif self._logs_in(given):
            self._json(200, {**self._user(), "token": self.rodan.token, **self.rodan.said})
        else:
            self._json(self.rodan.refuses_with, {"is_logged_in": False, "detail": "Unable to log in with provided credentials."})

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: what is asked may hold tokens."""

    def _given(self, body: bytes) -> Mapping[str, str]:
        try:
            if "json" in (self.headers["Content-Type"] or ""):
                found = json.loads(body)
                return found if isinstance(found, dict) else {}
            return {key: values[0] for key, values in parse_qs(body.decode()).items()}
        except ValueError:
            return {}

    def _logs_in(self, given: Mapping[str, str]) -> bool:
        names = {"username": self.rodan.username, "email": self.rodan.email}
        return given.get("password") == self.rodan.password and any(given.get(key) == names[key] for key in self.rodan.logs_in_by)

    def _user(self) -> dict[str, Any]:
        return {"username": self.rodan.username, "email": self.rodan.email, "is_logged_in": True}

    def _known(self) -> bool:
        return self.headers["Authorization"] == f"Token {self.rodan.token}"

    def _file(self, path: str) -> None:
        if not self._known():
            self._json(401, {"detail": "Authentication credentials were not provided."})
            return
        root = self.rodan.media.resolve()
        file = (root / path.removeprefix(UPLOADS)).resolve()
        if root not in file.parents or not file.is_file():
            self._json(404, {"detail": "Not found."})
            return
        self._bytes(200, file.read_bytes(), "image/png" if file.suffix == ".png" else "application/octet-stream")

    def _json(self, status: int, data: object) -> None:
        self._bytes(status, json.dumps(data).encode(), "application/json")

    def _bytes(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _misbehave(self, path: str) -> bool:
        found = self.rodan.behaviour(path)
        if found is None:
            return False
        try:
            self._act(found)
        except OSError:  # the other side has had enough
            pass
        self.close_connection = True
        return True

    def _act(self, behaviour: Behaviour) -> None:
        match behaviour.how:
            case "redirect":
                self.send_response(302)
                self.send_header("Location", behaviour.to)
                self.send_header("Content-Length", "0")
                self.end_headers()
            case "refuse":
                return
            case "silent":
                self.rodan.pause(60.0)
            case "short":
                self._begin(1000)
                self.wfile.write(b"x" * 500)
            case "slow":
                self._begin(1000)
                while self.rodan.pause(0.1):
                    self.wfile.write(b"x")
                    self.wfile.flush()
            case "endless":
                self._begin(None)
                while self.rodan.pause(0.0):
                    self.wfile.write(b"x" * 65536)
            case status:
                self._json(int(status), {"detail": "Out of order."})

    def _begin(self, length: int | None) -> None:
        self.send_response(200)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.send_header("Connection", "close")
        self.end_headers()


def _handler(of: Rodan) -> type[_Handler]:
    return type("Handler", (_Handler,), {"rodan": of})


def main() -> None:
    parser = argparse.ArgumentParser(description="A stand-in for Rodan: its login, and the files it serves.")
    parser.add_argument("--media", type=Path, required=True, help="folder of the files under /uploads/")
    parser.add_argument("--port", type=int, default=0, help="0: one that the system chooses")
    parser.add_argument("--password-file", type=Path, help="file with the password for the user hpc; else one is made and printed")
    given = parser.parse_args()
    own = {"password": given.password_file.read_text().strip()} if given.password_file else {}
    with Rodan(given.media, port=given.port, **own) as rodan:
        print(f"{rodan.url}  user {rodan.username}" + ("" if own else f"  password {rodan.password}"), flush=True)
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    main()
