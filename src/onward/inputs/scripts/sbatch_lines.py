"""`#SBATCH` lines, read as sbatch reads them: short and long options, abbreviations, `=` or a blank before the value."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator, Mapping

from onward.errors import InvalidInput
from onward.inputs.scripts.line_words import MalformedDirective, marked_lines, words_of
from onward.inputs.scripts.option_table import Fate, refusal
from onward.inputs.scripts.requested_options import RequestedOptions, ScriptOption, tasks_of
from onward.inputs.scripts.slurm_options import OPTIONS
from onward.model.quantity import parse_duration, parse_size

MARK = "#SBATCH"
_ALIASES = {"workdir": "chdir", "share": "oversubscribe", "cluster": "clusters", "tasks-per-node": "ntasks-per-node"}
_OLD = {"workdir": "one", "share": "none", "cluster": "one", "tasks-per-node": "one"}  # names from before
_LONG = {**{name.removeprefix("--"): rule.value for name, rule in OPTIONS.items()}, **_OLD}
_SHORT = {rule.short[1:]: name.removeprefix("--") for name, rule in OPTIONS.items() if rule.short}
_UNLIMITED = ("0", "-1", "unlimited", "infinite")


def options_in(text: str) -> Iterator[ScriptOption | tuple[int, str]]:
    """Each option; or, for what sbatch would not take, the line's number and what is wrong with it."""
    for number, line in marked_lines(text, MARK, head_only=True):
        try:
            words = words_of(line)
        except MalformedDirective as error:
            yield number, str(error)
            continue
        yield from _options_of(words, number)


def _options_of(words: list[str], line: int) -> Iterator[ScriptOption | tuple[int, str]]:
    rest = list(words)
    while rest:
        yield from next_options(rest, line)


def next_options(rest: list[str], line: int) -> Iterator[ScriptOption | tuple[int, str]]:
    """What the first word says, several letters in one word included. It and its value are taken off the words."""
    word = rest.pop(0)
    if word in ("hetjob", "packjob"):
        yield line, "heterogeneous jobs are not supported; submit each part as a run"
    elif word.startswith("--") and len(word) > 2:
        yield _long(word, rest, line)
    elif word.startswith("-") and len(word) > 1 and word != "--":
        yield from _short(word[1:], rest, line)
    else:
        yield line, f"found {word!r}, expected an option: sbatch does not accept it either"


def is_known(name: str) -> bool:
    """Whether a word with two dashes is an option of sbatch, or short for some."""
    return any(known.startswith(name.removeprefix("--")) for known in _LONG)


def long_name(letter: str) -> str:
    """--output of -o; empty where sbatch has no such letter."""
    name = _SHORT.get(letter.removeprefix("-"))
    return f"--{name}" if name else ""


def _long(word: str, rest: list[str], line: int) -> ScriptOption | tuple[int, str]:
    given, equals, value = word[2:].partition("=")
    near = [given] if given in _LONG else [name for name in _LONG if name.startswith(given)]
    if len(near) > 1:
        return line, f"--{given} is an ambiguous short form of: {', '.join(f'--{name}' for name in near)}"
    name = near[0] if near else given
    kind = _LONG.get(name, "unknown")
    if equals:
        return ScriptOption(name=f"--{_ALIASES.get(name, name)}", value=value, line=line)
    if kind == "one" or (kind == "unknown" and rest and not rest[0].startswith("-")):
        if not rest:
            return line, f"--{name} has no value"
        return ScriptOption(name=f"--{_ALIASES.get(name, name)}", value=rest.pop(0), line=line)
    return ScriptOption(name=f"--{_ALIASES.get(name, name)}", value=None, line=line)


def _short(letters: str, rest: list[str], line: int) -> Iterator[ScriptOption | tuple[int, str]]:
    """`-p gpu`, `-pgpu`, `-HQ`."""
    while letters:
        letter, letters = letters[0], letters[1:]
        name = _SHORT.get(letter)
        if name is None:
            yield line, f"-{letter} is not an option of sbatch"
            return
        kind = _LONG[name]
        if kind == "none":
            yield ScriptOption(name=f"--{name}", value=None, line=line)
            continue
        if kind == "maybe":
            yield ScriptOption(name=f"--{name}", value=letters or None, line=line)
            return
        value = letters.removeprefix("=") if letters else rest.pop(0) if rest else None
        yield ScriptOption(name=f"--{name}", value=value, line=line) if value is not None else (line, f"-{letter} has no value")
        return


# ── what they mean ────────────────────────────────────────────────────────────


def take(option: ScriptOption, wishes: RequestedOptions) -> None:
    """Let one option say its wish. What we have no word for goes on to sbatch as it is."""
    name = option.name.removeprefix("--")
    if wishes.leave(option, OPTIONS.get(option.name)):
        return
    if name in _KNOWN:
        try:
            _KNOWN[name](option, option.value or "", wishes)
        except (InvalidInput, MalformedDirective) as error:
            wishes.refuse(option, f"{error.message}; {error.hint}" if isinstance(error, InvalidInput) else str(error))
    else:
        wishes.extra.append(str(option))


def _text(key: str) -> Callable[[ScriptOption, str, RequestedOptions], None]:
    def put(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
        if not value or re.search(r"[\s\"\\]", value):  # our own words have no blanks: sbatch gets it as it was
            wishes.extra.append(str(option))
        else:
            wishes.resources[key] = value.upper() if key == "mail_type" else value

    return put


def _count(key: str) -> Callable[[ScriptOption, str, RequestedOptions], None]:
    def put(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
        if re.fullmatch(r"[1-9]\d{0,8}", value):
            wishes.resources[key] = int(value)
        else:
            wishes.extra.append(str(option))  # such as 2-4 and 1k

    return put


def _hosts(key: str) -> Callable[[ScriptOption, str, RequestedOptions], None]:
    def put(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
        if "/" in value:
            raise MalformedDirective("found a file of hosts, expected their names: later legs are not queued from this folder")
        wishes.resources[key] = value

    return put


def _time(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    if value.lower() in _UNLIMITED:
        wishes.extra.append(str(option))
    else:
        wishes.resources["time"] = parse_duration(value)


def _mem(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    wishes.resources["mem"] = parse_size(value)


def _job_name(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    wishes.name = value


def _output(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    wishes.out = value


def _error(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    wishes.err = value


def _open_mode(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    if value not in ("append", "truncate"):
        raise MalformedDirective("expected append or truncate")
    wishes.append = value == "append"


def _chdir(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    wishes.folder = value


def _array(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    tasks, percent, _ = value.partition("%")
    if percent:
        raise MalformedDirective(
            "each task becomes a run of its own, and none waits for another; leave out the % and what follows, "
            "and submit a part of the array at a time, as in --array=1-4"
        )
    tasks_of(tasks)
    wishes.array = tasks


def _signal(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    match = re.fullmatch(r"(?:([RB]{1,2}):)?([A-Za-z]+\d?|\d+)(?:@(\d+))?", value)
    known = {sig.name.removeprefix("SIG"): sig for sig in signal.Signals}
    if not match:
        raise MalformedDirective("expected a signal such as B:USR1@120")
    word = match[2].upper().removeprefix("SIG")
    if word.isdigit() and int(word) in list(signal.Signals):
        word = signal.Signals(int(word)).name.removeprefix("SIG")
    if word not in known or word in ("KILL", "STOP"):
        raise MalformedDirective("expected a signal that a program can catch, such as B:USR1@120")
    wishes.stop_signal, wishes.stop_lead = word, int(match[3] or 60)
    wishes.signal_to = "shell" if "B" in (match[1] or "") else "steps"


def _export(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    """ALL is the default. Anything less: sbatch is told too, and nothing of the submitting shell is kept with the run."""
    names = [part for part in value.split(",") if part]
    for part in names:
        key, equals, text = part.partition("=")
        if equals:
            wishes.variables[key] = text
    if value and "ALL" not in names:
        wishes.carry = False
        wishes.extra.append(str(option))


_KNOWN: Mapping[str, Callable[[ScriptOption, str, RequestedOptions], None]] = {
    **{word: _text(word.replace("-", "_")) for word in ("gpus", "gres", "partition", "account", "qos", "constraint", "reservation")},
    **{word: _text(word.replace("-", "_")) for word in ("mail-user", "mail-type")},
    **{word: _count(word.replace("-", "_")) for word in ("cpus-per-task", "nodes", "ntasks", "ntasks-per-node")},
    **{word: _hosts(word) for word in ("nodelist", "exclude")},
    "time": _time,
    "mem": _mem,
    "job-name": _job_name,
    "output": _output,
    "error": _error,
    "open-mode": _open_mode,
    "chdir": _chdir,
    "array": _array,
    "signal": _signal,
    "export": _export,
}


def refused(name: str) -> str:
    rule = OPTIONS.get(name)
    return rule.words if rule and rule.fate is Fate.REFUSED else ""


def not_handed_on(name: str) -> str | None:
    """Why this one is never passed on; None where it may be."""
    return refusal(OPTIONS, f"--{name}")
