"""From a pipeline's sections to its plan: points of sweeps, the graph in an order that works, pools of workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from onward.errors import InvalidInput
from onward.inputs.command_line import check_entry, check_placeholders
from onward.inputs.params.sections import draft_of
from onward.inputs.pipeline.benchmark_section import BenchmarkIn
from onward.inputs.pipeline.content_hash import content_hash
from onward.inputs.pipeline.sections import PipelineIn
from onward.inputs.pipeline.stage_section import EnvironmentUseIn, StageIn
from onward.inputs.pipeline.sweep import MOST_POINTS, Point
from onward.inputs.values import did_you_mean
from onward.inputs.yaml_lines import KeyPath
from onward.model.pipelines.environment_build import Build
from onward.model.pipelines.plan import Benchmark, ExistingModel, PipelinePlan, Stage, StageKind, WorkerPool, stages_named
from onward.model.spec import Limits, Resources, RunDraft

Complain = Callable[[KeyPath, str], None]
_LONGEST = 64  # characters of a run's name


class Expansion:
    """One reading of a file. It collects all problems instead of stopping at the first, so that all are reported at once."""

    def __init__(self, read: PipelineIn, *, folder: Path, complain: Complain, programs: str | None = None) -> None:
        self._read = read
        self._folder = folder
        self._complain = complain
        self._programs = programs
        self._jobs = {**read.stages, **({"train": read.train} if read.train else {})}
        self._hashes: dict[str, str] = {}  # of stages that were gone through
        self._points = {name: self._points_of(name, job) for name, job in self._jobs.items()}

    def plan(self) -> PipelinePlan:
        read = self._read
        self._check_names()
        builds = {name: self._build(name) for name in read.environments if name in self._used()}
        trained = self._benchmarked()
        stages = [*self._environments(builds), *self._stages(builds, trained)]
        pools, benchmarks = self._benchmarks(builds)
        self._check_summary()
        return PipelinePlan(
            name=read.name,
            experiment=read.experiment or read.name,
            cluster=read.cluster,
            stages=tuple(stages),
            builds=tuple(builds.values()),
            models=tuple(ExistingModel(name=name, path=str(self._folder / path)) for name, path in read.models.items()),
            benchmarks=tuple(benchmarks),
            pools=tuple(pools),
            workers=read.workers.to_model(),
            upload=read.upload.to_model() if read.upload else None,
            summary=read.summary.to_model(),
        )

    def notes(self) -> list[str]:
        """Things that are valid but probably not intended."""
        unused = [name for name in self._read.environments if name not in self._used()]
        return [f"the environment {name} is not built: nothing uses it" for name in unused]

    # ── names ─────────────────────────────────────────────────────────────────

    def _check_names(self) -> None:
        read = self._read
        if not self._jobs and not read.benchmark:
            self._complain((), "found neither train, stages nor benchmark, expected something to do")
        stages = [(stage, name) for name, points in self._points.items() for stage, _ in points]
        for stage, name in stages:
            if stage != name and stage in self._jobs:
                self._complain(self._keys(stage), f"found {stage}, the name of a point of {name}'s matrix, expected another name")
            if len(read.name) + len(stage) + 1 > _LONGEST:
                self._complain(
                    ("name",), f"found {read.name}, which together with the stage {stage} is longer than {_LONGEST}, expected shorter names"
                )
        names = [*self._jobs, *(stage for stage, _ in stages)]
        for room in ("models", "benchmark"):
            found = list(read.models) if room == "models" else [one.name for one in read.benchmark]
            for index, name in enumerate(found):
                keys = ("models", name) if room == "models" else ("benchmark", str(index), "name")
                if name in names:
                    self._complain(keys, f"found {name} twice, expected another name")
                names.append(name)

    def _known(self, keys: KeyPath, name: str, known: list[str], what: str) -> bool:
        if name not in known:
            listed = f"; known are {', '.join(known)}" if known else ""
            self._complain(keys, f"found {name}, expected {what}{did_you_mean(name, known) or listed}")
        return name in known

    # ── environments ──────────────────────────────────────────────────────────

    def _used(self) -> set[str]:
        uses = [job.environment for job in self._jobs.values()] + [one.environment for one in self._read.benchmark if one.environment]
        return {use.use for use in uses if use.use}

    def _build(self, name: str) -> Build:
        try:
            return self._read.environments[name].to_model(name, self._folder)
        except InvalidInput as error:
            self._complain(("environments", name), "; ".join(part for part in (error.message, error.hint) if part))
            return Build(name=name)

    def _environments(self, builds: dict[str, Build]) -> Iterator[Stage]:
        for name, build in builds.items():
            if build.is_built:
                environment = self._read.environments[name]
                draft = replace(
                    self._bare(f"env-{name}"),
                    cluster=environment.cluster or self._read.cluster,
                    resources=environment.resources.to_model()
                    if environment.resources
                    else _on_one_node(self._read.defaults.resources.to_model()),
                    limits=Limits(max_restarts=5),  # lost jobs and a network that fails; the same failure twice ends it
                )
                self._hashes[f"env-{name}"] = build.key
                yield Stage(name=f"env-{name}", kind=StageKind.ENVIRONMENT, draft=draft, environment=name, content_hash=build.key)

    def _of_environment(self, use: EnvironmentUseIn, builds: dict[str, Build], keys: KeyPath) -> tuple[str, ...]:
        """The stages that an environment makes necessary."""
        if use.use is None or not self._known(
            (*keys, "environment", "use"), use.use, list(self._read.environments), "one of `environments`"
        ):
            return ()
        return (f"env-{use.use}",) if builds[use.use].is_built else ()

    # ── stages ────────────────────────────────────────────────────────────────

    def _keys(self, job: str) -> KeyPath:
        return ("train",) if job == "train" else ("stages", job)

    def _points_of(self, name: str, job: StageIn) -> list[tuple[str, Point]]:
        if job.matrix is None:
            return [(name, {})]
        points = list(job.matrix.points())
        if not points or len(points) > MOST_POINTS:
            many = f"more than {MOST_POINTS}" if points else "no"
            self._complain((*self._keys(name), "matrix"), f"found {many} points, expected 1 to {MOST_POINTS}")
            points = points[:MOST_POINTS]
        width = max(2, len(str(len(points))))
        return [(f"{name}-{number:0{width}d}", point) for number, point in enumerate(points, 1)]

    def _benchmarked(self) -> set[str]:
        return {"train", *(name for one in self._read.benchmark for name in one.of)}

    def _stages(self, builds: dict[str, Build], trained: set[str]) -> Iterator[Stage]:
        """One for each point, in an order in which all that a stage needs comes before it."""
        for name in self._ordered():
            job, keys = self._jobs[name], self._keys(name)
            shared = [*self._of_environment(job.environment, builds, keys)]
            shared += [stage for need in self._needs(name) for stage, _ in self._points[need]]
            for stage, point in self._points[name]:
                draft = draft_of(
                    job, name=f"{self._read.name}-{stage}", experiment=self._read.experiment or self._read.name, cluster=self._read.cluster
                )
                draft = replace(draft, params={**draft.params, **point})
                self._check_command(draft, keys, name)
                yield self._hashed(
                    builds,
                    name,
                    Stage(
                        name=stage,
                        kind=StageKind.TRAIN if name in trained else StageKind.STAGE,
                        draft=draft,
                        needs=tuple(shared),
                        environment=job.environment.use,
                        inputs=tuple(job.inputs) if job.inputs is not None else None,
                        outputs=tuple(job.outputs),
                        matrix=point,
                    ),
                )

    def _hashed(self, builds: dict[str, Build], name: str, stage: Stage) -> Stage:
        """With the hash of all that decides what it makes. What it needs has been here before it."""
        above = [self._hashes.get(need, "") for need in stage.needs]
        image = builds[stage.environment].key if stage.environment in builds else ""
        try:
            hashed = replace(stage, content_hash=content_hash(stage, folder=self._folder, above=[*above, image]))
        except InvalidInput as error:
            self._complain((*self._keys(name), "inputs"), error.message)
            hashed = stage
        self._hashes[stage.name] = hashed.content_hash
        return hashed

    def _needs(self, name: str) -> list[str]:
        return [need for need in self._jobs[name].needs if need in self._jobs]

    def _check_command(self, draft: RunDraft, keys: KeyPath, name: str) -> None:
        try:
            check_placeholders(draft.command, draft.params)
        except InvalidInput as error:
            self._complain((*keys, "command"), "; ".join(part for part in (error.message, error.hint) if part))
        self._check_entry(draft.command, self._jobs[name].environment, keys)
        for needed in stages_named(draft):
            if needed not in self._needs(name) or len(self._points[needed]) > 1:
                several = (
                    "a stage without a matrix: a sweep has several runs" if needed in self._needs(name) else f"{needed} among its needs"
                )
                self._complain((*keys, "command"), f"found {{stages.{needed}.results}}, expected {several}")

    def _check_entry(self, command: tuple[str, ...], environment: EnvironmentUseIn | None, keys: KeyPath) -> None:
        """What a command starts must be there, as far as that can be known before its environment is."""
        if self._programs is None:
            return
        prepared = bool(environment and environment.model_dump(exclude={"variables"}, exclude_defaults=True))
        try:
            check_entry(command, self._folder, self._programs, prepared=prepared)
        except InvalidInput as error:
            self._complain((*keys, "command"), "; ".join(part for part in (error.message, error.hint) if part))

    def _ordered(self) -> list[str]:
        """In the order of the file, but each after all that it needs. A circle is named, and cut."""
        done: list[str] = []
        reported: set[frozenset[str]] = set()

        def visit(name: str, above: tuple[str, ...]) -> None:
            if name in above:
                circle = above[above.index(name) :]
                if frozenset(circle) not in reported:
                    reported.add(frozenset(circle))
                    self._complain((*self._keys(name), "needs"), f"found a cycle, {' → '.join([*circle, name])}, expected none")
                return
            if name in done:
                return
            for index, need in enumerate(self._jobs[name].needs):
                keys = (*self._keys(name), "needs", str(index))
                if self._known(keys, need, [one for one in self._jobs if one != name], "a stage"):
                    visit(need, (*above, name))
            done.append(name)

        for name in self._jobs:
            visit(name, ())
        return list(dict.fromkeys(done))

    # ── benchmarks ────────────────────────────────────────────────────────────

    def _benchmarks(self, builds: dict[str, Build]) -> tuple[list[WorkerPool], list[Benchmark]]:
        """Benchmarks that ask for the same resources and environment share a pool of workers."""
        pools: dict[str, WorkerPool] = {}
        benchmarks = []
        for index, one in enumerate(self._read.benchmark):
            needs = self._of_environment(one.environment, builds, ("benchmark", str(index))) if one.environment else ()
            self._check_entry(one.command, one.environment, ("benchmark", str(index)))
            pool = self._pool(one, needs, len(pools) + 1)
            same = next(
                (
                    name
                    for name, known in pools.items()
                    if replace(pool, name=name, draft=replace(pool.draft, name=known.draft.name)) == known
                ),
                None,
            )
            if same is None:
                pools[pool.name] = pool
            benchmarks.append(one.to_model(of=self._of(one, index), pool=same or pool.name))
        return list(pools.values()), benchmarks

    def _pool(self, one: BenchmarkIn, needs: tuple[str, ...], number: int) -> WorkerPool:
        use = one.environment or EnvironmentUseIn()
        draft = replace(
            self._bare(f"workers-{number}"),
            resources=one.resources.to_model(),
            limits=Limits(**self._read.workers.limits.model_dump(exclude_unset=True)),
            environment=use.to_model(),
            variables=dict(use.variables),
        )
        return WorkerPool(name=f"workers-{number}", draft=draft, environment=use.use, needs=needs)

    def _of(self, one: BenchmarkIn, index: int) -> tuple[str, ...]:
        known = [*self._jobs, *self._read.models]
        named = one.of or [*(["train"] if self._read.train else []), *self._read.models]
        if not named:
            self._complain(("benchmark", str(index)), "found nothing to run it on, expected a training, models, or `of` with a stage")
        found: list[str] = []
        for nth, name in enumerate(named):
            if self._known(("benchmark", str(index), "of", str(nth)), name, known, "a stage or a model"):
                found += [stage for stage, _ in self._points[name]] if name in self._jobs else [name]
                self._check_choice(one, index, name)
        return tuple(found)

    def _check_choice(self, one: BenchmarkIn, index: int, name: str) -> None:
        if one.checkpoints.best and name in self._jobs and self._jobs[name].checkpoints.best is None:
            keys = ("benchmark", str(index), "checkpoints")
            self._complain(keys, f"found best, but {name} does not define it, expected {'.'.join(self._keys(name))}.checkpoints.best")

    def _check_summary(self) -> None:
        summary = self._read.summary
        names = [one.name for one in self._read.benchmark]
        for index, gate in enumerate(summary.gates):
            self._known(("summary", "gates", str(index), "benchmark"), gate.benchmark, names, "a benchmark")
            if gate.worse_by is not None and summary.baseline is None:
                self._complain(("summary", "gates", str(index), "worse_by"), "found no baseline to compare with, expected summary.baseline")
        rows = [*(stage for points in self._points.values() for stage, _ in points), *self._read.models]
        if summary.baseline:
            self._known(("summary", "baseline"), summary.baseline, rows, "a stage or a model")

    def _bare(self, name: str) -> RunDraft:
        read = self._read
        return RunDraft(name=f"{read.name}-{name}", experiment=read.experiment or read.name, cluster=read.cluster, command=())


def _on_one_node(asked: Resources) -> Resources:
    return replace(asked, gpus=None, gres=None, nodes=None, ntasks=None, ntasks_per_node=None, nodelist=None)
