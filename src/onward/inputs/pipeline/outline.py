"""What a plan will do, before anything is queued: its graph, its jobs, what they ask for and how many node-hours that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onward.model.commands.placeholders import value_text
from onward.model.pipelines.plan import Benchmark, CheckpointChoice, PipelinePlan, Stage, WorkerPool
from onward.model.quantity import counted, format_duration, format_size
from onward.model.spec import Limits, Resources, RunDraft

_MAX_LEGS = Limits().max_legs  # more than anybody means: no bound that somebody chose

Asked = Callable[[RunDraft], Resources]


def outline(plan: PipelinePlan, asked: Asked) -> dict[str, Any]:
    """`asked` is what a draft asks for once its cluster's defaults are in it."""
    stages = [_stage(stage, asked(stage.draft)) for stage in plan.stages]
    pools = [_pool(plan, pool, asked(pool.draft)) for pool in plan.pools]
    return {
        "schema": 1,
        "name": plan.name,
        "experiment": plan.experiment,
        "cluster": plan.cluster,
        "stages": stages,
        "benchmarks": [_benchmark(benchmark) for benchmark in plan.benchmarks],
        "pools": pools,
        "workers": {"max_running": plan.workers.max_running, "max_requests": plan.workers.max_requests},
        "upload": {"to": plan.upload.to, "what": list(plan.upload.what)} if plan.upload else None,
        "node_hours": _total(stages, pools, plan.workers.max_running),
    }


def resources_words(asked: Resources) -> str:
    """As text: `2 nodes, 8 CPUs, 1 GPU (a100), 32G, 24:00:00, partition gpu`."""
    gpus = asked.gpu_count()
    kind = next((text.split(":")[-2] for text in (asked.gpus, asked.gres) if text and text.count(":") > (text == asked.gres)), "")
    amounts = ((asked.nodes, "node"), (asked.ntasks or asked.ntasks_per_node, "task"), (asked.cpus_per_task, "CPU"), (gpus, "GPU"))
    words = [counted(count, noun) for count, noun in amounts if count]
    if gpus and kind:
        words[-1] += f" ({kind})"
    if asked.mem is not None:
        words.append(format_size(asked.mem) if asked.mem else "all memory")
    words += [format_duration(asked.time)] if asked.time else []
    words += [f"{key} {value}" for key in ("partition", "account", "qos", "constraint") if (value := getattr(asked, key))]
    return ", ".join([*words, *asked.extra]) or "the cluster's default"


def choice_words(choice: CheckpointChoice) -> str:
    words = ["all"] if choice.all else []
    words += [f"one of every {choice.every}"] if choice.every else []
    words += [f"every {choice.every_steps} steps"] if choice.every_steps else []
    return ", ".join([*words, *(["each new best"] if choice.best else []), *(["the last"] if choice.last else [])])


# ── parts ─────────────────────────────────────────────────────────────────────


def _stage(stage: Stage, asked: Resources) -> dict[str, Any]:
    limits = stage.draft.limits
    hours = _node_hours(asked, asked.time)
    most = _node_hours(asked, limits.total_time)
    if most is None and limits.max_legs < _MAX_LEGS and hours is not None:
        most = hours * limits.max_legs
    return {
        "name": stage.name,
        "kind": stage.kind.value,
        "needs": list(stage.needs),
        "point": ", ".join(f"{name} {value_text(value)}" for name, value in stage.matrix.items()),
        "environment": stage.environment,
        "command": list(stage.draft.command),
        "asks": resources_words(asked),
        "skipped_by": stage.done_by,
        "node_hours": {"a_leg": hours, "at_most": hours if stage.kind == "environment" else most},
    }


def _pool(plan: PipelinePlan, pool: WorkerPool, asked: Resources) -> dict[str, Any]:
    return {
        "name": pool.name,
        "benchmarks": [benchmark.name for benchmark in plan.benchmarks if benchmark.pool == pool.name],
        "needs": list(pool.needs),
        "asks": resources_words(asked),
        "node_hours": _node_hours(asked, asked.time),  # of one worker, for a leg
    }


def _benchmark(benchmark: Benchmark) -> dict[str, Any]:
    return {
        "name": benchmark.name,
        "of": list(benchmark.of),
        "checkpoints": choice_words(benchmark.checkpoints),
        "shards": benchmark.shards,
        "seeds": list(benchmark.seeds),
        "tasks_a_checkpoint": benchmark.shards * len(benchmark.seeds),
        "pool": benchmark.pool,
        "command": list(benchmark.command),
        "metric": benchmark.metric,
    }


def _node_hours(asked: Resources, seconds: int | None) -> float | None:
    return None if not seconds else (asked.nodes or 1) * seconds / 3600


def _total(stages: list[dict[str, Any]], pools: list[dict[str, Any]], workers: int) -> Mapping[str, Any]:
    """Stages that are done already ask for nothing. None where something is not said: a sum that leaves it out would mislead."""
    wanted = [stage for stage in stages if not stage["skipped_by"]]
    legs = [stage["node_hours"]["a_leg"] for stage in wanted]
    most = [stage["node_hours"]["at_most"] for stage in wanted]
    each = [pool["node_hours"] for pool in pools]
    return {
        "stages_a_leg_each": None if None in legs else sum(legs),
        "stages_at_most": None if None in most else sum(most),
        "unbounded": [stage["name"] for stage in wanted if stage["node_hours"]["at_most"] is None],
        "workers_a_leg_each": None if None in each else max(each, default=0) * workers,
    }
