"""The nodes of a running Slurm bed: what state they are in, and which processes are whose."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass

from beds import cgroups
from beds.command import attempt, run
from beds.errors import BedError
from beds.process import Process, all_processes
from beds.slurm_layout import NODE_NAMES, NODES, Layout, Node
from beds.waiting import until

_USABLE = frozenset({"idle", "mixed", "allocated", "completing", "planned", "reserved"})
_STEPPER = "slurmstepd"


def node_named(name: str) -> Node:
    for node in NODES:
        if node.name == name:
            return node
    raise BedError(f"the bed has no node {name!r}", hint=f"its nodes are {', '.join(NODE_NAMES)}")


@dataclass(frozen=True)
class Nodes:
    """`environment` points Slurm's commands at the bed."""

    environment: Mapping[str, str]

    def states(self) -> dict[str, str]:
        """State by node as sinfo shows it (`*`: not responding); empty if there is no answer."""
        shown = attempt(["sinfo", "-h", "-N", "-o", "%N %T"], env=self.environment, timeout=25)
        pairs = (row.partition(" ") for row in shown.out.splitlines())
        return {name: state.strip() for name, _, state in pairs}

    def unusable(self) -> dict[str, str]:
        """Nodes that would take no job now, with their state."""
        states = self.states()
        return {name: states.get(name, "unknown") for name in NODE_NAMES if states.get(name, "unknown") not in _USABLE}

    def repair(self, names: tuple[str, ...] = NODE_NAMES, *, timeout: float = 60) -> list[str]:
        """Wait until the nodes take jobs again; resume those set down or drained, and say which."""
        resumed: list[str] = []

        def usable() -> bool:
            wrong = {name: state for name, state in self.unusable().items() if name in names}
            for name, state in wrong.items():
                if state.startswith(("down", "drain", "fail", "inval")) and name not in resumed:
                    resumed.append(name)
                    self.resume(name)
            return not wrong

        if not until(usable, timeout=timeout, pause=0.1):
            wrong = ", ".join(f"{name} is {state}" for name, state in self.unusable().items())
            raise BedError(
                f"after {timeout:.0f} s not every node takes jobs: {wrong}",
                hint="'sinfo -R' has the reasons, the folder log/ of the bed the slurmd logs",
            )
        return resumed

    def resume(self, name: str) -> None:
        """Ask for the node's return; a node that comes back by itself meanwhile refuses that."""
        attempt(["scontrol", "update", f"nodename={name}", "state=resume"], env=self.environment)

    def reopen_partitions(self) -> list[str]:
        """Set every partition up again that somebody set down, and say which."""
        shown = attempt(["sinfo", "-h", "-o", "%R %a"], env=self.environment, timeout=25)
        pairs = (row.partition(" ") for row in shown.out.splitlines())
        closed = sorted({name for name, _, state in pairs if state.strip() != "up"})
        for name in closed:
            run(["scontrol", "update", f"partitionname={name}", "state=up"], env=self.environment)
        return closed

    def cancel_all(self, *, timeout: float = 20) -> int:
        """Cancel every job, wait until their processes are gone, and say how many jobs it were."""
        jobs = self._jobs()
        if jobs:
            run(["scancel", *jobs], env=self.environment)
            until(lambda: not self._jobs(), timeout=timeout, pause=0.2)
        return len(jobs)

    def _jobs(self) -> list[str]:
        shown = attempt(["squeue", "-h", "-o", "%A"], env=self.environment, timeout=25)
        return sorted(set(shown.out.split()))


def processes(node: Node, layout: Layout) -> list[Process]:
    """The node's slurmstepds, then every process of its jobs; its slurmd is not among them."""
    if layout.slurm_conf.exists() and "proctrack/cgroup" not in layout.slurm_conf.read_text():
        found = [process for process in all_processes() if _belongs(process, node, layout)]
    else:
        found = cgroups.members(node.cgroup)
    living = [process for process in found if process.alive]
    return sorted(living, key=lambda process: _STEPPER not in process.command)


def kill_all(node: Node, layout: Layout) -> int:
    """Kill every process of the node, the reporting slurmstepds first; say how many it were."""
    killed: set[Process] = set()

    def none_left() -> bool:
        cgroups.thaw(node.cgroup)
        left = processes(node, layout)
        for process in left:
            process.send(signal.SIGKILL)
        killed.update(left)
        return not left

    if not until(none_left, timeout=10):
        left = ", ".join(str(process.pid) for process in processes(node, layout))
        raise BedError(f"processes of {node.name} do not end, not even by SIGKILL: {left}")
    return len(killed)


def _belongs(process: Process, node: Node, layout: Layout) -> bool:
    """Job processes show their node in their environment; a slurmstepd writes its slurmd's log."""
    if _STEPPER in process.command:
        return str(layout.daemon_log(f"slurmd-{node.name}")) in process.open_files
    found = process.environment
    ours = found.get("SLURM_CONF") == str(layout.slurm_conf)
    return ours and found.get("SLURMD_NODENAME") == node.name
