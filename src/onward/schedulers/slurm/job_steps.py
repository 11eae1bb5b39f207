"""Processes that a Slurm job starts on its nodes, beside its batch script."""

from __future__ import annotations

from collections.abc import Sequence


def srun_step(*, nodes: int, tasks: int, cpus: int, end_on_failure: bool = True) -> list[str]:
    """A step beside the batch step: it shares the job's CPUs, memory and GPUs with our other steps.

    `end_on_failure`: it ends when one of its tasks fails.
    """
    kill = f"--kill-on-bad-exit={int(end_on_failure)}"
    return ["srun", "--overlap", kill, f"--nodes={nodes}", f"--ntasks={tasks}", f"--cpus-per-task={cpus}"]


def node_commands(command: Sequence[str], hosts: Sequence[str]) -> list[list[str]]:
    """One step for all of these hosts."""
    step = srun_step(nodes=len(hosts), tasks=len(hosts), cpus=1, end_on_failure=False)
    return [[*step, "--ntasks-per-node=1", f"--nodelist={','.join(hosts)}", "--input=all", "--job-name=onward-node", *command]]
