"""What is in the outbox, as it goes over the wire in the protocol of whoever asked."""

from __future__ import annotations

from dataclasses import replace

from onward.clock import Clock
from onward.contrib.rodan import messages
from onward.errors import StorageError
from onward.gateway.messages import v2
from onward.gateway.messages.packed_results import PackedResult, ResultPacker
from onward.model.requests.outcome import OutcomeFile, OutcomeState
from onward.model.requests.request import Outgoing, OutgoingKind


class ReplyEncoder:
    def __init__(self, packing: ResultPacker, clock: Clock) -> None:
        self._packing = packing
        self._clock = clock

    def body(self, message: Outgoing, *, light: bool = False) -> bytes | None:
        """None: its protocol has no word for it. `light`: without results inside, for a broker that did not take it so large."""
        parcels: dict[str, PackedResult] | None = None
        if message.kind is OutgoingKind.REPLY:
            try:
                parcels = self._packed(message, light=light)
            except StorageError as error:
                words = {"state": str(OutcomeState.FAILED), "reason": f"the run is done, but {error.message}", "next": error.hint}
                message, parcels = replace(message, payload={**message.payload, **words}), {}
        return messages.body_of(message, parcels) if message.protocol == messages.PROTOCOL else v2.body_of(message, parcels)

    def _packed(self, message: Outgoing, *, light: bool) -> dict[str, PackedResult]:
        results = [OutcomeFile(**one) for one in message.payload.get("results") or ()]
        addresses = message.protocol != messages.PROTOCOL
        return self._packing.pack(message.request, results, now=self._clock.now(), light=light, addresses=addresses)
