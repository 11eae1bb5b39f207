"""What is in the outbox, as it goes over the wire in the protocol of whoever asked."""

from __future__ import annotations

from dataclasses import replace

from onward.clock import Clock
from onward.errors import StorageError
from onward.gateway.messages import v2
from onward.gateway.messages.message_body import MessageBody
from onward.gateway.messages.packed_results import PackedResult, ResultPacker
from onward.gateway.messages.protocols import load_protocol
from onward.model.requests.outcome import OutcomeFile, OutcomeState
from onward.model.requests.request import Outgoing, OutgoingKind

_IN_BASE64 = 0.7  # of a message: base64 makes four bytes of three, and line breaks more


class ReplyEncoder:
    def __init__(self, packing: ResultPacker, clock: Clock) -> None:
        self._packing = packing
        self._clock = clock

    def body(self, message: Outgoing, *, most: int | None = None) -> MessageBody | None:
        """None: its protocol has no word for it. `most`: bytes of a message that the broker takes, where that is known."""
        if message.kind is not OutgoingKind.REPLY:
            return _body(message, None)
        rest = _body(message, {})
        room = None if most is None or rest is None else max(int((most - rest.size) * _IN_BASE64), 0)
        try:
            body = _body(message, self._packed(message, room))
            if body is not None:
                body.check()
        except StorageError as error:
            words = {"state": str(OutcomeState.FAILED), "reason": f"the run is done, but {error.message}", "next": error.hint}
            return _body(replace(message, payload={**message.payload, **words}), {})
        return body

    def _packed(self, message: Outgoing, room: int | None) -> dict[str, PackedResult]:
        results = [OutcomeFile(**one) for one in message.payload.get("results") or ()]
        addresses = message.protocol == v2.PROTOCOL or load_protocol(message.protocol).sends_addresses
        run = message.payload.get("run")
        return self._packing.pack(message.request, results, now=self._clock.now(), run=run, room=room, addresses=addresses)


def _body(message: Outgoing, packed: dict[str, PackedResult] | None) -> MessageBody | None:
    return (v2 if message.protocol == v2.PROTOCOL else load_protocol(message.protocol)).body_of(message, packed)
