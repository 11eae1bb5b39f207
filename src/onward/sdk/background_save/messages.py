"""What a training and the save writer say to each other over a Unix socket: JSON, with the handle of a memory where it is about one."""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
from collections.abc import Iterator, Mapping

_LENGTH = 4  # bytes that say how long a message is
_LONGEST = 64 << 20  # bytes: the last values of a million metrics
_SOCKET_PATH = 100  # bytes: the kernel takes a few more


def send(connection: socket.socket, message: Mapping[str, object], handle: int | None = None) -> None:
    data = json.dumps(message).encode()
    if len(data) > _LONGEST:
        raise ValueError(f"{len(data) >> 20} MiB about one save: the run has too many metrics for saves in the background")
    data = len(data).to_bytes(_LENGTH, "big") + data
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [handle]))] if handle is not None else []
    sent = connection.sendmsg([data], rights)
    connection.sendall(data[sent:])


def receive(connection: socket.socket) -> tuple[dict[str, object], int | None] | None:
    """The next message and the handle that came with it; None: the other end has closed."""
    rights = array.array("i")
    head, ancillary, _, _ = connection.recvmsg(_LENGTH, socket.CMSG_SPACE(rights.itemsize))
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            rights.frombytes(data[: len(data) - len(data) % rights.itemsize])
    try:
        head += _exactly(connection, _LENGTH - len(head)) if head else b""
        length = int.from_bytes(head, "big")
        if not head or length > _LONGEST:
            raise ConnectionError
        message = json.loads(_exactly(connection, length))
    except (ConnectionError, ValueError):
        for handle in rights:
            os.close(handle)
        return None
    return message, rights[0] if rights else None


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        more = connection.recv(min(count - len(data), 1 << 20))
        if not more:
            raise ConnectionError
        data += more
    return bytes(data)


@contextlib.contextmanager
def address(path: str) -> Iterator[str]:
    """A path for bind() and connect(), which take no long ones."""
    if len(os.fsencode(path)) <= _SOCKET_PATH:
        yield path
        return
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)
