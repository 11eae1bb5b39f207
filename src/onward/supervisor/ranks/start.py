"""From the spec and the allocation to what is to be started: the training itself, or a launcher with agents on the other nodes."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onward.rundir.layout import LegLocal
from onward.schedulers.base import capabilities_of
from onward.supervisor.leg.context import LegContext
from onward.supervisor.preparation.batch_script import script_command
from onward.supervisor.preparation.environment import launcher_environment, training_command, working_folder
from onward.supervisor.ranks.launchers import launch, ranks_by_host
from onward.supervisor.ranks.other_nodes import OtherNodes
from onward.supervisor.ranks.rank_group import RankGroup
from onward.supervisor.ranks.rank_wrapper import LaunchPlan, LegNode

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LaunchCommand:
    command: tuple[str, ...]
    env: Mapping[str, str]
    rank_group: RankGroup


def launch_command(
    context: LegContext,
    local: LegLocal,
    resume: tuple[Path, int] | None,
    env: Mapping[str, str],
    *,
    nodes: OtherNodes | None,
    others: Sequence[LegNode],
) -> LaunchCommand:
    """What starts the training on all nodes. `others` are those that `nodes` are on, each with the checkpoint."""
    spec, dir, leg, hosts = context.spec, context.dir, context.leg, context.allocation.hosts
    if spec.script:
        return LaunchCommand(command=script_command(spec.script, dir), env=env, rank_group=RankGroup(local))
    if spec.launcher == "plain":
        return LaunchCommand(
            command=training_command(spec.command, spec.params, local, resume=resume), env=env, rank_group=RankGroup(local)
        )
    here = LegNode(host=hosts[0], local=str(local.path), resume=str(resume[0]) if resume else None)
    laid = ranks_by_host(spec.launcher, spec.resources, hosts, os.environ, hostfile=_hostfile())
    task = (sys.executable, "-E", str(dir.supervisor), "task", str(dir.path), str(leg))
    how = launch(spec.launcher, laid, task=task, command=spec.command, resources=spec.resources, port=free_port())
    env = {**launcher_environment(env), **how.variables}
    order = {host: index for index, host in enumerate(hosts)}
    plan = LaunchPlan(
        launcher=spec.launcher,
        command=spec.command,
        params=spec.params,
        cwd=str(working_folder(spec, dir)),
        environment=env,
        nodes=(here, *sorted(others, key=lambda node: order.get(node.host, len(order)))),
        resume_step=resume[1] if resume else None,
        deaf=capabilities_of(context.scheduler).delete_notice is not None,
    )
    _clear_earlier_plans(context)
    plan.write(dir.launch(leg))
    log.info("%s starts %s", spec.launcher, ", ".join(f"{rank_place.tasks} on {rank_place.host}" for rank_place in laid))
    return LaunchCommand(command=how.argv, env=env, rank_group=RankGroup(local, nodes))


def free_port() -> int:
    """One that nothing on this host listens on now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as taken:
        taken.bind(("", 0))
        number: int = taken.getsockname()[1]
        return number


def _hostfile() -> str:
    """Grid Engine's own list of this job's hosts and slots."""
    try:
        return Path(os.environ["PE_HOSTFILE"]).read_text()
    except (KeyError, OSError):
        return ""


def _clear_earlier_plans(context: LegContext) -> None:
    for number in range(max(context.leg - 5, 1), context.leg):
        context.dir.launch(number).unlink(missing_ok=True)
