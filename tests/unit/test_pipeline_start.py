"""Starting a pipeline, and what one may ask of it then: everything is made before anything is queued, or nothing is."""

from __future__ import annotations

import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onward.cli.pipelines.run import rerun
from onward.errors import Conflict, InvalidInput, NotFound, SchedulerUnavailable, StorageError
from onward.model.pipelines.environment_build import Build
from onward.model.pipelines.plan import Benchmark, CheckpointChoice, PipelinePlan, Stage, StageKind, WorkerPool
from onward.model.spec import Environment, RunDraft
from onward.operations.pipelines.control import cancel_pipeline, find_pipeline, restart_from_stage, retry_failed
from onward.operations.pipelines.record import pipeline_line, pipeline_record
from onward.operations.pipelines.start import from_stage, start_pipeline
from onward.pipelines.advance import read_plan
from onward.pipelines.build import Environments
from onward.rundir.journal import read_spec
from onward.rundir.layout import RunDir
from onward.rundir.pipeline.layout import PipelineDir, pipelines_under
from tests.sandbox import Sandbox

DRAFT = RunDraft(name="x", experiment="digits", cluster="local", command=("python3", "train.py"))
BUILD = Build(name="main", tool="venv", setup=("true",))


def plan(**others: object) -> PipelinePlan:
    made = PipelinePlan(
        name="digits",
        experiment="digits",
        cluster="local",
        builds=(BUILD,),
        stages=(
            Stage(name="env-main", kind=StageKind.ENVIRONMENT, draft=replace(DRAFT, command=()), environment="main"),
            Stage(name="prepare", kind=StageKind.STAGE, draft=DRAFT, needs=("env-main",), environment="main", content_hash="abc"),
            Stage(
                name="train",
                kind=StageKind.TRAIN,
                draft=replace(DRAFT, command=("python3", "train.py", "{stages.prepare.results}/data")),
                needs=("prepare",),
            ),
        ),
        benchmarks=(Benchmark(name="sums", command=("true",), of=("train",), pool="cpu", checkpoints=CheckpointChoice(all=True)),),
        pools=(WorkerPool(name="cpu", draft=replace(DRAFT, command=()), environment="main"),),
    )
    return replace(made, **others)  # type: ignore[arg-type]


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def begun(sandbox: Sandbox, made: PipelinePlan | None = None) -> PipelineDir:
    return start_pipeline(sandbox.context, made or plan(), source="name: digits\n", cwd=sandbox.project)


def jobs(sandbox: Sandbox) -> list[str]:
    return [job.status.name.rsplit(".", 2)[0] for job in sandbox.scheduler.jobs.values()]


def end(dir: PipelineDir, stage: str, state: str = "finished") -> None:
    dir.member(stage).done.write_text(json.dumps({"state": state, "cause": "as the test says", "leg": 1, "at": 0}))


# ── making ────────────────────────────────────────────────────────────────────


def test_everything_is_made_and_only_what_needs_nothing_is_queued(sandbox: Sandbox) -> None:
    dir = begun(sandbox)
    assert sandbox.folders() == [f"{dir.path.name}{part}" for part in ("", "-env-main", "-prepare", "-train")]
    assert jobs(sandbox) == ["digits-env-main"]
    assert (dir.code / "train.py").is_file() and dir.source.read_text() == "name: digits\n"


def test_a_stage_runs_in_what_was_built_for_it_and_finds_what_others_left(sandbox: Sandbox) -> None:
    dir = begun(sandbox)
    prefix = str(Environments(sandbox.root).prefix(BUILD.key))
    assert read_spec(dir.member("prepare")).environment.venv == prefix
    assert read_spec(dir.member("train")).command[-1] == f"{dir.member('prepare').results}/data"
    assert read_spec(dir.member("train")).workdir == str(dir.code)
    worker = read_spec(dir.template("cpu"))
    assert worker.environment.venv == prefix and worker.command[1:] == (str(dir.supervisor), "worker", str(dir.path), "cpu")


def test_all_runs_share_the_frozen_supervisor(sandbox: Sandbox) -> None:
    dir = begun(sandbox)
    assert dir.member("train").supervisor.samefile(dir.supervisor) and dir.template("cpu").supervisor.samefile(dir.supervisor)


def test_a_container_stands_before_the_command(sandbox: Sandbox) -> None:
    image = Build(name="main", image="lab.sif", image_options=("--nv",))
    stage = Stage(name="train", kind=StageKind.TRAIN, draft=DRAFT, environment="main")
    sandbox.write("apptainer").chmod(0o755)
    sandbox.context.env = {**sandbox.context.env, "PATH": f"{sandbox.project}:{sandbox.context.env['PATH']}"}
    dir = begun(sandbox, plan(builds=(image,), stages=(stage,), benchmarks=(), pools=()))
    assert read_spec(dir.member("train")).command == ("apptainer", "exec", "--nv", "lab.sif", "python3", "train.py")


def test_what_cannot_be_made_leaves_nothing_behind(sandbox: Sandbox) -> None:
    wrong = replace(plan().stages[2], draft=replace(DRAFT, environment=Environment(venv="nowhere")))
    with pytest.raises(InvalidInput, match="nowhere"):
        begun(sandbox, plan(stages=(*plan().stages[:2], wrong)))
    assert sandbox.folders() == [] and jobs(sandbox) == []


def test_a_full_disk_is_told_and_leaves_nothing(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("onward.operations.pipelines.start.build_archive", full)
    with pytest.raises(StorageError, match="No space left"):
        begun(sandbox)
    assert sandbox.folders() == []


def test_a_cluster_behind_ssh_is_refused_with_what_to_do(sandbox: Sandbox) -> None:
    settings = sandbox.folder / "settings.toml"
    settings.write_text('[clusters.far]\nscheduler = "slurm"\nssh = "lab"\n')
    sandbox.context.env = {**sandbox.context.env, "ONWARD_SETTINGS": str(settings)}
    with pytest.raises(InvalidInput, match="reached through ssh") as error:
        begun(sandbox, plan(cluster="far"))
    assert "ssh lab" in error.value.hint


# ── what is done already ──────────────────────────────────────────────────────


def test_a_stage_that_has_not_changed_is_not_done_again_and_is_said_to_be(sandbox: Sandbox) -> None:
    first = begun(sandbox)
    end(first, "prepare")
    second = begun(sandbox)
    assert read_plan(second).stage("prepare").done_by == str(first.member("prepare").path)
    fields = {stage["name"]: stage for stage in pipeline_record(sandbox.context, second)["stages"]}
    assert fields["prepare"]["skipped"] and fields["prepare"]["why"] == f"unchanged: {first.member('prepare').path.name} did it"
    assert read_spec(second.member("train")).command[-1] == f"{first.member('prepare').results}/data"


def test_what_another_user_has_done_is_not_taken_for_ours(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    end(begun(sandbox), "prepare")
    monkeypatch.setattr("onward.operations.pipelines.start.is_ours", lambda _: False)
    assert read_plan(begun(sandbox)).stage("prepare").done_by is None


def test_one_that_failed_or_whose_outputs_are_gone_is_done_again(sandbox: Sandbox) -> None:
    left = plan(stages=(replace(plan().stages[1], needs=(), environment=None, outputs=("artifacts/*.json",)),), benchmarks=(), pools=())
    first = begun(sandbox, left)
    end(first, "prepare")
    assert read_plan(begun(sandbox, left)).stage("prepare").done_by is None
    (first.member("prepare").artifacts / "data.json").write_text("{}")
    assert read_plan(begun(sandbox, left)).stage("prepare").done_by == str(first.member("prepare").path)


def test_a_damaged_run_in_the_root_keeps_no_pipeline_from_starting(sandbox: Sandbox) -> None:
    first, second = begun(sandbox), begun(sandbox)
    end(first, "prepare")
    second.member("prepare").spec.write_text("{")
    assert read_plan(begun(sandbox)).stage("prepare").done_by == str(first.member("prepare").path)


def test_an_environment_that_is_there_is_not_built_again(sandbox: Sandbox) -> None:
    environments = Environments(sandbox.root)
    folder = environments.attempt(BUILD.key, "run", 1)
    (folder / "build.json").write_text("{}")
    environments.show(BUILD.key, folder)
    begun(sandbox)
    assert jobs(sandbox) == ["digits-prepare"]


def test_from_a_stage_on_all_is_done_whether_or_not_it_changed() -> None:
    again = from_stage(plan(), "prepare")
    assert [stage.content_hash for stage in again.stages] == ["", "", ""]
    swept = plan(
        stages=tuple(Stage(name=f"train-0{n}", kind=StageKind.TRAIN, draft=DRAFT, content_hash="x", matrix={"lr": n}) for n in (1, 2))
    )
    assert [stage.content_hash for stage in from_stage(swept, "train").stages] == ["", ""]
    assert [stage.content_hash for stage in from_stage(swept, "train-02").stages] == ["x", ""]
    with pytest.raises(InvalidInput, match="no stage 'prepaer'") as error:
        from_stage(plan(), "prepaer")
    assert "did you mean prepare?" in error.value.hint


def test_a_restart_takes_over_what_was_done_before_its_stage(sandbox: Sandbox) -> None:
    first = begun(sandbox)
    for stage in ("env-main", "prepare", "train"):
        end(first, stage)
    second = restart_from_stage(sandbox.context, first, "train")
    done = {stage.name: stage.done_by for stage in read_plan(second).stages}
    assert done == {"env-main": str(first.member("env-main").path), "prepare": str(first.member("prepare").path), "train": None}
    assert jobs(sandbox)[-1] == "digits-train"


# ── finding, cancelling, again ────────────────────────────────────────────────


def test_a_pipeline_is_found_by_folder_by_its_name_and_by_a_beginning(sandbox: Sandbox) -> None:
    first, second = begun(sandbox), begun(sandbox)
    assert find_pipeline(sandbox.context, str(first.path)) == first
    assert find_pipeline(sandbox.context, first.path.name) == first
    assert find_pipeline(sandbox.context, "digits") == second, "the newest of that name"
    assert find_pipeline(sandbox.context, second.path.name[:12]) == second
    for text in ("nothing", str(sandbox.project), "2026-11-15_A_digits-train/"):
        with pytest.raises(NotFound):
            find_pipeline(sandbox.context, text)
    with pytest.raises(InvalidInput):
        find_pipeline(sandbox.context, " ")
    with pytest.raises(Conflict, match="may mean 2 pipelines") as error:  # the newest of them might be the wrong one to cancel
        find_pipeline(sandbox.context, "2026")
    assert first.path.name in error.value.hint


def test_a_cancelled_pipeline_ends_what_runs_and_begins_nothing_more(sandbox: Sandbox) -> None:
    dir = begun(sandbox)
    cancel_pipeline(sandbox.context, dir)
    answer = pipeline_line(dir)
    assert (answer["state"], answer["cause"]) == ("cancelled", f"cancelled by {sandbox.context.user}")
    assert not any(job.status.state.live for job in sandbox.scheduler.jobs.values())
    with pytest.raises(Conflict, match="already over"):
        cancel_pipeline(sandbox.context, dir)


def test_one_that_cannot_be_cancelled_keeps_no_other_from_it(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    dir = begun(sandbox)
    refusals = {"env-main": Conflict("it is finished"), "prepare": SchedulerUnavailable("its jobs could not be ended")}
    asked = []

    def refused(_: object, run: RunDir) -> None:
        asked.append(run.path.name.removeprefix(f"{dir.path.name}-"))
        if error := refusals.get(asked[-1]):
            raise error

    monkeypatch.setattr("onward.operations.pipelines.control.cancel", refused)
    with pytest.raises(SchedulerUnavailable, match="could not be ended") as error:
        cancel_pipeline(sandbox.context, dir)
    assert asked == ["env-main", "prepare", "train"] and f"onward pipeline cancel {dir.path.name}" in error.value.hint
    monkeypatch.undo()
    cancel_pipeline(sandbox.context, dir)
    assert pipeline_line(dir)["state"] == "cancelled"


def test_what_was_cancelled_goes_on_when_someone_asks(sandbox: Sandbox) -> None:
    dir = begun(sandbox)
    cancel_pipeline(sandbox.context, dir)
    assert retry_failed(sandbox.context, dir) == ["env-main", "prepare", "train"]
    assert pipeline_line(dir)["state"] == "running"
    assert [job.status.name.rsplit(".", 2)[0] for job in sandbox.scheduler.jobs.values() if job.status.state.live] == ["digits-env-main"]


def test_nothing_is_done_again_where_nothing_failed(sandbox: Sandbox) -> None:
    with pytest.raises(Conflict, match="has failed"):
        retry_failed(sandbox.context, begun(sandbox))


def test_two_things_at_once_and_nothing_are_not_done_again() -> None:
    with pytest.raises(InvalidInput, match="exclude each other"):
        rerun("digits", failed_only=True, from_="train")
    with pytest.raises(InvalidInput, match="nothing says what to run again"):
        rerun("digits")


def test_a_pipeline_of_another_user_is_theirs_alone(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    dir = begun(sandbox)
    monkeypatch.setattr("onward.operations.pipelines.control.is_ours", lambda _: False)
    for act in (cancel_pipeline, retry_failed):
        with pytest.raises(Conflict, match="belongs to another user"):
            act(sandbox.context, dir)


def test_looking_writes_nothing(sandbox: Sandbox) -> None:
    dir = begun(sandbox)
    before = sorted(str(path) for path in sandbox.root.rglob("*"))
    pipeline_record(sandbox.context, dir)
    pipeline_line(dir)
    assert sorted(str(path) for path in sandbox.root.rglob("*")) == before


def test_what_is_damaged_is_told_with_its_folder(sandbox: Sandbox) -> None:
    dir = begun(sandbox)
    dir.over.write_text("{")
    damaged = f"{dir.path.name} cannot be read as a pipeline"
    with pytest.raises(StorageError, match=damaged):
        pipeline_line(dir)
    with pytest.raises(StorageError, match=damaged):
        pipeline_record(sandbox.context, dir)


def test_a_stage_whose_folder_is_gone_is_unknown_and_the_rest_is_told(sandbox: Sandbox) -> None:
    dir = begun(sandbox)
    shutil.rmtree(dir.member("prepare").path)
    fields = {stage["name"]: stage for stage in pipeline_record(sandbox.context, dir)["stages"]}
    assert (fields["prepare"]["state"], fields["prepare"]["why"]) == ("unknown", f"its folder {dir.path.name}-prepare is gone")
    assert fields["env-main"]["state"] == "live"


def test_the_newest_of_a_name_is_the_newest_after_26_of_a_day_too(sandbox: Sandbox) -> None:
    last = begun(sandbox)
    later = PipelineDir(last.path.with_name(last.path.name.replace("_A_", "_AA_")))
    other = PipelineDir(last.path.with_name(last.path.name.replace("_A_", "_Z_")))
    for copy in (other, later):
        shutil.copytree(last.path, copy.path)
    assert find_pipeline(sandbox.context, "digits") == later


def test_a_folder_that_someone_keeps_to_themselves_hides_no_pipeline(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = begun(sandbox), begun(sandbox)
    stat = os.stat

    def guarded(path: int | str | Path, **how: Any) -> os.stat_result:
        if str(path).startswith(f"{first.path}/"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **how)

    monkeypatch.setattr(os, "stat", guarded)
    assert pipelines_under(sandbox.root) == [second]


def test_a_plan_that_cannot_be_read_is_told(sandbox: Sandbox) -> None:
    dir = begun(sandbox)
    dir.plan.write_text("[]")
    with pytest.raises(StorageError, match="cannot be read as a pipeline"):
        pipeline_record(sandbox.context, dir)
    shutil.rmtree(dir.path)
