"""What killed legs left on this node's disk: metrics and logs not yet mirrored, and checkpoints committed but not published.

Nothing committed is removed unless it is published, or a newer checkpoint is (see checkpoints/unpublished.py). The supervisor looks
on its own node, and each agent on its own, in the leg that comes next to the same machine.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import shutil
import socket
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onward.checkpoints.copying import Moved
from onward.checkpoints.manifest import read_manifest
from onward.checkpoints.publishing.publisher import CheckpointPublisher, PublishReport
from onward.checkpoints.restoring.newest import published_names_of
from onward.checkpoints.shares.gather import assemble, incomplete
from onward.checkpoints.unpublished import unpublished
from onward.checkpoints.watching.watcher import SaveWatcher
from onward.clock import Clock, SystemClock
from onward.errors import CheckpointDamaged, CopiedFolder
from onward.model import events as ev
from onward.model.checkpoint import CheckpointName
from onward.model.quantity import duration_text
from onward.model.run import Run
from onward.model.spec import CheckpointRule
from onward.rundir.claim import claim_holder, newest_claim
from onward.rundir.home import refuse_copy
from onward.rundir.journal import Journal, desk_journal, read_run, read_spec
from onward.rundir.layout import LegLocal, RunDir, leg_of, own_run
from onward.rundir.mirror import LogsNotCarried, carry
from onward.supervisor.disk.lock import locked_folder
from onward.supervisor.disk.owner import gone_in_time, owner_of, surely_gone
from onward.supervisor.disk.salvage_share import SalvageShare, ShareSpent
from onward.supervisor.processes.survivors import end_survivors
from onward.supervisor.relay.artifacts import carry_artifacts, has_pending_artifacts
from onward.supervisor.stop.run_folder_watch import refuse_if_taken_over

log = logging.getLogger(__name__)

_PUBLISHER_PATIENCE = 10.0  # seconds for a publisher to see that its leg is over, and to leave
_OWNER_PATIENCE = 15.0  # seconds for an earlier leg's supervisor to die, if its storage hung until a moment ago


def salvage(dir: RunDir, run: Run, *, leg: int, journal: Journal, clock: Clock, share: SalvageShare | None = None) -> None:
    """End what earlier legs left running on this node, then carry over and clear away what they left on its disk.

    The newest leg's first: the store may have room for one only, and what is older is then superseded. `share`: of the leg that
    waits for this; by hand, nothing waits.
    """
    moved = share.take if share else None
    if newest_claim(dir) == leg:  # by hand there is no such leg, and earlier ones may be at work
        end_survivors(run.spec.id, range(1, leg))
    for earlier in sorted(run.legs.values(), key=lambda earlier: earlier.number, reverse=True):
        if earlier.number >= leg or earlier.claimed is None or not earlier.claimed.local:
            continue
        local = LegLocal(Path(earlier.claimed.local))
        if share and share.spent:
            break
        if _abandoned(dir, local, earlier.number, by_leg=leg):
            if words := left_out(local):
                journal.write(ev.Warned(leg=earlier.number, at=clock.now(), text=words))
            for report in carry_over(dir, run.spec.checkpoints, local, leg=earlier.number, by_leg=leg, clock=clock, moved=moved):
                journal_report(report, earlier.number, journal, clock)
            if share and share.spent and local.path.exists():
                words = _cut_short(dir, local, earlier.number, share)
                log.warning("%s", words)
                journal.write(ev.Warned(leg=leg, at=clock.now(), text=words))
    mine = run.legs[leg].claimed if leg in run.legs else None
    if mine and mine.local:
        salvage_on_other_node(dir, run.spec.checkpoints, LegLocal(Path(mine.local)), leg=leg, clock=clock, moved=moved)
    journal_published(dir, leg=leg, journal=journal, clock=clock)


def main(argv: Sequence[str]) -> int:
    """`supervisor.pyz salvage RUN`: by hand, on the node where a leg left something."""
    if len(argv) != 1:
        sys.stderr.write("usage: supervisor.pyz salvage RUN_FOLDER\n")
        return 2
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s", force=True)
    dir = own_run(Path(argv[0]))
    try:
        refuse_copy(dir)
    except CopiedFolder as error:
        sys.stderr.write(f"onward: {error.message}\n  → {error.hint}\n")
        return error.exit_code
    run = read_run(dir)
    before = set(published_names_of(dir.checkpoints))
    salvage(dir, run, leg=max(run.legs, default=0) + 1, journal=desk_journal(dir), clock=SystemClock())
    found = sorted(set(published_names_of(dir.checkpoints)) - before)
    text = f"published {', '.join(map(str, found))}" if found else f"nothing of {run.spec.id} on this node was unpublished"
    sys.stdout.write(text + "\n")
    return 0


def salvage_on_other_node(
    dir: RunDir, rule: CheckpointRule, local: LegLocal, *, leg: int, clock: Clock, moved: Moved | None = None
) -> None:
    """The same for folders of earlier legs beside this leg's own, of supervisors and of agents on this machine."""
    for folder in sorted(local.path.parent.glob("leg-*"), reverse=True):
        number, mark = leg_of(folder.name), owner_of(folder)
        if number is None or number >= leg or mark is None or not _has_gone(dir, mark, folder, by_leg=leg):
            continue
        for _ in carry_over(dir, rule, LegLocal(folder), leg=number, by_leg=leg, clock=clock, moved=moved):
            pass


def journal_published(dir: RunDir, *, leg: int, journal: Journal, clock: Clock) -> None:
    """Publish what shares from several nodes make whole, and journal what agents carried over: the journal has one writer."""
    run = read_run(dir)
    for number in sorted(run.legs):
        if number < leg and incomplete(dir.checkpoints, leg=number):
            for _ in assemble(dir.checkpoints, leg=number, created=clock.now()):
                pass
    published = {CheckpointName(each.number, event.step) for each in run.legs.values() for event in each.published}
    newest = max(published, default=CheckpointName(0, -1))
    for name in published_names_of(dir.checkpoints):
        if newest < name < CheckpointName(leg, 0) and name.leg in run.legs:
            try:
                manifest = read_manifest(dir.checkpoints / str(name))
            except CheckpointDamaged:
                continue
            journal_report(PublishReport(kind="published", step=name.step, bytes=manifest.bytes), name.leg, journal, clock)


def carry_over(
    dir: RunDir, rule: CheckpointRule, local: LegLocal, *, leg: int, by_leg: int, clock: Clock, moved: Moved | None = None
) -> Iterator[PublishReport]:
    """Everything of a leg whose supervisor has gone. Its folder goes too, unless it holds what must not be lost.

    What of its training or its publisher still runs is ended first; a folder in which something cannot be ended is left alone. A
    publisher that nobody has taken over from is not ended: it is about to publish. `by_leg`: for which leg this is done.
    """
    if local.path.stat().st_uid != os.getuid():
        return
    if end_survivors(read_spec(dir).id, [leg]):
        log.warning("leaving %s alone: processes of leg %d hang there and cannot be ended", local.path, leg)
        return
    with locked_folder(local.path, patience=_PUBLISHER_PATIENCE, end_holder=newest_claim(dir) > leg) as alone:
        if not alone:
            log.warning("leaving %s alone: the publisher of leg %d still uses it", local.path, leg)
            return
        log.info("salvaging what leg %d left in %s", leg, local.path)
        try:
            carry(local, dir)
        except LogsNotCarried as error:  # its checkpoints are worth more
            log.warning("a log of leg %d cannot be stored: %s", leg, error)
        missed = False
        for report in publish_left(dir, rule, local, leg=leg, by_leg=by_leg, clock=clock, moved=moved):
            missed = missed or report.kind == "missed"
            yield report
        try:
            carry_artifacts(local, dir, moved=moved)
        except ShareSpent as error:
            log.warning("artifacts of leg %d are left in %s: %s", leg, local.path, error)
        left = unpublished(local.checkpoints, dir.checkpoints, leg=leg)
        if left or missed:
            log.warning("%s still has checkpoints of leg %d that could not be published", local.path, leg)
        elif not has_pending_artifacts(local):
            shutil.rmtree(local.path, ignore_errors=True)


def publish_left(
    dir: RunDir, rule: CheckpointRule, local: LegLocal, *, leg: int, by_leg: int, clock: Clock, moved: Moved | None
) -> Iterator[PublishReport]:
    """The newest first, and older ones only until a newer one is published: the next training waits for this.

    Files that a training wrote without `run.checkpoint()` are surely whole only where it left by itself.
    """
    left_at = _left_by_itself(local)
    if left_at is None and not unpublished(local.checkpoints, dir.checkpoints, leg=leg):
        return
    watcher = SaveWatcher(local.checkpoints, quiet_seconds=float("inf"))
    if left_at is not None:
        watcher.ignore_present(before=left_at)
    publisher = CheckpointPublisher(
        watcher,
        dir.checkpoints,
        leg=leg,
        rule=rule,
        resumed_step=None,
        progress=lambda: (None, {}),
        clock=clock,
        shares=local.checkpoints,
        moved=moved,
        newest_first=True,
        fenced=lambda: refuse_if_taken_over(dir, by_leg),
    )
    for report in publisher.work(closed=left_at is not None):
        yield report
        if report.kind == "published" and not unpublished(local.checkpoints, dir.checkpoints, leg=leg):
            return


def left_out(local: LegLocal) -> str:
    """What a leg left on the node that is never stored, in words: nothing but files is read, and no link among artifacts is followed."""
    folders = (local.checkpoints, local.logs, local.tensorboard, local.spool, local.artifacts, local.models)
    found = [path for folder in folders for path in _special_files(folder, links=folder in (local.artifacts, local.models))]
    if not found:
        return ""
    more = f" and {len(found) - 1} more pipes, sockets, devices or links" if found[1:] else ""
    return f"not stored, because only files are: {found[0]}{more}"


def _special_files(folder: Path, *, links: bool) -> Iterator[Path]:
    for above, _, names in os.walk(folder):
        for name in names:
            path = Path(above, name)
            with contextlib.suppress(OSError):
                mode = path.lstat().st_mode
                if not stat.S_ISREG(mode) and (links or not stat.S_ISLNK(mode)):
                    yield path


def _cut_short(dir: RunDir, local: LegLocal, leg: int, share: SalvageShare) -> str:
    by_hand = shlex.join(["python3", str(dir.supervisor), "salvage", str(dir.path)])
    return (
        f"storing what leg {leg} left on {socket.gethostname()} was stopped after {duration_text(share.seconds)}, its share of this leg: "
        f"the rest is in {local.path}. The next leg there tries again, or run there: {by_hand}"
    )


def _left_by_itself(local: LegLocal) -> float | None:
    try:
        return float(local.left.read_text())
    except (OSError, ValueError):
        return None


def journal_report(report: PublishReport, leg: int, journal: Journal, clock: Clock) -> None:
    if report.kind == "published":
        journal.write(
            ev.Published(
                leg=leg,
                at=clock.now(),
                step=report.step,
                bytes=report.bytes,
                save_seconds=report.save_seconds,
                stage_seconds=report.stage_seconds,
            )
        )


def _abandoned(dir: RunDir, local: LegLocal, leg: int, *, by_leg: int) -> bool:
    if not local.path.is_dir():
        return False
    mark = owner_of(local.path)
    if mark is not None:
        return _has_gone(dir, mark, local.path, by_leg=by_leg)
    holder = claim_holder(dir, leg)
    return holder.get("host") == socket.gethostname() and surely_gone({"pid": holder.get("pid"), "machine": socket.gethostname()})


def _has_gone(dir: RunDir, mark: Mapping[str, Any], folder: Path, *, by_leg: int) -> bool:
    """A leg that has taken over waits for the one before it: what lies in the folder may be the newest checkpoint."""
    patience = _OWNER_PATIENCE if newest_claim(dir) == by_leg and mark.get("pid") != os.getpid() else 0.0
    gone = gone_in_time(mark, patience=patience)
    if not gone and mark.get("machine") == socket.gethostname():
        log.warning("process %s of an earlier leg is still alive: what it left in %s is not salvaged now", mark.get("pid"), folder)
    return gone
