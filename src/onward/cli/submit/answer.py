"""What a submit prints: the run that was queued, or what would be."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from onward.cli.context import folder_text
from onward.cli.output import json_to_stdout, to_stderr, to_stdout
from onward.model.quantity import duration_text

if TYPE_CHECKING:
    from onward.operations.hosts.answers import PreviewedRun, SubmittedRun
    from onward.operations.hosts.local import Host


def show_preview(seen: PreviewedRun, *, host: str | None, tasks: int, json: bool) -> None:
    if json:
        json_to_stdout({"schema": 1, **vars(seen)})
        return
    to_stderr(f"nothing is queued; the run's folder would be {folder_text(host, seen.folder)}, its first job would be queued with")
    to_stderr(f"  {shlex.join(seen.command)}")
    for words in seen.notes:
        to_stderr(f"  note: {words}")
    if tasks > 1:
        to_stderr(f"each of the {tasks} tasks becomes a run like this;")
    to_stderr("this is the job script:")
    to_stdout(seen.script.rstrip("\n"))


def leg_words(submitted: SubmittedRun) -> str:
    """How its time limit was read: `--time 24` are minutes, as with sbatch."""
    return f", in legs of {duration_text(submitted.leg_seconds)}" if submitted.leg_seconds else ""


def announce(host: Host, submitted: list[SubmittedRun], *, json: bool) -> None:
    if json:
        shown = [
            {"id": one.id, "name": one.name, "folder": one.folder, "cluster": one.cluster, "job": one.job, "host": host.hostname}
            for one in submitted
        ]
        json_to_stdout({"schema": 1, **shown[0]} if len(shown) == 1 else {"schema": 1, "runs": shown})
        return
    for one in submitted:
        to_stdout(one.id)
        where = f"{one.cluster}{leg_words(one)}; folder {folder_text(host.hostname, one.folder)}"
        to_stderr(f"{one.name}: leg 1 is job {one.job} on {where}")
        for words in one.warnings:
            to_stderr(f"  note: {words}")
    to_stderr(f"  onward logs -f {submitted[0].id}    onward show {submitted[0].id}")
