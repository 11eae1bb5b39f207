"""Bringing the newest checkpoint that verifies to where every node of the training can read it."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

from onward.checkpoints.disk_space import is_in_memory
from onward.checkpoints.restoring.newest import Newest, likely_newest, take_newest
from onward.checkpoints.restoring.node_copy import NodeCheckpoint, bring_to_node
from onward.checkpoints.restoring.working_folder import put_back
from onward.errors import CheckpointDamaged
from onward.model import events as ev
from onward.model.checkpoint import CheckpointName
from onward.rundir.journal import read_run
from onward.rundir.layout import LegLocal
from onward.supervisor.background import never_hurts_training
from onward.supervisor.disk.memory_disk import warn_of_memory_disk
from onward.supervisor.disk.salvage import journal_published
from onward.supervisor.leg.context import LegContext
from onward.supervisor.preparation.environment import working_folder
from onward.supervisor.ranks.other_nodes import SLOWEST_STORE, NodePatience, OtherNodes, measured_rate, patience_for
from onward.supervisor.ranks.rank_wrapper import LegNode

log = logging.getLogger(__name__)

_STALE_VIEW = 10.0  # seconds a network file system may hide a checkpoint that was published

Resume = tuple[Path, int]  # folder and step


def restore_newest(context: LegContext, local: LegLocal, nodes: OtherNodes | None) -> tuple[Resume | None, list[LegNode]]:
    """The newest checkpoint that verifies, where this node can read it. Says so when it had to fall back. Also: the other nodes, ready.

    All nodes bring it at the same time; which it is is known at once by the sizes of its files.
    """
    store, clock, deadline = context.dir.checkpoints, context.clock, context.allocation.deadline
    if nodes:
        _wait_for_agents(context, nodes)
    legs = context.patiently("reading the run's journals", lambda: read_run(context.dir)).legs
    published = [(CheckpointName(leg.number, p.step), p) for leg in legs.values() for p in leg.published]
    until = clock.now() + _STALE_VIEW

    def wait() -> bool:
        clock.sleep(0.5)
        return clock.now() < until

    expected = max((name for name, _ in published), default=None)
    likely = context.patiently("looking for the newest checkpoint", lambda: likely_newest(store, expected=expected, wait=wait))
    patience = patience_for(likely.bytes if likely else 0, measured_rate(p for _, p in published), deadline=deadline, now=clock.now())
    if is_in_memory(local.path):
        warn_of_memory_disk(context, local, likely.bytes if likely else None)
    others: list[LegNode] = []
    take = partial(_take, context, local, nodes, patience, others)
    newest = context.patiently("reading the newest checkpoint", lambda: _readable(take_newest(store, take, expected=expected), context))
    if newest is None:
        if published:
            raise CheckpointDamaged(
                "none of this run's checkpoints can be verified any more",
                hint=f"look into {store}; start over with a new run, or restore a good copy there, then onward resume",
            )
        return None, _ready_without_checkpoint(nodes, patience)
    return _tell_restored(context, newest), others


def _wait_for_agents(context: LegContext, nodes: OtherNodes) -> None:
    nodes.here(patience_for(0, SLOWEST_STORE, deadline=context.allocation.deadline, now=context.clock.now()))
    with never_hurts_training("publishing what earlier legs left"):
        journal_published(context.dir, leg=context.leg, journal=context.journal, clock=context.clock)


def _take(
    context: LegContext, local: LegLocal, nodes: OtherNodes | None, patience: NodePatience, others: list[LegNode], folder: Path
) -> NodeCheckpoint:
    """This checkpoint, on all nodes. `others` becomes those that have it."""
    bring = partial(bring_to_node, resume=local.resume, writes=local.checkpoints, put_back=partial(_put_own_back, context))
    if not nodes:
        return bring(folder)
    nodes.say(restore=folder.name)
    brought = bring(folder, part=(0, len(context.allocation.hosts)))
    others[:] = nodes.ready(folder.name, patience)
    return brought


def _put_own_back(context: LegContext, folder: Path) -> None:
    names = put_back(folder, working_folder(context.spec, context.dir), context.spec.checkpoints.paths)
    if names:
        words = f"put back into the working folder, from {folder.name}: {', '.join(names)}"
        context.journal.write(ev.Warned(leg=context.leg, at=context.clock.now(), text=words))


def _readable(found: Newest[NodeCheckpoint] | None, context: LegContext) -> Newest[NodeCheckpoint] | None:
    """An older checkpoint is taken for one that is damaged, but not at once for one that the storage does not give out now."""
    if found and found.unread and context.clock.now() < context.storage_until:
        raise found.unread
    return found


def _ready_without_checkpoint(nodes: OtherNodes | None, patience: NodePatience) -> list[LegNode]:
    if not nodes:
        return []
    nodes.say(restore="")
    return nodes.ready("", patience)


def _tell_restored(context: LegContext, newest: Newest[NodeCheckpoint]) -> Resume:
    for words in newest.fell_back:
        log.warning("fell back to an older checkpoint: %s", words)
    brought, name, now = newest.taken, newest.taken.manifest.name, context.clock.now()
    context.journal.write(ev.Restored(leg=context.leg, at=now, step=name.step, checkpoint=str(name), fell_back=list(newest.fell_back)))
    if brought.warning:
        context.journal.write(ev.Warned(leg=context.leg, at=now, text=brought.warning))
    log.info("restored %s%s", name, f", read from the run's folder: {brought.in_place}" if brought.in_place else "")
    return brought.folder, name.step
