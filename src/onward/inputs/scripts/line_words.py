"""The marked lines of a batch script and their words, as sbatch and qsub split them."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NO_QUOTES_NEEDED = re.compile(r"[A-Za-z0-9@%._:,+/=\[\]$~^*!|&()<>{}?;-]+")


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
