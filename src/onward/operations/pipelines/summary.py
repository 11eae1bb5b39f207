"""The summary of a pipeline as it lies in its folder, at any time: what is not measured yet is said so."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from onward.inputs.summary.aggregate import summarise
from onward.inputs.summary.table import BenchmarkSummary
from onward.inputs.summary.text import as_csv, as_json, markdown
from onward.model.pipelines.task import tasks_of
from onward.operations.reports.summary_page import summary_page
from onward.pipelines.advance import gather_facts, read_plan
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.pipeline.tasks import task_results, task_standings
from onward.sdk.atomic_files import write_whole


def summary_of(dir: PipelineDir, *, baseline: str | None = None) -> BenchmarkSummary:
    plan = read_plan(dir)
    tasks = tasks_of(plan, gather_facts(dir, plan, note=False).checkpoints)
    return summarise(plan, tasks, task_results(dir, tasks), task_standings(dir, plan, tasks), baseline=baseline)


def write_summary(dir: PipelineDir) -> None:
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


def main(argv: Sequence[str]) -> int:
    """`python -m onward.operations.pipelines.summary FOLDER`: run by the uploader, since a job's archive has no code for tables."""
    write_summary(PipelineDir(Path(argv[0])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
