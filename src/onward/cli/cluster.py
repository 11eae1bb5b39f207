"""`onward cluster`: what a cluster has, who uses it, why my jobs wait and what could start now."""

from __future__ import annotations

from typing import Annotated

import typer

from onward.cli.desk import JsonOption, open_reach
from onward.cli.render import out_json


def cluster(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="A cluster: `onward clusters` lists them.")] = "auto",
    jobs: Annotated[str, typer.Option("--jobs", metavar="mine|all", help="Whose jobs are listed.")] = "mine",
    json: JsonOption = False,
) -> None:
    """Show a cluster: nodes, queues, jobs, what could start now."""
    from onward.errors import InvalidInput
    from onward.operations.cluster import look_once, picture
    from onward.operations.snapshots import keep

    if jobs not in ("mine", "all"):
        raise InvalidInput(f"--jobs: found {jobs!r}, expected mine or all")
    reach = open_reach()
    looked = look_once(reach, name)
    keep(reach.desk.env, looked.cluster.name, looked.snapshot)
    seen = picture(looked, jobs=jobs)
    if json:
        out_json(seen)
        return
    from onward.cli.cluster_page import show

    show(seen, mine=jobs == "mine")
