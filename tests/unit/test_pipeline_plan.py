"""`onward pipeline plan` and `convert`: what would be done, in rows and numbers, and an old file in new words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onward.cli.pipelines import plan as cli
from onward.contrib.graph2tac import convert_params
from onward.errors import InvalidInput
from onward.inputs.pipeline.converter import ConvertedPipeline
from onward.inputs.pipeline.file import read_pipeline
from onward.inputs.pipeline.outline import outline, resources_words
from onward.model.pipelines.plan import PipelinePlan, on_cluster
from onward.model.spec import Resources

FILE = """\
name: digits
vars: {hours: 24}
environments: {main: {tool: none, cluster: local, resources: {time: 30}}}
defaults: {environment: main}
stages:
  prepare: {command: "true", resources: {time: 60, nodes: 2}, limits: {max-legs: 3}}
train:
  needs: prepare
  command: "true"
  matrix: {lr: [0.1, 0.01], seed: [1, 2]}
  resources: {time: "{vars.hours}:00:00", gpus: "a100:2"}
benchmark:
- {name: quiz, command: "true {checkpoint}", shards: 4, seeds: 2, checkpoints: {every: 2, last: true}, resources: {time: 60, nodes: 2}}
workers: {max-running: 3}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ONWARD_SETTINGS", str(tmp_path / "none.toml"))
    (tmp_path / "none.toml").write_text("")
    (tmp_path / "pipeline.yaml").write_text(FILE)
    return tmp_path / "pipeline.yaml"


def state(file: Path, **given: Any) -> dict[str, Any]:
    return outline(read_pipeline(file, folder=file.parent, given=given).plan, lambda draft: draft.resources)


# ── the plan ──────────────────────────────────────────────────────────────────


def test_node_hours_are_of_a_leg_each_and_bounded_only_where_a_limit_bounds_them(file: Path) -> None:
    stages = {stage["name"]: stage["node_hours"] for stage in state(file)["stages"]}
    assert stages["env-main"] == {"a_leg": 0.5, "at_most": 0.5}
    assert stages["prepare"] == {"a_leg": 2.0, "at_most": 6.0}
    assert stages["train-04"] == {"a_leg": 24.0, "at_most": None}
    trainings = ["train-01", "train-02", "train-03", "train-04"]
    total = {"stages_a_leg_each": 98.5, "stages_at_most": None, "unbounded": trainings, "workers_a_leg_each": 6.0}
    assert state(file)["node_hours"] == total
    assert state(file, hours=1)["node_hours"]["stages_a_leg_each"] == 6.5
    file.write_text(FILE.replace("  needs: prepare", "  needs: prepare\n  limits: {total-time: 2-00:00:00}"))
    assert state(file)["node_hours"]["stages_at_most"] == 6.5 + 4 * 48
    file.write_text(FILE.replace("{time: 60, nodes: 2}, limits", "{nodes: 2}, limits"))
    assert state(file)["node_hours"]["stages_a_leg_each"] is None  # not said, so not left out of a sum


def test_the_plan_is_shown_as_rows_with_the_graph_and_as_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.plan(file, set=["hours=1"], cluster="local")
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "digits on local"
    [row] = [line.split("  ") for line in shown if line.startswith("train-03")]
    assert [part.strip() for part in row if part] == [
        "train-03",
        "env-main, prepare",
        "1 per leg",
        "2 GPUs (a100), 01:00:00",
        "lr 0.01, seed 1",
    ]
    [row] = [line.split("  ") for line in shown if line.startswith("quiz")]
    assert [part.strip() for part in row if part] == ["quiz", "train-01 … train-04 (4)", "one of every 2, the last", "8", "workers-1"]
    assert shown[-3:] == [
        "6 runs: 6.5 node-hours at one leg each",
        "no upper bound: train-01 … train-04 (4) without total-time or max-legs",
        "at most 3 workers at a time for the tasks of 1 benchmark: 6 node-hours at one leg each",
    ]
    cli.plan(file, json=True)
    assert json.loads(capsys.readouterr().out)["benchmarks"][0]["tasks_a_checkpoint"] == 8
    with pytest.raises(InvalidInput, match="--set hours: found no =, expected NAME=VALUE"):
        cli.plan(file, set=["hours"])


def test_what_is_done_already_is_said_and_asks_for_nothing(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_one_done(context: object, plan: PipelinePlan) -> PipelinePlan:
        return replace(plan, stages=tuple(replace(one, done_by="/runs/earlier") if one.name == "prepare" else one for one in plan.stages))

    monkeypatch.setattr("onward.operations.pipelines.start.mark_done_stages", with_one_done)
    cli.plan(file, set=["hours=1"])
    shown = capsys.readouterr().out
    assert "0, already done" in shown
    assert "unchanged, not run again: prepare\n5 runs: 4.5 node-hours at one leg each" in shown


def test_another_cluster_is_for_all_but_an_environment_that_says_where_it_is_built(file: Path) -> None:
    plan = on_cluster(read_pipeline(file, folder=file.parent).plan, "slurm")
    assert [stage.draft.cluster for stage in plan.stages] == ["local", *["slurm"] * 5]
    assert (plan.cluster, plan.pools[0].draft.cluster) == ("slurm", "slurm")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Resources(), "the cluster's default"),
        (Resources(nodes=2, ntasks=8, cpus_per_task=1, mem=0, time=90000), "2 nodes, 8 tasks, 1 CPU, all memory, 1-01:00:00"),
        (Resources(gpus="2", mem=1536, partition="gpu", extra=("--licenses=a",)), "2 GPUs, 1536M, partition gpu, --licenses=a"),
        (Resources(gres="gpu:a100:4"), "4 GPUs (a100)"),
        (Resources(gres="gpu:1"), "1 GPU"),
    ],
)
def test_what_is_asked_for_is_said_in_words(asked: Resources, words: str) -> None:
    assert resources_words(asked) == words


# ── an old file ───────────────────────────────────────────────────────────────

OLD = """\
train:
  model: tfgnn
  conda_env:
    python: 3.10
    setup_cmds: [pip install graph2tac]
  model_params:
    dataset: {max_subgraph_size: 1024}
    prediction_task: {hidden: 128}
    definition_task: null
    trainer: {optimizer_type: adam}
    run: {max_steps: 10}
  data: {datadir: /data/coq/, dataset: stdlib}
  max_restarts: 5
  job: {job_runner: jbsub, queue: x86_24h, cpus: 8, gpus: 2, mem_gb: 64, require: v100}
  upload_model: {fileserver_ssh: "me@host:/srv", spec_git_branch: models}
benchmark:
  conda_env: {python: "3.9", setup_cmds: []}
  benchmarks:
    - spec_repo: git+ssh://git@host/specs
      spec_commit: abc123
      benchmark_settings: {benchmark-target: "a b", coq-project: coq-stdlib}
      job: {job_runner: jbsub, queue: x86_6h, cpus: 16}
    - {spec_branch: b, spec: {a: 1}}
tarin: 1
"""


def convert(folder: Path, text: str) -> ConvertedPipeline:
    (folder / "2023-02-25_B_my run").mkdir(exist_ok=True)
    (folder / "2023-02-25_B_my run" / "params.yaml").write_text(text)
    return convert_params(folder / "2023-02-25_B_my run" / "params.yaml")


def test_an_old_file_becomes_a_pipeline_that_reads_and_whose_scripts_are_sound(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    convert(file.parent, OLD)
    new = file.parent / "new"
    cli.convert(file.parent / "2023-02-25_B_my run" / "params.yaml", new)
    plan = read_pipeline(new / "pipeline.yaml", folder=new).plan
    assert plan.name == "my-run"
    assert [(stage.name, stage.needs) for stage in plan.stages] == [
        ("env-train", ()),
        ("env-benchmark", ()),
        ("train", ("env-train",)),
        ("benchmark-0", ("env-benchmark", "train")),
    ]
    train = plan.stage("train").draft
    assert train.resources == Resources(time=86400, mem=65536, cpus_per_task=8, gpus="2", partition="x86_24h")
    assert (train.limits.max_legs, dict(train.params)) == (6, {"data": "/data/coq/stdlib"})
    assert plan.builds[0].python == "3.10"
    for script in ("train.sh", "benchmark-0.sh"):
        assert subprocess.run(["bash", "-n", str(new / script)], check=False, timeout=20).returncode == 0
    assert "--prediction-task-config configs/prediction_task.yml" in (new / "train.sh").read_text()
    assert (new / "configs" / "prediction_task.yml").read_text() == "hidden: 128\n"
    assert (new / "configs" / "definition_task.yml").read_text() == "null\n"
    assert "-benchmark-target 'a b'" in (new / "benchmark-0.sh").read_text()
    with pytest.raises(InvalidInput, match=r"has pipeline\.yaml, configs"):
        cli.convert(file.parent / "2023-02-25_B_my run" / "params.yaml", new)


def test_the_line_that_convert_prints_works_as_it_stands(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    convert(file.parent, OLD)
    cli.convert(file.parent / "2023-02-25_B_my run" / "params.yaml", file.parent / "a new one")
    line = capsys.readouterr().err.splitlines()[-1]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=file.parent, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("my-run on ")


def test_what_has_no_match_is_named_with_its_line(tmp_path: Path) -> None:
    made = convert(tmp_path, OLD)
    notes = [note.split("params.yaml:")[1] for note in made.notes]
    for begins in (
        "5: train.conda_env.setup_cmds: a failing line now stops everything",
        "13: train.max_restarts: at most 6 legs; it is finished when it exits 0",
        "14: train.job.queue: an LSF queue",
        "14: train.job.require: an LSF option",
        "15: train.upload_model.fileserver_ssh: the last checkpoint is uploaded when it is finished",
        "15: train.upload_model.spec_git_branch: not converted",
        "23: benchmark.benchmarks.1: not converted: Onward creates",
        "24: tarin: unknown to the old pipeline; left out",
    ):
        assert any(note.startswith(begins) for note in notes), (begins, notes)


@pytest.mark.parametrize(
    ("model", "command"),
    [
        ("tf2", 'exec g2t-train "$3" configs/tf2_params.yml'),
        ("hmodel", 'exec g2t-train-hmodel "$3" --max_subgraph_size 1024 --with_context'),
    ],
)
def test_the_other_models_have_commands_of_their_own(tmp_path: Path, model: str, command: str) -> None:
    made = convert(tmp_path, f"train: {{model: {model}, model_params: {{max_subgraph_size: 1024, with_context: true}}}}\n")
    assert command in made.files["train.sh"]


def test_a_file_that_is_not_of_the_old_pipeline_is_not_converted(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="found neither train"):
        convert(tmp_path, FILE)
    with pytest.raises(InvalidInput, match="found 'gpt', expected tfgnn, tf2 or hmodel"):
        convert(tmp_path, "train: {model: gpt}\n")
