"""Journals: append-only events, one writer a file. The truth about a run is all of them, read in any order."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from onward.model.events import Claimed, Event, event_of, parse_event
from onward.model.run import Run, fold
from onward.model.spec import RunSpec, spec_from_json
from onward.rundir.claim import claim_event, claimed_legs
from onward.rundir.files.no_links import open_at, open_folder_beneath, read_beneath, read_whole
from onward.rundir.layout import RunDir
from onward.sdk.atomic_files import make_folder_in, write_all

log = logging.getLogger(__name__)

_LARGEST_SPEC = 64 << 20  # bytes
_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Journal:
    """A journal being written. Each event is on disk before `write` returns; one that could not be written spoils no later one.

    A `patient` one, that of a leg at work, does not raise while it cannot be written: it keeps the events and writes them, in
    their order, with the next one. A training must not end because a disk is full.
    """

    def __init__(self, path: Path, *, patient: bool = False) -> None:
        self._path = path
        self._run = RunDir(path.parent.parent)
        self._patient = patient
        self._waiting: list[bytes] = []
        self._all: list[bytes] = []
        self._handle = -1
        self._torn = False  # the file ends within a line
        self._lock = threading.Lock()

    def write(self, event: Event) -> None:
        with self._lock:
            self._waiting.append(event.line().encode() + b"\n")
            self._all.append(self._waiting[-1])
            try:
                self._append()
                self._waiting.clear()
            except OSError as error:
                if not self._patient:
                    self._waiting.clear()
                    raise
                log.warning("%s cannot be written now: %s", self._path, error)

    def flush(self) -> None:
        """Write what waits. Raises OSError, and keeps it, while that is not possible."""
        with self._lock:
            if self._waiting:
                self._append()
                self._waiting.clear()

    @property
    def waiting(self) -> bytes:
        """Events that could not be written yet, as lines."""
        with self._lock:
            return b"".join(self._waiting)

    @property
    def written(self) -> bytes:
        """All that was written here, on disk or not, as lines."""
        with self._lock:
            return b"".join(self._all)

    def _append(self) -> None:
        if self._handle < 0:
            if not self._path.parent.exists():
                make_folder_in(self._run.path, self._path.parent)
            with open_folder_beneath(self._run.root, self._path.parent) as folder:
                self._handle = open_at(folder, self._path.name, self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        before, self._torn = b"\n" if self._torn else b"", True
        write_all(self._handle, before + b"".join(self._waiting))
        self._torn = False
        os.fsync(self._handle)

    def close(self) -> None:
        with self._lock:
            try:
                if self._waiting:
                    self._append()
            except OSError as error:
                log.error("%s is missing its last %d events: %s", self._path, len(self._waiting), error)
            self._waiting.clear()
            if self._handle >= 0:
                os.close(self._handle)
                self._handle = -1


def desk_journal(run: RunDir, *, patient: bool = False) -> Journal:
    """A journal for one act of one process (submit, cancel, tend; in a job, what comes before its claim): a file of its own, so no
    lock is needed."""
    return Journal(run.desk_journal(f"{time.time():.3f}-{secrets.token_hex(4)}"), patient=patient)


class NotARunFolder(ValueError):
    """A folder that does not hold what a run's folder holds. Its words say where and what."""


def read_events(run: RunDir, *, broken: list[str] | None = None) -> list[Event]:
    """`broken`: gets each line that is not an event, with its place. They are passed over."""
    found: list[Event] = []
    try:
        with open_folder_beneath(run.root, run.journals) as folder:
            for name in sorted(os.listdir(folder)):
                if name.endswith(".jsonl"):
                    found += _read_file(folder, run.journals / name, broken=[] if broken is None else broken)
    except FileNotFoundError:
        pass
    return found


def broken_lines(run: RunDir) -> list[str]:
    """Lines of the journals that are not events, in words: for whoever asks about this run."""
    found: list[str] = []
    with contextlib.suppress(OSError):
        read_events(run, broken=found)
    return found


def read_spec(run: RunDir) -> RunSpec:
    """Raises OSError or NotARun."""
    data = read_beneath(run.root, run.spec, most=_LARGEST_SPEC)
    with _as_words(f"{run.spec} is not a valid spec"):
        spec = spec_from_json(json.loads(data))
        if not isinstance(spec.id, str) or not _ID.fullmatch(spec.id):
            raise NotARunFolder(f"{run.spec} is not a valid spec: {spec.id!r:.80} is not a run id")
        return spec


def read_run(run: RunDir) -> Run:
    """All that is written of a run, folded. Raises OSError or NotARun, whatever somebody has put into the folder."""
    return read_folded(run)[0]


def read_folded(run: RunDir) -> tuple[Run, list[Event]]:
    """The same, with the events that it was folded from."""
    spec = read_spec(run)
    with _as_words(f"{run.journals} is not the journal of a run"):
        events = read_history(run)
        return fold(spec, events), events


@contextlib.contextmanager
def _as_words(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, NotARunFolder):
        raise
    except RecursionError as error:
        raise NotARunFolder(f"{what}: it is nested too deeply") from error
    except KeyError as error:
        raise NotARunFolder(f"{what}: it has no {error}") from error
    except ValueError as error:
        raise NotARunFolder(f"{what}: {error!s:.300}") from error
    except Exception as error:  # values of other types than ours end anywhere
        raise NotARunFolder(f"{what}: it contains a value of another type than Onward writes ({error!s:.300})") from error


def read_history(run: RunDir) -> list[Event]:
    """All events. A claim counts even if its job was killed before it wrote the event: nobody else can take that leg."""
    events = list(read_events(run))
    claimed = {event.leg for event in events if isinstance(event, Claimed)}
    return events + [claim_event(run, leg) for leg in claimed_legs(run) - claimed]


def _read_file(folder: int, path: Path, *, broken: list[str]) -> list[Event]:
    """Whole lines only: the last one may be torn, by a kill in the middle of a write or because it is being written.

    All lines are decoded in one go, which halves the cost of looking at many runs; line by line only where one is broken.
    """
    with os.fdopen(open_at(folder, path.name, path), "rb") as file:
        lines = [line for line in read_whole(file, path).split(b"\n")[:-1] if line]
    try:
        return [event for event in map(event_of, json.loads(b"[%s]" % b",".join(lines))) if event]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return [event for number, line in enumerate(lines, 1) if (event := _parsed(line, f"{path.name}, line {number}", broken))]


def _parsed(line: bytes, place: str, broken: list[str]) -> Event | None:
    try:
        return parse_event(line)
    except (ValueError, TypeError, AttributeError, RecursionError):
        broken.append(f"{place}: {line[:80].decode(errors='replace')!r}")
        return None
