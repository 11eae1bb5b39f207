"""What is read out of a batch script, whichever scheduler it was written for: its lines, its options, and what they ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from onward.inputs.scripts.option_table import Fate, OptionRule

MOST_TASKS = 1000
_LAST_TASK = 9_999_999

_NO_QUOTES_NEEDED = re.compile(r"[A-Za-z0-9@%._:,+/=\[\]$~^*!|&()<>{}?;-]+")


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


class MalformedDirective(ValueError):
    """A directive line that its scheduler could not read either."""


def marked_lines(text: str, mark: str, *, head_only: bool) -> Iterator[tuple[int, str]]:
    """The directive lines with their numbers. sbatch reads comments up to the first command; qsub reads to the end."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith(mark):
            yield number, line[len(mark) :]
        elif head_only and line.strip() and not line.lstrip().startswith("#"):
            return


def words_of(line: str) -> list[str]:
    """As sbatch and qsub split a directive line: quotes of both kinds, a backslash before any character, # ends it."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    escaped = False
    for character in line:
        if escaped:
            word = (word or "") + character
            escaped = False
        elif character == "\\":
            escaped = True
            word = word or ""
        elif quote:
            if character == quote:
                quote = ""
            else:
                word = (word or "") + character
        elif character in "\"'":
            quote = character
            word = word or ""
        elif character.isspace():
            if word is not None:
                words.append(word)
            word = None
        elif character == "#" and word is None:
            return words
        else:
            word = (word or "") + character
    if quote:
        raise MalformedDirective(f"found an unclosed quote ({quote})")
    if word is not None:
        words.append(word)
    return words


def quoted(value: str) -> str:
    """So that `words_of` reads it back."""
    if _NO_QUOTES_NEEDED.fullmatch(value):
        return value
    escaped = re.sub(r'([\\"])', r"\\\1", value)
    return f'"{escaped}"'


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
