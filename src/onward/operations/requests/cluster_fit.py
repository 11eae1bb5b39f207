"""Requests of recipes that say so are fitted to the cluster as it is: memory and CPUs to its largest node, and a GPU if it has any."""

from __future__ import annotations

from dataclasses import replace

from onward.errors import NotOffered
from onward.inputs.recipes.definition import Recipe
from onward.model.cluster import ClusterSnapshot
from onward.model.spec import RunDraft
from onward.operations.context import OperationsContext
from onward.planning.fit import fit_to_cluster
from onward.schedulers.base import snapshot_of

_KEPT = 600.0  # seconds: nodes are not added every minute


class ClusterFit:
    def __init__(self, context: OperationsContext) -> None:
        self._context = context
        self._seen: dict[str, tuple[float, ClusterSnapshot | None]] = {}

    def fitted(self, recipe: Recipe, draft: RunDraft) -> RunDraft:
        """SchedulerUnavailable where the cluster does not answer: then nothing can be submitted to it either."""
        if recipe.fit_gpus is None or draft.inputs is None:
            return draft
        snapshot = self._snapshot(draft.cluster)
        if snapshot is None:
            return draft
        found = fit_to_cluster(draft.resources, snapshot, gpus=recipe.fit_gpus)
        return replace(draft, resources=found.resources, inputs=replace(draft.inputs, notes=found.notes))

    def _snapshot(self, name: str) -> ClusterSnapshot | None:
        """None where the scheduler's adapter cannot tell."""
        now = self._context.clock.now()
        at, held = self._seen.get(name, (float("-inf"), None))
        if now - at < _KEPT:
            return held
        try:
            taken = snapshot_of(self._context.scheduler(self._context.settings.cluster(name)[0]))
        except NotOffered:
            taken = None
        self._seen[name] = now, taken
        return taken
