"""Relative paths that a command or its params name, and that the job will not find: they are here, and not in the copy of the code."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from onward.model.spec import RunDraft

_MOST_NAMED = 3


def named_words(draft: RunDraft) -> tuple[str, ...]:
    """The words in which a user names paths."""
    return (*draft.command, *(value for value in draft.params.values() if isinstance(value, str)))


def missing_paths(cwd: Path, start: Path, words: Iterable[str]) -> list[str]:
    """Of `words`, as they count from `cwd`; the command starts in `start`, a folder of the copy."""
    named = dict.fromkeys(path for word in words for path in _paths_in(word))
    return [path for path in named if os.path.lexists(cwd / path) and not os.path.lexists(start / path)]


def note_on_missing(cwd: Path, start: Path, words: Iterable[str], *, host: str = "") -> tuple[str, ...]:
    """`host`: where the job runs, if that is another machine."""
    missing = missing_paths(cwd, start, words)
    if not missing:
        return ()
    more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
    named = f"{', '.join(missing[:_MOST_NAMED])}{more}"
    advice = f"give the path on {host} instead" if host else f"write {os.path.normpath(cwd / missing[0])} instead"
    return (f"the job will not find {named}: it is in the folder you submit from, but not in the copy of the code; {advice}",)


def _paths_in(word: str) -> Iterator[str]:
    """`--data=../digits` names a path as `../digits` does."""
    for text in dict.fromkeys((word, word.rpartition("=")[2])):
        if text and not text.startswith(("/", "~", "-")):
            yield text
