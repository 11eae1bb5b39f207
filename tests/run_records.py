"""A run as `onward show --json` prints it, for tests that wait: a process for every look would keep a quarter of a CPU busy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onward.model.spec import Cluster
from onward.operations.context import OperationsContext
from onward.operations.hosts.local import LocalHost
from onward.schedulers.base import Scheduler
from onward.schedulers.registry import scheduler_for


def run_record(folder: Path, env: Mapping[str, str], scheduler: Callable[[Cluster], Scheduler] = scheduler_for) -> dict[str, Any]:
    """Where the run is another user's, its scheduler is not asked."""
    record = LocalHost(OperationsContext(env=env, make_scheduler=scheduler)).show(run=str(folder))
    as_printed: dict[str, Any] = json.loads(json.dumps(record))
    return as_printed
