"""The words of a filter, of ours and of MLflow's: split, with their places, so that an error can point at one. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from onward.errors import InvalidInput
from onward.model.storable_text import is_plain

LONGEST = 10_000

_WORD = re.compile(
    r"""\s*(?:
    (?P<number>(?:[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+](?i:inf(?:inity)?))(?![\w.]))
  | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*")
  | (?P<name>[A-Za-z_][\w/:@-]*(?:\.(?:[\w/:@-]+|"[^"]*"|`[^`]*`|'[^']*'))*|`[^`]*`)
  | (?P<sign><=|>=|!=|<>|==|=|<|>)
  | (?P<mark>[(),])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class FilterToken:
    kind: str  # number, string, name, sign, mark, end
    text: str
    at: int

    def says(self, *words: str) -> bool:
        return self.kind == "name" and self.text.lower() in words


def tokenize(text: str) -> list[FilterToken]:
    if len(text) > LONGEST:
        raise InvalidInput(f"the filter has {len(text)} characters; at most {LONGEST} are allowed", hint="write a shorter filter")
    if not is_plain(text):
        raise InvalidInput("the filter contains NUL or an incomplete character", hint="write it in UTF-8")
    found, end = scan(text, _WORD)
    if end < len(text):
        raise syntax_error(text, end, "this is not allowed in a filter")
    return [*found, FilterToken("end", "", len(text))]


def scan(text: str, word: re.Pattern[str]) -> tuple[list[FilterToken], int]:
    """The words of a text, each of the kind of its group, and where the first begins that is none: the text's end where all are."""
    found: list[FilterToken] = []
    at = 0
    while match := word.match(text, at):
        kind = str(match.lastgroup)
        found.append(FilterToken(kind, match[kind], match.start(kind)))
        at = match.end()
    return found, len(text) - len(text[at:].lstrip())


def syntax_error(text: str, at: int, what: str) -> InvalidInput:
    there = text[at : at + 20].strip() or "the end"
    return InvalidInput(
        f"filter, at {there!r} (character {at + 1}): {what}",
        hint="for example: metrics.loss < 0.5 and params.lr = 0.001 and not state = failed and created > '2026-01-31'",
    )


def unquote(text: str) -> str:
    if text[:1] == "'":
        return re.sub(r"\\(.)|''", lambda m: m[1] or "'", text[1:-1])
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[:1] == '"' else text.strip("`")
