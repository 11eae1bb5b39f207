"""The other nodes of a leg, as the supervisor sees them: one agent on each, started through the scheduler, talking by lines."""

from __future__ import annotations

import json
import logging
import math
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onward.errors import CheckpointDamaged, SchedulerError
from onward.model.events import Published
from onward.schedulers.base import starts_on_nodes
from onward.supervisor.leg.context import LegContext
from onward.supervisor.processes.child import start_helper
from onward.supervisor.ranks.rank_states import Note
from onward.supervisor.ranks.rank_wrapper import LegNode

log = logging.getLogger(__name__)

BEAT_SECONDS = 1.0  # an agent says something at least so often
SLOWEST_STORE = 50e6  # bytes a second, where nothing has been measured yet
_LEAST_PATIENCE = 600.0  # seconds: a scheduler may take minutes to start a process on every node
_SLACK = 3.0  # times what it should take
_RATES_ASKED = 10  # of the newest checkpoints


class NodesFailed(SchedulerError):
    """Not every node of the job could be made ready."""

    transient = True


@dataclass(frozen=True, kw_only=True)
class NodePatience:
    """How long nodes are waited for: until then in any case, and longer as long as they get on."""

    until: float  # unix seconds
    silence: float  # seconds without progress

    def ends(self, now: float, *, progress: float) -> bool:
        """`progress`: when the node that is waited for last got on."""
        return now > self.until and now - progress > self.silence


def patience_for(bytes: int, rate: float, *, deadline: float | None, now: float) -> NodePatience:
    """For nodes that each bring a checkpoint of this size from a store of this rate. Of what is left of a leg, half at most."""
    half = max(deadline - now, 0.0) / 2 if deadline else math.inf
    return NodePatience(until=now + min(max(_LEAST_PATIENCE, carrying_seconds(bytes, rate)), half), silence=min(_LEAST_PATIENCE, half))


def carrying_seconds(bytes: int, rate: float = SLOWEST_STORE) -> float:
    """How long carrying so much may take before anybody should wonder."""
    return _SLACK * bytes / rate


def measured_rate(published: Iterable[Published]) -> float:
    """Bytes a second of this run's store, by the slowest of the newest checkpoints; pessimistic where none tells."""
    rates = [event.bytes / event.stage_seconds for event in published if event.bytes and event.stage_seconds >= 0.1]
    return min(rates[-_RATES_ASKED:], default=SLOWEST_STORE)


class OtherNodes:
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
        self.refused: list[tuple[int, str]] = []
        self._processes = [start_helper(command, env=env) for command in commands]
        self._readers = [threading.Thread(target=self._read, args=(process,), name="node", daemon=True) for process in self._processes]
        for reader in self._readers:
            reader.start()

    def here(self, patience: NodePatience) -> None:
        """Once every agent runs and has carried over what killed ones left on its node. Raises NodesFailed."""
        here: set[str] = set()

        def heard(message: dict[str, Any]) -> None:
            if "here" in message:
                here.add(message["host"])

        self._wait(here, heard, patience)

    def ready(self, checkpoint: str, patience: NodePatience) -> list[LegNode]:
        """Once every node has its folder and this checkpoint ("": none). Raises NodesFailed, with the node's own words, and
        CheckpointDamaged where the part of it that a node brought does not verify.
        """
        found: dict[str, LegNode] = {}

        def heard(message: dict[str, Any]) -> None:
            if message.get("damaged") == checkpoint:
                raise CheckpointDamaged(f"{message['reason']} (seen on {message['host']})")
            if "local" in message and message["restored"] == checkpoint:
                found[message["host"]] = LegNode(host=message["host"], local=message["local"], resume=message["resume"])

        self._wait(found, heard, patience)
        return list(found.values())

    def _wait(self, found: Collection[str], heard: Callable[[dict[str, Any]], None], patience: NodePatience) -> None:
        progress = dict.fromkeys(self._hosts, time.time())
        moved: dict[str, int] = {}
        while len(found) < len(self._hosts):
            try:
                message = self._heard.get(timeout=0.2)
            except queue.Empty:
                message = {}
            if "trouble" in message:
                raise NodesFailed(f"node {message['host']} cannot be prepared: {message['trouble']}")
            heard(message)
            if message and message.get("moved", -1) != moved.get(message["host"]) and "saving" not in message:
                progress[message["host"]] = time.time()
                moved[message["host"]] = message.get("moved", -1)
            missing = [host for host in self._hosts if host not in found]
            ended = not message and all(process.poll() is not None for process in self._processes)
            if missing and (ended or any(patience.ends(time.time(), progress=progress[host]) for host in missing)):
                raise NodesFailed(f"{', '.join(missing)}: not ready", hint="the supervisor's log shows what it printed")

    def notes(self) -> list[Note]:
        """What ranks on other nodes have noted since."""
        while not self._heard.empty():
            self._take(self._heard.get())
        if not self.lost and not self._done and any(process.poll() is not None for process in self._processes):
            self.lost = True
            log.warning("an agent on another node has ended; what is saved there is no longer published")
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

    def drain(self, *, until: float, cut: bool = False) -> None:
        """Have every node put and carry over what it still has, and end the agents. Not later than `until` (unix seconds).

        `cut`: the training failed or was killed, so that files it was writing just now are not whole.
        """
        self.say(end=True, cut=cut)
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
        elif "refused" in message:
            self.refused.append((int(message["refused"]), f"{message['host']}: {message['reason']}"))
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
                    log.info("another node printed %r", line.rstrip())
                self._woken.set()


def start_node_agents(context: LegContext, *, env: Mapping[str, str], woken: threading.Event) -> OtherNodes | None:
    """An agent on every node of the allocation but this one; None where there is no other, or nothing of ours runs there."""
    hosts = context.allocation.hosts
    if len(hosts) < 2 or context.spec.launcher == "plain" or context.spec.script:
        return None
    able = starts_on_nodes(context.scheduler)
    if able is None:
        name = context.spec.cluster.scheduler
        raise NodesFailed(f"{name} cannot start a process on another node of a job", hint="ask for one node")
    agent = [sys.executable, "-E", str(context.dir.supervisor), "node", str(context.dir.path), str(context.leg), "--hosts", ",".join(hosts)]
    return OtherNodes(able.node_commands(agent, hosts[1:]), hosts[1:], env=env, woken=woken)
