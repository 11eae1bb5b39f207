"""Why a message could not be sent, in the words of either way to send one."""

from __future__ import annotations

import re

from onward.errors import HostUnreachable, NotAllowed

NO_ROOM = "the queue {queue!r} accepts no more messages"


_LIMIT = re.compile(r"max size (\d+)")


class MessageTooLarge(Exception):
    """`most`: bytes that the broker takes, where it said so."""

    def __init__(self, said: str) -> None:
        super().__init__("the message is too large for the broker")
        found = _LIMIT.search(said)
        self.most = int(found[1]) if found else None


def is_too_large(said: str) -> bool:
    return "larger than" in said


def no_queue(queue: str) -> str:
    return f"the broker has no queue {queue[:200]!r}"


def no_confirm(seconds: float) -> HostUnreachable:
    return HostUnreachable(
        f"the broker confirmed no message for {seconds:.0f} s",
        hint="out of memory or disk? `rabbitmqctl status` shows alarms",
    )


def not_allowed() -> NotAllowed:
    hint = "rabbitmqctl set_permissions: the gateway's user must be able to write to amq.default"
    return NotAllowed("the gateway's user may not send replies", hint=hint)
