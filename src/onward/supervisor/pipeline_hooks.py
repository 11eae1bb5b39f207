"""What a leg does for the pipeline that its run is part of; nothing for a run that is alone.

The room of pipelines lies above this one, so it is loaded by name.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from onward.supervisor.background import Repeating
from onward.supervisor.leg.context import LegContext


def load(context: LegContext) -> None:
    """Beforehand, while the scheduler answers."""
    _hooks(context)


def companions(context: LegContext) -> list[Repeating]:
    """What goes on beside the training."""
    hooks = _hooks(context)
    threads: list[Repeating] = hooks.companions(context) if hooks else []
    return threads


def when_run_is_over(context: LegContext) -> None:
    if hooks := _hooks(context):
        hooks.when_run_is_over(context)


def when_leg_leaves(context: LegContext) -> None:
    if hooks := _hooks(context):
        hooks.when_leg_leaves(context)


def _hooks(context: LegContext) -> Any:
    return import_module("onward.pipelines.leg_hooks") if context.spec.member is not None else None
