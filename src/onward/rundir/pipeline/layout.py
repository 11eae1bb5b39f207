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

from onward.rundir.layout import RunDir, dated_under


@dataclass(frozen=True)
class PipelineDir:
    path: Path

    @property
    def params(self) -> Path:
        return self.path / "params"

    @property
    def plan(self) -> Path:
        """Written last when a pipeline is made: without it there is none."""
        return self.params / "plan.json"

    @property
    def cancelled(self) -> Path:
        """There once someone wants nothing more of the pipeline to begin."""
        return self.params / "cancelled.json"

    @property
    def over(self) -> Path:
        """There once nothing more will come of it."""
        return self.params / "over.json"

    @property
    def forgiven(self) -> Path:
        """Up to which worker failures are not counted, since someone asked to try again."""
        return self.params / "forgiven.json"

    @property
    def supervisor(self) -> Path:
        """The code that builds environments and lives in workers, frozen with the pipeline."""
        return self.params / "supervisor.pyz"

    @property
    def source(self) -> Path:
        """The file that it was made from, as it was."""
        return self.params / "pipeline.yaml"

    @property
    def started(self) -> Path:
        """By whom, and where in the code it starts."""
        return self.params / "started.json"

    @property
    def uploads(self) -> Path:
        """What has arrived where it is uploaded to, and what has not; there only where something is to be."""
        return self.params / "uploads"

    def arrived(self, key: str) -> Path:
        """The note of one thing that is there, with its files' checksums."""
        return self.uploads / f"{key}.json"

    def not_arrived(self, key: str) -> Path:
        """Why it is not there yet, and how often it was tried."""
        return self.uploads / f"{key}.failed"

    @property
    def uploader(self) -> Path:
        """Who uploads just now; an old one is of somebody who died."""
        return self.uploads / "at-work"

    @property
    def all_arrived(self) -> Path:
        """There once the pipeline is over and everything has arrived."""
        return self.uploads / "all"

    @property
    def checksums(self) -> Path:
        """Of all that was uploaded, as sha256sum writes and checks them, seen from the root."""
        return self.path / "SHA256SUMS"

    @property
    def upload_log(self) -> Path:
        """What was uploaded when no job of the pipeline was there to do it."""
        return self.uploads / "log.txt"

    def summary(self, format: str) -> Path:
        return self.results / f"summary.{format}"

    def build(self, environment: str) -> Path:
        return self.params / "builds" / f"{environment}.json"

    def template(self, pool: str) -> RunDir:
        """The run that a pool's workers are stamped from."""
        return RunDir(self.params / "workers" / pool)

    @property
    def code(self) -> Path:
        return self.path / "code"

    @property
    def results(self) -> Path:
        return self.path / "results"

    @property
    def checkpoints(self) -> Path:
        """Those that benchmarks are given: kept here whatever their training keeps."""
        return self.results / "checkpoints"

    def checkpoint(self, of: str, step: int) -> Path:
        return self.checkpoints / f"{of}.step-{step:08d}"

    def seen(self, of: str, number: int) -> Path:
        """The note of a training's nth checkpoint."""
        return self.checkpoints / f"{of}.seen-{number:06d}.json"

    @property
    def tasks(self) -> Path:
        return self.results / "tasks"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def log(self) -> Path:
        return self.logs / "pipeline.log"

    @property
    def workdir(self) -> Path:
        return self.path / "workdir"

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
