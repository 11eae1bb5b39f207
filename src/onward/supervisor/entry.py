"""The archive's front door: `supervisor.pyz leg …` is the supervisor, `stage …` its publisher, `keeper …` the local queue's keeper."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from onward.supervisor.processes.address_space import limit_address_space

# Modules by name: only what a process needs is loaded, and this room may not import the rooms above it.
# Running legs start their helpers by these words; they stay.
_PROGRAMS = {
    "leg": "onward.supervisor.main:main",
    "stage": "onward.supervisor.leg.publisher_process:main",
    "salvage": "onward.supervisor.disk.salvage:main",
    "node": "onward.supervisor.ranks.node_agent:main",
    "task": "onward.supervisor.ranks.rank_wrapper:main",
    "spread": "onward.supervisor.ranks.rank_wrapper:start_on_each_node",
    "build": "onward.pipelines.build:main",
    "worker": "onward.pipelines.benchmarks.worker:main",
    "upload": "onward.pipelines.upload.uploader:main",
    "keeper": "onward.schedulers.local.keeper:main",
}


def main(argv: Sequence[str]) -> int:
    program = _PROGRAMS.get(argv[0]) if argv else None
    limit_address_space()
    if program is None:
        sys.stderr.write("usage: supervisor.pyz leg|stage|salvage|keeper …\n")
        return 2
    module, _, name = program.partition(":")
    loaded: Any = import_module(module)
    run: Callable[[Sequence[str]], int] = getattr(loaded, name)
    return run(argv[1:])
