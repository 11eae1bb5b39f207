"""Durations and sizes in Slurm's spelling, on every cluster."""

from __future__ import annotations

import math
import re

from onward.errors import InvalidInput

_UNITS_MIB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}
_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?$", re.IGNORECASE)
_DURATION = re.compile(r"^(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?$")


def parse_duration(text: str | int) -> int:
    """Seconds from `90` (minutes), `90:00`, `24:00:00`, `1-12`, `1-12:30` or `7-00:00:00`, as Slurm reads them."""
    match = _DURATION.match(str(text).strip())
    if match is None:
        raise InvalidInput(f"{text!r} is not a time", hint="write minutes, MM:SS, HH:MM:SS or D-HH:MM:SS, as in 24:00:00 or 7-00:00:00")
    days, first, second, third = (int(part) if part is not None else None for part in match.groups())
    assert first is not None
    if days is not None:
        seconds = days * 86400 + first * 3600 + (second or 0) * 60 + (third or 0)
    elif third is not None:
        seconds = first * 3600 + (second or 0) * 60 + third
    elif second is not None:
        seconds = first * 60 + second
    else:
        seconds = first * 60
    if seconds <= 0:
        raise InvalidInput(f"{text!r} is not a positive time", hint="a time limit must be longer than zero")
    return seconds


def format_duration(seconds: float) -> str:
    """`D-HH:MM:SS`, or `HH:MM:SS` below a day: what every scheduler we speak to accepts."""
    whole = round(seconds)
    days, rest = divmod(whole, 86400)
    clock = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else clock


def duration_text(seconds: float) -> str:
    """For people, roughly: `45 s`, `12 min`, `3 h`, `3 h 20 min`, `2 d 4 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min" if minutes else f"{hours} h"
    return f"{hours // 24} d {hours % 24} h" if hours % 24 else f"{hours // 24} d"


def counted(count: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def parse_size(text: str | int) -> int:
    """MiB from `32G`, `512M`, `1.5T` or a bare number of MiB, rounded up. `0` means all memory of the node, so only 0 is 0."""
    match = _SIZE.match(str(text).strip())
    if match is None:
        raise InvalidInput(f"{text!r} is not a memory size", hint="write a number with K, M, G or T, as in 32G (a bare number is MiB)")
    number, unit = match.groups()
    return math.ceil(float(number) * _UNITS_MIB[(unit or "M").upper()])


def format_size(mib: int) -> str:
    """The shortest exact spelling: `32G`, `1536M`."""
    return f"{mib // 1024}G" if mib and mib % 1024 == 0 else f"{mib}M"


def format_bytes(count: float) -> str:
    """For people: `512 B`, `1.4 MB`, `3.2 GB`."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(count) < 1000 or unit == "TB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")
