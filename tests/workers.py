"""A pipeline with benchmarks of one model, and workers that drain it without a scheduler: shared by unit and crash tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from onward.model.pipelines.plan import AdapterRule, Benchmark, ExistingModel, PipelinePlan, WorkerRule, plan_to_json
from onward.model.pipelines.task import Task, tasks_of
from onward.model.spec import Cluster, Resources, RunSpec, spec_to_json
from onward.rundir.claim import claim, newest_claim
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.pipeline.tasks import task_dir
from onward.sdk import contract

ENTRY = "import sys; from onward.supervisor.entry import main; sys.exit(main(sys.argv[1:]))"

# Each item takes a moment; it is done when its line is printed, and a second line of the same item would be seen.
ITEMS = 'for i in 1 2 3 4 5; do grep -qx "$i" "$1" || { sleep 0.01; echo "{\\"item\\": $i, \\"score\\": $i}"; }; done'
ITEM_COUNT = 5


def shell(text: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", text, "sh", "{items.done}")


def benchmark(name: str = "sums", text: str = ITEMS, **others: object) -> Benchmark:
    plain = Benchmark(name=name, command=shell(text), of=("base",), pool="all", cpus=1, adapter=AdapterRule())
    return replace(plain, **others)  # type: ignore[arg-type]


@dataclass(kw_only=True)
class Field:
    """One pipeline's folder."""

    root: Path
    benchmarks: Sequence[Benchmark]
    cpus: int = 1
    idle: int = 0
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        model = self.root / "model"
        model.mkdir(parents=True, exist_ok=True)
        self.plan = PipelinePlan(
            name="nightly",
            experiment="e",
            cluster="local",
            models=(ExistingModel(name="base", path=str(model)),),
            benchmarks=tuple(self.benchmarks),
            workers=WorkerRule(idle=self.idle),
        )
        self.dir = PipelineDir(self.root / "2026-11-16_A_nightly")
        self.dir.make()
        self.dir.plan.write_text(json.dumps(plan_to_json(self.plan)))

    @property
    def tasks(self) -> tuple[Task, ...]:
        return tasks_of(self.plan, {})

    def leg(self, number: int, *, deadline: float | None = None) -> dict[str, str]:
        """The next leg of a worker's run, as its supervisor would begin it: the environment of its command."""
        run = self.dir.worker(number)
        if not run.is_run():
            run.make()
            spec = RunSpec(
                id=f"w{number}",
                name=f"worker-{number}",
                experiment="e",
                cluster=Cluster(name="local", scheduler="local"),
                command=("worker",),
                workdir=str(self.root),
                created=0.0,
                user="ada",
                resources=Resources(cpus_per_task=self.cpus),
            )
            run.spec.write_text(json.dumps(spec_to_json(spec)))
        leg = newest_claim(run) + 1
        claim(run, leg, job=str(leg))
        local = self.root / "node" / f"{number}-{leg}"
        (local / "checkpoints").mkdir(parents=True)
        (local / "spool").mkdir()
        fields = {
            contract.RUN_DIR: str(run.path),
            contract.LEG: str(leg),
            contract.CHECKPOINT_DIR: str(local / "checkpoints"),
            contract.SPOOL_DIR: str(local / "spool"),
            contract.STOP_FILE: str(local / "stop"),
            **({contract.DEADLINE: str(deadline)} if deadline else {}),
        }
        return {**{key: value for key, value in os.environ.items() if not key.startswith("ONWARD_")}, **fields}

    def start(self, number: int = 1, *, deadline: float | None = None) -> subprocess.Popen[bytes]:
        env = self.leg(number, deadline=deadline)
        command = [sys.executable, "-c", ENTRY, "worker", str(self.dir.path), "all"]
        with (self.root / f"worker-{number}.err").open("ab") as err:
            process = subprocess.Popen(command, cwd=self.root, env=env, stderr=err)
        self.started.append(process)
        return process

    def stop(self, number: int = 1) -> None:
        """As the supervisor asks."""
        leg = newest_claim(self.dir.worker(number))
        (self.root / "node" / f"{number}-{leg}" / "stop").touch()

    def work(self, number: int = 1, **others: float) -> int:
        return self.start(number, **others).wait(timeout=60)

    def said(self, number: int = 1) -> str:
        return (self.root / f"worker-{number}.err").read_text()

    def printed(self, task: Task) -> list[str]:
        """The items that were done, as often as they were: from all that the attempts' commands printed."""
        paths = sorted(task_dir(self.dir, task).path.glob("out-*.txt"))
        lines = (line for path in paths for line in path.read_text().split("\n")[:-1])
        return [str(json.loads(line)["item"]) for line in lines if line.startswith("{")]

    def end(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()
