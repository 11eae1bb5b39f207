"""Paths that lead out of the project, such as `../data`: found in the command and in the code, so that they go on working in the copy."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_READ = (".py", ".sh", ".bash", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".ipynb")
_LARGEST = 256 << 10  # bytes of a file that is read
_MOST = 32 << 20  # bytes of all
_HIGHEST = 3  # folders above the project
_UP = re.compile(rb"(?<![\w./])(?:\./)?((?:\.\./)+\w[\w.+=@/-]*)")  # ../data/train
_JOINED = re.compile(
    rb"[\"']((?:\.\./)*\.\.)/?[\"']\)?\s*[,/]\s*[\"'](\w[\w.+=@/-]*)[\"']"
)  # os.path.join("..", "data"), Path("..") / "data"


@dataclass(frozen=True, kw_only=True)
class OutsidePaths:
    """`above`: how many folders above the project the copy has to begin. `links`: what is there, by its path from that folder."""

    above: int = 0
    links: Mapping[Path, Path] = field(default_factory=dict)


def outside_paths(base: Path, cwd: Path, code: Iterable[Path], words: Iterable[str], *, runs: Path) -> OutsidePaths:
    """`code`: the project's files, relative to it. Each path counts from where the command starts, and from its file's own folder."""
    found: set[Path] = set()
    for start, text in _texts(base, cwd, code, words):
        for led in _led_to(start, text):
            if base not in led.parents and led != base and led not in base.parents:
                found.add(led)
    near = {led: above for led in found if 0 < (above := _above(base, led)) <= _HIGHEST}
    there = {led for led in near if os.path.lexists(led) and led != runs and runs not in led.parents}
    highest = max((near[led] for led in near if led in there or led.parent.is_dir()), default=0)
    if not highest:
        return OutsidePaths()
    first = base.parents[highest - 1]
    return OutsidePaths(above=highest, links={led.relative_to(first): led for led in there if not there & set(led.parents)})


def _above(base: Path, led: Path) -> int:
    return next((number for number, folder in enumerate(base.parents, start=1) if folder in led.parents), 0)


def _texts(base: Path, cwd: Path, code: Iterable[Path], words: Iterable[str]) -> Iterator[tuple[Path, bytes]]:
    yield cwd, "\n".join(words).replace("=", "\n").encode(errors="surrogateescape")
    left = _MOST
    for path in code:
        if path.suffix not in _READ or left <= 0:
            continue
        try:
            with (base / path).open("rb") as file:
                text = file.read(_LARGEST)
        except OSError:
            continue
        left -= len(text)
        if b".." in text:
            yield cwd, text
            yield (base / path).parent, text


def _led_to(start: Path, text: bytes) -> Iterator[Path]:
    named = [match[1] for match in _UP.finditer(text)] + [match[1] + b"/" + match[2] for match in _JOINED.finditer(text)]
    for name in named:
        yield Path(os.path.normpath(start / os.fsdecode(name)))
