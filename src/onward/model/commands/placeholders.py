"""The placeholders of a command: what `{params.lr}` or `{checkpoints.read}` stands for is known only when a leg starts.

Braces mean so much to others (JSON, shells, awk, OmegaConf) that only our own families are placeholders:
`{checkpoints.…}`, `{params.…}`, `{tensorboard}` and their likely slips. `{{params.lr}}` is the literal text
`{params.lr}`; every other brace, doubled or not, and anything after a `$`, goes to the program as it was written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from onward.errors import InvalidInput
from onward.model.commands.optional_words import with_optional
from onward.model.commands.shell_quoting import Quote, inside_quotes, is_plain, is_simple, quotes_at
from onward.model.commands.source_words import WordKind, word_kinds
from onward.model.spec import ParamValue

NEWEST = "checkpoints.newest"  # one file or folder of the checkpoint: only inside optional words, since leg 1 has none
FIXED_PLACEHOLDERS = ("checkpoints.read", "checkpoints.write", "tensorboard")
BENCHMARK_PLACEHOLDERS = ("checkpoint", "step", "shard", "shards", "seed", "items.done", "results")  # of one task's command

RESULTS_OF_A_STAGE = re.compile(r"\{stages\.([^{}\s]+)\.results\}")  # in a pipeline: a folder, known when the stage is done

_FAMILIES = ("checkpoints?", "params?", "tensorboard")


@cache
def _placeholder(also: tuple[str, ...]) -> re.Pattern[str]:
    families = "|".join([*_FAMILIES, *(re.escape(name.split(".")[0]) for name in also)])
    name = rf"(?:{families})(?:\.[^{{}}\s]*)?"
    return re.compile(rf"\{{\{{({name})\}}\}}|(?<!\$)\{{({name})\}}")


def placeholders_in(command: Iterable[str], also: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The names between braces, known or not, in their order and each once: `("checkpoints.read", "params.lr")`.

    `also` are names whose families are placeholders too, as BENCHMARK_PLACEHOLDERS are in the command of a benchmark.
    """
    pattern = _placeholder(also)
    return tuple(dict.fromkeys(match[2] for word in command for match in pattern.finditer(word) if match[2] is not None))


def fill(command: Sequence[str], values: Mapping[str, str], also: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The command with its placeholders filled in. A value is never read again, whatever braces it holds.

    Nor does a param become source code of a shell or another program: there it arrives as it is, or is refused.
    """
    return tuple(
        _filled(word, reading, values, _placeholder(also))
        for word, reading in zip(command, _readings(command, _placeholder(also)), strict=True)
    )


def check_params(command: Sequence[str], params: Mapping[str, ParamValue], also: tuple[str, ...] = ()) -> None:
    """Raises InvalidInput for a value that `fill` would refuse. What only a leg knows is not looked at."""
    given = {f"params.{name}": RESULTS_OF_A_STAGE.sub("", value_text(value)) for name, value in params.items()}
    for resuming in (False, True):
        fill(with_optional(command, resuming=resuming), dict.fromkeys(placeholders_in(command, also), "") | given, also)


def params_that_choose_the_program(command: Sequence[str]) -> frozenset[str]:
    """Params that name the program or the script, or are its source: whoever sets them says what is run."""
    pattern = _placeholder(())
    chosen: set[str] = set()
    command = with_optional(command, resuming=True)
    for word, reading in zip(command, _readings(command, pattern), strict=True):
        for match in pattern.finditer(word):
            name = match[2] or ""
            before = pattern.sub("x", word[: match.start()])
            run_later = _ASSIGNED.search(before) and _RUNS_A_VARIABLE.search(word)
            begins = reading is WordKind.SHELL and (_COMMAND_BEGINS.search(before) or run_later)
            if name.startswith("params.") and (begins or (reading is WordKind.CODE and _is_a_name(word, match))):
                chosen.add(name.removeprefix("params."))
    return frozenset(chosen)


_BEGINNING = (
    r"(?:\A|[;|&(){}!\n]|\b(?:exec|then|do|else|elif|if|while|until|nohup|time|env|command|nice|sudo|srun)\s)(?:\s*\w+=\S*)*\s*[\"']?"
)
_COMMAND_BEGINS = re.compile(rf"{_BEGINNING}\Z")
_RUNS_A_VARIABLE = re.compile(rf"{_BEGINNING}\$")
_ASSIGNED = re.compile(r"(?:\A|[\s;&|({])\w+\+?=[\"']?\S*\Z")


def _is_a_name(word: str, match: re.Match[str]) -> bool:
    """`{params.script}` or `configs/{params.model}.py`; not a value in the middle of a longer source."""
    return not re.search(r"[\s;|&<>$`(]", word[: match.start()] + word[match.end() :])


def _readings(command: Sequence[str], pattern: re.Pattern[str]) -> list[WordKind]:
    has = [any(match[2] is not None for match in pattern.finditer(word)) for word in command]
    return word_kinds(command, open_words=has, literal=lambda word: pattern.sub("", word))


def _filled(word: str, reading: WordKind, values: Mapping[str, str], pattern: re.Pattern[str]) -> str:
    masked = pattern.sub(lambda match: "x" * len(match[0]), word)  # a quote in a param's name is none of the shell's
    quotes: dict[int, Quote | None] = {}
    if reading is WordKind.SHELL and is_simple(masked):
        starts = [match.start() for match in pattern.finditer(word)]
        quotes = dict(zip(starts, quotes_at(masked, starts), strict=True))

    def put(match: re.Match[str]) -> str:
        literal, name = match.groups()
        if literal is not None:
            return f"{{{literal}}}"
        if name not in values:
            if name == NEWEST:
                raise InvalidInput(
                    "{checkpoints.newest} has no value: the checkpoint has no single newest file or folder",
                    hint="name one of its files, as in {checkpoints.read}/NAME; onward checkpoints RUN lists them",
                )
            known = ", ".join(f"{{{key}}}" for key in values) or "none"
            raise InvalidInput(f"unknown placeholder {{{name}}} in the command", hint=f"valid placeholders: {known}")
        value = values[name]
        if "\0" in value:
            raise InvalidInput(f"the value of {{{name}}} contains a NUL character, which no program accepts")
        option = word == match[0] and value.startswith("-")  # where a program's name is expected, it would be read as one
        if reading is WordKind.TEXT or (is_plain(value) and not option):
            return value
        quote = quotes.get(match.start())
        if quote is Quote.SINGLE or quote is Quote.DOUBLE:
            return inside_quotes(value, quote)
        if not name.startswith("params."):  # a folder of the run's own
            return shlex.quote(value) if quote is Quote.NONE else value
        raise _not_in_source(name, value, in_shell=quote is Quote.NONE)

    return pattern.sub(put, word)


def _not_in_source(name: str, value: str, *, in_shell: bool) -> InvalidInput:
    shown = value if len(value) <= 60 else f"{value[:60]}…"
    own = f"""or pass it to the shell as an argument: bash -c '… "$1"' bash {{{name}}}"""
    hint = f'write it in quotes there, as "{{{name}}}", {own}' if in_shell else f"pass it as a separate word; {own}"
    return InvalidInput(f"the value {shown!r} of {{{name}}} would become source code in the command", hint=hint)


def placeholder_values(
    params: Mapping[str, ParamValue], *, read: str, write: str, tensorboard: str, newest: str | None = None
) -> dict[str, str]:
    """What `fill` is to be given: the folders of this leg, and the run's params as text."""
    folders = dict(zip(FIXED_PLACEHOLDERS, (read, write, tensorboard), strict=True))
    if newest is not None:
        folders[NEWEST] = newest
    return folders | {f"params.{name}": value_text(value) for name, value in params.items()}


def value_text(value: ParamValue) -> str:
    """A param as a program reads it: `true` and `false` as in YAML, numbers as Python writes them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
