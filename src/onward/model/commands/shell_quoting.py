"""Text inside the source of a shell: where it stands in quotes it can be written so that the shell reads exactly this text.

Only simple source is understood. Where text is evaluated a second time (`eval`, arithmetic, another shell inside), or where a quote is
hard to follow (`$(…)`, here-documents, comments), nothing is promised: then only plain text is safe. The same holds where a variable
stands without quotes: it may hold the text, and would fall apart into a command and its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto


class Quote(Enum):
    NONE = auto()
    SINGLE = auto()
    DOUBLE = auto()


# Plain text means the same in any source, in any quotes: a number, a word, a path.
_PLAIN_SIGNS = frozenset("_@%+=:,./-")

_TWICE = re.compile(
    r"`|<<|\(\(|\[\[|\$\[|=\(|\$\(|\$['\"]|\w\[|\$\{(?!\w+\})"  # substitution, here-document, arithmetic, $'…', subscripts, ${x:…}
    r"|(?:\A|[\s;&|(){}<>])#"  # a comment may hold half a quote
    r"|[<>]&(?!(?:\d+|-)(?:[\s;&|)]|\Z))"  # bash expands what follows >& twice, quotes or none
    r"|\bPS[0-4]=|\b(?:PROMPT_COMMAND|BASH_ENV|ENV)=|\bwait\s+-\w*p"
    r"|(?<![\w.-])(?:eval|source|trap|let|declare|typeset|local|readonly|read|mapfile|readarray|unset|alias|coproc|enable|exec\s+-\w*c\w*"
    r"|sh|bash|rbash|dash|ash|ksh|ksh93|mksh|zsh|csh|tcsh|fish|ssh|rsh|su|runuser|sg|flock|awk|gawk|mawk|sed|m4|make|perl|ruby|node|deno|php|lua"
    r"|julia|R|Rscript|octave|matlab|expect|parallel|watch|xargs|find|screen|tmux|script|sbatch|qsub)(?![\w.-])"
    r"|(?:\A|[;&|({\n]|\b(?:then|do|else))\s*\.\s"  # . file
    r"|\s-(?:\w*c|v|e|S|exec|execdir|ok)(?=[\s\"']|\Z)"  # python -c, printf -v, [ -v, env -S
    r"|\s--(?:command|eval|wrap|exec)\b"
)


def is_plain(text: str) -> bool:
    return all(sign.isalnum() or sign in _PLAIN_SIGNS for sign in text)


def is_simple(source: str) -> bool:
    """What the quotes around a text promise, holds: nothing in this source evaluates it again."""
    if _TWICE.search(source):
        return False
    variables = [at for at, sign in enumerate(source) if sign == "$"]
    return Quote.NONE not in quotes_at(source, variables)


def quotes_at(source: str, places: Sequence[int]) -> list[Quote | None]:
    """In which quotes each of these places of a simple source stands. None: after a backslash, which changes what follows."""
    found: list[Quote | None] = []
    quote, escaped = Quote.NONE, False
    wanted = set(places)
    for at, sign in enumerate(source):
        if at in wanted:
            found.append(None if escaped else quote)
        if escaped:
            escaped = False
        elif quote is Quote.SINGLE:
            quote = Quote.NONE if sign == "'" else quote
        elif sign == "\\":
            escaped = True
        elif sign == '"':
            quote = Quote.NONE if quote is Quote.DOUBLE else Quote.DOUBLE
        elif sign == "'" and quote is Quote.NONE:
            quote = Quote.SINGLE
    return found


def inside_quotes(text: str, quote: Quote) -> str:
    """The text as it is written between such quotes, which the source has already. Always in single ones: nothing is special there."""
    single = text.replace("'", "'\\''")
    return single if quote is Quote.SINGLE else f"\"'{single}'\""
