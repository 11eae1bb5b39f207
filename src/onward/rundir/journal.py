"""Journals: append-only events, one writer a file. The truth about a run is all of them, read in any order."""

from __future__ import annotations

import json
import logging
import os
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from onward.model.event import Claimed, Event, event_of, parse_event
from onward.model.run import Run, fold
from onward.model.spec import RunSpec, spec_from_json
from onward.rundir.claim import claim_event, claimed_legs
from onward.rundir.layout import RunDir
from onward.sdk.files import write_all

log = logging.getLogger(__name__)


class Journal:
    """A journal being written. Each event is on disk before `write` returns; one that could not be written spoils no later one.

    A `patient` one, that of a leg at work, does not raise while it cannot be written: it keeps the events and writes them, in
    their order, with the next one. A training must not end because a disk is full.
    """

    def __init__(self, path: Path, *, patient: bool = False) -> None:
        self._path = path
        self._patient = patient
        self._waiting: list[bytes] = []
        self._handle = -1
        self._torn = False  # the file ends within a line
        self._lock = threading.Lock()

    def write(self, event: Event) -> None:
        with self._lock:
            self._waiting.append(event.line().encode() + b"\n")
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

    def _append(self) -> None:
        if self._handle < 0:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
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
                log.error("%s lacks its last %d events: %s", self._path, len(self._waiting), error)
            self._waiting.clear()
            if self._handle >= 0:
                os.close(self._handle)
                self._handle = -1


def desk_journal(run: RunDir, *, patient: bool = False) -> Journal:
    """A journal for one act of one process (submit, cancel, tend; in a job, what comes before its claim): a file of its own, so no
    lock is needed."""
    return Journal(run.desk_journal(f"{time.time():.3f}-{secrets.token_hex(4)}"), patient=patient)


def read_events(run: RunDir) -> Iterator[Event]:
    try:
        names = sorted(os.listdir(run.journals))
    except FileNotFoundError:
        return
    for name in names:
        if name.endswith(".jsonl"):
            yield from _read_file(run.journals / name)


def read_spec(run: RunDir) -> RunSpec:
    return spec_from_json(json.loads(run.spec.read_bytes()))


def read_run(run: RunDir) -> Run:
    """All that is written of a run, folded."""
    return fold(read_spec(run), read_history(run))


def read_history(run: RunDir) -> list[Event]:
    """All events. A claim counts even if its job was killed before it wrote the event: nobody else can take that leg."""
    events = list(read_events(run))
    told = {event.leg for event in events if isinstance(event, Claimed)}
    return events + [claim_event(run, leg) for leg in claimed_legs(run) - told]


def _read_file(path: Path) -> list[Event]:
    """Whole lines only: the last one may be torn, by a kill in the middle of a write or because it is being written.

    All lines are decoded in one go, which halves the cost of looking at many runs; line by line only where one is broken.
    """
    lines = [line for line in path.read_bytes().split(b"\n")[:-1] if line]
    try:
        return [event for event in map(event_of, json.loads(b"[%s]" % b",".join(lines))) if event]
    except (ValueError, TypeError, AttributeError):
        return [event for event in (_parse_or_warn(path, line) for line in lines) if event]


def _parse_or_warn(path: Path, line: bytes) -> Event | None:
    try:
        return parse_event(line)
    except (ValueError, TypeError, AttributeError):
        log.warning("%s holds a line that is no event and is passed over: %r", path, line[:200])
        return None
