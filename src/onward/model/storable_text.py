"""Texts that a database can keep: without NUL, which PostgreSQL refuses, and without halves of characters, which no UTF-8 can say. Pure."""

from __future__ import annotations

from onward.errors import InvalidInput

LONGEST_KEY = 250


def is_plain(text: str) -> bool:
    if text.isascii():
        return "\x00" not in text
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text


def clean(text: str) -> str:
    """What a training or a scheduler wrote, as near as can be kept: it must not keep the rest from being read."""
    return text if is_plain(text) else text.encode(errors="replace").decode().replace("\x00", "\ufffd")


def check_text(*texts: object) -> None:
    for text in texts:
        if isinstance(text, str) and not is_plain(text):
            raise InvalidInput(f"{clean(text)[:60]!r} contains NUL or an incomplete character", hint="write it in UTF-8")


def check_key(key: str, what: str) -> None:
    """`what`: a metric, a param, a tag."""
    if not key or len(key) > LONGEST_KEY or not is_plain(key):
        raise InvalidInput(f"{clean(key)[:60]!r} is not a valid name for {what}", hint=f"use 1 to {LONGEST_KEY} characters")
