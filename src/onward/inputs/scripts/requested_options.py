"""What the options of a batch script ask for, whichever scheduler it was written for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from onward.inputs.scripts.line_words import MalformedDirective, quoted
from onward.inputs.scripts.option_table import Fate, OptionRule

MOST_TASKS = 1000
_LAST_TASK = 9_999_999


@dataclass(frozen=True, kw_only=True)
class ScriptOption:
    """One option of a directive line: `name` as the scheduler's manual spells it, `value` without its quotes."""

    name: str
    value: str | None
    line: int

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        return f"{self.name}={quoted(self.value)}" if self.name.startswith("--") else f"{self.name} {quoted(self.value)}"


@dataclass(kw_only=True)
class RequestedOptions:
    """What the options of one script ask for, gathered line by line; `problems` and `notes` begin with their line's number."""

    name: str | None = None
    resources: dict[str, Any] = field(default_factory=dict)
    extra: list[str] = field(default_factory=list)
    out: str | None = None
    err: str | None = None
    joined: bool | None = None
    append: bool = False
    folder: str | None = None
    shell: str | None = None
    array: str | None = None
    variables: dict[str, str] = field(default_factory=dict)
    from_shell: list[str] = field(default_factory=list)  # variables that the submitting shell has the value of
    carry: bool = True
    stop_signal: str | None = None
    stop_lead: int | None = None
    signal_to: str = "shell"
    problems: list[tuple[int, str]] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)

    def leave(self, option: ScriptOption, rule: OptionRule | None) -> bool:
        """Whether nothing is to be made of this option; what is to be said of it is noted."""
        if rule is None or rule.fate in (Fate.TAKEN, Fate.HANDED_ON):
            return False
        if rule.fate is Fate.REFUSED:
            self.refuse(option, rule.words)
        elif rule.fate is Fate.NOTED:
            self.note(option, rule.words)
        return True

    def refuse(self, option: ScriptOption, sentence: str) -> None:
        self.problems.append((option.line, f"{option}: {sentence}"))

    def note(self, option: ScriptOption, sentence: str) -> None:
        self.notes.append((option.line, f"{option}: {sentence}"))


def tasks_of(array: str) -> list[int]:
    """1-10:3 as 1, 4, 7, 10; several with commas."""
    found: dict[int, None] = {}
    for part in array.split(","):
        match = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18})(?::(\d{1,18}))?)?", part)
        if not match:
            raise MalformedDirective(f"found {array!r}, expected tasks such as 1-10 or 0-20:5")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or not step:
            raise MalformedDirective(f"found {part!r}, expected an ascending range, such as 1-10 or 0-20:5")
        if len(found) + (last - first) // step >= MOST_TASKS:
            raise MalformedDirective(f"found {array!r}, more than {MOST_TASKS} tasks; each would be a run")
        if last > _LAST_TASK:
            raise MalformedDirective(f"found {part!r}, expected tasks up to {_LAST_TASK}")
        found.update(dict.fromkeys(range(first, last + 1, step)))
    return list(found)
