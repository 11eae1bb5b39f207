"""A pipeline's file: includes, variables, defaults and sweeps, what it expands to, and how it says what is wrong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from onward.errors import InvalidInput
from onward.inputs.pipeline.file import read_pipeline
from onward.model.pipelines.plan import AdapterRule, CheckpointChoice, PipelinePlan, StageKind

COMMON = """\
vars: {data: /data, python: "3.11", hours: 1}
defaults:
  resources: {time: "0{vars.hours}:00:00", cpus-per-task: 2, partition: cpu, gpus: 1}
environments:
  main: {python: "{vars.python}", requirements: requirements.txt}
  spare: {tool: none}
"""
FILE = """\
include: common.yaml
name: digits
defaults:
  environment: main
stages:
  plot: {command: python plot.py, needs: train}
  prepare:
    command: python prepare.py --in {vars.data}
    inputs: [raw]
train:
  needs: prepare
  command: python train.py --lr {params.lr} --data {stages.prepare.results}
  matrix: {lr: [0.1, 0.01]}
  resources: {time: "24:00:00"}
  checkpoints: {best: {metric: accuracy}}
models: {old: ../old}
benchmark:
- name: quiz
  command: python quiz.py {checkpoint} --shard {shard}/{shards}
  checkpoints: [best, last]
  shards: 4
- name: twin
  command: python quiz.py {checkpoint}
- name: slow
  command: python quiz.py {checkpoint} --done {items.done}
  of: train
  checkpoints: {every: 2}
  seeds: 3
  adapter: {kind: regex, pattern: "acc=(?P<score>[0-9.]+)"}
  resources: {gpus: 2}
workers: {max-running: 8, resources: {cpus-per-task: 4}}
summary: {baseline: old, gates: [{benchmark: quiz, worse-by: 0.02}]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("prepare.py", "train.py", "quiz.py", "plot.py"):
        (tmp_path / name).write_text("print(1)\n")
    (tmp_path / "requirements.txt").write_text("numpy\n-r more.txt\n")
    (tmp_path / "more.txt").write_text("scipy\n")
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").write_text("1,2\n")
    (tmp_path / "common.yaml").write_text(COMMON)
    return tmp_path


def plan(folder: Path, text: str = FILE, **given: Any) -> PipelinePlan:
    (folder / "params.yaml").write_text(text)
    return read_pipeline(folder / "params.yaml", folder=folder, given=given).plan


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        plan(folder, text)
    return [line.removeprefix(f"{folder}/") for line in caught.value.message.splitlines()]


def training(matrix: str) -> str:
    return f"name: a\ntrain: {{command: 'true', matrix: {matrix}}}\n"


def points(folder: Path, matrix: str) -> list[dict[str, Any]]:
    return [dict(stage.matrix) for stage in plan(folder, training(matrix)).stages]


# ── what it expands to ────────────────────────────────────────────────────────


def test_stages_come_after_what_they_need_environments_first_and_a_sweep_is_a_run_for_each_point(folder: Path) -> None:
    made = plan(folder)
    assert [(stage.name, stage.kind, stage.needs) for stage in made.stages] == [
        ("env-main", StageKind.ENVIRONMENT, ()),
        ("prepare", StageKind.STAGE, ("env-main",)),
        ("train-01", StageKind.TRAIN, ("env-main", "prepare")),
        ("train-02", StageKind.TRAIN, ("env-main", "prepare")),
        ("plot", StageKind.STAGE, ("env-main", "train-01", "train-02")),
    ]
    last = made.stage("train-02")
    assert (last.label, last.draft.name, dict(last.draft.params)) == ("train lr 0.01", "digits-train-02", {"lr": 0.01})
    assert made.builds[0].files == {"requirements.txt": "numpy\n-r more.txt\n", "more.txt": "scipy\n"}


def test_defaults_reach_every_stage_and_what_a_stage_says_wins_key_by_key(folder: Path) -> None:
    made = plan(folder)
    assert made.stage("prepare").draft.resources.time == 3600
    assert made.stage("train-01").draft.resources.time == 86400
    assert made.stage("train-01").draft.resources.partition == "cpu"
    build = made.stage("env-main").draft
    assert (build.resources.gpus, build.resources.partition, build.limits.max_restarts) == (None, "cpu", 5)


def test_benchmarks_that_ask_for_the_same_share_workers_and_are_run_on_trainings_and_models(folder: Path) -> None:
    made = plan(folder)
    assert [(one.name, one.pool, one.of) for one in made.benchmarks] == [
        ("quiz", "workers-1", ("train-01", "train-02", "old")),
        ("twin", "workers-1", ("train-01", "train-02", "old")),
        ("slow", "workers-2", ("train-01", "train-02")),
    ]
    quiz, twin, slow = made.benchmarks
    assert quiz.checkpoints == CheckpointChoice(best=True, last=True)
    assert twin.checkpoints == CheckpointChoice(last=True)
    assert (slow.seeds, slow.adapter) == ((0, 1, 2), AdapterRule(kind="regex", pattern="acc=(?P<score>[0-9.]+)"))
    assert [(pool.draft.resources.cpus_per_task, pool.draft.resources.gpus, pool.needs) for pool in made.pools] == [
        (4, "1", ("env-main",)),
        (4, "2", ("env-main",)),
    ]
    assert made.workers.max_requests == 8
    assert made.models[0].path == str(folder / "../old")


def test_a_container_is_not_built_and_an_environment_that_nobody_uses_is_said_to_be_left_out(folder: Path) -> None:
    text = "name: a\nenvironments: {box: {image: docker://python:3.12}, spare: {tool: none}}\ntrain: {command: 'true', environment: box}\n"
    (folder / "params.yaml").write_text(text)
    read = read_pipeline(folder / "params.yaml", folder=folder)
    assert [stage.name for stage in read.plan.stages] == ["train"]
    assert read.plan.stages[0].environment == "box"
    assert read.notes == ("the environment spare is not built: nothing uses it",)


# ── variables and sweeps ──────────────────────────────────────────────────────


def test_a_variable_alone_keeps_its_kind_and_what_is_given_wins(folder: Path) -> None:
    text = 'name: a\nvars: {n: 3, path: "/d/{vars.n}"}\ntrain: {command: "run {{vars.n}}", params: {n: "{vars.n}", p: "{vars.path}/x"}}\n'
    assert dict(plan(folder, text).stages[0].draft.params) == {"n": 3, "p": "/d/3/x"}
    assert plan(folder, text).stages[0].draft.command == ("run", "{vars.n}")
    assert dict(plan(folder, text, n=5).stages[0].draft.params) == {"n": 5, "p": "/d/5/x"}
    with pytest.raises(InvalidInput, match="has no variable m"):
        plan(folder, text, m=1)


@pytest.mark.parametrize(
    ("matrix", "made"),
    [
        ("{a: [1, 2], b: [x]}", [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}]),
        ("{zip: {a: [1, 2], b: [3, 4]}}", [{"a": 1, "b": 3}, {"a": 2, "b": 4}]),
        ("{list: [{a: 1}, {a: 2, b: 0}]}", [{"a": 1}, {"a": 2, "b": 0}]),
        ("{grid: {a: [1, 2]}, zip: {b: [3], c: [4]}}", [{"a": 1, "b": 3, "c": 4}, {"a": 2, "b": 3, "c": 4}]),
        ("{grid: {a: [1, 2], b: [1, 2]}, exclude: [{a: 1, b: 2}, {a: 2}]}", [{"a": 1, "b": 1}]),
    ],
)
def test_the_parts_of_a_matrix_are_multiplied(folder: Path, matrix: str, made: list[dict[str, Any]]) -> None:
    assert points(folder, matrix) == made


def test_random_points_are_the_same_for_the_same_seed_and_stay_in_their_range(folder: Path) -> None:
    def drawn(seed: int) -> list[dict[str, Any]]:
        over = "{lr: {min: 0.0001, max: 0.1, scale: log}, n: {min: 1, max: 3}, kind: [a, b]}"
        return points(folder, f"{{random: {{count: 50, seed: {seed}, over: {over}}}}}")

    assert drawn(1) == drawn(1) != drawn(2)
    assert drawn(1)[0] == {"lr": 0.000252984, "n": 3, "kind": "b"}  # on every machine, in every version
    assert all(0.0001 <= point["lr"] <= 0.1 and point["n"] in (1, 2, 3) and point["kind"] in ("a", "b") for point in drawn(1))
    assert {point["n"] for point in drawn(1)} == {1, 2, 3}
    assert 15 < sum(point["lr"] < 0.003 for point in drawn(1)) < 35  # half of them, by the logarithm


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        ("{zip: {a: [1], b: [1, 2]}}", "matrix.zip: found lists of different lengths (a 1, b 2)"),
        ("{grid: {a: [1]}, zip: {a: [2]}, exclude: [{a: 9}]}", "found a in two parts of the matrix"),
        ("{a: []}", "matrix: found no points, expected 1 to 1000"),
        ("{a: 3}", "a: found 3, expected a list"),
        ("{random: {count: 600, over: {a: [1]}}, grid: {b: [1, 2]}}", "matrix: found more than 1000 points"),
        ("{random: {count: 1, over: {a: {min: 2, max: 1}}}}", "found no range, expected choices, or min and a greater max"),
        ("{random: {count: 1, over: {a: {min: 0, max: 1, scale: log}}}}", "found a min without a logarithm"),
    ],
)
def test_a_matrix_that_makes_no_sense_is_refused(folder: Path, matrix: str, said: str) -> None:
    assert said in problems(folder, training(matrix))[0]


# ── content ───────────────────────────────────────────────────────────────────


def test_the_hash_of_a_stage_follows_its_inputs_its_script_its_params_and_its_needs(folder: Path) -> None:
    def hashes(text: str = FILE) -> tuple[str, str]:
        made = plan(folder, text)
        return made.stage("prepare").content_hash, made.stage("train-01").content_hash

    known = FILE.replace("needs: prepare", "needs: prepare\n  inputs: []")
    first = hashes()
    assert first[0] and not first[1]  # a stage that does not say what it reads is never taken for done
    both = hashes(known)
    assert both[0] == first[0] and both[1]
    assert hashes(known) == both
    assert hashes(known.replace("[0.1, 0.01]", "[0.2]"))[0] == first[0] != hashes(known.replace("[0.1, 0.01]", "[0.2]"))[1]
    assert hashes(known.replace("24:00:00", "12:00:00")) == both  # what it asks for makes nothing different
    (folder / "prepare.py").write_text("print(2)\n")
    script = hashes(known)
    assert script[0] != both[0] and script[1] != both[1]
    (folder / "raw" / "b.csv").write_text("3,4\n")
    assert hashes(known)[0] != script[0]
    (folder / "requirements.txt").write_text("numpy==2\n")
    assert hashes(known)[1] != script[1]


def test_an_environment_is_another_one_when_what_its_setup_reads_has_changed(folder: Path) -> None:
    text = "name: a\nenvironments: {main: {setup: [pip install .], inputs: '*.py'}}\ntrain: {command: x, environment: main}\n"
    before = plan(folder, text).builds[0].key
    assert plan(folder, text).builds[0].key == before
    (folder / "plot.py").write_text("print(3)\n")
    assert plan(folder, text).builds[0].key != before


# ── what is wrong ─────────────────────────────────────────────────────────────


def test_everything_that_is_wrong_is_told_at_once_with_the_file_and_line_it_is_written_in(folder: Path) -> None:
    (folder / "common.yaml").write_text("defaults:\n  resources: {tiem: 3}\n")
    text = (
        "include: common.yaml\n"
        "stages:\n"
        "  a b: {command: x}\n"
        "  worker-1: {command: x}\n"
        "  ok:\n"
        "    comand: x\n"
        "train: {command: x}\n"
        "benchmark:\n"
        "- {name: quiz, command: 'x {checkpiont}', checkpoints: newest, sharts: 2}\n"
        "- {name: b, command: x, adapter: {kind: regex}}\n"
    )
    problem = problems(folder, text)
    assert [line.split(": ", 1)[0] for line in problem] == [*(f"params.yaml:{line}" for line in (1, 3, 4, 5, 6, 9, 9, 10)), "common.yaml:2"]
    for words in (
        "params.yaml:1: name: missing, expected: Name of the pipeline",
        "params.yaml:4: stages.worker-1: found 'worker-1', expected another name",
        "params.yaml:6: stages.ok.comand: unknown key (did you mean command?)",
        "params.yaml:9: benchmark.0.checkpoints: found 'newest', expected all, best, last",
        "params.yaml:9: benchmark.0.sharts: unknown key (did you mean shards?)",
        "params.yaml:10: benchmark.1.adapter: found no pattern for regex",
        "common.yaml:2: defaults.resources.tiem: unknown key (did you mean time?)",
    ):
        assert any(line.startswith(words) for line in problem), (words, problem)


def test_what_does_not_fit_together_is_told_at_once(folder: Path) -> None:
    text = (
        "name: a\n"
        "environments:\n"
        "  main: {requirements: gone.txt}\n"
        "  locked: {requirements: uv.lock}\n"
        "stages:\n"
        "  one: {command: x, needs: [two], environment: mane}\n"
        "  two: {command: x, needs: [three], environment: main}\n"
        "  three: {command: x, needs: [one, fuor]}\n"
        "  four: {command: 'x {params.lr} {stages.one.results}', inputs: nothing.csv, environment: locked}\n"
        "benchmark:\n"
        "- {name: quiz, command: x}\n"
        "- {name: quiz, command: x, of: one, checkpoints: best}\n"
        "summary: {baseline: five, gates: [{benchmark: qiz, at-least: 1}]}\n"
    )
    problem = problems(folder, text)
    for line, words in (
        (3, f"environments.main: {folder}/gone.txt: no such file"),
        (4, "environments.locked: uv.lock is not a requirements file for pip; convert it: uv export"),
        (6, "stages.one.environment.use: found mane, expected one of `environments` (did you mean main?)"),
        (6, "stages.one.needs: found a cycle, one → two → three → one, expected none"),
        (8, "stages.three.needs.1: found fuor, expected a stage (did you mean four?)"),
        (9, "stages.four.command: found the placeholder {params.lr}, but there is no param lr"),
        (9, "stages.four.command: found {stages.one.results}, expected one among its needs"),
        (9, f"stages.four.inputs: found no nothing.csv in {folder}"),
        (11, "benchmark.0: found nothing to run it on"),
        (12, "benchmark.1.name: found quiz twice"),
        (12, "benchmark.1.checkpoints: found best, but one does not define it, expected stages.one.checkpoints.best"),
        (13, "summary.baseline: found five, expected a stage or a model"),
        (13, "summary.gates.0.benchmark: found qiz, expected a benchmark (did you mean quiz?)"),
    ):
        assert any(one.startswith(f"params.yaml:{line}: {words}") for one in problem), (words, problem)
    assert len(problem) == 13


def test_what_commands_start_is_looked_for_before_anything_is_queued(folder: Path) -> None:
    text = (
        "name: a\n"
        "stages: {one: {command: python prepaer.py}, two: {command: no-such-program, environment: {setup: ['true']}}}\n"
        "train: {command: no-such-program, matrix: {p: [1, 2]}}\n"
        "benchmark: [{name: quiz, command: 'sh quiz.sh {checkpoint}'}, {name: fine, command: 'sh -c {checkpoint}/run'}]\n"
    )
    (folder / "params.yaml").write_text(text)
    (folder / "python").symlink_to(sys.executable)
    (folder / "sh").symlink_to("/bin/sh")
    with pytest.raises(InvalidInput) as caught:
        read_pipeline(folder / "params.yaml", folder=folder, programs=str(folder))
    entries = [line.removeprefix(f"{folder}/") for line in caught.value.message.splitlines()]
    assert entries[0].startswith("params.yaml:2: stages.one.command: no script prepaer.py")
    assert entries[0].endswith("did you mean prepare.py?")
    assert entries[1].startswith("params.yaml:3: train.command: the program no-such-program is not on the PATH")
    assert entries[2].startswith("params.yaml:4: benchmark.0.command: no script quiz.sh")
    assert len(entries) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: a\n", "params.yaml:1: found neither train, stages nor benchmark"),
        ("include: params.yaml\nname: a\n", "params.yaml:1: include: found params.yaml, which includes this file again"),
        ("include: [none.yaml]\nname: a\n", "params.yaml:1: include: "),
        ("name: a\ntrain: {command: 'x {vars.y}'}\n", "params.yaml:2: train.command: found {vars.y}, expected a variable of the file"),
        ("name: a\ntrain: {command: x, environment: {use: e, conda: b}}\n", "params.yaml:2: train.environment.use: found use and conda"),
        ("name: a\ntrain: {command: x}\nstages: {train: {command: x}}\n", "params.yaml:3: stages: found a stage named train"),
        (
            "name: a\ntrain: {command: x, matrix: {p: [1]}}\nstages: {train-01: {command: x}}\n",
            "params.yaml:3: stages.train-01: found train-01",
        ),
        (
            f"name: {'a' * 60}\ntrain: {{command: x}}\n",
            f"params.yaml:1: name: found {'a' * 60}, which together with the stage train is longer than 64",
        ),
        ("name: a\nenvironments: {e: {image: x.sif, python: '3'}}\n", "params.yaml:2: environments.e.image: found a container and python"),
        (
            "name: a\nenvironments: {e: {tool: uv, file: e.yml}}\n",
            "params.yaml:2: environments.e.file: found a file for conda and the tool uv",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(folder: Path, text: str, said: str) -> None:
    assert problems(folder, text)[0].startswith(said)
