"""Our agent on every node of a leg but the supervisor's own: gives the ranks there what they have on the first node.

It makes the node's folder, restores the checkpoint to it, samples the node, carries what the ranks log, puts their shares
of checkpoints into the store, and passes notes: lines on its input from the supervisor, lines on its output to it. It ends
when its input does.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import queue
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onward.checkpoints.copying import SourceChanged
from onward.checkpoints.disk_space import free_bytes
from onward.checkpoints.publishing.full_store import FullStoreRetry
from onward.checkpoints.restoring.node_copy import bring_to_node
from onward.checkpoints.save_writer import SaveService
from onward.checkpoints.shares.gather import CheckpointShare, next_shares, put_share, shares
from onward.checkpoints.shares.node_files import NodeFiles, make_share, state_files, write_node_note
from onward.checkpoints.unpublished import unpublished
from onward.checkpoints.watching.save_in_progress import is_being_saved
from onward.checkpoints.watching.watcher import Candidate, SaveWatcher
from onward.clock import SystemClock
from onward.errors import CheckpointDamaged, OnwardError, StorageError, StorageFull
from onward.model.checkpoint import CheckpointName
from onward.rundir.journal import read_spec
from onward.rundir.layout import LegLocal, RunDir
from onward.rundir.mirror import Mirror, carry
from onward.sdk.atomic_files import write_all, write_whole
from onward.supervisor.background import NODE_MIRROR_SECONDS, Repeating, SystemSampler, never_hurts_training, sample_seconds
from onward.supervisor.disk.leftovers import remove_leftovers_in_background
from onward.supervisor.disk.salvage import salvage_on_other_node
from onward.supervisor.own_log import log_to_stderr
from onward.supervisor.preparation.environment import frozen_variables, local_folder
from onward.supervisor.processes.survivors import end_survivors
from onward.supervisor.ranks.other_nodes import BEAT_SECONDS, carrying_seconds
from onward.supervisor.ranks.rank_states import RankNotes, rank_pids, signal_ranks
from onward.supervisor.ranks.rank_wrapper import this_host
from onward.supervisor.relay.routes import start_relay
from onward.supervisor.telemetry.gpu import GpuSampler, step_gpus
from onward.supervisor.telemetry.host import HostSampler

log = logging.getLogger(__name__)

_TICK = 0.1
_GATHER_SECONDS = 0.5  # a look at this node's own disk
_LONGEST_REST = 30.0  # seconds between looks into a folder with very many files
_SAYING = threading.Lock()
# Schedulers send these to every process of a job: they are for the supervisor, which tells us when to end.
_THE_SUPERVISORS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)


def main(argv: Sequence[str]) -> int:
    """`supervisor.pyz node RUN LEG --hosts a,b,c`: the process itself."""
    parser = argparse.ArgumentParser(prog="node")
    parser.add_argument("run", type=Path)
    parser.add_argument("leg", type=int)
    parser.add_argument("--hosts", required=True, help="all hosts of the job, in order")
    parser.add_argument("--host", help="this host, if its name is not in the list")
    options = parser.parse_args(argv)
    host = options.host or this_host(os.environ)
    log_to_stderr(f"%(asctime)s {host} %(levelname)s %(message)s")
    for number in _THE_SUPERVISORS:
        signal.signal(number, signal.SIG_IGN)
    try:
        NodeAgent(RunDir(options.run), options.leg, host=host, hosts=options.hosts.split(",")).serve()
    except (OnwardError, OSError) as error:
        log.exception("this node's agent ends")
        _say({"host": host, "trouble": str(error)})
    return 0  # Grid Engine deletes a job of which one task fails


class NodeAgent:
    def __init__(self, run: RunDir, leg: int, *, host: str, hosts: Sequence[str]) -> None:
        self._run = run
        self._leg = leg
        self._host = host
        short = [name.split(".")[0] for name in hosts]
        number = short.index(host.split(".")[0]) if host.split(".")[0] in short else len(hosts)
        self._number, self._nodes = number, len(hosts)
        spec = read_spec(run)
        self.local: LegLocal = local_folder(spec, leg, node=number, run=run)
        self._rule, self._run_id = spec.checkpoints, spec.id
        self._sample_seconds = sample_seconds({**os.environ, **frozen_variables(run)})
        self._relay = start_relay(spec, run, self.local, leg=leg, node=number)
        training = HostSampler(sessions=lambda: rank_pids(self.local.ranks), disk=self.local.path)
        self._sampler = SystemSampler(self.local, leg, training, GpuSampler(step_gpus(os.environ)), node=host, number=number)
        self._notes = RankNotes(self.local.ranks)
        self._tail = b""
        self._told_to_end = False
        self._killed_at: float | None = None  # the ranks did not leave by themselves, by this node's clock
        self._beat_at = 0.0
        self._watcher = SaveWatcher(self.local.checkpoints, part=True)
        self._files = NodeFiles(node=number, host=host)
        self._look_at = 0.0
        self._watching = False  # for files that ranks write themselves: only once the checkpoint is here
        self._saves = SaveService(self.local.save_socket, moved=self._has_moved)
        self._room = FullStoreRetry()
        self._moved = 0  # bytes that this node has brought of its checkpoint
        self._wanted: queue.SimpleQueue[str] = queue.SimpleQueue()  # checkpoints to bring; "": none

    def watch_files(self) -> None:
        """What the ranks write by themselves from now on is new."""
        self._watcher.ignore_present(all_here=False)
        self._watching = True

    def _make_ready(self) -> None:
        """In a thread, so that the supervisor is heard meanwhile: carry over what was left here, then bring what is wanted."""
        with never_hurts_training("salvage of an earlier leg"):
            end_survivors(self._run_id, range(1, self._leg))
            salvage_on_other_node(self._run, self._rule, self.local, leg=self._leg, clock=SystemClock(), moved=self._has_moved)
        _say({"host": self._host, "here": True})
        remove_leftovers_in_background(self.local)
        while True:
            name = self._wanted.get()
            while not self._wanted.empty():
                name = self._wanted.get()
            self._watching = False
            try:
                resume = self.restore(name) if name else None
                self.watch_files()
                _say({"host": self._host, "local": str(self.local.path), "resume": resume, "restored": name})
            except CheckpointDamaged as error:
                _say({"host": self._host, "damaged": name, "reason": str(error)})
            except (OnwardError, OSError) as error:
                log.exception("this node cannot be prepared")
                _say({"host": self._host, "trouble": str(error)})

    def restore(self, name: str) -> str:
        """Where the ranks of this node find the checkpoint: on its own disk, or in the store."""
        there = self._run.checkpoints / name
        until = time.monotonic() + 10.0
        while not there.exists() and time.monotonic() < until:  # a network file system may show it late
            time.sleep(0.5)
        part = (self._number, self._nodes)
        brought = bring_to_node(there, resume=self.local.resume, writes=self.local.checkpoints, part=part, moved=self._has_moved)
        if brought.in_place:
            log.info("%s is read from the run's folder: %s", name, brought.in_place)
        return str(brought.folder)

    def _has_moved(self, bytes: int) -> None:
        self._moved += bytes

    def serve(self) -> None:
        mirroring = Repeating("mirroring", Mirror(self.local, self._run).carry, every=NODE_MIRROR_SECONDS)
        gathering = Repeating("gathering shares", self._put_shares, every=_GATHER_SECONDS)
        sampling = Repeating("sampling", self._sampler.sample, every=self._sample_seconds)
        threading.Thread(target=self._make_ready, name="preparing", daemon=True).start()
        moved = 0
        while self._hear(_TICK):
            self._tell()
            if time.monotonic() >= self._beat_at:
                self._beat_at = time.monotonic() + BEAT_SECONDS
                saving = self.local.stop_file.exists() and is_being_saved(self.local.checkpoints, now=time.time())
                _say({"host": self._host, "saving": saving})
            if self._moved != moved:
                moved = self._moved
                _say({"host": self._host, "moved": moved})
        if not self._told_to_end:
            log.warning("the supervisor is gone; ending the ranks of this node")
            self._killed_at = time.time()
            signal_ranks(self.local.ranks, signal.SIGKILL, all_they_started=True)
            end_survivors(self._run_id, [self._leg])
        sampling.stop()
        left = sum(one.bytes for one in unpublished(self.local.checkpoints, self._run.checkpoints, leg=self._leg))
        self._saves.finish()
        gathering.stop(within=600.0 + carrying_seconds(left))
        if self._relay:
            self._relay.close(within=600.0)
        mirroring.stop(within=60.0)
        with never_hurts_training("the last check of this node"):
            self._put_shares(closed=True)
            carry(self.local, self._run)
        self._tell()
        signal_ranks(self.local.ranks, signal.SIGKILL, all_they_started=True)
        _say({"host": self._host, "done": True})
        if not unpublished(self.local.checkpoints, self._run.checkpoints, leg=self._leg):
            shutil.rmtree(self.local.path, ignore_errors=True)

    def _tell(self) -> None:
        for name, note in self._notes.new():
            _say({"host": self._host, "note": name, "says": note})

    def _share_files(self, *, closed: bool) -> None:
        """Files that the ranks wrote by themselves: say that there are some, and make those of a complete step this node's share."""
        if not self._watching or (time.monotonic() < self._look_at and not closed):
            return
        killed = self._killed_at is not None
        ready = self._watcher.ready(now=time.time() if self._killed_at is None else self._killed_at, closed=closed, killed=killed)
        self._look_at = time.monotonic() + min(self._watcher.rest, _LONGEST_REST)
        plain = state_files({*self._files.plain, *self._watcher.new_plain})
        found = replace(self._files, numbered=self._files.numbered or bool(self._watcher.new_steps), plain=plain)
        for candidate in ready:  # first, as the store may be full: while a share lies here, nothing is removed
            if candidate.made_by == "files" and candidate.step is not None:
                self._share(candidate, candidate.step)
        if found != self._files:
            write_node_note(self._run.checkpoints, self._leg, found)
            self._files = found
        for step, lacks in self._watcher.incomplete:
            if step is not None:
                _say(
                    {
                        "host": self._host,
                        "refused": step,
                        "reason": f"the checkpoint of step {step}: its files on this node are incomplete: {lacks}",
                    }
                )

    def _share(self, candidate: Candidate, step: int) -> None:
        if (self._run.checkpoints / str(CheckpointName(self._leg, step))).exists():
            reason = f"the checkpoint of step {step} was published before its files here were complete, or they have changed since"
            _say({"host": self._host, "refused": step, "reason": reason})
        else:
            make_share(candidate, step, self.local.checkpoints, node=self._number, nodes=self._nodes)
        self._watcher.done_with(candidate)

    def _put_shares(self, *, closed: bool = False) -> None:
        self._share_files(closed=closed)
        store = self._run.checkpoints
        for share in self._shares_in_turn(closed=closed):
            if not closed and not self._room.may_try(time.time(), free=free_bytes(store) if self._room.waiting else None):
                return
            try:
                put_share(share, store, leg=self._leg)
                self._room.succeeded()
            except (SourceChanged, CheckpointDamaged):
                continue
            except StorageError as error:
                if isinstance(error, StorageFull):
                    self._room.failed(time.time(), need=error.need, free=free_bytes(store))
                _say({"host": self._host, "missed": share.step, "reason": str(error)})

    def _shares_in_turn(self, *, closed: bool) -> Iterator[CheckpointShare]:
        """Each once. From the moment the training is asked to stop, the newest first: the others may wait on the node."""
        tried: set[Path] = set()
        while True:
            left = [share for share in shares(self.local.checkpoints) if share.folder not in tried]
            share = next(iter(next_shares(left, hurry=closed or self.local.stop_file.exists())), None)
            if share is None:
                return
            tried.add(share.folder)
            yield share

    def _hear(self, seconds: float) -> bool:
        """Do what the supervisor wants. False once it wants nothing more."""
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        if not ready:
            return True
        data = os.read(sys.stdin.fileno(), 1 << 16)
        if not data:
            return False
        *lines, self._tail = (self._tail + data).split(b"\n")
        going_on = [self._obey(json.loads(line)) for line in lines if line.strip()]
        return all(going_on)

    def _obey(self, wish: dict[str, Any]) -> bool:
        if "stop" in wish:
            try:
                write_whole(self.local.stop_file, str(wish["stop"]))
            except OSError as error:
                log.warning("the stop file cannot be written: %s", error)
                self.local.stop_file.touch()
        if "restore" in wish:
            self._wanted.put(str(wish["restore"]))
        if "signal" in wish:
            signal_ranks(self.local.ranks, int(wish["signal"]), all_they_started=bool(wish.get("all")))
        self._told_to_end = self._told_to_end or "end" in wish
        if wish.get("cut"):
            self._killed_at = time.time()
        return "end" not in wish


def _say(message: dict[str, Any]) -> None:
    """From any thread: a long line must not become one with another."""
    try:
        with _SAYING:
            write_all(1, (json.dumps(message) + "\n").encode())
    except OSError:
        pass  # nobody listens any more
