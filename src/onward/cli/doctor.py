"""`onward doctor`: what a run needs, checked before it is needed."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from onward.cli.desk import JsonOption, open_desk
from onward.cli.render import out, out_json

if TYPE_CHECKING:
    from onward.operations.wiring import Desk

_LEAST_ROOM = 50 << 20  # bytes: a run's folder without any checkpoint takes a few

Finding = tuple[bool, str, str]  # fine?, what, words


def doctor(json: JsonOption = False) -> None:
    """Check this machine and its clusters for what a run needs."""
    desk = open_desk()
    findings = list(_examine(desk))
    if json:
        out_json({"schema": 1, "findings": [{"fine": fine, "what": what, "words": words} for fine, what, words in findings]})
    else:
        for fine, what, words in findings:
            out(f"{'ok ' if fine else 'BAD'}  {what.ljust(12)}  {' '.join(words.split())}")
    if not all(fine for fine, _, _ in findings):
        raise typer.Exit(1)


def _examine(desk: Desk) -> Iterator[Finding]:
    from onward.errors import OnwardError
    from onward.model.quantity import format_bytes

    yield sys.version_info >= (3, 11), "python", f"{sys.version.split()[0]} at {sys.executable}"
    source = desk.settings.source
    yield True, "settings", f"{source}" if source else "no file: defaults"
    yield _root(desk.root)
    chosen = desk.settings.cluster("auto")[0].name
    for name in desk.settings.names():
        if name in ("auto",) or (name == "slurm" and shutil.which("sbatch") is None):
            continue
        try:
            yield True, name, desk.scheduler(desk.settings.cluster(name)[0]).check() + (" (auto)" if name == chosen else "")
        except OnwardError as error:
            yield False, name, error.message
    local = Path(os.environ.get("SLURM_TMPDIR") or tempfile.gettempdir())
    free = format_bytes(shutil.disk_usage(local).free)
    yield os.access(local, os.W_OK), "local disk", f"{local}, {free} free here (a job may see another)"
    yield True, "git", shutil.which("git") or "not there: code is frozen as a plain copy"


def _root(root: Path) -> Finding:
    from onward.model.quantity import format_bytes

    place = root
    while not os.path.exists(place):
        place = place.parent
    if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
        return False, "root", f"{root} cannot be written; set ONWARD_ROOT"
    free = shutil.disk_usage(place).free
    return free > _LEAST_ROOM, "root", f"{root}, {format_bytes(free)} free"
