"""`onward cluster`: what a cluster has, who uses it, why my jobs wait and what could start now."""

from __future__ import annotations

from typing import Annotated

import typer

from onward.cli.context import JsonOption, open_hosts
from onward.cli.output import json_to_stdout


def cluster(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="The cluster. `onward clusters` lists all.")] = "auto",
    jobs: Annotated[str, typer.Option("--jobs", metavar="mine|all", help="Whose jobs to list: mine or all.")] = "mine",
    json: JsonOption = False,
) -> None:
    """Show a cluster: nodes, queues, jobs, what could start now."""
    from onward.errors import InvalidInput
    from onward.operations.clusters.saved_snapshot import save_snapshot
    from onward.operations.clusters.snapshot_cache import snapshot_once, snapshot_record

    if jobs not in ("mine", "all"):
        raise InvalidInput(f"--jobs: found {jobs!r}, expected mine or all")
    hosts = open_hosts()
    looked = snapshot_once(hosts, name)
    save_snapshot(hosts.context.env, looked.cluster.name, looked.snapshot)
    seen = snapshot_record(looked, jobs=jobs)
    if json:
        json_to_stdout(seen)
        return
    from onward.cli.clusters.snapshot_text import show_snapshot

    show_snapshot(seen, mine=jobs == "mine")
