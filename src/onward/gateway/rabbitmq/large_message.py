"""One large message, sent piece by piece over a connection of its own. The library would hold it in memory four times.

Blocking: for a thread. A message that breaks off in the middle is none: the broker takes it only when its last byte is there.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from onward.errors import HostUnreachable, NotAllowed
from onward.gateway.messages.message_body import MessageBody
from onward.gateway.rabbitmq.publish_errors import NO_ROOM, MessageTooLarge, is_too_large, no_confirm, no_queue, not_allowed

if TYPE_CHECKING:
    from onward.gateway.rabbitmq.connection import Broker

_CHANNEL = 1
_METHOD, _BODY, _HEARTBEAT = 1, 3, 8  # kinds of frames
_AROUND = 8  # bytes of a frame around its payload
_FRAME = 131_072  # bytes, where the broker names no limit
_PATIENCE = 30.0  # seconds without a byte, in either direction


def send_large(broker: Broker, *, queue: str, properties: Any, body: MessageBody) -> str | None:
    """None: the broker has confirmed it. A sentence: why this one could not be sent. Whatever raises concerns the connection."""
    from pamqp import commands
    from pamqp.header import ContentHeader

    try:
        with closing(broker.open_socket(timeout=_PATIENCE)) as sock:
            wire = _Wire(sock)
            wire.open(broker)
            wire.send(
                commands.Basic.Publish(exchange="", routing_key=queue, mandatory=True),
                ContentHeader(body_size=body.size, properties=properties),
            )
            wire.send_body(body.pieces())
            return _verdict(wire, queue)
    except TimeoutError as error:
        raise no_confirm(_PATIENCE) from error
    except OSError as error:
        raise HostUnreachable(f"{broker.words} was lost while a large message was sent: {error}", hint="it is retried") from error


def _verdict(wire: _Wire, queue: str) -> str | None:
    from pamqp import commands

    returned = False
    while True:
        frame = wire.next_method()
        match frame:
            case commands.Basic.Return():
                returned = True
            case commands.Basic.Ack():
                wire.leave()
                return no_queue(queue) if returned else None
            case commands.Basic.Nack() | commands.Basic.Reject():
                wire.leave()
                return NO_ROOM.format(queue=queue[:200])
            case commands.Channel.Close() | commands.Connection.Close():
                raise _closed(frame.reply_text)


def _closed(said: str) -> Exception:
    if is_too_large(said):
        return MessageTooLarge(said)
    return not_allowed() if "ACCESS_REFUSED" in said else HostUnreachable(f"the broker refused a large message: {said}", hint="")


class _Wire:
    """Frames over a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._file = sock.makefile("rb")
        self._frame = _FRAME

    def open(self, broker: Broker) -> None:
        from pamqp import commands
        from pamqp.header import ProtocolHeader

        self._sock.sendall(ProtocolHeader().marshal())
        self._expect(commands.Connection.Start)
        about: dict[str, Any] = {
            "connection_name": "onward gateway, a large message",
            "capabilities": {"authentication_failure_close": True},
        }
        self.send(commands.Connection.StartOk(client_properties=about, response=f"\0{broker.user}\0{broker.password}"), channel=0)
        tune = self._expect(commands.Connection.Tune)
        self._frame = tune.frame_max or _FRAME
        self.send(commands.Connection.TuneOk(tune.channel_max, self._frame, 0), commands.Connection.Open(broker.vhost), channel=0)
        self._expect(commands.Connection.OpenOk)
        self.send(commands.Channel.Open())
        self._expect(commands.Channel.OpenOk)
        self.send(commands.Confirm.Select())
        self._expect(commands.Confirm.SelectOk)

    def send(self, *frames: Any, channel: int = _CHANNEL) -> None:
        from pamqp.frame import marshal

        self._sock.sendall(b"".join(marshal(frame, channel) for frame in frames))

    def send_body(self, pieces: Iterator[bytes]) -> None:
        from pamqp.body import ContentBody

        most = self._frame - _AROUND
        for piece in pieces:
            for begin in range(0, len(piece), most):
                self.send(ContentBody(piece[begin : begin + most]))

    def next_method(self) -> Any:
        """Of a message that comes back, the content is left out."""
        from pamqp.frame import unmarshal

        while True:
            head = self._read(7)
            kind, size = head[0], int.from_bytes(head[3:7], "big")
            rest = self._read(size + 1)
            if kind == _METHOD:
                return unmarshal(head + rest)[2]

    def leave(self) -> None:
        from pamqp import commands

        with suppress(OSError):
            self.send(commands.Connection.Close(200, "", 0, 0), channel=0)
            self.next_method()

    def _expect(self, kind: type) -> Any:
        from pamqp import commands

        frame = self.next_method()
        if isinstance(frame, commands.Connection.Close | commands.Channel.Close):
            words = f"the broker refused a connection for a large message: {frame.reply_text}"
            raise (
                NotAllowed(words, hint="see gateway.user and gateway.password-file")
                if frame.reply_code == 403
                else HostUnreachable(words, hint="it is retried")
            )
        if not isinstance(frame, kind):
            raise HostUnreachable(f"the broker answered {frame.name} where {kind.__name__} was expected", hint="it is retried")
        return frame

    def _read(self, size: int) -> bytes:
        found = self._file.read(size)
        if len(found) < size:
            raise ConnectionResetError("the broker closed the connection")
        return found
