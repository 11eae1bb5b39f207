"""What a launcher starts once for each rank: sets the rank's surroundings, runs the training, and keeps its exit code.

Exit code 75 of one rank must not reach the launcher: torchrun and mpirun would take it for a failure and kill the ranks
that are still saving. So the task notes it for the supervisor, and exits 0. It also shields the rank from the launcher's
signals where those come from the scheduler: the supervisor alone decides when ranks stop. When the launcher has gone, or
the task itself is killed, the rank ends at once.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onward.model.spec import ParamValue
from onward.rundir.layout import LegLocal, RunDir
from onward.sdk import contract
from onward.sdk.atomic_files import write_whole
from onward.sdk.ranks import Ranks, ranks_of
from onward.supervisor.preparation.environment import (
    RANK_FAMILIES,
    RANK_NAMES,
    TRAINERS_TENSORBOARD_DIR,
    local_variables,
    relay_variables,
    resume_variables,
    training_command,
)
from onward.supervisor.processes.guard import adopt_orphans, end_descendants, reap
from onward.supervisor.ranks.launcher_watch import ParentWatch, die_with_parent_hook
from onward.supervisor.ranks.launchers import NODE_PLACEHOLDER
from onward.supervisor.ranks.rank_states import EXIT_FILE, STARTED_FILE
from onward.supervisor.stop.signals import ignore_notices
from onward.supervisor.telemetry.host import MemoryWatch

_HEEDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD)
_TERM_TO_KILL = 5.0
_TAIL = 1 << 14

# What belongs to one process or node, and is not to be replaced by what the supervisor has.
_RANKS_OWN = ("SLURM", "SRUN_", "SGE_", *RANK_FAMILIES)
_RANKS_OWN_NAMES = {
    *RANK_NAMES,
    *("TMPDIR", "TMP", "TEMP", "HOSTNAME", "JOB_ID", "PE_HOSTFILE"),
    *("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL"),
}


@dataclass(frozen=True, kw_only=True)
class LegNode:
    """One node of the leg: where its folder is, and where it finds the checkpoint to start from."""

    host: str
    local: str
    resume: str | None = None


@dataclass(frozen=True, kw_only=True)
class LaunchPlan:
    """What every task of a leg needs to know, written by the supervisor before it starts the launcher."""

    launcher: str
    command: tuple[str, ...]  # placeholders not filled in: they differ by node
    params: Mapping[str, ParamValue]
    cwd: str
    environment: Mapping[str, str]
    nodes: tuple[LegNode, ...]  # the first is the supervisor's
    resume_step: int | None
    deaf: bool = False  # the scheduler sends its notices to every process, and one that does not heed them would die of it

    def write(self, path: Path) -> None:
        plain = {**vars(self), "nodes": [vars(node) for node in self.nodes]}
        write_whole(path, json.dumps(plain), mode=0o600)

    @classmethod
    def read(cls, path: Path) -> LaunchPlan:
        data: dict[str, Any] = json.loads(path.read_bytes())
        nodes = tuple(LegNode(**node) for node in data.pop("nodes"))
        return cls(**{**data, "command": tuple(data["command"]), "nodes": nodes})

    def node(self, host: str) -> LegNode:
        """The one with this name; names may be short on one side. Of a single node there is nothing to choose."""
        for node in self.nodes:
            if node.host.split(".")[0] == host.split(".")[0]:
                return node
        return self.nodes[0]


def this_host(env: Mapping[str, str]) -> str:
    """As the scheduler calls it."""
    return env.get("SLURMD_NODENAME") or socket.gethostname()


def rank_environment(plan: LaunchPlan, node: LegNode, ranks: Ranks, env: Mapping[str, str]) -> dict[str, str]:
    """The training's environment as the supervisor made it, with what is this task's and this node's own."""
    local = LegLocal(Path(node.local))
    own = {key: value for key, value in env.items() if key.startswith(_RANKS_OWN) or key in _RANKS_OWN_NAMES}
    made = {**env, **plan.environment, **own}
    if made.get(TRAINERS_TENSORBOARD_DIR) == made.get(contract.TENSORBOARD_DIR):  # not the user's own, but the first node's
        made[TRAINERS_TENSORBOARD_DIR] = str(local.tensorboard)
    made.update(local_variables(local))
    made.update(relay_variables(local))
    made.update(resume_variables(local, (Path(node.resume), plan.resume_step or 0) if node.resume else None))
    made[contract.RANK], made[contract.WORLD_SIZE], made[contract.LOCAL_RANK] = (
        str(number) for number in (ranks.rank, ranks.world_size, ranks.local_rank)
    )
    if plan.launcher != "torchrun":
        for name, value in (("RANK", ranks.rank), ("WORLD_SIZE", ranks.world_size), ("LOCAL_RANK", ranks.local_rank)):
            made.setdefault(name, str(value))
    return made


def main(argv: Sequence[str]) -> int:
    """`supervisor.pyz task RUN N`: becomes one rank."""
    parent = ParentWatch()
    plan = LaunchPlan.read(RunDir(Path(argv[0])).launch(int(argv[1])))
    ranks, node = ranks_of(os.environ), plan.node(this_host(os.environ))
    local = LegLocal(Path(node.local))
    resume = (Path(node.resume), plan.resume_step or 0) if node.resume else None
    command = training_command(plan.command, plan.params, local, resume=resume)
    return _RankProcess(command, plan, node, ranks, parent).live(rank_environment(plan, node, ranks, os.environ))


class _RankProcess:
    def __init__(self, command: Sequence[str], plan: LaunchPlan, node: LegNode, ranks: Ranks, parent: ParentWatch) -> None:
        self._parent = parent
        self._command = command
        self._plan = plan
        self._node = node
        self._ranks = ranks
        self._notes = LegLocal(Path(node.local)).ranks
        self._tail = b""

    def live(self, env: Mapping[str, str]) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # what started us may ignore it, and an ignored signal is never waited for
        signal.pthread_sigmask(signal.SIG_BLOCK, _HEEDED)
        memory = MemoryWatch()
        adopt_orphans()
        try:
            process = subprocess.Popen(
                self._command,
                cwd=self._plan.cwd,
                env=dict(env),
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=_restore_signals(deaf=self._plan.deaf),
            )
        except OSError as error:
            sys.stderr.write(f"onward: {self._command[0]} cannot be started on {self._node.host}: {error}\n")
            self._note(127, last=f"{self._command[0]} cannot be started: {error}", out_of_memory=False)
            return 127
        self._write(STARTED_FILE, {"rank": self._ranks.rank, "world": self._ranks.world_size, "pid": process.pid, "host": self._node.host})
        pump = threading.Thread(target=self._pump, args=(process,), name="stderr", daemon=True)
        pump.start()
        code = self._wait(process)
        pump.join(timeout=2.0)
        self._note(code, last=self._tail.decode(errors="replace"), out_of_memory=memory.killed())
        return 0 if code in (contract.EXIT_DONE, contract.EXIT_AGAIN) else code if code > 0 else 128 - code

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        kill_at = None
        while process.poll() is None:
            heard = signal.sigtimedwait(_HEEDED, 0.5)
            if heard and heard.si_signo == signal.SIGCHLD:
                reap(but=process.pid)  # orphans of the rank's, which are ours now
            if heard and heard.si_signo in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) and self._meant(heard.si_pid):
                _to_session(process.pid, signal.SIGTERM)
                kill_at = kill_at or time.monotonic() + _TERM_TO_KILL
            if self._parent.gone or (kill_at and time.monotonic() >= kill_at):
                _to_session(process.pid, signal.SIGKILL)
        end_descendants()  # what it left behind, in its session or in another
        return process.returncode

    def _meant(self, sender: int) -> bool:
        """A launcher that ends us has lost another rank. A scheduler signals all that there is: the supervisor deals with that."""
        return self._plan.launcher != "srun" and sender == os.getppid()

    def _pump(self, process: subprocess.Popen[bytes]) -> None:
        """On to our own stderr, keeping the end: a launcher's own complaints come after a rank's last words."""
        assert process.stderr is not None
        while chunk := os.read(process.stderr.fileno(), 1 << 16):
            self._tail = (self._tail + chunk)[-_TAIL:]
            try:
                os.write(2, chunk)
            except OSError:
                continue

    def _note(self, code: int, *, last: str, out_of_memory: bool) -> None:
        note = {"rank": self._ranks.rank, "code": code, "at": time.time(), "host": self._node.host, "out_of_memory": out_of_memory}
        self._write(EXIT_FILE, {**note, "last": "" if code in (contract.EXIT_DONE, contract.EXIT_AGAIN) else last})

    def _write(self, kind: str, note: Mapping[str, object]) -> None:
        try:
            write_whole(self._notes / f"{kind}{self._ranks.rank:05d}.json", json.dumps(note))
        except OSError as error:
            sys.stderr.write(f"onward: {self._notes}: {error}\n")


def _restore_signals(*, deaf: bool) -> Callable[[], None]:
    """For the rank before it becomes its program. Launchers give their processes back the signals that we had made them deaf to."""
    bind = die_with_parent_hook()

    def prepare() -> None:
        bind()
        if deaf:
            ignore_notices()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEEDED)

    return prepare


def _to_session(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def start_on_each_node(argv: Sequence[str]) -> int:
    """`supervisor.pyz spread -- COMMAND`: one launcher on each node, with the node's number in its arguments.

    It does not hear SIGTERM: a scheduler that announces a preemption so would make it end ranks that are saving.
    """
    node = os.environ.get("SLURM_NODEID", "0") if "SLURM_STEP_ID" in os.environ else "0"
    words = [word.replace(NODE_PLACEHOLDER, node) for word in argv[1:]]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        os.execvp(words[0], words)
    except OSError as error:
        sys.stderr.write(f"onward: {words[0]} cannot be started on {this_host(os.environ)}: {error}\n")
        return 127
