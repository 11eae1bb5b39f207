"""The course of a leg: restore the newest good checkpoint, start the training and what goes with it, see it through."""

from __future__ import annotations

import math
import os
import socket
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from onward.errors import InvalidInput
from onward.model import events as ev
from onward.rundir.layout import LegLocal
from onward.rundir.progress import SpoolReader
from onward.schedulers.base import capabilities_of
from onward.sdk.contract import EXIT_AGAIN
from onward.supervisor.background import SystemSampler, never_hurts_training
from onward.supervisor.companions import Turn
from onward.supervisor.leg.after_training import carry_the_last_files, outcome_of, publish_the_rest, remove_launch_plan, was_cut_short
from onward.supervisor.leg.beside_training import TrainingCompanions, system_sampler
from onward.supervisor.leg.context import LegContext
from onward.supervisor.leg.publisher_process import PublisherProcess
from onward.supervisor.leg.verdict import TrainingOutcome
from onward.supervisor.leg.watch import TrainingWatch
from onward.supervisor.preparation.batch_output import share_one_file
from onward.supervisor.preparation.batch_script import script_plan
from onward.supervisor.preparation.before_training import PreparedTraining, prepare_training
from onward.supervisor.preparation.environment import working_folder
from onward.supervisor.preparation.restore import Resume
from onward.supervisor.processes.child import Child
from onward.supervisor.processes.survivors import leg_mark
from onward.supervisor.ranks.other_nodes import OtherNodes, start_node_agents
from onward.supervisor.stop.plan import StopPlanner
from onward.supervisor.stop.signals import Signals, ignoring_notices
from onward.supervisor.stop.stop_file_looks import StopFileLooks
from onward.supervisor.stop.store_probe import StoreProbe
from onward.supervisor.telemetry.host import MemoryWatch


def train(context: LegContext, local: LegLocal, signals: Signals) -> tuple[TrainingOutcome, TrainingWatch]:
    """From the checkpoint to the last word of the training, with everything it saved and wrote carried over."""
    woken = threading.Event()
    nodes = start_node_agents(context, env=os.environ, woken=woken)
    training = LegTraining(context=context, local=local, signals=signals, woken=woken, companions=TrainingCompanions(context, local))
    try:
        return training.run(nodes)
    except BaseException:
        for child in training.children:
            child.kill()  # a leg that fails leaves no training behind
        if nodes:
            nodes.drain(until=context.clock.now() + 5.0)
        training.companions.abandon()
        raise


@dataclass(kw_only=True)
class LegTraining:
    context: LegContext
    local: LegLocal
    signals: Signals
    woken: threading.Event
    companions: TrainingCompanions
    children: list[Child] = field(default_factory=list)  # the training, once it has started

    def run(self, nodes: OtherNodes | None) -> tuple[TrainingOutcome, TrainingWatch]:
        context, deadline = self.context, self.context.allocation.deadline
        prepared = prepare_training(context, self.local, self.signals, nodes, self.companions)
        length = deadline - context.clock.now() if deadline else None
        own_files = self.companions.own_files_watch(self.children, length=length)
        if before := prepared.run.legs.get(context.leg - 1):
            with never_hurts_training("looking for what the leg before saved last"):
                own_files.tell_of_killed_leg(before)
        began = context.clock.now()
        start_publisher = partial(self._start_publisher, prepared.resume, since=began)
        publisher = start_publisher()
        memory = MemoryWatch()
        looks = StopFileLooks(self.local)
        child = self._start_child(prepared, publisher)
        sampler = system_sampler(context, self.local, child)
        self.companions.start(child, sampler, prepared.env, began=began)
        own_looks = self.companions.look_for_own_checkpoints(own_files)
        self.companions.serve_pipeline()
        watch = self._watch_of(prepared, child, publisher, sampler, length=length)
        code = watch.watch()
        gone = context.clock.now()
        ends = watch.deadline or math.inf
        self.companions.end(Turn.OWN_CHECKPOINTS, until=ends)
        if not watch.ended and code in (0, EXIT_AGAIN):
            with never_hurts_training("recording that the training has ended"):
                self.local.left.write_text(f"{began}")
        watch.deleted = watch.folder.is_deleted()
        if watch.fenced or watch.deleted:
            watch.rank_group.drain(until=gone + 5.0)
            if watch.deleted:
                watch.publisher.drain(until=gone)  # it has nowhere to publish to
        else:
            publish_the_rest(context, watch, code, gone=gone, until=ends, start_publisher=start_publisher)
            if own_looks.stopped:
                with never_hurts_training("the last look for the training's own checkpoints"):
                    own_files.last_look(cut=was_cut_short(code, asked=bool(watch.asked), ended=watch.ended))
        self.companions.end_all(until=ends)
        if not watch.deleted:
            carry_the_last_files(context, self.local)
        watch.stop_seconds = gone - watch.asked_at if watch.asked_at else None
        remove_launch_plan(context)
        return outcome_of(context, watch, prepared.run, code, began=began, memory=memory, peak_rss=sampler.peak_rss, looks=looks), watch

    def _start_publisher(self, resume: Resume | None, *, since: float) -> PublisherProcess:
        context = self.context
        command = [
            sys.executable,
            "-E",
            str(context.dir.supervisor),
            "stage",
            str(context.dir.path),
            str(context.leg),
            str(self.local.path),
        ]
        command += ["--since", str(since)]
        if resume:
            command += ["--resumed-step", str(resume[1])]
        if context.spec.launcher != "plain":
            command += ["--nodes", str(len(context.allocation.hosts))]
        return PublisherProcess(command, env=os.environ, woken=self.woken)

    def _start_child(self, prepared: PreparedTraining, publisher: PublisherProcess) -> Child:
        context, spec, launch = self.context, self.context.spec, prepared.launch
        try:
            child = Child(
                _deaf_where_notices_are_sent(context, launch.command),
                cwd=working_folder(spec, context.dir),
                env=launch.env,
                mark=leg_mark(spec.id, context.leg),
                out=self.local.log(context.leg, "out"),
                err=self.local.log(context.leg, "out" if share_one_file(spec) else "err"),
                woken=self.woken,
            )
        except OSError as error:
            publisher.drain(until=context.clock.now() + 5)
            launch.rank_group.drain(until=context.clock.now() + 5)
            if not context.dir.is_run():
                raise  # the storage with the run's code is away: not the command's failure
            why = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            words = f"the command cannot be started on {socket.gethostname()}: {why}"
            raise InvalidInput(words, hint="does it exist on the nodes?") from error
        self.children.append(child)
        context.journal.write(ev.Started(leg=context.leg, at=context.clock.now(), pid=child.pid))
        return child

    def _watch_of(
        self, prepared: PreparedTraining, child: Child, publisher: PublisherProcess, sampler: SystemSampler, *, length: float | None
    ) -> TrainingWatch:
        """`length`: seconds that the leg has."""
        context, spec, local = self.context, self.context.spec, self.local
        lead = None if spec.script and spec.stop_signal else spec.stop_lead  # a script's own lead is for its own signal
        return TrainingWatch(
            spec=spec,
            leg=context.leg,
            child=child,
            rank_group=prepared.launch.rank_group,
            local=local,
            journal=context.journal,
            publisher=publisher,
            spool=SpoolReader(local.spool),
            signals=self.signals,
            planner=StopPlanner.of(prepared.run.legs.values(), limit=length, several=spec.launcher != "plain", set_lead=lead),
            limit=self.companions.watch_time_limit(),
            folder=self.companions.watch_run_folder(),
            clock=context.clock,
            woken=self.woken,
            probe=StoreProbe(context.dir.checkpoints, context.clock),
            state_bytes=lambda: sampler.state_bytes * len(context.allocation.hosts) or None,
            shaped=(lambda plan: script_plan(spec, plan, limit=length, local=local)) if spec.script else (lambda plan: plan),
        )


def _deaf_where_notices_are_sent(context: LegContext, command: Sequence[str]) -> Sequence[str]:
    return ignoring_notices(command) if capabilities_of(context.scheduler).delete_notice and not context.spec.script else command
