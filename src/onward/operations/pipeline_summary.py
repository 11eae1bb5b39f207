"""The summary of a pipeline as it lies in its folder, at any time: what is not measured yet is said so."""

from __future__ import annotations

from onward.model.task import tasks_of
from onward.pipelines.summary import summarise
from onward.pipelines.summary_table import Summary
from onward.rundir.pipeline_layout import PipelineDir
from onward.rundir.tasks import results, standings
from onward.supervisor.advance import gather, read_plan


def summary_of(dir: PipelineDir, *, baseline: str | None = None) -> Summary:
    plan = read_plan(dir)
    tasks = tasks_of(plan, gather(dir, plan, note=False).checkpoints)
    return summarise(plan, tasks, results(dir, tasks), standings(dir, plan, tasks), baseline=baseline)
