"""Receivers of alerts on this machine: an HTTP server and a mail server that keep what they are sent, and answer as a test says."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Hooks:
    """Posts that came, and the statuses to answer with; 200 after the last."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.url = ""


@contextmanager
def hooks() -> Iterator[Hooks]:
    kept = Hooks()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            kept.posts.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            status, headers = kept.answers.pop(0) if kept.answers else (200, {})
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server, _serving(server):
        kept.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield kept


class Mails:
    """Envelopes and texts that came; `refuse` names recipients that are not taken."""

    def __init__(self) -> None:
        self.mails: list[tuple[str, list[str], str]] = []
        self.refuse: dict[str, int] = {}
        self.port = 0


@contextmanager
def mails() -> Iterator[Mails]:
    """As much of SMTP as a client needs who neither encrypts nor logs in."""
    kept = Mails()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            sender, to = "", list[str]()
            self._say("220 here")
            while line := self.rfile.readline().decode().strip():
                word, _, rest = line.partition(" ")
                match word.upper():
                    case "MAIL":
                        sender, to = rest.partition("<")[2].partition(">")[0], []
                        self._say("250 yes")
                    case "RCPT":
                        name = rest.partition("<")[2].partition(">")[0]
                        to += [] if name in kept.refuse else [name]
                        self._say(f"{kept.refuse[name]} no" if name in kept.refuse else "250 yes")
                    case "DATA":
                        self._say("354 go on")
                        text = b""
                        while not text.endswith(b"\r\n.\r\n"):
                            text += self.rfile.readline()
                        kept.mails.append((sender, to, text[:-5].decode()))
                        self._say("250 taken")
                    case "QUIT":
                        self._say("221 bye")
                        return
                    case "EHLO" | "HELO" | "RSET":
                        self._say("250 here")
                    case _:
                        self._say("502 not here")

        def _say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server, _serving(server):
        kept.port = server.server_address[1]
        yield kept


@contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
