"""What a killed leg left on this node's disk: the metrics and logs not yet mirrored, and checkpoints committed but not carried over."""

from __future__ import annotations

import logging
import os
import shutil
import socket
from pathlib import Path

from onward.checkpoints.stager import Stager
from onward.checkpoints.watch import Watcher
from onward.clock import Clock
from onward.model import event as ev
from onward.model.run import Run
from onward.rundir.claim import claim_holder
from onward.rundir.journal import Journal
from onward.rundir.layout import LegLocal, RunDir
from onward.rundir.mirror import LogsNotCarried, carry
from onward.supervisor.relay_files import carry_files

log = logging.getLogger(__name__)


def salvage(dir: RunDir, run: Run, *, leg: int, journal: Journal, clock: Clock) -> None:
    """Carry over and clear away the leftovers of earlier legs, where they lie on this very node and their process is gone."""
    for earlier in run.legs.values():
        if earlier.number >= leg or earlier.claimed is None or not earlier.claimed.local:
            continue
        local = LegLocal(Path(earlier.claimed.local))
        if not _abandoned(dir, local, earlier.number):
            continue
        log.info("carrying over what leg %d left on this node", earlier.number)
        try:
            carry(local, dir)
        except LogsNotCarried as error:  # its checkpoints are worth more
            log.warning("a log of leg %d cannot be stored: %s", earlier.number, error)
        carry_files(local, dir)
        stager = Stager(
            Watcher(local.checkpoints, quiet_seconds=float("inf")),  # only what run.checkpoint() committed is surely whole
            dir.checkpoints,
            leg=earlier.number,
            rule=run.spec.checkpoints,
            resumed_step=earlier.last_published,
            progress=lambda: (None, {}),
            clock=clock,
        )
        missed = False
        for report in stager.work():
            missed = missed or report.kind == "missed"
            if report.kind == "published":
                journal.write(
                    ev.Published(
                        leg=earlier.number,
                        at=clock.now(),
                        step=report.step,
                        bytes=report.bytes,
                        save_seconds=report.save_seconds,
                        stage_seconds=report.stage_seconds,
                    )
                )
        if missed:
            log.warning("%s keeps a checkpoint of leg %d that could not be carried over", local.path, earlier.number)
        else:
            shutil.rmtree(local.path, ignore_errors=True)


def _abandoned(dir: RunDir, local: LegLocal, leg: int) -> bool:
    try:
        if local.path.stat().st_uid != os.getuid():
            return False
    except OSError:
        return False
    holder = claim_holder(dir, leg)
    if holder.get("host") != socket.gethostname():
        return False
    try:
        os.kill(int(holder["pid"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, KeyError, ValueError):
        return False
    return False
