"""Which words of a command some program reads as source code. Text that a param brings must not become a part of it.

This cannot know every program. It knows shells, the interpreters and the programs that hand their arguments to a shell; any other
word that is written like shell source, with `;`, `|` or `$` around a placeholder, is taken for source too.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from pathlib import PurePosixPath


class WordKind(Enum):
    """How a program reads a word."""

    TEXT = auto()  # as it is: any value may stand in it
    SHELL = auto()  # as the source of a shell whose quotes we know
    CODE = auto()  # as source of some other kind, or as the name of what is run


_SHELL = re.compile(r"(?:r?bash|sh|dash|ash)(?:-?[0-9][0-9.]*|-static)?\Z")
_PYTHON = re.compile(r"(?:python|pypy)(?:\d+(?:\.\d+)*)?\Z")
_INTERPRETERS = frozenset({"perl", "ruby", "node", "deno", "php", "lua", "julia", "R", "Rscript", "octave", "matlab", "expect"})
_SPLIT_FLAG = re.compile(r"-[A-Za-z]*S|--split-string")  # of env
_CODE_FLAG = re.compile(r"-[A-Za-z]*[ceEmrpn]\Z|--?(?:command|eval|execute|batch|print)\Z")
# what these are given, they give to a shell or read as a program of their own
_SHELL_CALLERS = frozenset(
    {"eval", "flock", "parallel", "qsub", "rsh", "runuser", "sbatch", "screen", "script", "sg", "ssh", "su", "tmux", "watch", "xargs"}
)
_OTHER_LANGUAGES = frozenset({"awk", "csh", "fish", "gawk", "ksh", "ksh93", "m4", "make", "mawk", "mksh", "sed", "tcsh", "zsh"})
_HAND_ON = _SHELL_CALLERS | _OTHER_LANGUAGES
_SHELL_SIGNS = re.compile(r"[;|&<>$`\n]")


def word_kinds(command: Sequence[str], *, open_words: Sequence[bool], literal: Callable[[str], str]) -> list[WordKind]:
    """For each word. `open_words`: those with a placeholder in them; `literal`: what of a word is not a placeholder."""
    found = [
        WordKind.CODE if _SHELL_SIGNS.search(literal(word)) or (_CODE_FLAG.match(before) and " " in literal(word)) else WordKind.TEXT
        for before, word in zip(("", *command), command, strict=False)
    ]
    found[:1] = [WordKind.CODE]
    handed_on = False
    for at, word in enumerate(command):
        if handed_on and found[at] is WordKind.TEXT:
            found[at] = WordKind.CODE
        if open_words[at] or (at and found[at - 1] is WordKind.SHELL):  # what follows a shell's source is only what the shell is called
            continue
        program = PurePosixPath(word).name
        if _SHELL.match(program):
            marks = _after_a_shell(command, at)
        elif _PYTHON.match(program):
            marks = _after_python(command, at)
        elif program in _INTERPRETERS:
            marks = _after_an_interpreter(command, at)
        else:
            splits = program == "env" and any(map(_SPLIT_FLAG.match, command[at + 1 :]))
            handed_on = handed_on or splits or program in _HAND_ON
            continue
        for index, reading in marks:
            found[index] = reading if not handed_on else WordKind.CODE
    return found


def _after_a_shell(command: Sequence[str], at: int) -> Iterator[tuple[int, WordKind]]:
    source = False
    words = iter(range(at + 1, len(command)))
    for index in words:
        word = command[index]
        if word.startswith(("-", "+")) and word not in ("-", "--"):
            yield index, WordKind.CODE
            source = source or (not word.startswith("--") and "c" in word)
            named = 0 if word.startswith("--") else word.count("o") + word.count("O")
            for taken in itertools.islice(words, named or word in ("--rcfile", "--init-file")):
                yield taken, WordKind.CODE
        elif word in ("-", "--"):
            continue
        else:
            yield index, WordKind.SHELL if source else WordKind.CODE
            return


def _after_python(command: Sequence[str], at: int) -> Iterator[tuple[int, WordKind]]:
    words = iter(range(at + 1, len(command)))
    for index in words:
        yield index, WordKind.CODE
        option = re.match(r"-[^-cmWX]*([cmWX])(.*)", command[index], re.DOTALL)  # `-Xdev`, `-um module`
        if option is None:
            if not command[index].startswith("-"):
                return
            continue
        taken = index if option[2] else next(words, None)
        if taken is not None:
            yield taken, WordKind.CODE
        if option[1] in "cm":
            return


def _after_an_interpreter(command: Sequence[str], at: int) -> Iterator[tuple[int, WordKind]]:
    script = False
    for index in range(at + 1, len(command)):
        word = command[index]
        follows_flag = _CODE_FLAG.match(command[index - 1]) is not None and index - 1 > at
        if not script or follows_flag:
            yield index, WordKind.CODE
        script = script or not (word.startswith("-") or follows_flag)
