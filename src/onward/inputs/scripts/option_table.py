"""What Onward does with each option of a scheduler's submit program: one table a scheduler, read by the parsers and the reference page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

_ROW = re.compile(r"(?P<name>\S+)\s+(?P<short>\S+)\s+(?P<value>none|maybe|one|two)\s+(?P<fate>[a-z-]+)(?:\s+(?P<words>\S.*))?")


class Fate(StrEnum):
    TAKEN = "taken"  # it has a meaning here
    HANDED_ON = "handed-on"  # the scheduler gets it as it is
    LEFT_OUT = "left-out"  # it changes nothing here
    NOTED = "noted"  # left out, and whoever wrote it is told
    REFUSED = "refused"


@dataclass(frozen=True, kw_only=True)
class OptionRule:
    """`words`: its meaning where it is taken, what is to be known where it is handed on, else the reason."""

    name: str  # with its dashes
    short: str  # the same in one letter; "" where there is none
    value: str  # none, maybe, one, two
    fate: Fate
    words: str


def read_table(text: str) -> dict[str, OptionRule]:
    """One row an option: name, short name or `.`, how many values, fate, words. A line that begins with blanks continues the one above."""
    return {rule.name: rule for rule in _rules(re.sub(r"\n\s+", " ", text))}


def _rules(text: str) -> Iterator[OptionRule]:
    for line in text.strip().splitlines():
        row = _ROW.fullmatch(line.strip())
        if row is None:
            raise ValueError(f"not a row: {line!r}")
        short = "" if row["short"] == "." else row["short"]
        yield OptionRule(name=row["name"], short=short, value=row["value"], fate=Fate(row["fate"]), words=row["words"] or "")


def refusal(rules: Mapping[str, OptionRule], name: str) -> str | None:
    """Why this option is never passed on; None where it may be."""
    rule = rules.get(name)
    if rule is None or rule.fate in (Fate.TAKEN, Fate.HANDED_ON):
        return None
    return rule.words
