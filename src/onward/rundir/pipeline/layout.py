"""The layout of a pipeline's folder: the only place that knows its file names.

<root>/2026-11-16_A_digits/             a pipeline; its runs lie beside it, with its letter: 2026-11-16_A_digits-train …
├── params/        plan.json, the file it was made from, supervisor.pyz, builds/, workers/ (what workers are stamped from), over.json
├── code/          the user's code as it was at submit, shared by all its runs
├── results/       checkpoints/ handed to benchmarks, tasks/ a folder each, the summary
├── logs/          pipeline.log: what was done when
└── workdir/       may be deleted at any time
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from onward.rundir.layout import PathBelow, RunDir, dated_under


@dataclass(frozen=True)
class PipelineDir:
    path: Path

    params = PathBelow("params")
    plan = PathBelow("params", "plan.json")  # written last when a pipeline is made: without it there is none
    cancelled = PathBelow("params", "cancelled.json")  # there once someone wants nothing more of the pipeline to begin
    over = PathBelow("params", "over.json")  # there once nothing more will come of it
    forgiven = PathBelow("params", "forgiven.json")  # up to which worker failures are not counted, since someone asked to try again
    supervisor = PathBelow("params", "supervisor.pyz")  # the code that builds environments and lives in workers, frozen with the pipeline
    source = PathBelow("params", "pipeline.yaml")  # the file that it was made from, as it was
    started = PathBelow("params", "started.json")  # by whom, and where in the code it starts
    # what has arrived where it is uploaded to, and what has not; there only where something is to be
    uploads = PathBelow("params", "uploads")

    def arrived(self, key: str) -> Path:
        """The note of one thing that is there, with its files' checksums."""
        return self.uploads / f"{key}.json"

    def not_arrived(self, key: str) -> Path:
        """Why it is not there yet, and how often it was tried."""
        return self.uploads / f"{key}.failed"

    uploader = PathBelow("params", "uploads", "at-work")  # who uploads just now; an old one is of somebody who died
    all_arrived = PathBelow("params", "uploads", "all")  # there once the pipeline is over and everything has arrived
    checksums = PathBelow("SHA256SUMS")  # of all that was uploaded, as sha256sum writes and checks them, seen from the root
    upload_log = PathBelow("params", "uploads", "log.txt")  # what was uploaded when no job of the pipeline was there to do it

    def summary(self, format: str) -> Path:
        return self.results / f"summary.{format}"

    def build(self, environment: str) -> Path:
        return self.params / "builds" / f"{environment}.json"

    def template(self, pool: str) -> RunDir:
        """The run that a pool's workers are stamped from."""
        return RunDir(self.params / "workers" / pool)

    code = PathBelow("code")
    results = PathBelow("results")
    checkpoints = PathBelow("results", "checkpoints")  # those that benchmarks are given: kept here whatever their training keeps

    def checkpoint(self, of: str, step: int) -> Path:
        return self.checkpoints / f"{of}.step-{step:08d}"

    def seen(self, of: str, number: int) -> Path:
        """The note of a training's nth checkpoint."""
        return self.checkpoints / f"{of}.seen-{number:06d}.json"

    tasks = PathBelow("results", "tasks")
    logs = PathBelow("logs")
    log = PathBelow("logs", "pipeline.log")
    workdir = PathBelow("workdir")

    def member(self, stage: str) -> RunDir:
        """The run of a stage: beside the pipeline, under its letter."""
        return RunDir(self.path.with_name(f"{self.path.name}-{stage}"))

    def worker(self, number: int) -> RunDir:
        return self.member(f"worker-{number:03d}")

    def workers(self) -> list[RunDir]:
        """All that were stamped, in order; one without a spec is in the making, or was left so."""
        return [RunDir(path) for path in sorted(self.path.parent.glob(f"{self.path.name}-worker-[0-9][0-9][0-9]*"))]

    def make(self) -> None:
        for folder in (self.params / "workers", self.params / "builds", self.code, self.checkpoints, self.tasks, self.logs, self.workdir):
            folder.mkdir(parents=True, exist_ok=True)

    def is_pipeline(self) -> bool:
        """False also where we may not look: a root is shared by people who keep folders to themselves."""
        return os.path.isfile(self.plan)  # Path.is_file raises there


def pipelines_under(root: Path) -> list[PipelineDir]:
    """All pipelines of a root, oldest first. One that cannot be read has none: whoever lists its runs says why."""
    try:
        return [dir for dir in map(PipelineDir, dated_under(root)) if dir.is_pipeline()]
    except OSError:
        return []
