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
import select
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onward.checkpoints.gather import put, shares
from onward.checkpoints.publish import SourceChanged, restore
from onward.checkpoints.saving import being_saved
from onward.errors import CheckpointDamaged, OnwardError, StorageError, StorageFull
from onward.rundir.journal import read_spec
from onward.rundir.layout import LegLocal, RunDir
from onward.rundir.mirror import carry
from onward.sdk.files import write_whole
from onward.supervisor.gpu import GpuSampler, step_gpus
from onward.supervisor.host import HostSampler
from onward.supervisor.nodes import BEAT_SECONDS, clear_left_behind, own
from onward.supervisor.ranks import Notes, signal_tasks, task_pids
from onward.supervisor.relay import start_relay
from onward.supervisor.surroundings import local_folder
from onward.supervisor.task import this_host
from onward.supervisor.watchers import MIRROR_SECONDS, SAMPLE_SECONDS, Repeating, Sampler, never_hurts_training

log = logging.getLogger(__name__)

_TICK = 0.1
# Schedulers send these to every process of a job: they are for the supervisor, which tells us when to end.
_THE_SUPERVISORS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)


def main(argv: Sequence[str]) -> int:
    """`supervisor.pyz node RUN LEG --hosts a,b,c`: the process itself."""
    parser = argparse.ArgumentParser(prog="node")
    parser.add_argument("run", type=Path)
    parser.add_argument("leg", type=int)
    parser.add_argument("--hosts", required=True, help="all hosts of the job, in order")
    parser.add_argument("--restore", help="the checkpoint that the ranks start from")
    parser.add_argument("--host", help="this one, where its name does not tell")
    options = parser.parse_args(argv)
    host = options.host or this_host(os.environ)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=f"%(asctime)s {host} %(levelname)s %(message)s", force=True)
    for number in _THE_SUPERVISORS:
        signal.signal(number, signal.SIG_IGN)
    try:
        agent = Agent(RunDir(options.run), options.leg, host=host, hosts=options.hosts.split(","))
        resume = agent.restore(options.restore) if options.restore else None
        _say({"host": host, "local": str(agent.local.path), "resume": resume})
        agent.serve()
    except (OnwardError, OSError) as error:
        log.exception("this node's agent ends")
        _say({"host": host, "trouble": str(error)})
    return 0  # Grid Engine deletes a job of which one task fails


class Agent:
    def __init__(self, run: RunDir, leg: int, *, host: str, hosts: Sequence[str]) -> None:
        self._run = run
        self._leg = leg
        self._host = host
        short = [name.split(".")[0] for name in hosts]
        number = short.index(host.split(".")[0]) if host.split(".")[0] in short else len(hosts)
        spec = read_spec(run)
        self.local: LegLocal = local_folder(spec, leg, node=number)
        clear_left_behind(self.local.path.parent, leg=leg)
        own(self.local.path)
        self._relay = start_relay(spec, run, self.local, leg=leg, node=number)
        training = HostSampler(sessions=lambda: task_pids(self.local.ranks), disk=self.local.path)
        self._sampler = Sampler(self.local, leg, training, GpuSampler(step_gpus(os.environ)), node=host, number=number)
        self._notes = Notes(self.local.ranks)
        self._tail = b""
        self._told_to_end = False
        self._beat_at = 0.0

    def restore(self, name: str) -> str:
        """Where the ranks of this node find the checkpoint: on its own disk, or where there is no room, in the store."""
        there = self._run.checkpoints / name
        until = time.monotonic() + 10.0
        while not there.exists() and time.monotonic() < until:  # a network file system may show it late
            time.sleep(0.5)
        try:
            manifest = restore(there, self.local.resume)
        except StorageFull as error:
            log.warning("%s; reading the checkpoint where it is", error)
            return str(there)
        if manifest.made_by == "files":
            shutil.copytree(self.local.resume, self.local.checkpoints, dirs_exist_ok=True, symlinks=True)
        return str(self.local.resume)

    def serve(self) -> None:
        mirroring = Repeating("mirroring", lambda: carry(self.local, self._run), every=MIRROR_SECONDS)
        gathering = Repeating("gathering shares", self._put_shares, every=MIRROR_SECONDS / 2)
        sampling = Repeating("sampling", self._sampler.sample, every=SAMPLE_SECONDS)
        while self._hear(_TICK):
            self._tell()
            if time.monotonic() >= self._beat_at:
                self._beat_at = time.monotonic() + BEAT_SECONDS
                saving = self.local.stop_file.exists() and being_saved(self.local.checkpoints, now=time.time())
                _say({"host": self._host, "saving": saving})
        if not self._told_to_end:
            log.warning("the supervisor has gone; ending the ranks of this node")
            signal_tasks(self.local.ranks, signal.SIGKILL, all_they_started=True)
        sampling.stop()
        gathering.stop(within=3600.0)
        if self._relay:
            self._relay.close(within=600.0)
        mirroring.stop(within=60.0)
        with never_hurts_training("the last look at this node"):
            self._put_shares()
            carry(self.local, self._run)
        self._tell()
        signal_tasks(self.local.ranks, signal.SIGKILL, all_they_started=True)
        _say({"host": self._host, "done": True})
        if not shares(self.local.checkpoints):
            shutil.rmtree(self.local.path, ignore_errors=True)

    def _tell(self) -> None:
        for name, note in self._notes.new():
            _say({"host": self._host, "note": name, "says": note})

    def _put_shares(self) -> None:
        for share in shares(self.local.checkpoints):
            try:
                put(share, self._run.checkpoints, leg=self._leg)
            except (SourceChanged, CheckpointDamaged):
                continue
            except StorageError as error:
                _say({"host": self._host, "missed": share.step, "reason": str(error)})

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
        if "signal" in wish:
            signal_tasks(self.local.ranks, int(wish["signal"]), all_they_started=bool(wish.get("all")))
        self._told_to_end = self._told_to_end or "end" in wish
        return "end" not in wish


def _say(message: dict[str, Any]) -> None:
    try:
        os.write(1, (json.dumps(message) + "\n").encode())
    except OSError:
        pass  # nobody listens any more
