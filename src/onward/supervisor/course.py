"""The course of a leg: restore the newest good checkpoint, start the training and what goes with it, see it through."""

from __future__ import annotations

import logging
import math
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from onward.checkpoints.find import newest_in_place, restore_newest
from onward.errors import CheckpointDamaged, InvalidInput, StorageFull
from onward.model import event as ev
from onward.model.checkpoint import CheckpointName
from onward.rundir.journal import read_run
from onward.rundir.layout import LegLocal
from onward.rundir.mirror import carry
from onward.rundir.spool import SpoolReader
from onward.schedulers.base import habits_of
from onward.sdk.contract import EXIT_AGAIN
from onward.supervisor.batch_script import as_judged, script_environment, script_plan
from onward.supervisor.child import Child
from onward.supervisor.crew import start_crew
from onward.supervisor.deadline import plan_stop
from onward.supervisor.gpu import GpuSampler
from onward.supervisor.host import HostSampler, MemoryWatch
from onward.supervisor.member import beside
from onward.supervisor.outputs import output_files, together
from onward.supervisor.preparation import LEAVES_WHEN_ASKED, prepared
from onward.supervisor.push import PUSH_SECONDS, push_of
from onward.supervisor.ranks import task_pids
from onward.supervisor.relay import start_relay
from onward.supervisor.scene import Scene
from onward.supervisor.signals import Signals, spared
from onward.supervisor.staging import StagerProcess
from onward.supervisor.stopping import Crew
from onward.supervisor.surroundings import relay_variables, training_environment, working_folder
from onward.supervisor.training import FolderWatch, Training
from onward.supervisor.upstream import upstream_of
from onward.supervisor.verdict import Outcome, last_words
from onward.supervisor.watchers import MIRROR_SECONDS, SAMPLE_SECONDS, Repeating, Sampler, never_hurts_training

log = logging.getLogger(__name__)

_STALE_VIEW = 10.0  # seconds a network file system may hide a checkpoint that was published
_MOST_STAGING = 3600.0  # seconds for the last checkpoints, where the job has that long

Resume = tuple[Path, int]  # folder and step


def train(scene: Scene, local: LegLocal, signals: Signals) -> tuple[Outcome, Training]:
    """From the checkpoint to the last word of the training, with everything it saved and wrote carried over."""
    dir, leg, clock, deadline = scene.dir, scene.leg, scene.clock, scene.allocation.deadline
    run = read_run(dir)
    restored = _restore(scene, local)
    resume = restored[0] if restored else None
    env = training_environment(scene.spec, dir, local, leg=leg, deadline=deadline, resume=resume)
    given = _given(scene, env, signals)
    env.update(given or {})
    relay = start_relay(scene.spec, dir, local, leg=leg, upstream=upstream_of(scene.spec.tracker, dir.tracker_token))
    env.update(relay_variables(local))
    script = scene.spec.script
    if script:
        env = script_environment(script, env, run=dir, folder=working_folder(scene.spec, dir), job=scene.allocation.job)
    ready = prepared(scene, local, env, signals) if given is not None else None
    woken = threading.Event()
    started = start_crew(scene, local, restored, ready, woken=woken) if ready is not None else None
    stager = _start_stager(scene, local, resume, woken)
    memory = MemoryWatch()
    command = started.command if started else LEAVES_WHEN_ASKED
    crew = started.crew if started else Crew(local)
    try:
        child = _start_child(scene, local, command, started.env if started else env, stager, woken)
    except InvalidInput:
        crew.drain(until=clock.now() + 5)
        raise
    host = HostSampler(sessions=lambda: (child.pid, *task_pids(local.ranks)), disk=local.path)
    hosts = scene.allocation.hosts
    sampler = Sampler(local, leg, host, GpuSampler(scene.allocation.gpus), node=hosts[0] if len(hosts) > 1 else "")
    mirroring = Repeating("mirroring", lambda: carry(local, dir), every=MIRROR_SECONDS)
    outputs = output_files(scene, local)
    copying = Repeating("copying the output", outputs.carry, every=MIRROR_SECONDS)
    sampling = Repeating("sampling", sampler.sample, every=SAMPLE_SECONDS)
    push = push_of(scene.spec.tracker, scene.spec.id, dir, local)
    pushing = Repeating("pushing", push.work, every=PUSH_SECONDS) if push else None
    pipeline = beside(scene)
    limit = deadline - clock.now() if deadline else None
    plan = plan_stop(run.legs.values(), limit=limit, several=scene.spec.launcher != "plain")
    training = Training(
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
        plan=script_plan(scene.spec, plan, limit=limit, local=local) if script else plan,
        deadline=deadline,
        clock=clock,
        woken=woken,
    )
    code = training.watch()
    gone = clock.now()
    crew.drain(until=min(deadline - 1.0 if deadline else math.inf, gone + (5.0 if training.fenced else _MOST_STAGING)))
    if not training.fenced:
        patience = 10.0 if training.asked == "storage" else _MOST_STAGING  # it was stopped because there is no room
        training.take_reports(stager.drain(until=min(deadline - 0.5 if deadline else math.inf, gone + patience)))
    sampling.stop()
    for following in pipeline:
        following.stop()
    if pushing:
        pushing.stop()
    if relay:
        relay.close(within=max(min(deadline - clock.now() - 3.0, _MOST_STAGING), 1.0) if deadline else _MOST_STAGING)
    mirroring.stop(within=5.0)
    copying.stop()
    with never_hurts_training("the last copying of the output"):
        outputs.carry(within=5.0)
    training.folder.end()
    try:
        carry(local, dir)
    except OSError as error:
        log.warning("not all that it wrote and logged is in the run's folder: %s", error)
        scene.journal.write(ev.Warned(leg=leg, at=clock.now(), text=f"not all that it wrote and logged could be stored: {error}"))
    training.stop_seconds = gone - training.asked_at if training.asked_at else None
    with never_hurts_training("removing the launch plan"):
        dir.launch(leg).unlink(missing_ok=True)
    peak = memory.peak()
    failed = crew.ranks.first_failure(before=training.ended_at or math.inf)
    if training.ended and failed is None and code not in (0, EXIT_AGAIN):
        code = code if code < 0 else -signal.SIGKILL  # ours, as its launcher puts it
    code, asked = as_judged(scene.spec, code=code, asked=training.asked, ended_by_us=training.ended, local=local)
    outcome = Outcome(
        code=code,
        asked=asked,
        finished=training.spool.read().complete,
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


def _given(scene: Scene, env: Mapping[str, str], signals: Signals) -> dict[str, str] | None:
    """Where its request's files are. None where the leg is to stop before they are there."""
    if not scene.dir.inputs_order.exists():
        return {}
    from onward.supervisor.inputs import given_inputs  # loads HTTP and TLS, which few runs need

    return given_inputs(scene, env, signals)


def _restore(scene: Scene, local: LegLocal) -> tuple[Resume, str] | None:
    """The newest checkpoint that verifies, on the node's disk, and its name. Says so when it had to fall back."""
    published = [CheckpointName(leg.number, p.step) for leg in read_run(scene.dir).legs.values() for p in leg.published]
    until = scene.clock.now() + _STALE_VIEW

    def wait() -> bool:
        scene.clock.sleep(0.5)
        return scene.clock.now() < until

    folder = local.resume
    try:
        found = restore_newest(scene.dir.checkpoints, folder, expected=max(published, default=None), wait=wait)
    except StorageFull as error:
        log.warning("%s; reading the checkpoint where it is", error)
        found = newest_in_place(scene.dir.checkpoints)
        folder = scene.dir.checkpoints / str(found.manifest.name) if found else folder
    if found is None:
        if published:
            raise CheckpointDamaged(
                "none of this run's checkpoints verifies any more",
                hint=f"look at {scene.dir.checkpoints}; start afresh with a new run, or put a good copy back and onward resume",
            )
        return None
    for words in found.fell_back:
        log.warning("fell back: %s", words)
    name = found.manifest.name
    scene.journal.write(
        ev.Restored(leg=scene.leg, at=scene.clock.now(), step=name.step, checkpoint=str(name), fell_back=list(found.fell_back))
    )
    if found.manifest.made_by == "files":  # trainings that look for their files where they write them find them there
        with never_hurts_training("putting the checkpoint where the training writes"):
            shutil.copytree(folder, local.checkpoints, dirs_exist_ok=True, symlinks=True)
    log.info("restored %s", name)
    return (folder, name.step), str(name)


def _start_stager(scene: Scene, local: LegLocal, resume: Resume | None, woken: threading.Event) -> StagerProcess:
    command = [sys.executable, "-E", str(scene.dir.supervisor), "stage", str(scene.dir.path), str(scene.leg), str(local.path)]
    command += ["--since", str(scene.clock.now())]
    if resume:
        command += ["--resumed-step", str(resume[1])]
    return StagerProcess(command, env=os.environ, woken=woken)


def _start_child(
    scene: Scene, local: LegLocal, command: Sequence[str], env: Mapping[str, str], stager: StagerProcess, woken: threading.Event
) -> Child:
    spec, leg = scene.spec, scene.leg
    try:
        child = Child(
            spared(command) if habits_of(scene.scheduler).delete_notice and not spec.script else command,
            cwd=working_folder(spec, scene.dir),
            env=env,
            out=local.log(leg, "out"),
            err=local.log(leg, "out" if together(spec) else "err"),
            woken=woken,
        )
    except OSError as error:
        stager.drain(until=scene.clock.now() + 5)
        why = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise InvalidInput(f"the command cannot be started on {socket.gethostname()}: {why}", hint="is it there on the nodes?") from error
    scene.journal.write(ev.Started(leg=leg, at=scene.clock.now(), pid=child.pid))
    return child
