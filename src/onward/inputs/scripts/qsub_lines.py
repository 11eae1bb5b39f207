"""`#$` lines, read as qsub reads them. Only what Onward must know becomes a word of ours; the rest goes on to qsub as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from onward.inputs.scripts.gridengine_options import OPTIONS
from onward.inputs.scripts.line_words import MalformedDirective, marked_lines, quoted, words_of
from onward.inputs.scripts.option_table import Fate, refusal
from onward.inputs.scripts.requested_options import RequestedOptions, ScriptOption, tasks_of
from onward.schedulers.gridengine.output_parsing import read_duration

MARK = "#$"
NOTIFY_SECONDS = 60  # what queues usually give between their warning and the kill


def options_in(text: str) -> Iterator[ScriptOption | tuple[int, str]]:
    """Each option; or, for what qsub would not take, the line's number and what is wrong with it."""
    for number, line in marked_lines(text, MARK, head_only=False):
        try:
            words = words_of(line)
        except MalformedDirective as error:
            yield number, str(error)
            continue
        while words:
            yield from next_options(words, number)


def next_options(words: list[str], line: int) -> Iterator[ScriptOption | tuple[int, str]]:
    """What the first word says. It and its values are taken off the words."""
    yield _next(words, line)


def _next(words: list[str], line: int) -> ScriptOption | tuple[int, str]:
    word = words.pop(0)
    if not word.startswith("-") or word == "-":
        return line, f"found {word!r}, expected an option: qsub does not accept it either"
    rule = OPTIONS.get(word)
    if rule and rule.value == "none":
        return ScriptOption(name=word, value=None, line=line)
    wanted = 2 if word == "-pe" or (word == "-binding" and words[:1] and words[0] in ("set", "env", "pe")) else 1
    if rule is None:  # what follows it up to the next option is its value
        wanted = next((i for i, following in enumerate(words) if following.startswith("-")), len(words))
    if len(words) < wanted:
        return line, f"{word} has no value" if wanted == 1 else f"{word} has too few values, expected {wanted}"
    values = [words.pop(0) for _ in range(wanted)]
    if wanted > 1:
        return ScriptOption(name=f"{word} {' '.join(quoted(value) for value in values[:-1])}", value=values[-1], line=line)
    return ScriptOption(name=word, value=values[0] if values else None, line=line)


# ── what they mean ────────────────────────────────────────────────────────────


def take(option: ScriptOption, wishes: RequestedOptions) -> None:
    name = option.name.split(" ", 1)[0]
    if wishes.leave(option, OPTIONS.get(name)):
        return
    if name in _KNOWN:
        try:
            _KNOWN[name](option, option.value or "", wishes)
        except MalformedDirective as error:
            wishes.refuse(option, str(error))
    else:
        wishes.extra.append(str(option))


def seconds_of(value: str) -> int:
    """Grid Engine's time: seconds, or [HH]:[MM]:SS with empty parts for zero."""
    seconds = read_duration(value) if value.count(":") in (0, 2) and len(value) < 20 else None
    if seconds is None:
        raise MalformedDirective("expected a time as Grid Engine writes it: seconds, or HH:MM:SS")
    if not seconds:
        raise MalformedDirective("a time limit must be longer than zero")
    return seconds


def _limits(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    """-l a=1,b=2: the times are ours, each other request goes on by itself."""
    for request in value.split(","):
        name, _, amount = request.partition("=")
        match name:
            case "h_rt" if amount.upper() != "INFINITY":
                wishes.resources["time"] = seconds_of(amount)
            case "s_rt" if amount.upper() != "INFINITY":
                wishes.stop_signal, wishes.signal_to = "USR1", "all"
                wishes.stop_lead = -seconds_of(amount)  # until the whole limit is known: see `settle`
            case _:
                wishes.extra.append(f"-l {quoted(request)}")


def settle(wishes: RequestedOptions) -> None:
    """What only all options together say: how long before the limit the warning of s_rt comes, and which file takes which stream."""
    if wishes.stop_lead is not None and wishes.stop_lead < 0:
        limit = wishes.resources.get("time")
        lead = (limit or 0) + wishes.stop_lead
        if limit is None or lead <= 0:
            wishes.problems.append((1, "-l s_rt: here it is a warning some time before h_rt; request a longer h_rt"))
        wishes.stop_lead = max(lead, 1)
    if wishes.joined:
        wishes.err = None


def _put(field: str) -> Callable[[ScriptOption, str, RequestedOptions], None]:
    def put(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
        setattr(wishes, field, value)

    return put


def _output(field: str) -> Callable[[ScriptOption, str, RequestedOptions], None]:
    def put(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
        """[host]:path, and several with commas for several hosts: the first path is taken."""
        first = value.split(",")[0]
        setattr(wishes, field, first.split(":", 1)[1] if re.match(r"[A-Za-z0-9_.-]*:", first) else first)

    return put


def _join(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    if value.lower() not in ("y", "yes", "n", "no"):
        raise MalformedDirective("expected y or n")
    wishes.joined = value.lower().startswith("y")


def _job_name(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    if re.search(r"[\s/:@\\*?]", value):
        raise MalformedDirective(r"expected a name without blanks and / : @ \ * ?, which qsub does not accept either")
    wishes.name = value


def _here(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    wishes.folder = "."


def _everything(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    wishes.carry = True


def _variables(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    """-v A=x,B: A is x, B as it is in the submitting shell."""
    for part in filter(None, value.split(",")):
        name, equals, text = part.partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise MalformedDirective(f"found {part!r}, expected NAME or NAME=VALUE separated by commas")
        if equals:
            wishes.variables[name] = text
        else:
            wishes.from_shell.append(name)


def _array(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    tasks_of(value)
    if re.match(r"0\b|0-", value):
        raise MalformedDirective("found task 0, expected tasks from 1: qsub does not accept it either")
    wishes.array = value if "-" in value or "," in value else f"1-{value}"  # `-t 7` is seven tasks


def _notify(option: ScriptOption, value: str, wishes: RequestedOptions) -> None:
    wishes.stop_signal, wishes.stop_lead, wishes.signal_to = "USR2", NOTIFY_SECONDS, "all"


_KNOWN: Mapping[str, Callable[[ScriptOption, str, RequestedOptions], None]] = {
    "-N": _job_name,
    "-l": _limits,
    "-o": _output("out"),
    "-e": _output("err"),
    "-j": _join,
    "-cwd": _here,
    "-wd": _put("folder"),
    "-S": _put("shell"),
    "-V": _everything,
    "-v": _variables,
    "-t": _array,
    "-notify": _notify,
}


def refused(name: str) -> str:
    rule = OPTIONS.get(name)
    return rule.words if rule and rule.fate is Fate.REFUSED else ""


def not_handed_on(name: str) -> str | None:
    """Why this one is never passed on; None where it may be."""
    return refusal(OPTIONS, name)


def is_known(word: str) -> bool:
    return word in OPTIONS


def is_long(word: str) -> bool:
    """An option of more than one letter, which sbatch would read as several."""
    return len(word) > 2 and word in OPTIONS
