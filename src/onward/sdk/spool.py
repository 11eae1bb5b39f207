"""The spool: one line a record, appended with one write, so that a killed training loses no step it logged."""

from __future__ import annotations

import errno
import itertools
import json
import os
import sys
import threading
import weakref
from collections.abc import Collection, Mapping
from time import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
WIDE = 100  # metrics of a record, from which it is packed: see `wide`
_MOST_FORMS = 256
_living: weakref.WeakSet[SpoolWriter] = weakref.WeakSet()


class SpoolWriter:
    """Appends records `{"n": sequence, "t": time, ...}` to a file of its own; never raises, never blocks on a network."""

    def __init__(self, folder: str, *, leg: int, rank: int | None = None, name: str | None = None) -> None:
        """`name`: of the writer, where it is not the number of a training's process."""
        self._folder = folder
        self._leg = leg
        self._who = "" if rank is None else f"r{rank}-"  # processes on different nodes may have the same number
        self._name = name
        self._handle = -1
        self._opening = threading.Lock()
        self._sequence = itertools.count()  # threads may log at once: no number is given twice
        self._forms: dict[tuple[str, ...], str] = {}
        self._torn = False  # the file ends within a line
        self._failed = False
        _living.add(self)

    def write(self, record: Mapping[str, object], *, at: float | None = None) -> bool:
        """False: it could not be written, and a warning was printed."""
        try:
            if self._handle < 0:
                self._open()
            self._append(_encode({"n": next(self._sequence), "t": time() if at is None else at, **record}) + "\n")
        except OSError as error:
            self._say(error)
            return False
        return True

    def write_floats(self, step: int, keys: tuple[str, ...], values: Collection[float]) -> None:
        """The same for metrics, in half the time. Values must be floats, and finite unless there are many: Python does not write others
        as JSON."""
        form = self._forms.get(keys) or self._form(keys)
        try:
            if self._handle < 0:
                self._open()
            if len(keys) < WIDE:
                self._append(form % (next(self._sequence), time(), step, *values))
            else:
                self._append(form % (next(self._sequence), time(), step, _wide().pack_values(values)))
        except OSError as error:
            self._say(error)

    def _append(self, line: str) -> None:
        data = ("\n" + line if self._torn else line).encode()
        if os.write(self._handle, data) == len(data):
            self._torn = False
            return
        self._torn = True
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _form(self, keys: tuple[str, ...]) -> str:
        """A record with these keys, for Python's % to fill in. Trainings log the same ones again and again."""
        if len(keys) < WIDE:
            pairs = ",".join(_encode(str(key)).replace("%", "%%") + ":%r" for key in keys)
            form = '{"n":%d,"t":%r,"s":%d,"m":{' + pairs + "}}\n"
        else:
            form = '{"n":%d,"t":%r,"s":%d,"k":"' + _wide().pack_names(keys) + '","v":"%s"}\n'
        if len(self._forms) >= _MOST_FORMS:
            self._forms.clear()
        self._forms[keys] = form
        return form

    def _open(self) -> None:
        with self._opening:
            if self._handle >= 0:
                return
            os.makedirs(self._folder, exist_ok=True)
            name = self._name or f"train-{self._who}{os.getpid()}"
            path = os.path.join(self._folder, f"leg-{self._leg:04d}.{name}.jsonl")
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            self._sequence = itertools.count()
            self._torn = False
            self._handle = handle

    def _say(self, error: OSError) -> None:
        if not self._failed:
            self._failed = True
            print(f"onward: cannot log to {self._folder}: {error}; training continues, metrics are lost meanwhile", file=sys.stderr)

    def forget(self) -> None:
        """In a forked worker: every process has its own file, and the next record opens it."""
        self._handle = -1
        self._opening = threading.Lock()


def _wide() -> ModuleType:
    from onward.sdk import packed_metrics  # few trainings need it

    return packed_metrics


def _forked() -> None:
    for writer in list(_living):
        writer.forget()


os.register_at_fork(after_in_child=_forked)
