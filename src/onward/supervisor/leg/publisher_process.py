"""The publisher as a process: both ends. The supervisor starts it and reads its reports; the process carries checkpoints."""

from __future__ import annotations

import argparse
import contextlib
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from onward.checkpoints.copying import SourceChanged
from onward.checkpoints.manifest import read_manifest
from onward.checkpoints.publishing.publisher import CheckpointPublisher, PublishReport
from onward.checkpoints.restoring.newest import published_names_of
from onward.checkpoints.save_writer import SaveService
from onward.checkpoints.watching.linked_paths import LinkedWatcher
from onward.checkpoints.watching.watcher import SaveWatcher
from onward.clock import SystemClock
from onward.errors import CheckpointDamaged, TakenOver
from onward.model.spec import RunSpec
from onward.rundir.journal import read_spec
from onward.rundir.layout import LegLocal, RunDir
from onward.rundir.mirror import LogsNotCarried, Mirror
from onward.rundir.progress import SpoolReader
from onward.sdk.saving import committed, step_of
from onward.supervisor.disk.lock import locked_folder
from onward.supervisor.own_log import log_to_stderr
from onward.supervisor.preparation.environment import working_folder
from onward.supervisor.processes.child import start_helper
from onward.supervisor.processes.guard import end_marked
from onward.supervisor.processes.survivors import leg_mark
from onward.supervisor.stop.run_folder_watch import refuse_if_taken_over

log = logging.getLogger(__name__)

_TICK = 0.25
_LONGEST_REST = 30.0  # seconds between looks into a folder with very many files
_AFTER_A_MISS = 5.0  # seconds: a full disk does not empty by being asked
_LATE_SHARES = 5.0  # seconds: at the end, wait so long for shares of other nodes to be seen
_LOGS_BEFORE_A_CHECKPOINT = 64 << 20  # bytes: a log that is far behind does not hold a checkpoint up
_SILENCE = 600.0  # seconds: at the end, a publisher that copies nothing for so long is given up
_BEAT = 10.0  # seconds between two words on how far it is
_LEFT, _KILLED = "left", "killed"  # what the supervisor says of the training at the end
_RESTART_PAUSE, _LONGEST_RESTART_PAUSE = 1.0, 30.0  # seconds before a publisher that died is started again: growing
_LIVED = 60.0  # seconds: one that lived so long did not die of how it was started
_RESTARTS_AT_END = 120.0  # seconds for which one that dies at the end is started again: its storage may be away
_FOLDER_PATIENCE = 60.0  # seconds for whoever works in the leg's folder to leave it
_LAST_HOPE = 60.0  # seconds: at the end, wait so long for room


class PublisherProcess:
    """The supervisor's handle. A publisher that dies is started again: what it left half-done is done again."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], woken: threading.Event) -> None:
        self._command = command
        self._env = env
        self._woken = woken
        self._reports: queue.SimpleQueue[PublishReport] = queue.SimpleQueue()
        self._closing = False
        self.cut = False  # it was ended with something still to publish
        self._heard = time.monotonic()
        self._pause = _RESTART_PAUSE
        self._restart_at: float | None = None
        self._process = self._start(command)

    def reports(self) -> list[PublishReport]:
        found = []
        while not self._reports.empty():
            found.append(self._reports.get())
        if self._process.poll() is not None and not self._closing:
            self._restart_in_time(time.monotonic())
        return found

    def drain(self, *, until: float, killed_at: float | None = None) -> list[PublishReport]:
        """Have everything complete published, then end it. Not later than `until` (unix seconds), and not once it makes no progress.

        `killed_at`: when the training was killed; None: it left by itself, so that all it wrote is whole.
        """
        self._closing = True
        self._heard = time.monotonic()
        self._say_last(killed_at)
        restarts_until = time.monotonic() + _RESTARTS_AT_END
        while time.time() < until:
            if self._process.poll() is not None:
                if self._process.returncode == 0 or time.monotonic() > restarts_until:
                    break
                if self._restart_in_time(time.monotonic()):
                    self._say_last(killed_at)
            if time.monotonic() - self._heard > _SILENCE:
                log.warning("nothing was published or copied for %.0f s; the storage hangs", _SILENCE)
                break
            self._woken.wait(0.05)
            self._woken.clear()
        if self._process.poll() is None:
            self.cut = True
            self._process.kill()
            self._process.wait()
        self.cut = self.cut or self._process.returncode != 0
        self._reader.join(timeout=1.0)
        return self.reports()

    def _say_last(self, killed_at: float | None) -> None:
        if self._process.stdin:
            with contextlib.suppress(OSError):  # it has died
                self._process.stdin.write(f"{_LEFT}\n" if killed_at is None else f"{_KILLED} {killed_at}\n")
                self._process.stdin.close()

    def _start(self, command: Sequence[str]) -> subprocess.Popen[str]:
        process = start_helper(command, env=self._env)
        self._began = time.monotonic()
        self._reader = threading.Thread(target=self._read, args=(process,), name="publisher-reports", daemon=True)
        self._reader.start()
        return process

    def _restart_in_time(self, now: float) -> bool:
        """Not at once: it may not be able to read its own code, and would die again in the same moment."""
        if self._restart_at is None:
            self._pause = _RESTART_PAUSE if now - self._began > _LIVED else self._pause
            log.warning("the publisher died with %s; starting another in %.0f s", self._process.returncode, self._pause)
            self._restart_at = now + self._pause
            self._pause = min(2 * self._pause, _LONGEST_RESTART_PAUSE)
        if now < self._restart_at:
            return False
        self._restart_at = None
        if self._process.stdin:
            with contextlib.suppress(OSError):  # what could not be said any more
                self._process.stdin.close()
        self._process = self._start(self._command)
        return True

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self._heard = time.monotonic()
                try:
                    report = PublishReport(**json.loads(line))
                    if report.kind != "moving":
                        self._reports.put(report)
                except (ValueError, TypeError):
                    log.warning("the publisher printed %r", line)
                self._woken.set()


def main(argv: Sequence[str]) -> int:
    """The process itself: works until its input closes (the training is over, or the supervisor is gone), then once more.

    It holds the lock of the leg's folder for its whole life. It hears no signals: see start_helper().
    """
    parser = argparse.ArgumentParser(prog="stage")
    parser.add_argument("run", type=Path)
    parser.add_argument("leg", type=int)
    parser.add_argument("local", type=Path)
    parser.add_argument("--resumed-step", type=int)
    parser.add_argument("--since", type=float, default=0.0, help="what is older than this came from a checkpoint")
    parser.add_argument("--nodes", type=int, default=1, help="on how many nodes the ranks run")
    options = parser.parse_args(argv)
    log_to_stderr("%(asctime)s publisher %(levelname)s %(message)s")
    with locked_folder(options.local, patience=_FOLDER_PATIENCE) as alone:
        if not alone:
            log.error("another process uses %s; nothing can be published from there", options.local)
            return 1
        run, local = RunDir(options.run), LegLocal(options.local)
        beat = Heartbeat(local.checkpoints, lambda: refuse_if_taken_over(run, options.leg))
        try:
            with SaveService(local.save_socket, moved=beat.written) as saves:
                return _stage(options, run, local, beat, saves)
        except TakenOver as error:
            log.warning("%s", error)
    while not _input_closed(_LONGEST_REST, bytearray()):  # the supervisor finds out by itself, and would start another
        pass
    return 0


def _stage(options: argparse.Namespace, run: RunDir, local: LegLocal, beat: Heartbeat, saves: SaveService) -> int:
    spec = read_spec(run)
    spool, mirror = SpoolReader(local.spool), Mirror(local, run)

    def progress() -> tuple[int | None, Mapping[str, float]]:
        """Called before each publish: what was logged up to a checkpoint reaches the run's folder before the checkpoint does."""
        try:
            mirror.carry(logs_at_most=_LOGS_BEFORE_A_CHECKPOINT)
        except LogsNotCarried as error:  # the supervisor says so; a checkpoint is worth more
            log.debug("%s", error)
        return spool.read().last_step, spool.progress.last

    own = spec.checkpoints.paths
    watcher = _own_files(run, local, spec) if own else SaveWatcher(local.checkpoints)
    watcher.ignore_present(before=spec.created if own else options.since, all_here=bool(own) or options.nodes == 1)
    publisher = CheckpointPublisher(
        watcher,
        run.checkpoints,
        leg=options.leg,
        rule=spec.checkpoints,
        resumed_step=options.resumed_step,
        progress=progress,
        clock=SystemClock(),
        shares=None if own else local.checkpoints,
        announce=beat.begin,
        moved=beat.moved,
        nodes=1 if own else options.nodes,
        fenced=beat.fenced,
    )
    closed = missed = False
    killed_at: float | None = None
    give_up = shares_until = math.inf
    said = bytearray()
    while not closed or (missed and time.monotonic() < give_up):
        if closed:
            time.sleep(1.0)
        elif _input_closed(_AFTER_A_MISS if missed else max(_TICK, min(watcher.rest, _LONGEST_REST)), said):
            words = bytes(said).decode(errors="replace")
            if not words.strip():  # the supervisor was killed, and perhaps the guard with it: nobody else ends the training
                end_marked([leg_mark(spec.id, options.leg)])
            killed_at = _killed_at(words, now=time.time())
            saves.finish()
            closed, give_up = True, time.monotonic() + _LAST_HOPE
            shares_until = time.monotonic() + _LATE_SHARES
        missed = False
        for report in publisher.work(closed=closed, killed_at=killed_at):
            _say(report)
            missed = missed or report.kind == "missed"
        missed = missed or publisher.waits_for_room
        if closed and not missed and publisher.waits_for_shares and time.monotonic() < shares_until:
            missed = True  # what other nodes have put there may be seen late
    for report in publisher.last_words():
        _say(report)
    if own and any(local.checkpoints.iterdir()):
        words = "what the training saved into ONWARD_CHECKPOINT_DIR is not published: checkpoints.paths says that it saves elsewhere"
        _say(PublishReport(kind="refused", step=options.resumed_step or 0, reason=words))
    return 0


def _own_files(run: RunDir, local: LegLocal, spec: RunSpec) -> SaveWatcher:
    """Of the files that the training keeps in its working folder, those are new that are not as they were published last."""
    names = published_names_of(run.checkpoints)
    published = None
    with contextlib.suppress(CheckpointDamaged):
        published = read_manifest(run.checkpoints / str(names[-1])) if names else None

    def warn(words: str) -> None:
        _say(PublishReport(kind="refused", step=0, reason=words))

    return LinkedWatcher(local.own, working_folder(spec, run), spec.checkpoints.paths, published=published, warn=warn)


class Heartbeat:
    """Says how far a publish is, and stops one that is in the way: the training has gone and a newer checkpoint waits."""

    def __init__(self, checkpoints: Path, fenced: Callable[[], None] = lambda: None) -> None:
        self._checkpoints = checkpoints
        self.fenced = fenced
        self._step: int | None = None
        self._bytes = 0
        self._said = self._looked = 0.0

    def begin(self, report: PublishReport) -> None:
        self._step, self._bytes = report.step, 0
        _say(report)

    def written(self, size: int) -> None:
        """By the save writer."""
        now = time.monotonic()
        self._bytes += size
        if now - self._said >= _BEAT:
            self._said = now
            _say(PublishReport(kind="moving", step=self._step or 0, bytes=self._bytes))

    def moved(self, size: int) -> None:
        self.written(size)
        now = time.monotonic()
        if now - self._looked >= _TICK:
            self._looked = now
            if not _input_ends():
                return
            self.fenced()  # the next leg waits for this folder: it carries over what is left
            newest = max(map(step_of, committed(self._checkpoints)), default=-1)
            if self._step is not None and newest > self._step:
                raise SourceChanged(f"the checkpoint of step {self._step} was dropped in favor of that of step {newest}")


def _input_ends() -> bool:
    """Whether the supervisor has closed our input; what it says otherwise is left for the main loop."""
    events = select.poll()
    events.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
    return any(event & select.POLLHUP for _, event in events.poll(0))


def _say(report: PublishReport) -> None:
    try:
        sys.stdout.write(json.dumps(asdict(report)) + "\n")
        sys.stdout.flush()
    except OSError:
        pass  # nobody listens any more; the checkpoint itself is the truth


def _input_closed(seconds: float, said: bytearray) -> bool:
    """Also keeps what the supervisor said before it closed our input."""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    while ready:
        piece = os.read(sys.stdin.fileno(), 4096)
        if not piece:
            return True
        said += piece
        ready, _, _ = select.select([sys.stdin], [], [], 0)
    return False


def _killed_at(said: str, *, now: float) -> float | None:
    """None: the training left by itself. A supervisor that died without a word may have left it in the middle of a save."""
    words = said.split()
    if words == [_LEFT]:
        return None
    try:
        return min(float(words[1]), now)
    except (IndexError, ValueError):
        return now
