"""Request: what a job asks of one machine, and the `#ONWARD` lines of a job script that say so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from onward.errors import InvalidInput
from onward.model.quantity import format_duration, format_size, parse_duration, parse_size
from onward.model.spec import Resources

_MARK = "#ONWARD "


@dataclass(frozen=True, kw_only=True)
class ResourceRequest:
    cpus: int = 1
    mem: int | None = None  # MiB; 0: all of the machine's; None: neither counted nor limited
    gpus: int = 0
    all_gpus: bool = False  # no number was asked for: all there are, as without a queue
    time: int | None = None  # seconds
    output: str | None = None  # a file the job's words are appended to


def directive_lines(resources: Resources, *, output: Path) -> Sequence[str]:
    """Partitions, accounts, mail and names of nodes mean nothing on one machine and leave no line; more nodes than one cannot be had."""
    if resources.nodes is not None and resources.nodes > 1:
        raise InvalidInput(
            f"nodes: {resources.nodes} is not possible in the local queue, which is one machine",
            hint="leave nodes out, or choose another cluster",
        )
    if "\n" in str(output):
        raise InvalidInput(f"the output file {str(output)!r} has a line break in its name", hint="choose a folder without a line break")
    asked = {
        "time": format_duration(resources.time) if resources.time is not None else None,
        "mem": format_size(resources.mem) if resources.mem is not None else None,
        "cpus-per-task": resources.cpus_per_task,
        "ntasks": resources.ntasks or resources.ntasks_per_node,
        "gpus": resources.gpu_count() if resources.asks_gpus() else None,
        "output": output.absolute(),
    }
    return [f"{_MARK}--{key}={value}" for key, value in asked.items() if value is not None]


def parse_directives(script: str) -> ResourceRequest:
    """Read back what `directive_lines` wrote. Only the comments at the head count, as with every batch system."""
    asked: dict[str, str] = {}
    for line in _head(script):
        key, equals, value = line.removeprefix(_MARK).strip().removeprefix("--").partition("=")
        if key not in ("time", "mem", "cpus-per-task", "ntasks", "gpus", "output") or not equals:
            raise InvalidInput(
                f"the job script's line {line!r} is not an option of the local queue", hint="write --name=value, as in #ONWARD --mem=4G"
            )
        asked[key] = value
    return ResourceRequest(
        cpus=_count(asked, "cpus-per-task", default=1) * _count(asked, "ntasks", default=1),
        mem=parse_size(asked["mem"]) if "mem" in asked else None,
        gpus=_count(asked, "gpus", default=0),
        all_gpus="gpus" not in asked,
        time=parse_duration(asked["time"]) if "time" in asked else None,
        output=asked.get("output"),
    )


def _head(script: str) -> Iterator[str]:
    for line in script.split("\n"):
        if line.startswith(_MARK):
            yield line
        elif line.strip() and not line.startswith("#"):
            return


def _count(asked: dict[str, str], key: str, *, default: int) -> int:
    text = asked.get(key, str(default))
    if not text.isdecimal() or (int(text) == 0 and default):
        raise InvalidInput(f"--{key}={text} in the job script is not a number of {key}", hint="write a whole number")
    return int(text)
