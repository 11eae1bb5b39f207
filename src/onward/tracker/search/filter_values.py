"""The values of a filter's comparisons: numbers, times and states. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from onward.errors import InvalidInput
from onward.model.run import RunState
from onward.tracker.search.filter_tokens import FilterToken, syntax_error, unquote

_STATES = {**{str(state): str(state) for state in RunState}, "scheduled": "submitted", "killed": "cancelled", "succeeded": "finished"}
_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])(?:\s+ago)?")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True, slots=True)
class FilterValues:
    """Of one filter: an error points into its text, and `7d` is seven days before `now`."""

    text: str
    now: float

    def error(self, word: FilterToken, what: str) -> InvalidInput:
        return syntax_error(self.text, word.at, what)

    def number(self, word: FilterToken) -> float:
        try:
            return float(unquote(word.text))
        except ValueError:
            raise self.error(word, "expected a number") from None

    def time(self, word: FilterToken) -> float:
        text = unquote(word.text)
        ago = _AGO.fullmatch(text.lower())
        if ago and word.kind != "number":
            return self.now - float(ago[1]) * _UNITS[ago[2]]
        try:
            value = float(text)
            return value / 1000 if abs(value) > 1e11 else value
        except ValueError:
            pass
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise self.error(word, "expected a time: '2026-01-31', '2026-01-31T12:00', '7d' for seven days ago") from None
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()

    def state(self, word: FilterToken) -> str:
        text = unquote(word.text).lower()
        if text not in _STATES:
            raise self.error(word, f"a state is one of {', '.join(RunState)}")
        return _STATES[text]
