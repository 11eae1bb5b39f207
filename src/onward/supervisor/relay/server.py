"""A small HTTP server for the loopback of one node, inside a supervisor that has more important work.

Everybody on a node shares its loopback, so anybody may connect. A connection that has not yet shown the secret costs a socket and its
headers, no thread: one thread hears them all, for ten seconds each, and sends the oldest away when there are too many. Only a request
that is let in gets a thread, and there are only so many of these; a connection that rests between two requests has none.
"""

from __future__ import annotations

import io
import logging
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO, cast

from onward.supervisor.relay.buffered_reading import PartlyReadStream
from onward.supervisor.relay.http_messages import NotHttp, RelayAnswer, RelayRequest, read_request, send_answer, wants_another

log = logging.getLogger(__name__)

_HEAD_SECONDS = 10.0  # for the first request's headers, from the first byte to the last
_IDLE = 900.0  # seconds after which a client that was let in and says nothing is forgotten
_LINGER = 2.0  # seconds that a thread stays for the next request of its client, while most are free
_MOST_STRANGERS = 128
_MOST_RESTING = 512
_MOST_THREADS = 64
_LONGEST_HEAD = 1 << 17


@dataclass(eq=False, kw_only=True)
class _Waiting:
    """A connection that no thread is busy with."""

    connection: socket.socket
    since: float
    known: bool = False  # a request of it was let in
    refused: bool = False  # it has its answer; what it still sends is thrown away
    head: bytearray = field(default_factory=bytearray)


class LoopbackServer:
    """Listens on a free port of 127.0.0.1; none of its threads keeps the process alive.

    `refuse` answers a request that is not let in, or says None; without it everybody is.
    """

    def __init__(
        self, answer: Callable[[RelayRequest], RelayAnswer], refuse: Callable[[RelayRequest], RelayAnswer | None] = lambda _: None
    ) -> None:
        self._answer = answer
        self._refuse = refuse
        self._closed = False
        self._lock = threading.Lock()
        self._threads = 0
        self._asking: deque[_Waiting] = deque()  # let in, and no thread is free
        self._returned: deque[_Waiting] = deque()
        self._strangers: dict[_Waiting, None] = {}  # the oldest first, as in the next
        self._resting: dict[_Waiting, None] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(1024)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._bell, self._ring = socket.socketpair()
        self._bell.setblocking(False)
        self._ring.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._selector.register(self._bell, selectors.EVENT_READ)
        threading.Thread(target=self._hear_all, name="relay", daemon=True).start()

    def close(self) -> None:
        self._closed = True
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._wake()

    def _wake(self) -> None:
        try:
            self._ring.send(b"x")
        except OSError:  # it rings already
            pass

    # ── one thread hears all ──────────────────────────────────────────────────

    def _hear_all(self) -> None:
        try:
            while not self._closed:
                try:
                    self._hear_some()
                except Exception:
                    log.exception("the relay failed while listening; it continues")
                    time.sleep(0.2)
        finally:
            self._socket.close()
            for waiting in (*self._strangers, *self._resting, *self._returned):
                waiting.connection.close()
            self._selector.close()
            self._bell.close()
            self._ring.close()

    def _hear_some(self) -> None:
        for key, _ in self._selector.select(self._until_the_next_is_due()):
            if self._closed:
                return
            if key.fileobj is self._socket:
                self._accept()
            elif key.fileobj is self._bell:
                self._bell.recv(4096)
            else:
                self._hear(key.data)
        while self._returned:
            waiting = self._returned.popleft()
            waiting.since = time.monotonic()
            self._keep(waiting, self._resting, _MOST_RESTING)
        now = time.monotonic()
        for kept, seconds in ((self._strangers, _HEAD_SECONDS), (self._resting, _IDLE)):
            while kept and (oldest := next(iter(kept))).since + seconds <= now:
                self._drop(oldest)

    def _until_the_next_is_due(self) -> float | None:
        due = [next(iter(kept)).since + seconds for kept, seconds in ((self._strangers, _HEAD_SECONDS), (self._resting, _IDLE)) if kept]
        return max(min(due) - time.monotonic(), 0.0) if due else None

    def _accept(self) -> None:
        for _ in range(_MOST_STRANGERS):
            try:
                connection, _ = self._socket.accept()
            except BlockingIOError:
                return
            except OSError:  # the process has no more files to open, most likely
                if not self._closed:
                    log.warning("the relay cannot accept a connection", exc_info=True)
                    if self._strangers:
                        self._drop(next(iter(self._strangers)))
                    time.sleep(0.05)
                return
            connection.setblocking(False)
            self._keep(_Waiting(connection=connection, since=time.monotonic()), self._strangers, _MOST_STRANGERS)

    def _keep(self, waiting: _Waiting, among: dict[_Waiting, None], most: int) -> None:
        if len(among) >= most:
            self._drop(next(iter(among)))
        among[waiting] = None
        self._selector.register(waiting.connection, selectors.EVENT_READ, waiting)

    def _hear(self, waiting: _Waiting) -> None:
        try:
            data = waiting.connection.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(waiting)
        elif waiting.known:
            waiting.head += data
            self._let_in(waiting)
        elif not waiting.refused:
            waiting.head += data
            if not waiting.head.strip(b"\r\n") or not (b"\r\n\r\n" in waiting.head.lstrip() or b"\n\n" in waiting.head.lstrip()):
                if len(waiting.head) > _LONGEST_HEAD:
                    self._drop(waiting)
                return
            self._judge(waiting)

    def _judge(self, waiting: _Waiting) -> None:
        try:
            request = read_request(io.BytesIO(bytes(waiting.head).lstrip()))
            refusal = self._refuse(request) if request else None
        except NotHttp:
            self._drop(waiting)
            return
        if refusal is None:
            waiting.known = True
            self._let_in(waiting)
            return
        waiting.refused = True
        try:
            send_answer(waiting.connection, refusal, keep=False, head_only=False)
            waiting.connection.shutdown(socket.SHUT_WR)  # closed when it has read this, or its time is over
        except OSError:
            self._drop(waiting)

    def _forget(self, waiting: _Waiting) -> None:
        self._strangers.pop(waiting, None)
        self._resting.pop(waiting, None)
        self._selector.unregister(waiting.connection)

    def _drop(self, waiting: _Waiting) -> None:
        self._forget(waiting)
        waiting.connection.close()

    def _let_in(self, waiting: _Waiting) -> None:
        self._forget(waiting)
        with self._lock:
            if self._threads >= _MOST_THREADS:
                self._asking.append(waiting)
                return
            self._threads += 1
        try:
            threading.Thread(target=self._work, args=(waiting,), name="relay connection", daemon=True).start()
        except RuntimeError:  # the user may start no more
            with self._lock:
                self._threads -= 1
            waiting.connection.close()
            log.warning("the relay cannot start a thread for a request")

    # ── a thread serves one client at a time ──────────────────────────────────

    def _work(self, waiting: _Waiting) -> None:
        served: _Waiting | None = waiting
        while served:
            self._serve(served)
            with self._lock:
                served = self._asking.popleft() if self._asking else None
                if served is None:
                    self._threads -= 1

    def _serve(self, waiting: _Waiting) -> None:
        connection = waiting.connection
        try:
            connection.settimeout(_IDLE)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            rest = PartlyReadStream(connection, bytes(waiting.head))
            waiting.head.clear()
            with io.BufferedReader(rest) as stream:
                while self._one(connection, cast(BinaryIO, stream)):
                    if not rest.has_more(stream, within=_LINGER if self._threads * 2 <= _MOST_THREADS else 0.0):
                        connection.setblocking(False)
                        self._returned.append(waiting)
                        self._wake()
                        if self._closed:
                            connection.close()
                        return
            connection.close()
        except (OSError, NotHttp):
            connection.close()
        except Exception:
            connection.close()
            log.exception("the relay failed on a request; the training continues")

    def _one(self, connection: socket.socket, stream: BinaryIO) -> bool:
        """Answer a request. False: the connection is over."""
        request = read_request(stream, proceed=lambda: connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n"))
        if request is None:
            return False
        answer = self._refuse(request) or self._answer(request)
        request.body.skip()
        keep = wants_another(request) and not self._closed
        send_answer(connection, answer, keep=keep, head_only=request.method == "HEAD")
        return keep
