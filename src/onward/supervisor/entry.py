"""The archive's front door: `supervisor.pyz leg …` is the supervisor, `stage …` its stager, `keeper …` the local queue's keeper."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from onward.supervisor.frugal import be_frugal


def main(argv: Sequence[str]) -> int:
    what, rest = (argv[0], argv[1:]) if argv else ("", ())
    be_frugal()
    match what:
        case "leg":
            from onward.supervisor.main import main as leg

            return leg(rest)
        case "stage":
            from onward.supervisor.staging import main as stage

            return stage(rest)
        case "node":
            from onward.supervisor.node import main as node

            return node(rest)
        case "task":
            from onward.supervisor.task import main as task

            return task(rest)
        case "spread":
            from onward.supervisor.task import spread

            return spread(rest)
        case "build":
            from onward.supervisor.build import main as build

            return build(rest)
        case "worker":
            from onward.supervisor.worker import main as worker

            return worker(rest)
        case "salvage":
            from onward.supervisor.salvage import main as salvage

            return salvage(rest)
        case "upload":
            from onward.supervisor.upload import main as upload

            return upload(rest)
        case "keeper":
            from onward.schedulers.local_keeper import main as keeper

            return keeper(rest)
        case _:
            sys.stderr.write("usage: supervisor.pyz leg|stage|salvage|keeper …\n")
            return 2
