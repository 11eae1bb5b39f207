"""The health of a gateway, for probes and Prometheus: a small HTTP server on loopback.

GET /health/live     200 while it steps      503: its thread hangs, restart it
GET /health/ready    200 while it serves or stands by with its broker and its store, else 503 and why
GET /metrics         requests, outbox, broker, dead letters
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from onward.clock import Clock
from onward.errors import Conflict, OnwardError
from onward.tracker.requests.store import Requests

_HANGS = 900.0  # seconds without a step: one that submits many runs may take minutes


@dataclass
class GatewayHealth:
    """What the gateway's threads say of themselves."""

    requests: Requests
    clock: Clock
    connected: bool = False  # to the broker
    serves: bool = False  # False: another process does, and this one stands by
    stepped: float | None = None
    dead_letters: int | None = None  # None: the broker has not said yet

    def hangs(self) -> bool:
        return self.stepped is not None and self.clock.now() - self.stepped > _HANGS

    def trouble(self) -> str:
        """Why it is not ready; empty where it is."""
        if not self.connected:
            return "there is no connection to the broker"
        try:
            self.requests.oldest_open()  # quick, however many requests there are
        except OnwardError as error:
            return error.message
        return "the step that serves requests hangs" if self.hangs() else ""

    def metrics(self) -> str:
        now, store = self.clock.now(), self.requests
        oldest, in_line, waiting, since = store.oldest_open(), store.oldest_in_line(), *store.outbox.backlog()
        states = "".join(f'onward_gateway_requests{{state="{state}"}} {count}\n' for state, count in sorted(store.counts().items()))
        return (
            "# HELP onward_gateway_requests Requests by state.\n# TYPE onward_gateway_requests gauge\n"
            + states
            + _gauge("broker_up", "1 while connected to the broker.", self.connected)
            + _gauge("serves", "1 in the process that serves requests, 0 in those that stand by.", self.serves)
            + _gauge("oldest_request_seconds", "Age of the oldest open request.", 0 if oldest is None else now - oldest)
            + _gauge("oldest_waiting_seconds", "Age of the oldest request without a run.", 0 if in_line is None else now - in_line)
            + _gauge("outbox_messages", "Messages that are stored and not confirmed yet.", waiting)
            + _gauge("outbox_oldest_seconds", "Age of the oldest of them.", 0 if since is None else now - since)
            + _gauge("replies_put_aside", "Replies that nobody came for.", store.outbox.count_put_aside())
            + ("" if self.dead_letters is None else _gauge("dead_letters", "Messages in the queue onward.dead.", self.dead_letters))
            + _gauge("step_age_seconds", "Since requests were last looked at.", 0 if self.stepped is None else now - self.stepped)
        )


@contextlib.contextmanager
def health_server(health: GatewayHealth, port: int) -> Iterator[int]:
    """Its port, until the block ends."""
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), _handler(health))
    except OSError as error:
        raise Conflict(f"port {port} cannot be used: {error.strerror}", hint="choose another with --health-port") from error
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, name="onward-health", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(health: GatewayHealth) -> type[BaseHTTPRequestHandler]:
    def live() -> tuple[int, str]:
        return (503, "the step that serves requests hangs") if health.hangs() else (200, "")

    def ready() -> tuple[int, str]:
        trouble = health.trouble()
        return 503 if trouble else 200, trouble

    looks: dict[str, Callable[[], tuple[int, str]]] = {"/health/live": live, "/health/ready": ready}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path in looks:
                status, trouble = looks[self.path]()
                self._answer(status, "application/json", json.dumps({"ok": status == 200, "reason": trouble}))
            elif self.path == "/metrics":
                try:
                    self._answer(200, "text/plain; version=0.0.4", health.metrics())
                except OnwardError as error:
                    self._answer(503, "text/plain", error.message)
            else:
                self._answer(404, "text/plain", "try /health/live, /health/ready or /metrics\n")

        def log_message(self, *_: object) -> None:
            """Quiet: probes come every few seconds."""

        def _answer(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _gauge(name: str, words: str, value: float) -> str:
    return f"# HELP onward_gateway_{name} {words}\n# TYPE onward_gateway_{name} gauge\nonward_gateway_{name} {float(value):g}\n"
