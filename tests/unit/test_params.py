"""The params file and the flag line: what is accepted, and what is said of the rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from onward.errors import InvalidInput
from onward.inputs.command_line import usable_name
from onward.inputs.params.file import parse_params, read_params
from onward.inputs.params.flags import draft_from_flags, override
from onward.inputs.params.sections import LimitsIn, ResourcesIn
from onward.inputs.yaml_lines import _FastLoader, _Loader, _read, to_yaml
from onward.model.quantity import format_duration, format_size, parse_duration, parse_size
from onward.model.spec import BestRule, CheckpointRule, Environment, Limits, Resources, RunDraft

FULL = """\
name: digits
experiment: numbers
cluster: lab
train:
  command: python train.py --lr {params.lr} --from {checkpoints.read}
  params: {lr: 0.001, seed: 1, fast: true, tag: text, nothing: null}
  resources: {time: 24:00:00, mem: 32G, cpus-per-task: 8, gpus: a100:2, partition: gpu}
  limits: {total-time: 7-00:00:00, max-legs: 40, max-restarts: 0, mem-max: 128G, stall-time: 30}
  environment: {variables: {OMP_NUM_THREADS: 8}}
  launcher: plain
  stop: {signal: SIGUSR2, lead: "00:10:00"}
  checkpoints: {every: 00:10:00, keep: 5, keep-every: 1000, best: {metric: val_loss, mode: min}}
  code: {freeze: false, exclude: [data/]}
benchmark: []
"""


def train(text: str, command: str = "python train.py") -> RunDraft:
    """A draft from lines of the `train` section."""
    body = "".join(f"  {line}\n" for line in text.splitlines())
    return parse_params(f"name: digits\ntrain:\n  command: {command}\n{body}", "params.yaml")


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        parse_params(text, "params.yaml")
    return str(caught.value).splitlines()


def problem(text: str) -> str:
    problem = problems(text)
    assert len(problem) == 1, problem
    return problem[0]


def train_problem(text: str) -> str:
    with pytest.raises(InvalidInput) as caught:
        train(text)
    assert len(str(caught.value).splitlines()) == 1, str(caught.value)
    return str(caught.value)


# ── what is accepted ──────────────────────────────────────────────────────────


def test_every_key_reaches_the_draft() -> None:
    assert parse_params(FULL, "params.yaml") == RunDraft(
        name="digits",
        experiment="numbers",
        cluster="lab",
        command=("python", "train.py", "--lr", "{params.lr}", "--from", "{checkpoints.read}"),
        params={"lr": 0.001, "seed": 1, "fast": True, "tag": "text", "nothing": None},
        resources=Resources(time=86400, mem=32768, cpus_per_task=8, gpus="a100:2", partition="gpu"),
        limits=Limits(total_time=604800, max_legs=40, max_restarts=0, mem_max=131072, stall_time=1800),
        checkpoints=CheckpointRule(every="600", keep=5, keep_every=1000, best=BestRule(metric="val_loss", mode="min")),
        variables={"OMP_NUM_THREADS": "8"},
        stop_signal="USR2",
        stop_lead=600,
        freeze=False,
        exclude=("data/",),
    )


def test_a_name_and_a_command_are_enough() -> None:
    draft = parse_params("name: digits\ntrain: {command: python train.py}\n", "params.yaml")
    assert draft == RunDraft(name="digits", experiment="digits", cluster="auto", command=("python", "train.py"))


def test_a_key_without_a_value_is_as_good_as_absent() -> None:
    bare = (
        "name: digits\nexperiment:\ncluster: ~\ntrain:\n  command: python train.py\n  resources:\n  limits: {max-legs: null}\nbenchmark:\n"
    )
    assert parse_params(bare, "p") == parse_params("name: digits\ntrain: {command: python train.py}\n", "p")


def test_a_variable_without_a_value_is_absent_and_a_null_param_is_kept() -> None:
    draft = train("environment: {variables: {A: null, B: 1}}\nparams: {a: null}")
    assert draft.variables == {"B": "1"}
    assert draft.params == {"a": None}


def test_dashes_and_underscores_in_keys_are_alike() -> None:
    assert train("resources: {cpus_per_task: 2}") == train("resources: {cpus-per-task: 2}")
    assert train("params: {a-b: 1, a_b: 2}").params == {"a-b": 1, "a_b": 2}


def test_the_fields_of_the_file_are_the_fields_of_the_model() -> None:
    assert list(ResourcesIn.model_fields) == [field.name for field in dataclasses.fields(Resources)]
    assert list(LimitsIn.model_fields) == [field.name for field in dataclasses.fields(Limits)]


def test_an_unquoted_time_is_not_read_in_base_60() -> None:
    assert train("resources: {time: 24:00:00}").resources.time == 86400
    assert train("resources: {time: 1:30}").resources.time == 90
    assert train("params: {t: 190:20:30, u: 1:30.5}").params == {"t": "190:20:30", "u": "1:30.5"}


def test_the_norwegians_keep_their_country() -> None:
    words = train("params: {country: no, a: on, b: off, c: yes, d: Y, e: true, f: False}").params
    assert words == {"country": "no", "a": "on", "b": "off", "c": "yes", "d": "Y", "e": True, "f": False}


def test_numbers_are_those_a_person_means() -> None:
    numbers = train("params: {a: 1e-3, b: 1.5, c: 10, d: -2, e: 007, f: 0x1f, g: 1_000, h: 2026-11-15, i: 1E5}").params
    assert numbers == {"a": 0.001, "b": 1.5, "c": 10, "d": -2, "e": "007", "f": "0x1f", "g": "1_000", "h": "2026-11-15", "i": 1e5}
    assert isinstance(numbers["a"], float)


def test_a_variable_and_a_word_of_a_command_are_passed_as_written() -> None:
    draft = parse_params("name: n\ntrain:\n  command: [python, 3.10, true]\n  environment: {variables: {V: 3.10, W: True}}\n", "p")
    assert draft.command == ("python", "3.10", "true")
    assert draft.variables == {"V": "3.10", "W": "True"}


def test_zero_memory_is_the_whole_node_and_a_little_is_not() -> None:
    assert train("resources: {mem: 0}").resources.mem == 0
    assert train("resources: {mem: 1K}").resources.mem == 1, "a little is rounded up, never down to 0"
    assert "above zero" in train_problem("limits: {mem-max: 0}")


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [
        ("gpus", "2", "2"),
        ("gpus", "a100:2", "a100:2"),
        ("gpus", "0", "0"),
        ("gres", "gpu:1", "gpu:1"),
        ("gres", "gpu:a100:2,tmp:20G", "gpu:a100:2,tmp:20G"),
        ("partition", "short,long", "short,long"),
        ("account", "12345", "12345"),
        ("constraint", "'[rack1*2&(a100|h100)]'", "[rack1*2&(a100|h100)]"),
        ("nodelist", "'node[01-03],big7'", "node[01-03],big7"),
        ("mail-user", "me@example.org", "me@example.org"),
        ("mail-type", "end,fail", "END,FAIL"),
    ],
)
def test_slurms_spellings_are_kept(key: str, value: str, kept: str) -> None:
    assert getattr(train(f"resources:\n  {key}: {value}").resources, key.replace("-", "_")) == kept


# ── what is refused, and what is said ─────────────────────────────────────────


def test_everything_wrong_is_told_at_once_and_in_order() -> None:
    problem = problems(
        "name: my run\n"
        "nmae: x\n"
        "train:\n"
        "  command: python train.py && ls\n"
        "  resources: {tiem: 1, mem: 3Q, nodes: 0, nodes: 1}\n"
        "  limits: [1]\n"
        "  params: {a: {b: 1}, c d: 1}\n"
        "benchmark: [1]\n"
    )
    assert [line.split(": ")[0:2] for line in problem] == [
        ["params.yaml:1", "name"],
        ["params.yaml:2", "nmae"],
        ["params.yaml:4", "train.command"],
        ["params.yaml:5", "train.resources.nodes"],
        ["params.yaml:5", "train.resources.mem"],
        ["params.yaml:5", "train.resources.nodes"],
        ["params.yaml:5", "train.resources.tiem"],
        ["params.yaml:6", "train.limits"],
        ["params.yaml:7", "train.params.a"],
        ["params.yaml:7", "train.params.c d"],
        ["params.yaml:8", "benchmark"],
    ]


def test_an_unknown_key_is_answered_with_the_nearest_and_all() -> None:
    problem = train_problem("resources:\n  tiem: 1")
    assert problem.startswith(
        "params.yaml:5: train.resources.tiem: unknown key (did you mean time?); expected one of time, mem, cpus-per-task,"
    )


def test_a_key_is_told_as_it_was_written() -> None:
    assert train_problem("resources:\n  cpus_per_task: none").startswith("params.yaml:5: train.resources.cpus_per_task: found 'none'")


def test_two_spellings_of_one_key_are_one_too_many() -> None:
    assert "two spellings" in train_problem("resources: {cpus-per-task: 1, cpus_per_task: 2}")


def test_a_second_key_is_told_with_the_line_of_the_first() -> None:
    sentence = problem("name: a\ntrain:\n  command: x\nname: b\n")
    assert sentence == "params.yaml:4: name: appears twice, expected once (the first is on line 1)"


def test_a_missing_key_is_told_where_it_would_belong() -> None:
    assert problems("cluster: local\n") == [
        "params.yaml:1: name: missing, expected: Name of the run, its folder and its jobs.",
        "params.yaml:1: train: missing, expected: The training.",
    ]
    assert problem("name: a\n\ntrain:\n  params: {}\n").startswith("params.yaml:3: train.command: missing")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("resources: {time: 24h}", "'24h' is not a time; write minutes"),
        ("resources: {time: true}", "found true, expected a time"),
        ("resources: {time: 0}", "is not a positive time"),
        ("resources: {time: 99999-00:00:00}", "not more than anyone has"),
        ("resources: {mem: lots}", "'lots' is not a memory size"),
        ("resources: {mem: 1e300T}", "is not a memory size"),
        ("resources: {nodes: 0}", "found 0, expected a whole number, 1 or more"),
        ("resources: {nodes: 2.0}", "found 2.0, expected a whole number"),
        ("resources: {nodes: true}", "found true, expected a whole number"),
        ("resources: {gpus: a100}", "expected GPUs such as 2"),
        ("resources: {gpus: 2, gres: gpu:1}", "expected one of the two"),
        ("resources: 8", "found 8, expected keys and values"),
        ("resources: {partition: [a, b]}", "found a list, expected a name"),
        ("resources: {mail-type: NEVER}", "expected BEGIN, END"),
        ("resources: {mem: 64G}\nlimits: {mem-max: 32G}", "found a mem-max below resources.mem"),
        ("limits: {max-legs: 0}", "1 or more"),
        ("limits: {max-restarts: -1}", "0 or more"),
        ("params: [1]", "found a list, expected keys and values"),
        ("params: {a: [1]}", "params are flat"),
        ("params: {a: .nan}", "expected a finite number"),
        ('params: {a: "x\\0y"}', "without a NUL"),
        ('params: {a: "\\ud800"}', "in UTF-8"),
        ("environment: {variables: {1A: x}}", "expected a variable's name"),
        ("environment: {variables: {A-B: x}}", "expected a variable's name"),
        ("environment: {variables: {ONWARD_ROOT: x}}", "reserved for Onward"),
        ("environment: {modules: cuda}", "train.environment.modules: found 'cuda', expected a list"),
        ("environment: {modules: ['cuda; rm']}", "found 'cuda; rm', expected a module's name"),
        ("environment: {modules: [-cuda]}", "found '-cuda', expected a module's name"),
        ("environment: {conda: two words}", "found 'two words', expected a conda environment"),
        ("environment: {conda: [a]}", "train.environment.conda: found a list, expected a conda environment"),
        ("environment: {conda: -n}", "found '-n', expected a conda environment"),
        ("environment: {venv: $WORK/env}", "found a variable in '$WORK/env', expected a path without"),
        ("environment: {venv: ''}", "train.environment.venv: found '', expected a folder"),
        ("environment: {setup: [' ']}", "expected one bash line"),
        ('environment: {setup: ["a\\nb"]}', "expected one bash line; write several lines as several items"),
        ("environment: {module: [cuda]}", "unknown key (did you mean modules?)"),
        ("launcher: plane", "found 'plane', expected plain or srun or torchrun or mpirun or horovodrun (did you mean plain?)"),
        ("launcher: [srun]", "train.launcher: found a list, expected plain or srun"),
        ("stop: {signal: USR3}", "expected a signal such as USR2 or TERM (did you mean USR2?)"),
        ("stop: {signal: KILL}", "a signal that a program can catch"),
        ("checkpoints: {every: soon}", "'soon' is not a time"),
        ("checkpoints: {keep: 0}", "1 or more"),
        ("checkpoints: {best: {mode: max}}", "train.checkpoints.best.metric: missing"),
        ("checkpoints: {best: {metric: a, mode: high}}", "expected max or min"),
        ("checkpoints: {paths: []}", "train.checkpoints.paths: found no path, expected at least one"),
        ("checkpoints: {paths: [last.pt, '']}", "expected a file or pattern below the working folder"),
        ("checkpoints: {paths: [' ']}", "and not all of it"),
        ("checkpoints: {paths: [././]}", "and not all of it"),
        ("checkpoints: {paths: ['**/*']}", "and not all of it"),
        ("checkpoints: {paths: [/scratch/last.pt]}", "found '/scratch/last.pt', expected a file or pattern below the working folder"),
        ("checkpoints: {paths: [../last.pt]}", "expected a file or pattern below the working folder"),
        ("checkpoints: {paths: [last.pt, ./last.pt]}", "found last.pt twice, expected each path once"),
        ("code: {freeze: yes}", "found 'yes', expected true or false"),
        ("code: {exclude: data}", "found 'data', expected a list"),
        ("code: {exclude: [[1]]}", "train.code.exclude.0: found a list, expected a pattern"),
    ],
)
def test_a_wrong_value_is_told_with_what_was_expected(line: str, message: str) -> None:
    assert message in train_problem(line)


@pytest.mark.parametrize(
    "field", ["partition", "account", "qos", "reservation", "nodelist", "exclude", "constraint", "mail-user", "gpus", "gres"]
)
@pytest.mark.parametrize("value", ["a b", "a\nb", "a\n", "a;b", "$(id)", "`id`", "a'b", 'a"b', "-a", "", "a\\b", "a>b", "é", "a\tb", "#a"])
def test_no_field_lets_a_shell_character_through(field: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=f"--{field}"):
        draft_from_flags("n", None, None, ["true"], {field: value})


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("my run", "my-run"),
        ("a\nb", "a-b"),
        ("rocket 🚀", "rocket"),
        ("🚀", "run"),
        ("-rf", "rf"),
        ("$(reboot)", "reboot"),
        ("x" * 300, "x" * 64),
        ("1st", "run-1st"),
        ("modèle", "modele"),
        ("", "run"),
    ],
)
def test_a_name_that_cannot_be_used_is_answered_with_one_that_can(name: str, suggested: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        draft_from_flags(name, None, None, ["true"], {})
    assert str(caught.value).startswith("--name: found ")
    assert str(caught.value).endswith(f"for example {suggested}")
    assert draft_from_flags(suggested, None, None, ["true"], {}).name == suggested


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "params.yaml:1: the file is empty"),
        ("# only a comment\n", "params.yaml:1: the file is empty"),
        ("~\n", "params.yaml:1: the file is empty"),
        ("- a\n", "params.yaml:1: found a list, expected keys"),
        ("python train.py\n", "params.yaml:1: found a single text, expected keys"),
        ("name: a\ntrain:\n\tcommand: x\n", "params.yaml:3: found a tab, expected spaces"),
        ("name: a\ntrain: {command: x\n", "params.yaml:3: not YAML: while parsing a flow mapping"),
        ("name: 'a\n", "(it began on line 1)"),
        ("name: a: b\n", "params.yaml:1: not YAML: mapping values are not allowed here"),
        ("name: a\ntrain: *base\n", "params.yaml:2: not YAML: found an alias"),
        ("name: !!python/name:os.system\ntrain: {command: x}\n", "params.yaml:1: name: found the YAML tag !!python/name:os.system"),
        ("name: a\n? [x]\n: 1\ntrain: {command: x}\n", "params.yaml:2: ?: found a list or mapping as a key"),
        ("name: a\ntrain: {command: x}\n---\nname: b\n", "params.yaml:3: not YAML: expected a single document"),
        ("name: a\x07\n", "params.yaml:1: found the character '\\x07'"),
        ("[" * 5000, "params.yaml:1: not YAML: nested too deeply: more than 64 levels"),
        (
            f"name: a\ntrain: {{command: x, params: {{n: {'9' * 5000}}}}}\n",
            "params.yaml:2: train.params.n: found an invalid number",
        ),
        ('name: "\\UFFFFFFFF"\n', "params.yaml: not YAML"),
        ("name: a\n<<: {train: {command: x}}\n", "<<: unknown key"),
    ],
)
def test_what_is_no_params_file_is_said_to_be_none(text: str, message: str) -> None:
    assert message in "\n".join(problems(text))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"name: a\ntrain: {command: caf\xe9}\n")
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * 300_000)
    for path, one in [
        (tmp_path / "none.yaml", "none.yaml: no such file"),
        (tmp_path, "not a file"),
        (latin, "latin.yaml:2: not UTF-8 text: found the byte 0xe9"),
        (large, "larger than 256 KiB"),
        (tmp_path / ("x" * 300), "cannot be read"),
    ]:
        with pytest.raises(InvalidInput) as caught:
            read_params(path)
        assert one in str(caught.value)


def test_a_byte_order_mark_is_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: a\r\ntrain: {command: x}\r\n")
    assert read_params(path).name == "a"


@pytest.mark.parametrize("benchmark", ["[{suite: a}]", "yes", "{}"])
def test_benchmarks_are_said_to_be_of_pipelines(benchmark: str) -> None:
    sentence = problem(f"name: a\ntrain: {{command: x}}\nbenchmark: {benchmark}\n")
    assert sentence.startswith("params.yaml:3: benchmark: found benchmarks, expected [] or no such key: only a pipeline file may have it")


def test_keys_of_a_pipeline_are_called_so() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_params("name: a\nstages: {}\ntrain: {command: x, matrix: {lr: [1]}}\n", "params.yaml")
    assert caught.value.message.splitlines() == [
        "params.yaml:2: stages: only a pipeline file may have it",
        "params.yaml:3: train.matrix: only a pipeline file may have it",
    ]
    assert caught.value.hint == "as a pipeline: onward pipeline run params.yaml"


def test_a_long_value_is_cut_in_the_telling() -> None:
    assert len(train_problem(f"launcher: {'x' * 5000}")) < 200


def test_a_placeholder_is_checked_even_where_other_things_are_wrong() -> None:
    problem = problems("name: a\ntrain:\n  command: x {params.lr}\n  resources: {nodes: 0}\n")
    assert [line.split(": ")[1] for line in problem] == ["train.command", "train.resources.nodes"]


# ── the flag line ─────────────────────────────────────────────────────────────


def test_the_flag_line_says_the_same_as_the_file() -> None:
    flags = {
        "time": "24:00:00",
        "mem": "32G",
        "cpus-per-task": "8",
        "gpus": "a100:2",
        "partition": "gpu",
        "qos": None,
        "total-time": "7-00:00:00",
        "max-legs": "40",
        "max-restarts": "0",
        "mem-max": "128G",
        "stall-time": "30",
        "stop-signal": "usr2",
        "stop-lead": "00:10:00",
        "checkpoint-every": "00:10:00",
        "keep": "5",
        "keep-every": "1000",
        "best-metric": "val_loss",
        "best-mode": "min",
    }
    command = ["python", "train.py", "--lr", "{params.lr}", "--from", "{checkpoints.read}"]
    params = ["lr=0.001", "seed=1", "fast=true", "tag=text", "nothing="]
    draft = draft_from_flags("digits", "numbers", "lab", command, flags, params, ["OMP_NUM_THREADS=8"], freeze=False, exclude=["data/"])
    assert draft == parse_params(FULL, "params.yaml")


@pytest.mark.parametrize(
    ("flags", "params", "variables", "message"),
    [
        ({"time": "24h"}, [], [], "--time: '24h' is not a time"),
        ({"cpus-per-task": "many"}, [], [], "--cpus-per-task: found 'many'"),
        ({"best-mode": "max"}, [], [], "--best-metric: missing"),
        ({"time": "10", "stop-lead": "00:10:00"}, [], [], "--stop: found a lead as long as resources.time, expected less"),
        ({"stop-lead": "soon"}, [], [], "--stop-lead: 'soon' is not a time"),
        ({"tiem": "1"}, [], [], "--tiem: unknown flag (did you mean time?)"),
        ({}, ["lr"], [], "--param lr: found no =, expected NAME=VALUE"),
        ({}, ["a=1", "a=2"], [], "--param a: appears twice"),
        ({}, ["a b=1"], [], "--param a b: found 'a b'"),
        ({}, [], ["ONWARD_X=1"], "--env ONWARD_X: found a name that begins with ONWARD_"),
    ],
)
def test_an_error_at_the_flag_line_names_the_flag(
    flags: dict[str, str | None], params: list[str], variables: list[str], message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        draft_from_flags(None, None, None, ["python", "train.py"], flags, params, variables)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("flags", [{"stop-lead": "60"}, {"stop-lead": "2:00:00"}, {"time": "5"}])
def test_a_lead_as_long_as_the_leg_is_refused_also_where_file_and_flags_make_it_so(flags: dict[str, str | None]) -> None:
    draft = parse_params("name: a\ntrain: {command: x, resources: {time: 60}, stop: {lead: 10}}", "params.yaml")
    with pytest.raises(InvalidInput, match=r"--stop-lead: found .* expected less than the leg's time"):
        override(draft, flags=flags, name=None, experiment=None, cluster=None)
    assert override(draft, flags={"stop-lead": "20"}, name=None, experiment=None, cluster=None).stop_lead == 1200


def test_the_environment_is_read_alike_from_the_file_and_the_flag_line() -> None:
    text = "name: a\ntrain: {command: x, environment: {modules: [gcc/12, cuda/12.0], conda: ../env, venv: .venv, setup: [pip check]}}"
    wanted = Environment(modules=("gcc/12", "cuda/12.0"), conda="../env", venv=".venv", setup=("pip check",))
    flags = {"conda": "../env", "venv": ".venv"}
    line = draft_from_flags("a", None, None, ["x"], flags, modules=["gcc/12", "cuda/12.0"], setup=["pip check"])
    assert parse_params(text, "params.yaml").environment == line.environment == wanted
    shared = {"name": None, "experiment": None, "cluster": None}
    changed = override(parse_params(text, "params.yaml"), flags={"conda": "lab"}, modules=["cuda/13"], **shared)
    assert changed.environment == Environment(modules=("cuda/13",), conda="lab", venv=".venv", setup=("pip check",))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"modules": ["a b"]}, "--module: found 'a b'"),
        ({"setup": [""]}, "--setup: found ''"),
        ({"flags": {"conda": "a b"}}, "--conda: found 'a b'"),
    ],
)
def test_an_error_in_the_environment_names_its_flag(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        draft_from_flags("a", None, None, ["x"], **{"flags": {}, **arguments})
    assert str(caught.value).startswith(message)


def test_the_flag_line_tells_everything_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        draft_from_flags("a b", None, "c d", [], {"time": "x", "mem": "y"})
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == ["--name", "--cluster", "the command", "--time", "--mem"]


@pytest.mark.parametrize(
    ("command", "name"),
    [(["python", "train.py"], "train"), (["bash", "my job.sh"], "my-job"), (["./run"], "run"), (["python", "-m", "pkg.fit"], "fit")],
)
def test_a_run_without_a_name_is_called_after_its_script(command: Sequence[str], name: str) -> None:
    draft = draft_from_flags(None, None, None, command, {})
    assert (draft.name, draft.experiment, draft.cluster) == (name, name, "auto")


def test_words_of_a_command_line_are_taken_as_they_are() -> None:
    words = ("bash", "-c", "a && b | c", ";", ">", "a\nb")
    assert draft_from_flags("n", None, None, words, {}).command == words


def test_an_argument_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"the command: .*UTF-8"):
        draft_from_flags("n", None, None, ["echo", "\udcff"], {})


# ── whatever comes ────────────────────────────────────────────────────────────


@settings(deadline=None)
@given(st.integers(min_value=1, max_value=10**9))
def test_a_duration_survives_its_spelling(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=2**40))
def test_a_size_survives_its_spelling(mib: int) -> None:
    assert parse_size(format_size(mib)) == mib


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_random_text_is_a_params_file_or_invalid_input(text: str) -> None:
    try_params(text)


SCRAPS = [
    "name",
    "train",
    "command",
    "params",
    "resources",
    "time",
    "mem",
    ": ",
    "\n",
    "\n  ",
    "- ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "'",
    '"',
    "&a",
    "*a",
]
SCRAPS += [
    "!!int ",
    "!x ",
    "|",
    ">",
    "%",
    "? ",
    "#",
    "\t",
    "1",
    "24:00:00",
    "1e9",
    "~",
    ".inf",
    "\\U",
    "---",
    "<<",
    "x",
    "{params.x}",
    "&&",
    "\\",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(SCRAPS), max_size=30).map("".join))
def test_scraps_of_yaml_are_a_params_file_or_invalid_input(text: str) -> None:
    try_params(text)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3), max_leaves=8
)
KEYS = ["command", "params", "resources", "limits", "environment", "launcher", "stop", "checkpoints", "code"]


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), values, max_size=4), values)
def test_any_value_under_any_key_is_taken_or_invalid_input(section: dict[str, object], name: object) -> None:
    try_params(yaml.safe_dump({"name": name, "train": section}, allow_unicode=True))


def try_params(text: str) -> None:
    try:
        parse_params(text, "params.yaml")
    except InvalidInput as error:
        assert str(error)


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=80))
def test_no_name_passes_with_a_character_that_a_shell_could_read(name: str) -> None:
    try:
        kept = draft_from_flags(name, None, None, ["true"], {}).name
    except InvalidInput:
        return
    assert kept == name
    assert all(char.isascii() and (char.isalnum() or char in "._-") for char in kept)
    assert kept[0].isalpha() and len(kept) <= 64


@settings(deadline=None)
@given(st.text(max_size=100))
def test_a_suggested_name_can_always_be_used(text: str) -> None:
    name = usable_name(text)
    assert draft_from_flags(name, None, None, ["true"], {}).name == name


def _inside(values: Any) -> Any:
    return st.lists(values, max_size=3) | st.dictionaries(st.text("abc-_ :#", min_size=1, max_size=4), values, max_size=3)


# ── bounds ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("line", ["  k{}: 1\n", "  k-{}: 1\n", "  k: 1\n", "  k{}: !x 1\n", "  ? [{}]\n  : 1\n"])
def test_of_very_many_problems_the_first_are_told(line: str) -> None:
    text = "name: a\ntrain:\n  command: x\n" + "".join(line.format(number) for number in range(3000))
    problem = problems(text)
    assert 10 < len(problem) <= 102
    assert problem[0].startswith("params.yaml:4: ")


def test_a_text_of_half_a_megabyte_is_no_params_file() -> None:
    text = "name: a\ntrain: {command: x, params: {a: [" + "1," * 250_000 + "]}}\n"
    assert problems(text) == ["params.yaml: larger than 256 KiB, which is too large for this file"]


@pytest.mark.parametrize("nest", [("[", "]"), ("{a: ", "}")])
def test_what_is_nested_without_end_is_said_to_be(nest: tuple[str, str]) -> None:
    for depth in (65, 900):
        text = f"name: a\ntrain: {{command: x, params: {{n: {nest[0] * depth}1{nest[1] * depth}}}}}\n"
        assert problems(text) == ["params.yaml:2: not YAML: nested too deeply: more than 64 levels"]


def test_libyaml_reads_where_it_is_there() -> None:
    assert issubclass(_FastLoader, yaml.CSafeLoader)


@settings(deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10), _inside, max_leaves=8))
def test_both_readers_read_the_same(value: Any) -> None:
    text = to_yaml({"a": value})
    assert _plainly(_read(_FastLoader, text)) == _plainly(_read(_Loader, text))


def _plainly(node: Any) -> Any:
    """Tags, values and lines."""
    if isinstance(node, tuple | list):
        return [_plainly(one) for one in node]
    return (node.tag, node.start_mark.line, _plainly(node.value)) if isinstance(node, yaml.Node) else node
