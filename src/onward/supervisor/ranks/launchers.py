"""How the processes of a training are started on the hosts of its job: from the launcher's name to its argument list. Pure.

What is started on each host is our own task (see task.py), which becomes one rank. Rank 0 is on the first host, where
the supervisor is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from onward.errors import InvalidInput
from onward.model.spec import Resources
from onward.schedulers.slurm.job_steps import srun_step

LAUNCHERS = ("plain", "srun", "torchrun", "mpirun", "horovodrun")
NODE_PLACEHOLDER = "{node}"  # filled in on each node with its number, by `supervisor.pyz spread`

_PYTHON = re.compile(r"python(?:\d+(?:\.\d+)*)?\Z")


@dataclass(frozen=True, kw_only=True)
class HostRanks:
    """One host of the job, and how many of the training's processes it gets."""

    host: str
    tasks: int


@dataclass(frozen=True, kw_only=True)
class Launch:
    argv: tuple[str, ...]
    variables: Mapping[str, str]  # for all processes, where nothing else sets them


def check_launcher(launcher: str, resources: Resources, *, srun_steps: bool, scheduler: str) -> None:
    """At submit: what this launcher can never do with these resources.

    `srun_steps`: jobs of this scheduler (whose name is for the message alone) start processes on their nodes with srun.
    """
    if launcher == "srun" and not srun_steps:
        raise InvalidInput(f"launcher srun needs Slurm, but the run goes to {scheduler}", hint="use mpirun, torchrun or plain there")
    nodes = resources.nodes or 1
    if launcher == "torchrun" and nodes > 1 and not srun_steps:
        raise InvalidInput(
            f"launcher torchrun over {nodes} nodes needs one torchrun started on each node, which Onward does only on Slurm",
            hint="ask for one node, or use launcher mpirun",
        )
    if launcher == "torchrun" and resources.ntasks and not resources.ntasks_per_node and resources.ntasks % nodes:
        raise InvalidInput(
            f"launcher torchrun needs equal process counts on all nodes: {resources.ntasks} tasks do not divide evenly over {nodes} nodes",
            hint="give ntasks-per-node",
        )


def ranks_by_host(
    launcher: str, resources: Resources, hosts: Sequence[str], env: Mapping[str, str], *, hostfile: str = ""
) -> tuple[HostRanks, ...]:
    """How many processes each host gets: as the scheduler laid them out where it says so, else as was asked for.

    `hostfile` is the text of Grid Engine's PE_HOSTFILE. torchrun without tasks starts one process for each GPU.
    """
    if hostfile.strip():
        slots = {row[0]: int(row[1]) for row in (line.split() for line in hostfile.splitlines()) if len(row) > 1 and row[1].isdigit()}
        cpus = resources.cpus_per_task or 1
        return tuple(HostRanks(host=host, tasks=max(slots.get(host, slots.get(_short(host), 1)) // cpus, 1)) for host in hosts)
    count = len(hosts)
    if launcher == "torchrun" and not (resources.ntasks or resources.ntasks_per_node) and resources.gpu_count():
        total = resources.gpu_count() if resources.gpus else resources.gpu_count() * count
        each = [max(total // count, 1)] * count
    elif resources.ntasks_per_node:
        each = [resources.ntasks_per_node] * count
    elif resources.ntasks:
        laid = _slurm_tasks(env.get("SLURM_TASKS_PER_NODE", ""))
        even = [resources.ntasks // count + (index < resources.ntasks % count) for index in range(count)]
        each = laid if len(laid) == count and sum(laid) == resources.ntasks else even
    else:
        each = [1] * count
    return tuple(HostRanks(host=host, tasks=tasks) for host, tasks in zip(hosts, each, strict=True))


def launch(
    launcher: str, laid: Sequence[HostRanks], *, task: Sequence[str], command: Sequence[str], resources: Resources, port: int
) -> Launch:
    """`task` is what becomes a rank; `command` is the training's own, from which torchrun's Python is taken."""
    cpus = resources.cpus_per_task or 1
    world = sum(rank_place.tasks for rank_place in laid)
    meeting = {"MASTER_ADDR": laid[0].host, "MASTER_PORT": str(port)}
    match launcher:
        case "srun":
            argv = [*srun_step(nodes=len(laid), tasks=world, cpus=cpus), *_per_node(laid), *task]
        case "torchrun":
            argv, meeting = _torchrun(laid, task, command, cpus=cpus, port=port), {}
        case "mpirun":
            hosts = ",".join(f"{rank_place.host}:{rank_place.tasks}" for rank_place in laid)
            argv = ["mpirun", "-np", str(world), "--host", hosts, "--map-by", "slot", "--bind-to", "none", "--oversubscribe", *task]
        case "horovodrun":
            hosts = ",".join(f"{rank_place.host if len(laid) > 1 else 'localhost'}:{rank_place.tasks}" for rank_place in laid)
            argv, meeting = ["horovodrun", "-np", str(world), "-H", hosts, *task], {}
        case _:
            raise InvalidInput(f"{launcher} is not a launcher", hint=f"valid ones: {', '.join(LAUNCHERS)}")
    return Launch(argv=tuple(argv), variables=meeting)


def _torchrun(laid: Sequence[HostRanks], task: Sequence[str], command: Sequence[str], *, cpus: int, port: int) -> list[str]:
    each = laid[0].tasks
    program = [command[0], "-m", "torch.distributed.run"] if _PYTHON.match(PurePosixPath(command[0]).name) else ["torchrun"]
    if len({rank_place.tasks for rank_place in laid}) > 1:
        raise InvalidInput(
            f"torchrun needs equal process counts on all nodes, but this job has {', '.join(f'{p.tasks} on {p.host}' for p in laid)}",
            hint="give ntasks-per-node",
        )
    options = [f"--nnodes={len(laid)}", f"--nproc-per-node={each}", f"--node-rank={NODE_PLACEHOLDER}", "--rdzv-backend=static"]
    options += [f"--master-addr={laid[0].host if len(laid) > 1 else '127.0.0.1'}", f"--master-port={port}"]
    options += ["--max-restarts=0", "--signals-to-handle=SIGINT,SIGQUIT", "--no-python"]
    spread = [*task[:-3], "spread", "--", *program, *options, *task]  # python archive | task run leg
    if len(laid) == 1:
        return spread
    return [*srun_step(nodes=len(laid), tasks=len(laid), cpus=each * cpus), "--ntasks-per-node=1", *spread]


def _per_node(laid: Sequence[HostRanks]) -> list[str]:
    each = {rank_place.tasks for rank_place in laid}
    return [f"--ntasks-per-node={each.pop()}"] if len(each) == 1 else []


def _slurm_tasks(text: str) -> list[int]:
    """`2(x2),1` is 2, 2, 1."""
    found = re.findall(r"(\d+)(?:\(x(\d+)\))?", text)
    return [int(tasks) for tasks, times in found for _ in range(int(times or 1))]


def _short(host: str) -> str:
    return host.split(".")[0]
