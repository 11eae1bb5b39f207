"""Before a request's training starts: its inputs, fetched once, and whole in every leg."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from onward.clock import Clock
from onward.errors import InputRefused, InputsFailed, StorageError, StorageFull, TokenRefused
from onward.model.quantity import format_bytes, format_duration
from onward.model.requests.inputs import FileFetch, RunInputs
from onward.rundir.layout import RunDir
from onward.rundir.request_inputs import ask_for_token, is_token_asked, read_inputs
from onward.sdk import contract
from onward.sdk.atomic_files import make_folder_in, write_whole
from onward.supervisor.leg.context import LegContext
from onward.supervisor.preparation.download import Downloaded, DownloadInterrupted, DownloadTerms, download
from onward.supervisor.stop.run_folder_watch import StopRequest
from onward.supervisor.stop.signals import Signals

log = logging.getLogger(__name__)

_TRIES = 6
_SAME = 3  # interruptions after the same number of bytes: the file ends there
_FIRST_PAUSE = 1.0  # seconds; doubled from try to try
_LOOK_SECONDS = 0.2
_TOKEN_PATIENCE = 300.0  # seconds until whoever submitted the run has logged in again
_TOKEN_LOOK = 2.0  # seconds between looks for it, on shared storage


def fetch_inputs(context: LegContext, env: Mapping[str, str], signals: Signals) -> dict[str, str] | None:
    """The variables by which the training finds what its request gave. None where the leg is to stop before all of it is there."""
    order = read_inputs(context.dir)
    if order is None:
        return {}

    asked = StopRequest(context.dir, context.clock.now)

    def stopped() -> bool:
        return signals.ending or signals.warned or signals.deleted or signals.given_up or asked.to_stop()

    fetching = InputFetch(context.dir, order, env=env, clock=context.clock, deadline=context.allocation.deadline, stopped=stopped)
    if not fetching.work():
        log.info("fetching the inputs was interrupted")
        return None
    return {contract.INPUTS_DIR: str(context.dir.inputs), contract.REQUEST_FILE: str(context.dir.request)}


class InputFetch:
    def __init__(
        self,
        dir: RunDir,
        order: RunInputs,
        *,
        env: Mapping[str, str],
        clock: Clock,
        deadline: float | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._dir = dir
        self._order = order
        self._clock = clock
        self._stopped = stopped
        now = clock.now()
        self._seconds = order.seconds if deadline is None else min(order.seconds, max(10.0, (deadline - now) / 2))
        self._until = now + self._seconds
        self._terms = DownloadTerms(hosts=order.hosts, token=order.token, token_for=order.token_for, env=env, cut=self._cut)

    def work(self) -> bool:
        """False where it was asked to stop. Raises InputsFailed, or InputRefused where no further leg can do better."""
        self._make_room()
        there = self._there()
        for one in self._order.fetch:
            found = there.get(one.name)
            if found is not None and _is_whole(self._dir.inputs / one.name, found):
                continue
            if not one.url:
                raise InputRefused(
                    f"input {one.name!r} is gone, and its address was deleted when the run ended",
                    hint="send the request again",
                )
            left = self._order.most - sum(file.size for name, file in there.items() if name != one.name)
            got = self._fetch(one, most=left)
            if got is None:
                return False
            there[one.name] = got
            write_whole(self._dir.inputs_there, json.dumps({name: asdict(file) for name, file in there.items()}), mode=0o600)
        return True

    def _fetch(self, one: FileFetch, *, most: int) -> Downloaded | None:
        try:
            return self._tried(one, most=most)
        except TokenRefused:
            if not self._has_another_token(one):
                raise
        return None if self._stopped() else self._tried(one, most=most)

    def _has_another_token(self, one: FileFetch) -> bool:
        """Tokens expire, and are revoked. A job has no password: whoever submitted the run logs in again, and writes the order again."""
        log.warning("the application refuses the token for input %r; waiting for another", one.name)
        ask_for_token(self._dir)
        until = min(self._clock.now() + _TOKEN_PATIENCE, self._until)
        while is_token_asked(self._dir):
            if self._stopped():
                return True
            if self._clock.now() >= until:
                raise InputsFailed(
                    f"the application refuses the token for input {one.name!r}, and nobody logged in again",
                    hint="is the gateway running?",
                )
            self._wait(_TOKEN_LOOK)
        order, refused = read_inputs(self._dir), self._terms.token
        self._terms = replace(self._terms, token=order.token if order else refused)
        return self._terms.token != refused

    def _tried(self, one: FileFetch, *, most: int) -> Downloaded | None:
        pause, ends = _FIRST_PAUSE, list[int]()
        for attempt in range(1, _TRIES + 1):
            began = self._clock.now()
            try:
                got = download(one, self._dir.inputs / one.name, self._terms, most=most)
            except InputsFailed as error:
                if self._stopped():
                    return None
                if self._clock.now() >= self._until:
                    took = f"not all inputs were fetched after {format_duration(self._seconds)}"
                    raise InputsFailed(f"{took}: {error.message}", hint="limits.download-time of the recipe limits this") from error
                if not error.transient:
                    raise
                ends.append(error.after if isinstance(error, DownloadInterrupted) else 0)
                if ends[-1] and ends[-_SAME:] == [ends[-1]] * _SAME:
                    words = f"{error.message}, {_SAME} times at the same place"
                    raise InputRefused(words, hint="the file is incomplete where it is kept: upload it again") from error
                if attempt == _TRIES:
                    raise InputsFailed(f"{error.message}, {_TRIES} times", hint="does its server answer?") from error
                log.warning("%s; trying again in %.0f s", error.message, pause)
            except OSError as error:
                raise _not_stored(one, error) from error
            else:
                log.info("fetched input %r: %s in %.1f s", one.name, format_bytes(got.size), self._clock.now() - began)
                return got
            self._wait(pause)
            pause *= 2
        raise AssertionError("unreachable")

    def _wait(self, seconds: float) -> None:
        until = self._clock.now() + seconds
        while self._clock.now() < until and not self._cut():
            self._clock.sleep(_LOOK_SECONDS)

    def _cut(self) -> bool:
        return self._clock.now() >= self._until or self._stopped()

    def _make_room(self) -> None:
        try:
            make_folder_in(self._dir.path, self._dir.inputs.parent)
            self._dir.inputs.mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise StorageError(f"cannot create the folder {self._dir.inputs}: {error.strerror}") from error

    def _there(self) -> dict[str, Downloaded]:
        try:
            return {name: Downloaded(**file) for name, file in json.loads(self._dir.inputs_there.read_bytes()).items()}
        except (OSError, ValueError, TypeError, AttributeError):  # none yet, or no longer whole: then they are fetched again
            return {}


def _is_whole(path: Path, found: Downloaded) -> bool:
    try:
        if path.stat().st_size != found.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == found.sha256
    except OSError:
        return False


def _not_stored(one: FileFetch, error: OSError) -> StorageError:
    return StorageFull(f"input {one.name!r} could not be stored: {error.strerror or error}", hint="is there room for it?")
