"""The course of a leg: restore the newest good checkpoint, start the training and what goes with it, see it through."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from onward.checkpoints.disk_space import is_in_memory
from onward.checkpoints.restoring.newest import Newest, likely_newest, take_newest
from onward.checkpoints.restoring.node_copy import NodeCheckpoint, bring_to_node
from onward.checkpoints.restoring.working_folder import put_back
from onward.errors import CheckpointDamaged, InvalidInput
from onward.model import events as ev
from onward.model.checkpoint import CheckpointName
from onward.model.job import JobId
from onward.model.stop_reason import StopReason
from onward.rundir.journal import read_run
from onward.rundir.layout import LegLocal
from onward.rundir.mirror import Mirror, carry
from onward.rundir.progress import SpoolReader
from onward.schedulers.base import capabilities_of, end_time_of, grace_of
from onward.sdk.contract import EXIT_AGAIN
from onward.supervisor.background import MIRROR_SECONDS, Repeating, SystemSampler, never_hurts_training, sample_seconds
from onward.supervisor.disk.leftovers import remove_leftovers_in_background
from onward.supervisor.disk.memory_disk import warn_of_memory_disk
from onward.supervisor.disk.salvage import journal_published
from onward.supervisor.leg.context import LegContext
from onward.supervisor.leg.end_marks import reached_its_end
from onward.supervisor.leg.publisher_process import PublisherProcess
from onward.supervisor.leg.verdict import TrainingOutcome, last_words
from onward.supervisor.leg.watch import TrainingWatch
from onward.supervisor.own_files.watch import OwnFilesWatch
from onward.supervisor.pipeline_hooks import companions
from onward.supervisor.preparation.batch_output import output_files, share_one_file
from onward.supervisor.preparation.batch_script import adjusted_exit, script_environment, script_plan
from onward.supervisor.preparation.environment import relay_variables, training_environment, working_folder
from onward.supervisor.preparation.setup_steps import LEAVES_WHEN_ASKED, prepare_environment
from onward.supervisor.processes.child import Child
from onward.supervisor.processes.survivors import leg_mark
from onward.supervisor.ranks.other_nodes import SLOWEST_STORE, OtherNodes, measured_rate, patience_for, start_node_agents
from onward.supervisor.ranks.rank_group import RankGroup
from onward.supervisor.ranks.rank_states import rank_pids
from onward.supervisor.ranks.rank_wrapper import LegNode
from onward.supervisor.ranks.start import launch_command
from onward.supervisor.relay.routes import start_relay
from onward.supervisor.stop.plan import StopPlanner
from onward.supervisor.stop.run_folder_watch import FolderWatch
from onward.supervisor.stop.signals import Signals, ignoring_notices
from onward.supervisor.stop.store_probe import StoreProbe
from onward.supervisor.stop.time_limit import TimeLimit
from onward.supervisor.telemetry.found_event_files import LOOK_SECONDS, FoundEventFiles
from onward.supervisor.telemetry.gpu import GpuSampler
from onward.supervisor.telemetry.host import HostSampler, MemoryWatch, session_processes
from onward.supervisor.telemetry.push import PUSH_SECONDS, push_of
from onward.supervisor.telemetry.tracker_server import tracker_connection_of

log = logging.getLogger(__name__)

_STALE_VIEW = 10.0  # seconds a network file system may hide a checkpoint that was published
_RELAY_PATIENCE = 3600.0  # seconds for the last records of scripts, where the job has that long

Resume = tuple[Path, int]  # folder and step


def train(scene: LegContext, local: LegLocal, signals: Signals) -> tuple[TrainingOutcome, TrainingWatch]:
    """From the checkpoint to the last word of the training, with everything it saved and wrote carried over."""
    woken = threading.Event()
    nodes = start_node_agents(scene, env=os.environ, woken=woken)
    children: list[Child] = []
    try:
        return _train(scene, local, signals, nodes, woken, children)
    except BaseException:
        for child in children:
            child.kill()  # a leg that fails leaves no training behind
        if nodes:
            nodes.drain(until=scene.clock.now() + 5.0)
        raise


def _train(
    scene: LegContext, local: LegLocal, signals: Signals, nodes: OtherNodes | None, woken: threading.Event, children: list[Child]
) -> tuple[TrainingOutcome, TrainingWatch]:
    dir, leg, clock, deadline = scene.dir, scene.leg, scene.clock, scene.allocation.deadline
    run = scene.patiently("reading the run's journals", lambda: read_run(dir))
    remove_leftovers_in_background(local)
    restored, others = _restore(scene, local, nodes)
    resume = restored[0] if restored else None
    env = scene.patiently(
        "reading the run's environment",
        lambda: training_environment(scene.spec, dir, local, leg=leg, deadline=deadline, resume=resume),
    )
    given = _request_inputs(scene, env, signals)
    env.update(given or {})
    relay = start_relay(scene.spec, dir, local, leg=leg, upstream=tracker_connection_of(scene.spec.tracker, dir.tracker_token))
    env.update(relay_variables(local))
    script = scene.spec.script
    if script:
        env = script_environment(script, env, run=dir, folder=working_folder(scene.spec, dir), job=scene.allocation.job)
    ready = prepare_environment(scene, local, env, signals) if given is not None else None
    started = (
        scene.patiently("writing the launch plan", lambda: launch_command(scene, local, restored, ready, nodes=nodes, others=others))
        if ready is not None
        else None
    )
    length = deadline - clock.now() if deadline else None
    own_files = OwnFilesWatch(
        working_folder(scene.spec, dir),
        leg=leg,
        limit=length,
        processes=lambda: session_processes(*(child.pid for child in children), *rank_pids(local.ranks)),
        ours=(dir.path, local.path),
        write=scene.journal.write,
        clock=clock,
    )
    began = clock.now()
    stager = _start_stager(scene, local, resume, woken, since=began)
    memory = MemoryWatch()
    command = started.command if started else LEAVES_WHEN_ASKED
    crew = started.crew if started else RankGroup(local, nodes)
    try:
        child = _start_child(scene, local, command, started.env if started else env, stager, woken)
        children.append(child)
    except InvalidInput:
        crew.drain(until=clock.now() + 5)
        raise
    host = HostSampler(sessions=lambda: (child.pid, *rank_pids(local.ranks)), disk=local.path)
    hosts = scene.allocation.hosts
    sampler = SystemSampler(local, leg, host, GpuSampler(scene.allocation.gpus), node=hosts[0] if len(hosts) > 1 else "")
    mirroring = Repeating("mirroring", Mirror(local, dir).carry, every=MIRROR_SECONDS)
    outputs = output_files(scene, local)
    copying = Repeating("copying the output", outputs.carry, every=MIRROR_SECONDS)
    sampling = Repeating("sampling", sampler.sample, every=sample_seconds(env))
    push = push_of(scene.spec.tracker, scene.spec.id, dir, local)
    pushing = Repeating("pushing", push.work, every=PUSH_SECONDS) if push else None
    finding = FoundEventFiles(
        run=dir,
        local=local,
        folder=working_folder(scene.spec, dir),
        submitted=scene.spec.created,
        began=began,
        processes=lambda: session_processes(child.pid, *rank_pids(local.ranks)),
    )
    looking = Repeating("looking for event files", finding.look, every=LOOK_SECONDS)
    looking_for_own = Repeating("looking for the training's own checkpoints", own_files.look, every=own_files.pause)
    pipeline = companions(scene)
    lead = None if script and scene.spec.stop_signal else scene.spec.stop_lead  # a script's own lead is for its own signal
    planner = StopPlanner.of(run.legs.values(), limit=length, several=scene.spec.launcher != "plain", set_lead=lead)
    job = JobId(scene.allocation.job)
    limit = TimeLimit(deadline, clock, end_time=lambda: end_time_of(scene.scheduler, job), grace=lambda: grace_of(scene.scheduler))
    limit.watch()
    training = TrainingWatch(
        spec=scene.spec,
        leg=leg,
        child=child,
        crew=crew,
        local=local,
        journal=scene.journal,
        stager=stager,
        spool=SpoolReader(local.spool),
        signals=signals,
        folder=FolderWatch(dir, leg),
        planner=planner,
        limit=limit,
        clock=clock,
        woken=woken,
        probe=StoreProbe(dir.checkpoints, clock),
        state_bytes=lambda: sampler.state_bytes * len(hosts) or None,
        shaped=(lambda plan: script_plan(scene.spec, plan, limit=length, local=local)) if script else (lambda plan: plan),
    )
    code = training.watch()
    gone = clock.now()
    looking_for_own.stop()
    ends = limit.deadline or math.inf
    if not training.ended and code in (0, EXIT_AGAIN):
        with never_hurts_training("recording that the training has ended"):
            local.left.write_text(f"{began}")
    if training.fenced:
        crew.drain(until=gone + 5.0)
    else:
        cut = was_cut_short(code, asked=bool(training.asked), ended=training.ended)
        crew.drain(until=ends - 1.0, cut=cut)
        killed_at = gone if cut else None
        training.take_reports(stager.drain(until=ends - 0.5, killed_at=killed_at))
        scene.wait_for_storage_anew()
        while training.saves.left_behind and clock.now() < scene.storage_until and not signals.ending:  # each waits a while for room
            stager = _start_stager(scene, local, resume, woken, since=began)
            training.take_reports(stager.drain(until=min(ends - 0.5, scene.storage_until), killed_at=killed_at))
        with never_hurts_training("recording what is left on the node"):
            late = training.asked is StopReason.DEADLINE
            scene.patiently(
                "looking at the store",
                lambda: training.saves.note_left_on_node(dir.checkpoints, cut_off=stager.cut, at_deadline=late),
            )
    if not training.fenced and looking_for_own.stopped:
        with never_hurts_training("the last look for the training's own checkpoints"):
            own_files.last_look()
    limit.end()
    sampling.stop()
    for following in pipeline:
        following.stop()
    if pushing:
        pushing.stop()
    if relay:
        relay.close(within=max(min(ends - clock.now() - 3.0, _RELAY_PATIENCE), 1.0))
    looking.stop()
    finding.finish(within=5.0)
    mirroring.stop(within=5.0)
    copying.stop()
    with never_hurts_training("copying the last output"):
        outputs.carry(within=5.0)
    training.folder.end()
    try:
        scene.patiently("copying the last logs and metrics", lambda: carry(local, dir))
    except OSError as error:
        log.warning("some of its logs and metrics are not in the run's folder: %s", error)
        scene.journal.write(ev.Warned(leg=leg, at=clock.now(), text=f"some of its logs and metrics could not be stored: {error}"))
    training.stop_seconds = gone - training.asked_at if training.asked_at else None
    with never_hurts_training("removing the launch plan"):
        dir.launch(leg).unlink(missing_ok=True)
    peak = memory.peak()
    failed = crew.ranks.first_failure(before=training.ended_at or math.inf)
    if training.ended and failed is None and code not in (0, EXIT_AGAIN):
        code = code if code < 0 else -signal.SIGKILL  # ours, as its launcher puts it
    code, asked = adjusted_exit(
        scene.spec, code=code, asked=training.asked, ended_by_us=training.ended, local=local, own=run.checkpoints.own
    )
    outcome = TrainingOutcome(
        code=code,
        asked=asked,
        finished=reached_its_end(training.spool.read(), saved=training.saves.newest, folders=(local.checkpoints, local.own), began=began),
        stalled=training.stalled,
        lost_nodes=training.lost_nodes,
        memory_killed=memory.killed() or bool(failed and failed.out_of_memory),
        peak_mem=peak if peak is not None else host.peak_rss or None,
        mem=next((s.mem for s in run.legs[leg].submissions.values() if s.job == scene.allocation.job), run.resources.mem),
        evidence=crew.ranks.evidence() or last_words(local.log(leg, "err"), local.log(leg, "out")),
        stall_seconds=run.limits.stall_time,
        who=crew.ranks.name(failed) if failed else "the training",
        said=failed.last_line if failed else "",
        ended_by_us=training.ended and failed is None,
        stayed=crew.ranks.stayed(since=training.ended_at) if training.ended_at else "",
    )
    return outcome, training


def was_cut_short(code: int, *, asked: bool, ended: bool) -> bool:
    """Whether it may have been in the middle of a save: it was killed, or it failed, perhaps because the node's disk was full.

    One that was asked to stop and exits as shells do after a signal has caught that signal.
    """
    if code in (0, EXIT_AGAIN):
        return False
    return not asked or ended or code <= 128 or code == 128 + signal.SIGKILL


def _request_inputs(scene: LegContext, env: Mapping[str, str], signals: Signals) -> dict[str, str] | None:
    """Where its request's files are. None where the leg is to stop before they are there."""
    if not scene.dir.inputs_order.exists():
        return {}
    from onward.supervisor.preparation.request_inputs import fetch_inputs  # loads HTTP and TLS, which few runs need

    return fetch_inputs(scene, env, signals)


def _restore(scene: LegContext, local: LegLocal, nodes: OtherNodes | None) -> tuple[tuple[Resume, str] | None, list[LegNode]]:
    """The newest checkpoint that verifies, where this node can read it, and its name. Says so when it had to fall back.

    All nodes bring it at the same time; which it is is known at once by the sizes of its files. Also: the other nodes, ready.
    """
    store, clock, deadline = scene.dir.checkpoints, scene.clock, scene.allocation.deadline
    if nodes:
        nodes.here(patience_for(0, SLOWEST_STORE, deadline=deadline, now=clock.now()))
        with never_hurts_training("publishing what earlier legs left"):
            journal_published(scene.dir, leg=scene.leg, journal=scene.journal, clock=clock)
    legs = scene.patiently("reading the run's journals", lambda: read_run(scene.dir)).legs
    told = [(CheckpointName(leg.number, p.step), p) for leg in legs.values() for p in leg.published]
    until = clock.now() + _STALE_VIEW

    def wait() -> bool:
        clock.sleep(0.5)
        return clock.now() < until

    expected = max((name for name, _ in told), default=None)
    likely = scene.patiently("looking for the newest checkpoint", lambda: likely_newest(store, expected=expected, wait=wait))
    patience = patience_for(likely.bytes if likely else 0, measured_rate(p for _, p in told), deadline=deadline, now=clock.now())
    if is_in_memory(local.path):
        warn_of_memory_disk(scene, local, likely.bytes if likely else None)
    others: list[LegNode] = []

    def put_own_back(folder: Path) -> None:
        names = put_back(folder, working_folder(scene.spec, scene.dir), scene.spec.checkpoints.paths)
        if names:
            words = f"put back into the working folder, from {folder.name}: {', '.join(names)}"
            scene.journal.write(ev.Warned(leg=scene.leg, at=clock.now(), text=words))

    bring = partial(bring_to_node, resume=local.resume, writes=local.checkpoints, put_back=put_own_back)

    def take(folder: Path) -> NodeCheckpoint:
        if not nodes:
            return bring(folder)
        nodes.say(restore=folder.name)
        brought = bring(folder, part=(0, len(scene.allocation.hosts)))
        others[:] = nodes.ready(folder.name, patience)
        return brought

    found = scene.patiently("reading the newest checkpoint", lambda: _readable(take_newest(store, take, expected=expected), scene))
    if found is None:
        if told:
            raise CheckpointDamaged(
                "none of this run's checkpoints can be verified any more",
                hint=f"look into {store}; start over with a new run, or restore a good copy there, then onward resume",
            )
        if nodes:
            nodes.say(restore="")
            others = nodes.ready("", patience)
        return None, others
    for words in found.fell_back:
        log.warning("fell back to an older checkpoint: %s", words)
    brought, name = found.taken, found.taken.manifest.name
    scene.journal.write(ev.Restored(leg=scene.leg, at=clock.now(), step=name.step, checkpoint=str(name), fell_back=list(found.fell_back)))
    if brought.warning:
        scene.journal.write(ev.Warned(leg=scene.leg, at=clock.now(), text=brought.warning))
    log.info("restored %s%s", name, f", read from the run's folder: {brought.in_place}" if brought.in_place else "")
    return ((brought.folder, name.step), str(name)), others


def _readable(found: Newest[NodeCheckpoint] | None, scene: LegContext) -> Newest[NodeCheckpoint] | None:
    """An older checkpoint is taken for one that is damaged, but not at once for one that the storage does not give out now."""
    if found and found.unread and scene.clock.now() < scene.storage_until:
        raise found.unread
    return found


def _start_stager(scene: LegContext, local: LegLocal, resume: Resume | None, woken: threading.Event, *, since: float) -> PublisherProcess:
    command = [sys.executable, "-E", str(scene.dir.supervisor), "stage", str(scene.dir.path), str(scene.leg), str(local.path)]
    command += ["--since", str(since)]
    if resume:
        command += ["--resumed-step", str(resume[1])]
    if scene.spec.launcher != "plain":
        command += ["--nodes", str(len(scene.allocation.hosts))]
    return PublisherProcess(command, env=os.environ, woken=woken)


def _start_child(
    scene: LegContext, local: LegLocal, command: Sequence[str], env: Mapping[str, str], stager: PublisherProcess, woken: threading.Event
) -> Child:
    spec, leg = scene.spec, scene.leg
    try:
        child = Child(
            ignoring_notices(command) if capabilities_of(scene.scheduler).delete_notice and not spec.script else command,
            cwd=working_folder(spec, scene.dir),
            env=env,
            mark=leg_mark(spec.id, leg),
            out=local.log(leg, "out"),
            err=local.log(leg, "out" if share_one_file(spec) else "err"),
            woken=woken,
        )
    except OSError as error:
        stager.drain(until=scene.clock.now() + 5)
        if not scene.dir.is_run():
            raise  # the storage with the run's code is away: no fault of the command's
        why = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise InvalidInput(f"the command cannot be started on {socket.gethostname()}: {why}", hint="does it exist on the nodes?") from error
    scene.journal.write(ev.Started(leg=leg, at=scene.clock.now(), pid=child.pid))
    return child
