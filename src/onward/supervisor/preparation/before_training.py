"""What happens in a leg before its training starts: restore, environment, a request's inputs, the relay, setup lines, the launch plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onward.model.run import Run
from onward.rundir.journal import read_run
from onward.rundir.layout import LegLocal
from onward.supervisor.companions import Companions, Turn
from onward.supervisor.disk.leftovers import remove_leftovers_in_background
from onward.supervisor.leg.context import LegContext
from onward.supervisor.preparation.batch_script import script_environment
from onward.supervisor.preparation.environment import relay_variables, training_environment, working_folder
from onward.supervisor.preparation.restore import Resume, restore_newest
from onward.supervisor.preparation.setup_steps import LEAVES_WHEN_ASKED, prepare_environment
from onward.supervisor.ranks.other_nodes import OtherNodes
from onward.supervisor.ranks.rank_group import RankGroup
from onward.supervisor.ranks.rank_wrapper import LegNode
from onward.supervisor.ranks.start import LaunchCommand, launch_command
from onward.supervisor.relay.routes import start_relay
from onward.supervisor.stop.signals import Signals
from onward.supervisor.telemetry.tracker_server import tracker_connection_of

_RELAY_PATIENCE = 3600.0  # seconds for the last records of scripts, where the job has that long


@dataclass(frozen=True, kw_only=True)
class PreparedTraining:
    run: Run  # as its journals had it before the training
    resume: Resume | None
    env: Mapping[str, str]  # before modules and setup lines
    launch: LaunchCommand


def prepare_training(
    context: LegContext, local: LegLocal, signals: Signals, nodes: OtherNodes | None, companions: Companions
) -> PreparedTraining:
    run = context.patiently("reading the run's journals", lambda: read_run(context.dir))
    remove_leftovers_in_background(local)
    resume, others = restore_newest(context, local, nodes)
    env = context.patiently(
        "reading the run's environment",
        lambda: training_environment(
            context.spec, context.dir, local, leg=context.leg, deadline=context.allocation.deadline, resume=resume
        ),
    )
    inputs = _request_inputs(context, env, signals)
    env.update(inputs or {})
    _accept_records(companions, context, local)
    env.update(relay_variables(local))
    script = context.spec.script
    if script:
        env = script_environment(script, env, run=context.dir, folder=working_folder(context.spec, context.dir), job=context.allocation.job)
    ready = prepare_environment(context, local, env, signals) if inputs is not None else None
    launch = _launch(context, local, resume, ready, nodes, others) or LaunchCommand(
        command=LEAVES_WHEN_ASKED, env=env, rank_group=RankGroup(local, nodes)
    )
    return PreparedTraining(run=run, resume=resume, env=env, launch=launch)


def _request_inputs(context: LegContext, env: Mapping[str, str], signals: Signals) -> dict[str, str] | None:
    """Where its request's files are. None where the leg is to stop before they are there."""
    if not context.dir.inputs_order.exists():
        return {}
    from onward.supervisor.preparation.request_inputs import fetch_inputs  # loads HTTP and TLS, which few runs need

    return fetch_inputs(context, env, signals)


def _accept_records(companions: Companions, context: LegContext, local: LegLocal) -> None:
    upstream = tracker_connection_of(context.spec.tracker, context.dir.tracker_token)
    relay = start_relay(context.spec, context.dir, local, leg=context.leg, upstream=upstream)
    if relay:
        companions.add(Turn.RELAY, relay.close, longest=_RELAY_PATIENCE)


def _launch(
    context: LegContext,
    local: LegLocal,
    resume: Resume | None,
    env: Mapping[str, str] | None,
    nodes: OtherNodes | None,
    others: list[LegNode],
) -> LaunchCommand | None:
    """None where the leg is to stop before there is an environment."""
    if env is None:
        return None
    return context.patiently("writing the launch plan", lambda: launch_command(context, local, resume, env, nodes=nodes, others=others))
