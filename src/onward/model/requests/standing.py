"""How a request stands, in a word, and what it waits for, in a sentence. Pure."""

from __future__ import annotations

from onward.errors import InvalidInput
from onward.model.requests.outcome import OutcomeState
from onward.model.requests.request import OPEN_STATES, Outgoing, RequestRecord, RequestState

OPEN = "open"
STANDINGS = (*map(str, OPEN_STATES), *map(str, OutcomeState))


def standing_of(record: RequestRecord) -> str:
    return str(record.outcome.state if record.outcome else record.state)


def standings(word: str) -> tuple[str, ...]:
    """Those that a word stands for."""
    if word == OPEN:
        return tuple(map(str, OPEN_STATES))
    if word not in STANDINGS:
        raise InvalidInput(f"no request is ever {word!r}", hint=f"expected one of {', '.join((OPEN, *STANDINGS))}")
    return (word,)


def is_put_aside(message: Outgoing) -> bool:
    """Whether nobody came for this reply, so that the gateway gave it up."""
    return message.terminal and message.sent is None and message.due is None and message.tries > 0


def waits_for(record: RequestRecord, reply: Outgoing | None) -> str:
    """Empty: for nothing."""
    if record.outcome is not None:
        return _delivery(reply) if reply else ""
    if record.ending is not None:
        return f"the end of its run: {record.ending}"
    if record.state is RequestState.ACCEPTED:
        return record.words or "its turn"
    return str((record.progress or {}).get("words") or "") or ("its run" if record.state is RequestState.RUNNING else "its job to start")


def _delivery(reply: Outgoing) -> str:
    if reply.due is not None:
        return f"the broker to take its reply: {reply.error}" if reply.error else "the broker to take its reply"
    return f"nobody came for its reply: {reply.error}" if is_put_aside(reply) else ""
