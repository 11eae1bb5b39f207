"""Raw HTTP clients for the tracker's bench: so many kept connections in one process, each with one request under way at a time.

Started as a program of its own, it reads what to send as JSON on its standard input and prints what came of it. Bodies are templates in
which `@@@@@@` stands for the number of the request, so that making them costs next to nothing.
"""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

MARK = b"@@@@@@"


@dataclass(frozen=True, kw_only=True)
class Load:
    port: int
    clients: int
    seconds: float
    requests: Sequence[
        tuple[str, str]
    ]  # path and template of a body, dealt to the clients in turn; each goes through its own again and again
    headers: Mapping[str, str]
    first: int = 0  # the number of the first request
    count: int = 0  # requests of each client; 0: as many as there is time for
    patience: float = 40.0  # seconds for answers under way when the time is over


@dataclass(frozen=True, kw_only=True)
class Outcome:
    answered: int  # successes within the time
    failed: int
    p50: float  # seconds
    p99: float
    seconds: float
    last: int  # the number of the last request
    why: str = ""  # the first failure


class _Client:
    def __init__(self, load: Load, index: int) -> None:
        self.requests = [_request(load, path, body) for path, body in load.requests[index :: load.clients]]
        self.number = load.first
        self.port = load.port
        self.began = 0.0
        self.open()

    def open(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answer = b""

    def send(self) -> None:
        self.number += 1
        self.answer = b""
        self.began = time.perf_counter()
        request = self.requests[self.number % len(self.requests)]
        self.socket.sendall(request.replace(MARK, b"%06d" % (100_000 + self.number)))

    def read(self) -> int:
        """The status of a whole answer, 0 where more is to come."""
        part = self.socket.recv(65536)
        if not part:
            return 599
        self.answer += part
        head, found, body = self.answer.partition(b"\r\n\r\n")
        if not found:
            return 0
        low = head.lower()
        at = low.find(b"content-length:")
        length = int(low[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else None
        whole = body.endswith(b"0\r\n\r\n") if length is None else len(body) >= length
        return int(head[9:12]) if whole else 0


def _request(load: Load, path: str, body: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{load.port}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in load.headers.items()]
    return "\r\n".join([*lines, f"Content-Length: {len(body.encode())}", "", body]).encode()


def drive(load: Load) -> Outcome:
    clients = [_Client(load, index) for index in range(load.clients)]
    waits: list[float] = []
    answered = failed = 0
    why = ""
    with selectors.EpollSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
        began = time.perf_counter()
        for client in clients:
            client.send()
        under_way = len(clients)
        over = began + load.seconds
        while under_way and time.perf_counter() < over + load.patience:
            for key, _ in selector.select(0.5):
                client = key.data
                status = client.read()
                if not status:
                    continue
                now = time.perf_counter()
                waits.append(now - client.began)
                if status < 300:
                    answered += now <= over
                else:
                    failed += 1
                    why = why or f"{status} {client.answer[-200:].decode(errors='replace')}"
                if status == 599 or b"connection: close" in client.answer[:400].lower():
                    selector.unregister(client.socket)
                    client.socket.close()
                    client.open()
                    selector.register(client.socket, selectors.EVENT_READ, client)
                if now < over and (not load.count or client.number < load.first + load.count):
                    client.send()
                else:
                    under_way -= 1
    waits.sort()
    last = max(client.number for client in clients)
    for client in clients:
        client.socket.close()
    p50, p99 = (waits[min(len(waits) - 1, int(len(waits) * q))] if waits else float("nan") for q in (0.5, 0.99))
    return Outcome(answered=answered, failed=failed + under_way, p50=p50, p99=p99, seconds=load.seconds, last=last, why=why)


def driven(load: Load) -> Outcome:
    """The same in a process of its own, as clients are."""
    limit = load.seconds + load.patience + 60
    done = subprocess.run(
        [sys.executable, __file__], input=json.dumps(asdict(load)), capture_output=True, text=True, check=True, timeout=limit
    )
    return Outcome(**json.loads(done.stdout))


if __name__ == "__main__":
    print(json.dumps(asdict(drive(Load(**json.load(sys.stdin))))))
