"""The summary of a pipeline as it lies in its folder, at any time: what is not measured yet is said so."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from onward.model.task import tasks_of
from onward.operations.summary_page import summary_page
from onward.pipelines.summary import summarise
from onward.pipelines.summary_table import Summary
from onward.pipelines.summary_text import as_csv, as_json, markdown
from onward.rundir.pipeline_layout import PipelineDir
from onward.rundir.tasks import results, standings
from onward.sdk.files import write_whole
from onward.supervisor.advance import gather, read_plan


def summary_of(dir: PipelineDir, *, baseline: str | None = None) -> Summary:
    plan = read_plan(dir)
    tasks = tasks_of(plan, gather(dir, plan, note=False).checkpoints)
    return summarise(plan, tasks, results(dir, tasks), standings(dir, plan, tasks), baseline=baseline)


def keep_summary(dir: PipelineDir) -> None:
    """Write it in every format among the pipeline's results."""
    found = summary_of(dir)
    texts = {
        "md": markdown(found),
        "csv": as_csv(found),
        "html": summary_page(found, now=time.time()),
        "json": json.dumps(as_json(found), indent=2) + "\n",
    }
    for format, text in texts.items():
        write_whole(dir.summary(format), text)


if __name__ == "__main__":  # of a job that uploads: what it carries itself is too little for a table
    keep_summary(PipelineDir(Path(sys.argv[1])))
