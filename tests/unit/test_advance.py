"""A pipeline's plan: which tasks it makes, and what it needs now."""

from __future__ import annotations

import json
from dataclasses import replace

from onward.model.pipelines.plan import (
    Benchmark,
    CheckpointChoice,
    ExistingModel,
    PipelinePlan,
    QualityGate,
    Stage,
    StageKind,
    SummaryRule,
    UploadRule,
    WorkerPool,
    WorkerRule,
    fill_stages,
    plan_from_json,
    plan_to_json,
    stages_named,
)
from onward.model.pipelines.policy import ClosePipeline, PipelineFacts, PoolWorkers, StageState, StartWorker, SubmitStage, decide
from onward.model.pipelines.task import PublishedCheckpoint, TaskState, tasks_of
from onward.model.run import RunState
from onward.model.spec import BestRule, CheckpointRule, Environment, Resources, RunDraft

DONE, LIVE, FAILED = StageState.FINISHED, StageState.LIVE, StageState.FAILED


def draft(name: str) -> RunDraft:
    return RunDraft(
        name=name, experiment="digits", cluster="auto", command=("true",), resources=Resources(time=60, extra=("--licenses=a",))
    )


def stage(name: str, *needs: str, kind: StageKind = StageKind.STAGE) -> Stage:
    return Stage(name=name, kind=kind, draft=draft(name), needs=needs)


def bench(name: str = "quiz", **given: object) -> Benchmark:
    return replace(Benchmark(name=name, command=("quiz", "{checkpoint}"), of=("train",), pool="workers"), **given)  # type: ignore[arg-type]


PLAN = PipelinePlan(
    name="digits",
    experiment="digits",
    cluster="auto",
    stages=(
        stage("env", kind=StageKind.ENVIRONMENT),
        stage("data", "env"),
        stage("train", "data", kind=StageKind.TRAIN),
        stage("plot", "data"),
    ),
    benchmarks=(bench(checkpoints=CheckpointChoice(all=True), shards=2, seeds=(1, 2)),),
    pools=(WorkerPool(name="workers", draft=draft("workers"), needs=("env",)),),
    workers=WorkerRule(max_running=3, max_requests=2),
)


def seen(*steps: int, **given: bool) -> tuple[PublishedCheckpoint, ...]:
    return tuple(PublishedCheckpoint(step=step, number=number + 1, **given) for number, step in enumerate(steps))


def ids(plan: PipelinePlan, **checkpoints: tuple[PublishedCheckpoint, ...]) -> list[str]:
    return [task.id for task in tasks_of(plan, checkpoints)]


# ── the plan ──────────────────────────────────────────────────────────────────


def test_a_plan_comes_back_from_json_as_it_was() -> None:
    rich = replace(
        PLAN,
        created=12.5,
        stages=(
            replace(
                PLAN.stages[0],
                matrix={"lr": 0.1, "on": True, "word": "a", "none": None},
                draft=replace(
                    draft("a"),
                    checkpoints=CheckpointRule(best=BestRule(metric="acc")),
                    environment=Environment(modules=("cuda",), setup=("true",)),
                ),
            ),
        ),
        models=(ExistingModel(name="old", path="/m"),),
        upload=UploadRule(to="s3://b"),
        summary=SummaryRule(gates=(QualityGate(benchmark="quiz", at_least=0.5),)),
    )
    data = json.loads(json.dumps(plan_to_json(rich)))
    assert plan_from_json(data) == rich
    assert plan_from_json({**data, "of a newer version": 1}) == rich


def test_a_stage_names_the_results_of_another() -> None:
    asking = replace(
        draft("a"),
        command=("t", "--data={stages.data.results}/x"),
        params={"n": 1, "p": "{stages.prep.results}"},
        variables={"V": "{params.n}"},
    )
    assert stages_named(asking) == ("data", "prep")
    answer = fill_stages(asking, {"data": "/d", "prep": "/p"})
    assert (answer.command, answer.params, answer.variables) == (("t", "--data=/d/x"), {"n": 1, "p": "/p"}, {"V": "{params.n}"})


# ── tasks ─────────────────────────────────────────────────────────────────────


def test_every_chosen_checkpoint_makes_a_task_for_each_seed_and_shard_and_ids_are_stable() -> None:
    assert ids(PLAN, train=seen(100)) == [
        "train.00000100.quiz.seed-1.shard-0-of-2",
        "train.00000100.quiz.seed-1.shard-1-of-2",
        "train.00000100.quiz.seed-2.shard-0-of-2",
        "train.00000100.quiz.seed-2.shard-1-of-2",
    ]
    assert ids(PLAN, train=seen(100, 200))[:4] == ids(PLAN, train=seen(100))  # more checkpoints only add


def test_checkpoints_are_chosen_by_count_by_steps_as_best_or_as_last() -> None:
    def chosen(choice: CheckpointChoice) -> list[int | None]:
        answer = (
            PublishedCheckpoint(step=50, number=1, best=True),
            PublishedCheckpoint(step=100, number=2),
            PublishedCheckpoint(step=130, number=3),
            PublishedCheckpoint(step=170, number=4, last=True),
        )
        return [task.step for task in tasks_of(replace(PLAN, benchmarks=(bench(checkpoints=choice),)), {"train": answer})]

    assert chosen(CheckpointChoice(every=2)) == [100, 170]
    assert chosen(CheckpointChoice(every_steps=50)) == [50, 100]
    assert chosen(CheckpointChoice(best=True)) == [50]
    assert chosen(CheckpointChoice(last=True)) == [170]
    assert chosen(CheckpointChoice(best=True, last=True)) == [50, 170]


def test_models_are_benchmarked_without_a_training_and_patterns_leave_tasks_out() -> None:
    plan = PipelinePlan(
        name="a",
        experiment="a",
        cluster="auto",
        models=(ExistingModel(name="old", path="/old"),),
        benchmarks=(bench(of=("old",), shards=3, exclude=("*.shard-1-*",)), bench("mute", of=("old",), include=("nothing",))),
    )
    assert ids(plan) == ["old.model.quiz.seed-0.shard-0-of-3", "old.model.quiz.seed-0.shard-2-of-3"]


# ── what it needs now ─────────────────────────────────────────────────────────


def test_a_stage_is_queued_when_all_it_needs_is_finished_and_a_skipped_one_counts() -> None:
    assert decide(PLAN, PipelineFacts()) == (SubmitStage(stage="env"),)
    assert decide(PLAN, PipelineFacts(members={"env": LIVE})) == ()
    assert decide(PLAN, PipelineFacts(members={"env": DONE})) == (SubmitStage(stage="data"),)
    skipped = replace(PLAN, stages=tuple(replace(one, done_by="/earlier") if one.name == "data" else one for one in PLAN.stages))
    assert decide(skipped, PipelineFacts(members={"env": DONE})) == (SubmitStage(stage="train"), SubmitStage(stage="plot"))


def test_unknown_is_never_finished() -> None:
    assert decide(PLAN, PipelineFacts(members={"env": StageState.UNKNOWN})) == ()


def test_other_branches_go_on_after_a_failure_and_then_the_pipeline_has_failed_with_its_cause() -> None:
    members = {"env": DONE, "data": DONE, "train": FAILED}
    assert decide(PLAN, PipelineFacts(members=members)) == (SubmitStage(stage="plot"),)
    assert decide(PLAN, PipelineFacts(members={**members, "plot": LIVE})) == ()
    facts = PipelineFacts(members={**members, "plot": DONE}, causes={"train": "it crashed"})
    assert decide(PLAN, facts) == (ClosePipeline(state=RunState.FAILED, cause="stage train: it crashed"),)


def test_what_needs_a_failed_stage_however_far_up_never_starts() -> None:
    assert decide(PLAN, PipelineFacts(members={"env": FAILED})) == (ClosePipeline(state=RunState.FAILED, cause="stage env: failed"),)


def test_workers_start_while_the_training_goes_on_as_many_as_there_is_room_and_work_for() -> None:
    going = PipelineFacts(members={"env": DONE, "data": DONE, "train": LIVE, "plot": DONE}, checkpoints={"train": seen(100)})
    assert decide(PLAN, going) == (StartWorker(pool="workers", number=1), StartWorker(pool="workers", number=2))  # two requests at most
    two = replace(going, workers_made=2, workers={"workers": PoolWorkers(queued=1, running=1)})
    assert decide(PLAN, two) == (StartWorker(pool="workers", number=3),)
    three = replace(two, workers_made=3, workers={"workers": PoolWorkers(running=3)})
    assert decide(PLAN, three) == ()
    one_open = dict.fromkeys(ids(PLAN, train=seen(100))[:3], TaskState.CLAIMED)
    assert decide(PLAN, replace(two, tasks=one_open)) == ()  # the queued one will take it
    few = replace(PLAN, workers=WorkerRule(max_running=3, tasks_each=4))
    assert decide(few, going) == (StartWorker(pool="workers", number=1),)


def test_workers_wait_for_what_they_need() -> None:
    facts = PipelineFacts(members={"env": LIVE, "data": DONE, "train": LIVE, "plot": DONE}, checkpoints={"train": seen(100)})
    assert decide(PLAN, facts) == ()


def test_it_is_finished_when_every_stage_and_task_is_and_failed_tasks_are_named() -> None:
    ended = PipelineFacts(members=dict.fromkeys(("env", "data", "train", "plot"), DONE), checkpoints={"train": seen(100)})
    all_done = dict.fromkeys(ids(PLAN, train=seen(100)), TaskState.DONE)
    assert decide(PLAN, replace(ended, tasks=all_done)) == (ClosePipeline(state=RunState.FINISHED, cause="all stages and tasks are done"),)
    bad = ids(PLAN, train=seen(100))[1]
    over = ClosePipeline(state=RunState.FAILED, cause=f"1 of 4 tasks failed: {bad}")
    assert decide(PLAN, replace(ended, tasks={**all_done, bad: TaskState.FAILED})) == (over,)


def test_workers_that_only_fail_are_not_started_for_ever() -> None:
    ended = PipelineFacts(members=dict.fromkeys(("env", "data", "train", "plot"), DONE), checkpoints={"train": seen(100)}, workers_made=3)
    workers = {"workers": PoolWorkers(failures=3, cause="no such program")}
    cause = "4 of 4 tasks are not done: 3 workers failed in a row: no such program"
    assert decide(PLAN, replace(ended, workers=workers)) == (ClosePipeline(state=RunState.FAILED, cause=cause),)
    assert decide(PLAN, replace(ended, workers={"workers": PoolWorkers(failures=3, running=1)})) == ()


def test_a_cancelled_pipeline_starts_nothing_and_is_over_when_its_runs_are() -> None:
    assert decide(PLAN, PipelineFacts(cancelled="ada", members={"env": LIVE})) == ()
    assert decide(PLAN, PipelineFacts(cancelled="ada", members={"env": StageState.CANCELLED})) == (
        ClosePipeline(state=RunState.CANCELLED, cause="cancelled by ada"),
    )
