"""Folders for what is submitted: the day's next letter, taken by one of all who ask at once; and nothing stays of what failed."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from onward.errors import InvalidInput, StorageError
from onward.rundir.layout import folder_name, letter
from onward.rundir.root.layout import RootDir


def run_day(created: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(created))


def next_folder(root: Path, day: str, name: str) -> Path:
    """The one that the next to ask would get."""
    return root / folder_name(day, _next_letter(root, day), name)


def take_folder(root: Path, day: str, name: str, make: Callable[[Path], None]) -> Path:
    """The day's next free letter. Two submits at once settle it by who makes the hidden mark of a letter first."""
    try:
        RootDir(root).make()
        while True:
            mine = _next_letter(root, day)
            mark = root / f".{day}_{mine}"
            try:
                mark.mkdir()
            except FileExistsError:
                continue
            try:
                if not list(root.glob(f"{day}_{mine}_*")):  # else somebody took it, and his mark is gone already
                    path = root / folder_name(day, mine, name)
                    with removed_if_it_fails(path):
                        make(path)
                    return path
            finally:
                mark.rmdir()
    except OSError as error:
        raise InvalidInput(
            f"cannot store runs in {root}: {error.strerror}",
            hint="set ONWARD_ROOT, or the cluster's `root` in the settings, to a folder you can write to",
        ) from error


@contextmanager
def removed_if_it_fails(path: Path) -> Iterator[None]:
    """Nobody has been asked for a job yet, so nobody misses the folder: also after Ctrl-C."""
    try:
        yield
    except BaseException as error:
        shutil.rmtree(path, ignore_errors=True)
        if isinstance(error, OSError):
            raise StorageError(
                f"the run could not be stored in {path}: {error}", hint="is there room, and do you have write access?"
            ) from error
        raise


def _next_letter(root: Path, day: str) -> str:
    taken = {path.name.split("_")[1] for pattern in (f"{day}_*_*", f".{day}_*") for path in root.glob(pattern)}
    return next(letter(n) for n in range(len(taken) + 1) if letter(n) not in taken)
