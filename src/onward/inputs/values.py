"""Kinds of values in a params file, a flag line or the settings: how each is read, and its JSON Schema for editors."""

from __future__ import annotations

import difflib
import math
import re
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError, core_schema

from onward.errors import InvalidInput
from onward.inputs.command_line import split_command, usable_name
from onward.inputs.params.scheduler_options import option_refusal
from onward.model.commands.placeholders import value_text
from onward.model.quantity import parse_duration, parse_size
from onward.model.spec import ParamValue

LATER = "not in this version yet"
OF_PIPELINES = "only a pipeline file may have it"
_TEN_YEARS = 3650 * 86400
_MOST_MIB = 2**40


@dataclass(frozen=True, eq=False)
class _Kind:
    """One kind of value: how Onward reads it, and its JSON Schema for editors."""

    read: Callable[[Any], Any]
    schema: Mapping[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return dict(self.schema)


@dataclass(frozen=True, eq=False)
class ShortForm:
    """For an editor: a section that may also be written in this short way."""

    schema: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [handler(schema), dict(self.schema)]}


def _wrong(expected: str) -> PydanticCustomError:
    return PydanticCustomError("wrong", "expected {expected}", {"expected": expected})


def custom_error(sentence: str) -> PydanticCustomError:
    return PydanticCustomError("said", "{sentence}", {"sentence": sentence})


def custom_error_from(error: InvalidInput) -> PydanticCustomError:
    return custom_error("; ".join(part for part in (error.message, error.hint) if part))


def _text(value: Any, expected: str = "text") -> str:
    """Text, or a whole number that is one by accident, as an account `12345` is."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _wrong(f"{expected} (quote it if it looks like something else)" if not isinstance(value, dict | list) else expected)
    text = str(value)
    if re.search("[\0\ud800-\udfff]", text):
        raise _wrong(f"{expected}, in UTF-8 and without a NUL character")
    return text


def did_you_mean(found: str, known: Iterable[str]) -> str:
    """` (did you mean time?)`, where something near is known."""
    lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(found.lower(), lower, n=1)
    return f" (did you mean {lower[near[0]]}?)" if near else ""


def word(pattern: str, expected: str, *, upper: bool = False) -> _Kind:
    """Text of one pattern. Where it goes to a scheduler, the pattern has no space, quote or other shell character."""
    compiled = re.compile(pattern)

    def read(value: Any) -> str:
        text = _text(value, expected).upper() if upper else _text(value, expected)
        if not compiled.fullmatch(text):
            raise _wrong(expected)
        return text

    return _Kind(read, {"type": ["string", "integer"], **({} if upper else {"pattern": f"^(?:{pattern})$"})})


_NAME = r"[A-Za-z][A-Za-z0-9._-]{0,63}"
_PART = r"[A-Za-z][A-Za-z0-9_-]{0,31}"
_RESERVED = re.compile(r"(?:workers?|env)-")


def _read_name(value: Any) -> str:
    text = _text(value, "a name")
    if not re.fullmatch(_NAME, text):
        raise _wrong(f"a letter and then letters, digits, '.', '_' or '-', 64 at most; for example {usable_name(text)}")
    return text


def _read_part(value: Any) -> str:
    text = _text(value, "a name")
    if not re.fullmatch(_PART, text):
        raise _wrong("a letter and then letters, digits, '_' or '-', 32 at most")
    if _RESERVED.match(text):
        raise custom_error(f"found {text!r}, expected another name: worker-, workers- and env- are reserved")
    return text


def _read_count(least: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,9}", str(value)) or int(value) < least:
            raise _wrong(f"a whole number, {least} or more")
        return int(value)

    return read


def _quantity(parse: Callable[[str | int], int], expected: str, most: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        text = str(value)
        if isinstance(value, bool) or not isinstance(value, str | int | float) or len(text) > 40 or not text.isascii():
            raise _wrong(expected)
        try:
            number = parse(text)
        except InvalidInput as error:
            raise custom_error_from(error) from error
        if number > most or (number == 0 and re.search("[1-9]", text)):  # 1K must not turn into 0, the whole node
            raise _wrong(f"{expected}, not {'more than anyone has' if number else 'less than 1M'}")
        return number

    return read


_read_duration = _quantity(parse_duration, "a time such as 24:00:00 or 7-00:00:00", _TEN_YEARS)
_read_size = _quantity(parse_size, "a memory size such as 32G", _MOST_MIB)


def _read_size_above_zero(value: Any) -> int:
    size = _read_size(value)
    if size == 0:
        raise _wrong("a memory size above zero, such as 128G")
    return size


def _read_every(value: Any) -> str:
    return "auto" if value == "auto" else str(_read_duration(value))


def _read_scalar(value: Any) -> ParamValue:
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong("a finite number (or put it in quotes)")
    if value is None or isinstance(value, bool | int | float):
        return value
    return _text(value, "text, a number, true, false or null: params are flat")


def _read_number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong("a number")
    return value


def _read_variable(value: Any) -> str:
    return value_text(value) if isinstance(value, bool | float) else _text(value, "text or a number")


def _read_variable_name(value: str) -> str:
    if value.upper().startswith("ONWARD_"):
        raise custom_error("found a name that begins with ONWARD_, expected another: these are reserved for Onward")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise _wrong("a variable's name: letters, digits and _, not starting with a digit")
    return value


def _read_signal(value: Any) -> str:
    name = _text(value, "a signal such as USR2").upper().removeprefix("SIG")
    known = sorted(sig.name.removeprefix("SIG") for sig in signal.Signals)
    if name in ("KILL", "STOP"):
        raise custom_error(f"found {name}, expected a signal that a program can catch, such as USR2 or TERM")
    if name not in known:
        raise _wrong(f"a signal such as USR2 or TERM{did_you_mean(name, known)}")
    return name


def _read_command(value: Any) -> tuple[str, ...]:
    if not isinstance(value, str | list | tuple):
        raise _wrong("a command: text, or a list of its words")
    words = value if isinstance(value, str) else tuple(_read_variable(item) for item in value)
    try:
        return split_command(_text(words, "a command") if isinstance(words, str) else words)
    except InvalidInput as error:
        raise custom_error_from(error) from error


def _read_path(expected: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        text = _text(value, expected)
        if "$" in text:
            raise custom_error(
                f"found a variable in {text!r}, expected a path without variables: no shell expands it; use a setup line for that"
            )
        if not text.strip() or text.startswith("-") or re.search(r"[\x00-\x1f\x7f]", text):
            raise _wrong(expected)
        return text

    return read


def _read_conda(value: Any) -> str:
    text = _read_path("a conda environment: its name, or its folder as a path with a /")(value)
    if "/" not in text and not re.fullmatch(r"[A-Za-z0-9_.][A-Za-z0-9_.+-]*", text):
        raise _wrong("a conda environment: a name of letters, digits, '_', '.', '+' or '-', or its folder as a path with a /")
    return text


def _read_line(value: Any) -> str:
    text = _text(value, "a bash line").strip()
    if not text or len(text) > 8192 or re.search(r"[\x00-\x08\x0a-\x1f\x7f]", text):
        raise _wrong("one bash line; write several lines as several items, or put them into a script")
    return text


def _read_scheduler_option(value: Any) -> str:
    text = _text(value, "an option of the scheduler").strip()
    if not re.fullmatch(r"-[A-Za-z]\S*(?: [^\n]*)?|--[A-Za-z][^\n]*", text) or re.search(r"[\x00-\x1f\x7f]", text):
        raise _wrong("an option as on a directive line, such as --licenses=matlab or -l gpu_c=3.5")
    if problem := option_refusal(text):
        raise custom_error(f"found {text}: {problem}")
    return text


def _read_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong("true or false")
    return value


def _read_own(value: Any) -> bool:
    if value != "own" and not isinstance(value, bool):
        raise _wrong("own")
    return bool(value)


def _read_path_below(value: Any) -> str:
    if not isinstance(value, str) or not value or any(ord(letter) < 32 for letter in value):
        raise _wrong("a file or pattern below the working folder, such as checkpoint.pt or lightning_logs/**")
    parts = [part for part in value.split("/") if part.strip() not in ("", ".")]
    if value.startswith(("/", "~")) or ".." in parts or all(part in ("*", "**") for part in parts):
        raise _wrong("a file or pattern below the working folder, such as checkpoint.pt or lightning_logs/**, and not all of it")
    return "/".join(parts)


def choice(*words: str, later: Sequence[str] = ()) -> _Kind:
    def read(value: Any) -> str:
        if isinstance(value, str) and value in later:
            raise custom_error(f"{value} is {LATER}; expected {' or '.join(words)}")
        if not isinstance(value, str) or value not in words:
            raise _wrong(f"{' or '.join(words)}{did_you_mean(str(value), [*words, *later])}")
        return value

    return _Kind(read, {"enum": list(words)})


def _read_benchmark(value: Any) -> tuple[()]:
    if value not in ([], ()):
        raise custom_error(f"found benchmarks, expected [] or no such key: {OF_PIPELINES}")
    return ()


def listed(value: Any) -> Any:
    """One text is a list of one."""
    return [value] if isinstance(value, str) else value


def without_nulls(value: Any) -> Any:
    return {key: item for key, item in value.items() if item is not None} if isinstance(value, Mapping) else value


_MAIL = "NONE|BEGIN|END|FAIL|REQUEUE|ALL|INVALID_DEPEND|STAGE_OUT|TIME_LIMIT(?:_[589]0)?|ARRAY_TASKS"
_GRES = r"[A-Za-z][A-Za-z0-9_.-]*(?::[A-Za-z0-9_.-]+){0,2}"
_COUNT = {"type": ["integer", "string"], "pattern": "^[0-9]{1,9}$"}
_QUANTITY = {"type": ["string", "number"]}
_SCALAR = {"type": ["string", "number", "boolean", "null"]}
_COMMAND = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": ["string", "number", "boolean"]}, "minItems": 1}]}

Name = Annotated[str, _Kind(_read_name, {"type": "string", "pattern": f"^{_NAME}$"})]
PartName = Annotated[str, _Kind(_read_part, {"type": "string", "pattern": f"^{_PART}$"})]
Count = Annotated[int, _Kind(_read_count(1), {**_COUNT, "minimum": 1})]
CountOrZero = Annotated[int, _Kind(_read_count(0), {**_COUNT, "minimum": 0})]
Duration = Annotated[int, _Kind(_read_duration, _QUANTITY)]
Interval = Annotated[str, _Kind(_read_every, _QUANTITY)]
Size = Annotated[int, _Kind(_read_size, _QUANTITY)]
SizeAboveZero = Annotated[int, _Kind(_read_size_above_zero, _QUANTITY)]
Word = Annotated[str, word(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]*", "a name: letters, digits, '_', '.', '+', '@' or '-'")]
Words = Annotated[str, word(r"[A-Za-z0-9_][A-Za-z0-9_.+,-]*", "a name of letters, digits, '_', '.' or '-', or several separated by commas")]
HostList = Annotated[str, word(r"[A-Za-z0-9_][A-Za-z0-9_.,\[\]-]*", "hosts as Slurm writes them, such as node01,node[03-07]")]
Features = Annotated[str, word(r"[A-Za-z0-9_\[(][A-Za-z0-9_.,:=&|*()\[\]-]*", "features as Slurm writes them, such as a100|h100")]
Gpus = Annotated[str, word(r"(?:[A-Za-z][A-Za-z0-9_.-]*:)?[0-9]{1,4}", "GPUs such as 2, or with a type a100:2")]
Gres = Annotated[str, word(f"{_GRES}(?:,{_GRES})*", "generic resources such as gpu:2 or gpu:a100:2")]
Mail = Annotated[str, word(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(?:@[A-Za-z0-9][A-Za-z0-9.-]*)?", "a mail address")]
MailTypes = Annotated[
    str, word(f"(?:{_MAIL})(?:,(?:{_MAIL}))*", "BEGIN, END, FAIL, TIME_LIMIT, ALL or NONE, or several separated by commas", upper=True)
]
Metric = Annotated[str, word(r"[^\s\x00-\x1f](?:[^\x00-\x1f]{0,198}[^\s\x00-\x1f])?", "the name of a logged metric, such as val_accuracy")]
Glob = Annotated[str, word(r"[^\x00-\x1f]+", "a pattern such as data/ or *.tmp")]
ParamName = Annotated[str, word(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}", "a param's name: letters, digits, '_', '.' or '-', a letter first")]
Scalar = Annotated[str | int | float | bool | None, _Kind(_read_scalar, _SCALAR)]
Number = Annotated[int | float, _Kind(_read_number, {"type": "number"})]
VariableName = Annotated[str, _Kind(_read_variable_name, {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"})]
Variables = Annotated[dict[VariableName, Annotated[str, _Kind(_read_variable, _SCALAR)]], BeforeValidator(without_nulls)]
Module = Annotated[str, word(r"[A-Za-z0-9_.][A-Za-z0-9_.+/@:=,~^%-]*", "a module's name, such as cuda/12.0")]
Conda = Annotated[str, _Kind(_read_conda, {"type": "string"})]
Folder = Annotated[str, _Kind(_read_path("a folder"), {"type": "string"})]
File = Annotated[str, _Kind(_read_path("a file"), {"type": "string"})]
Package = Annotated[str, word(r"[A-Za-z0-9_][^\x00-\x1f]{0,499}", "a package, such as numpy or torch==2.4.1")]
Version = Annotated[str, word(r"[A-Za-z0-9_./][A-Za-z0-9_./-]*", "a version such as 3.11, or a program")]
Argument = Annotated[str, word(r"[^\s\x00-\x1f][^\x00-\x1f]*", "a word of a command")]
Line = Annotated[str, _Kind(_read_line, {"type": "string"})]
SchedulerOption = Annotated[str, _Kind(_read_scheduler_option, {"type": "string", "pattern": "^-"})]
Signal = Annotated[str, _Kind(_read_signal, {"type": "string"})]
Switch = Annotated[bool, _Kind(_read_flag, {"type": "boolean"})]
OwnCheckpoints = Annotated[bool, _Kind(_read_own, {"type": "boolean"})]
PathBelow = Annotated[str, _Kind(_read_path_below, {"type": "string"})]
Command = Annotated[tuple[str, ...], _Kind(_read_command, _COMMAND)]
Launcher = Annotated[str, choice("plain", "srun", "torchrun", "mpirun", "horovodrun")]
EmptyBenchmark = Annotated[tuple[()], _Kind(_read_benchmark, {"type": "array", "maxItems": 0})]
