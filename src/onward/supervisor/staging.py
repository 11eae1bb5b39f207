"""The stager as a process: both ends. The supervisor starts it and reads its reports; the process carries checkpoints."""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import queue
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from onward.checkpoints.stager import Report, Stager
from onward.checkpoints.watch import Watcher
from onward.clock import SystemClock
from onward.rundir.journal import read_spec
from onward.rundir.layout import LegLocal, RunDir
from onward.rundir.mirror import LogsNotCarried, carry
from onward.rundir.spool import SpoolReader
from onward.supervisor.child import start_helper
from onward.supervisor.signals import spare_me

log = logging.getLogger(__name__)

_TICK = 0.25
_AFTER_A_MISS = 5.0  # seconds: a full disk does not empty by being asked
_LATE_SHARES = 5.0  # seconds: at the end, wait so long for shares of other nodes to be seen
_LAST_HOPE = 60.0  # seconds: at the end, wait so long for room


class StagerProcess:
    """The supervisor's handle. A stager that dies is started again: what it left half-done is done anew."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], woken: threading.Event) -> None:
        self._command = command
        self._env = env
        self._woken = woken
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._closing = False
        self._process = self._start(command)

    def reports(self) -> list[Report]:
        found = []
        while not self._reports.empty():
            found.append(self._reports.get())
        if self._process.poll() is not None and not self._closing:
            log.warning("the stager died with %s; starting another", self._process.returncode)
            self._process = self._start(self._command)
        return found

    def drain(self, *, until: float) -> list[Report]:
        """Have everything complete carried over, then end it. Not later than `until` (unix seconds)."""
        self._closing = True
        if self._process.stdin:
            self._process.stdin.close()
        while self._process.poll() is None and time.time() < until:
            self._woken.wait(0.05)
            self._woken.clear()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join(timeout=1.0)
        return self.reports()

    def _start(self, command: Sequence[str]) -> subprocess.Popen[str]:
        process = start_helper(command, env=self._env)
        self._reader = threading.Thread(target=self._read, args=(process,), name="stager-reports", daemon=True)
        self._reader.start()
        return process

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            try:
                self._reports.put(Report(**json.loads(line)))
            except (ValueError, TypeError):
                log.warning("the stager said %r", line)
            self._woken.set()


def main(argv: Sequence[str]) -> int:
    """The process itself: works until its input closes (the training is over, or the supervisor is gone), then once more."""
    parser = argparse.ArgumentParser(prog="stage")
    parser.add_argument("run", type=Path)
    parser.add_argument("leg", type=int)
    parser.add_argument("local", type=Path)
    parser.add_argument("--resumed-step", type=int)
    parser.add_argument("--since", type=float, default=0.0, help="what is older than this came from a checkpoint")
    options = parser.parse_args(argv)
    spare_me()
    run, local = RunDir(options.run), LegLocal(options.local)
    spool = SpoolReader(local.spool)

    def progress() -> tuple[int | None, Mapping[str, float]]:
        """Called before each publish: what was logged up to a checkpoint reaches the run's folder before the checkpoint does."""
        try:
            carry(local, run)
        except LogsNotCarried as error:  # the supervisor says so; a checkpoint is worth more
            log.debug("%s", error)
        return spool.read().last_step, spool.progress.last

    watcher = Watcher(local.checkpoints)
    watcher.ignore_present(before=options.since)
    stager = Stager(
        watcher,
        run.checkpoints,
        leg=options.leg,
        rule=read_spec(run).checkpoints,
        resumed_step=options.resumed_step,
        progress=progress,
        clock=SystemClock(),
        shares=local.checkpoints,
    )
    closed = missed = False
    give_up = shares_until = math.inf
    while not closed or (missed and time.monotonic() < give_up):
        if closed:
            time.sleep(1.0)
        elif _input_closed(_AFTER_A_MISS if missed else _TICK):
            closed, give_up = True, time.monotonic() + _LAST_HOPE
            shares_until = time.monotonic() + _LATE_SHARES
        missed = False
        for report in stager.work(closed=closed):
            _say(report)
            missed = missed or report.kind == "missed"
        if closed and not missed and stager.waits_for_shares and time.monotonic() < shares_until:
            missed = True  # what other nodes have put there may be seen late
    for report in stager.last_words():
        _say(report)
    return 0


def _say(report: Report) -> None:
    try:
        sys.stdout.write(json.dumps(asdict(report)) + "\n")
        sys.stdout.flush()
    except OSError:
        pass  # nobody listens any more; the checkpoint itself is the truth


def _input_closed(seconds: float) -> bool:
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return bool(ready) and os.read(sys.stdin.fileno(), 1) == b""
