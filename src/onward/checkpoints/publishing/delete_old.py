"""Deleting published checkpoints that the run's rule no longer keeps.

Which these are is decided in `model.checkpoint` (`to_delete`).
"""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

from onward.checkpoints.publishing.publish import DELETING, remove_partials
from onward.checkpoints.restoring.newest import published_checkpoints
from onward.model.checkpoint import CheckpointName
from onward.model.checkpoint_retention import to_delete
from onward.model.spec import CheckpointRule

log = logging.getLogger(__name__)


def delete_old(store: Path, rule: CheckpointRule, *, leg: int) -> None:
    """After a publish of this leg. Those that cannot be deleted now are tried again after the next one."""
    remove_partials(store, before_leg=leg)  # shares of earlier legs that this one supersedes
    for old in to_delete(published_checkpoints(store), rule):
        try:
            delete(store, old.name)
        except OSError as error:
            log.warning("cannot delete %s: %s", old.name, error)


def delete(store: Path, name: CheckpointName) -> None:
    """Out of sight by one rename, then file by file."""
    doomed = store / f"{DELETING}{name}"
    try:
        os.rename(store / str(name), doomed)
    except FileNotFoundError:
        return
    shutil.rmtree(doomed, ignore_errors=True)
