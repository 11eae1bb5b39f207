"""The archive's front door: `supervisor.pyz leg …` is the supervisor, `stage …` its stager, `keeper …` the local queue's keeper."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from onward.supervisor.frugal import be_frugal

Main = Callable[[Sequence[str]], int]

_PATIENCE = 300  # seconds, where the job script does not say


def load(module: str, *, sleep: Callable[[float], None] = time.sleep) -> Any:
    """From the archive, which lies in the run's folder: its storage may be away for a moment, just now."""
    told = os.environ.get("ONWARD_STORAGE_PATIENCE", "")
    seconds = int(told) if told.isdecimal() else _PATIENCE
    while True:
        try:
            return import_module(module)
        except (ImportError, OSError):
            if seconds <= 0:
                raise
            seconds -= 1
            sleep(1.0)


def main(argv: Sequence[str]) -> int:
    what, rest = (argv[0], argv[1:]) if argv else ("", ())
    be_frugal()
    match what:
        case "leg":
            leg: Main = load("onward.supervisor.main").main
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
