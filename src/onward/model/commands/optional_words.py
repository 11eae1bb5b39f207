"""Optional words of a command: `{?checkpoints.read --resume {checkpoints.read}}` is there only when there is a checkpoint to read.

A colon may follow the name. Kept as one word of the command, with its braces, until a leg knows. As a word of its own it becomes the
words inside it, split as by a shell; inside a larger word (the source of a `bash -c`) it becomes the text inside it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onward.errors import InvalidInput

_CONDITIONS = ("checkpoints.read", "checkpoints.newest")
_EXAMPLE = "{?checkpoints.read --resume {checkpoints.read}}"
# Only our own families, as with placeholders: `{?page}` and the like go to the program as they were written.
_BEGIN = re.compile(r"(?<![${])\{\?(?:checkpoints?|params?|tensorboard)\b[^{}:\s]*")
_NAME = re.compile(r"([^:\s]*):?(.*)\Z", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class _WordPiece:
    """A piece of a word: plain text, or what stands inside one pair of optional braces."""

    text: str
    optional: bool


def join_optional(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a command, with those between `{?NAME` and its closing brace joined to one."""
    joined: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "{?" and rest:  # a space before the name
            word += rest.pop(0)
        while _is_open(word):
            if not _BEGIN.match(word):
                raise InvalidInput(
                    f"found {word!r}, with optional words that begin inside an argument and continue after it",
                    hint=f"write them as separate words, as in {_EXAMPLE}, or put the whole argument in quotes",
                )
            if not rest:
                raise InvalidInput(f"found {word!r}, whose opening brace is never closed", hint=f"write it as in {_EXAMPLE}")
            following = rest.pop(0)
            word = f"{word} {_quoted(following)}"
        joined.append(word)
    return tuple(joined)


def with_optional(words: Sequence[str], *, resuming: bool) -> tuple[str, ...]:
    """The command of a leg that has, or has not, a checkpoint to read. Other placeholders in it are not filled in yet."""
    found: list[str] = []
    for word in words:
        parts = list(_parts(word))
        if not any(part.optional for part in parts):
            found.append(word)
        elif len(parts) == 1:
            found += _split(parts[0].text) if resuming else ()
        else:
            found.append("".join(part.text for part in parts if resuming or not part.optional))
    return tuple(found)


def has_optional(words: Sequence[str]) -> bool:
    return any(_BEGIN.search(word) for word in words)


def check_optional(words: Sequence[str]) -> None:
    """Raises InvalidInput for optional words that no leg could make sense of."""
    if words and _BEGIN.match(words[0]):
        raise InvalidInput(f"found {words[0]!r} where the program is expected", hint="the program itself cannot be optional")
    for word in words:
        for part in _parts(word):
            if part.optional:
                _split(part.text)


def _parts(word: str) -> Iterator[_WordPiece]:
    at = 0
    while begin := _BEGIN.search(word, at):
        end = _end(word, begin.start())
        if end is None:
            raise InvalidInput(f"found {word!r}, whose opening brace is never closed", hint=f"write it as in {_EXAMPLE}")
        if begin.start() > at:
            yield _WordPiece(text=word[at : begin.start()], optional=False)
        yield _WordPiece(text=_content(word[begin.start() : end]), optional=True)
        at = end
    if at < len(word):
        yield _WordPiece(text=word[at:], optional=False)


def _content(braces: str) -> str:
    """Of `{?NAME WORDS}` the words."""
    name, content = _NAME.match(braces[2:-1].strip()).groups()  # type: ignore[union-attr]  # it matches any text
    if name not in _CONDITIONS:
        named = " or ".join(f"{{?{known} …}}" for known in _CONDITIONS)
        raise InvalidInput(f"found {braces!r}, expected {named}", hint="only words about the checkpoint to read can be optional")
    if not content.strip():
        raise InvalidInput(f"found {braces!r}, which has no words after its name", hint=f"write it as in {_EXAMPLE}")
    if _BEGIN.search(content):
        raise InvalidInput(f"found {braces!r}, with optional words inside optional words", hint="write them one after the other")
    return content.strip()


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidInput(
            f"found {text!r} in optional words, with an unclosed quote or backslash ({error})", hint=f"write it as in {_EXAMPLE}"
        ) from error


def _is_open(word: str) -> bool:
    return any(_end(word, begin.start()) is None for begin in _BEGIN.finditer(word))


def _end(word: str, start: int) -> int | None:
    """Behind the brace that closes the one at `start`."""
    depth = 0
    for at in range(start, len(word)):
        depth += (word[at] == "{") - (word[at] == "}")
        if depth == 0:
            return at + 1
    return None


def _quoted(word: str) -> str:
    """A word as it is written inside optional words: braces mean nothing to the shell's rules, so they need no quotes."""
    return word if word and not re.search(r"[\s'\"\\]", word) else shlex.quote(word)
