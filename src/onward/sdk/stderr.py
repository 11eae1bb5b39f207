"""What is said to people, on stderr: what a training's log should hold once, it holds once."""

from __future__ import annotations

import sys

_said: set[str] = set()


def say(words: str) -> None:
    print(f"onward: {words}", file=sys.stderr)


def say_once(words: str) -> None:
    if words not in _said:
        _said.add(words)
        say(words)
