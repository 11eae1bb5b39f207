"""The other nodes of a leg, as the supervisor sees them: one agent on each, started through the scheduler, talking by lines."""

from __future__ import annotations

import json
import logging
import os
import queue
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onward.errors import SchedulerError
from onward.rundir.layout import leg_of
from onward.sdk.files import write_whole
from onward.supervisor.child import start_helper
from onward.supervisor.launch import srun_step
from onward.supervisor.ranks import Note
from onward.supervisor.scene import Scene
from onward.supervisor.task import Node

log = logging.getLogger(__name__)

OWNER = "agent.json"
BEAT_SECONDS = 1.0  # an agent says something at least so often
_START_PATIENCE = 600.0  # seconds: restoring a large checkpoint on every node takes its time


class NodesFailed(SchedulerError):
    """Not every node of the job could be made ready."""

    transient = True


def agent_commands(scheduler: str, agent: Sequence[str], hosts: Sequence[str]) -> list[list[str]]:
    """How our agent gets onto each of these hosts: one step for all by srun, or one qrsh for each into the job's own slots."""
    if not hosts:
        return []
    match scheduler:
        case "slurm":
            step = srun_step(nodes=len(hosts), tasks=len(hosts), cpus=1)
            step = [word.replace("--kill-on-bad-exit=1", "--kill-on-bad-exit=0") for word in step]
            return [[*step, "--ntasks-per-node=1", f"--nodelist={','.join(hosts)}", "--input=all", "--job-name=onward-node", *agent]]
        case "gridengine":
            return [["qrsh", "-inherit", host, *agent, "--host", host] for host in hosts]
        case _:
            raise NodesFailed(f"{scheduler} has no way to start a process on another node of a job", hint="ask for one node")


class Nodes:
    def __init__(self, commands: Sequence[Sequence[str]], hosts: Sequence[str], *, env: Mapping[str, str], woken: threading.Event) -> None:
        self._hosts = hosts
        self._woken = woken
        self._heard: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._notes: list[Note] = []
        self._done: set[str] = set()
        self._heard_at = {host: time.time() for host in hosts}
        self._saving: set[str] = set()
        self.lost = False
        self.missed: list[tuple[int, str]] = []
        self._processes = [start_helper(command, env=env) for command in commands]
        self._readers = [threading.Thread(target=self._read, args=(process,), name="node", daemon=True) for process in self._processes]
        for reader in self._readers:
            reader.start()

    def ready(self, *, until: float) -> list[Node]:
        """Once every node has its folder and the checkpoint. Raises NodesFailed, with the node's own words."""
        found: dict[str, Node] = {}
        while len(found) < len(self._hosts):
            try:
                message = self._heard.get(timeout=0.2)
            except queue.Empty:
                message = {}
            if "trouble" in message:
                raise NodesFailed(f"node {message['host']} cannot be made ready: {message['trouble']}")
            if "local" in message:
                found[message["host"]] = Node(host=message["host"], local=message["local"], resume=message["resume"])
            elif not message and (time.time() > until or all(process.poll() is not None for process in self._processes)):
                missing = ", ".join(host for host in self._hosts if host not in found)
                raise NodesFailed(f"{missing}: not ready", hint="the supervisor's log has what was said there")
        return list(found.values())

    def notes(self) -> list[Note]:
        """What ranks on other nodes have noted since."""
        while not self._heard.empty():
            self._take(self._heard.get())
        if not self.lost and not self._done and any(process.poll() is not None for process in self._processes):
            self.lost = True
            log.warning("an agent on another node has ended; what is saved there is carried over no more")
        found, self._notes = self._notes, []
        return found

    @property
    def saving(self) -> bool:
        """Ranks on some node are in the middle of a save, as far as it was heard."""
        return bool(self._saving)

    def silent(self, *, since: float) -> list[str]:
        """Nodes that have said nothing since then."""
        return [host for host, at in self._heard_at.items() if at < since]

    def say(self, **message: object) -> None:
        for process in self._processes:
            try:
                assert process.stdin is not None
                process.stdin.write(json.dumps(message) + "\n")
                process.stdin.flush()
            except (OSError, ValueError):
                continue

    def drain(self, *, until: float) -> None:
        """Have every node put and carry over what it still has, and end the agents. Not later than `until` (unix seconds)."""
        self.say(end=True)
        while time.time() < until and any(process.poll() is None for process in self._processes) and len(self._done) < len(self._hosts):
            self._woken.wait(0.05)
            self._woken.clear()
            while not self._heard.empty():
                self._take(self._heard.get())
        for process in self._processes:
            if process.stdin:
                try:
                    process.stdin.close()
                except OSError:
                    pass
        give_up = min(until, time.time() + 5.0)
        for process in self._processes:
            try:
                process.wait(max(give_up - time.time(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for reader in self._readers:
            reader.join(timeout=1.0)

    def _take(self, message: dict[str, Any]) -> None:
        if "note" in message:
            self._notes.append((message["note"], message["says"]))
        elif "missed" in message:
            self.missed.append((int(message["missed"]), f"{message['host']}: {message['reason']}"))
        elif "done" in message:
            self._done.add(message["host"])
        elif "saving" in message:
            (self._saving.add if message["saving"] else self._saving.discard)(message["host"])

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                try:
                    message = json.loads(line)
                    self._heard_at[message["host"]] = time.time()
                    self._heard.put(message)
                except (ValueError, KeyError, TypeError):
                    log.info("another node said %r", line.rstrip())
                self._woken.set()


def start_nodes(scene: Scene, *, restore: str | None, env: Mapping[str, str], woken: threading.Event) -> Nodes:
    """An agent on every node of the allocation but this one."""
    hosts = scene.allocation.hosts
    agent = [sys.executable, "-E", str(scene.dir.supervisor), "node", str(scene.dir.path), str(scene.leg), "--hosts", ",".join(hosts)]
    if restore:
        agent += ["--restore", restore]
    return Nodes(agent_commands(scene.spec.cluster.scheduler, agent, hosts[1:]), hosts[1:], env=env, woken=woken)


def clear_left_behind(folder: Path, *, leg: int) -> None:
    """Folders of other nodes' agents that were killed in earlier legs, where they lie on this very machine."""
    for mark in folder.glob(f"leg-*.node-*/{OWNER}"):
        try:
            note = json.loads(mark.read_bytes())
            if (leg_of(mark.parent.name) or leg) >= leg or note["machine"] != socket.gethostname():
                continue
            os.kill(int(note["pid"]), 0)
        except ProcessLookupError:
            shutil.rmtree(mark.parent, ignore_errors=True)
        except (OSError, KeyError, ValueError):
            continue


def own(folder: Path) -> None:
    """Say that this process looks after the folder."""
    write_whole(folder / OWNER, json.dumps({"pid": os.getpid(), "machine": socket.gethostname()}))


def ready_by(deadline: float | None, now: float) -> float:
    return min(now + _START_PATIENCE, now + (deadline - now) / 2) if deadline else now + _START_PATIENCE
