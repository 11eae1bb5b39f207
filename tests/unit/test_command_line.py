"""A command: split without a shell, its placeholders, and whether what it starts is there."""

from __future__ import annotations

import os
import shlex
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onward.errors import InvalidInput
from onward.inputs.command_line import check_entry, check_placeholders, name_from_command, split_command
from onward.model.commands.placeholders import BENCHMARK_PLACEHOLDERS, fill, placeholder_values, placeholders_in
from onward.model.spec import ParamValue

# ── splitting ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("python train.py --lr 0.1", ("python", "train.py", "--lr", "0.1")),
        ("  python   train.py\n", ("python", "train.py")),
        ("python 'a b' \"c d\" e\\ f", ("python", "a b", "c d", "e f")),
        ("python train.py --sep '|' --and \"&&\" \\;", ("python", "train.py", "--sep", "|", "--and", "&&", ";")),
        ("python train.py \\\n  --lr 0.1", ("python", "train.py", "--lr", "0.1")),
        ("python -c 'a\nb'", ("python", "-c", "a\nb")),
        ("bash -c 'a && b > c'", ("bash", "-c", "a && b > c")),
        ("curl http://host/?a=1&b=2", ("curl", "http://host/?a=1&b=2")),
        ("python train.py ${HOME} $X ~ *", ("python", "train.py", "${HOME}", "$X", "~", "*")),
        ("python train.py --x=''", ("python", "train.py", "--x=")),
    ],
)
def test_a_command_is_split_as_a_shell_would(text: str, words: Sequence[str]) -> None:
    assert split_command(text) == words


@pytest.mark.parametrize(
    "operator", ["&&", "||", "|", ";", ">", "<", "&", ">>", "2>&1", "&>", ">log.txt", "2>/dev/null", "|&", "<<EOF", "x;", "x&"]
)
def test_a_shell_operator_is_refused_with_a_way_out(operator: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        split_command(f"python train.py {operator} ls")
    assert repr(operator) in caught.value.message
    assert "bash -c" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found no program"),
        ("  \n", "found no program"),
        ("''", "found no program"),
        ("python 'train.py", "an unclosed quote or backslash"),
        ("python train.py\\", "an unclosed quote or backslash"),
        ("module load cuda\npython train.py", "several lines"),
        ("CUDA_VISIBLE_DEVICES=0 python train.py", "found the shell's CUDA_VISIBLE_DEVICES="),
    ],
)
def test_what_is_no_single_command_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        split_command(text)


def test_an_empty_list_is_no_command() -> None:
    with pytest.raises(InvalidInput, match="found no program"):
        split_command([])


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_command_or_invalid_input(text: str) -> None:
    try:
        assert split_command(text)
    except InvalidInput as error:
        assert error.message


@settings(deadline=None)
@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\0"), max_size=12), max_size=6))
def test_what_was_quoted_comes_back(words: list[str]) -> None:
    command = ["program", *words]
    quoted = " ".join(f"'{word}'" if "'" not in word and not word.isalnum() else shlex.quote(word) for word in command)
    assert split_command(quoted) == tuple(command)


# ── placeholders ──────────────────────────────────────────────────────────────

VALUES = {"checkpoints.read": "/r", "checkpoints.write": "/w", "tensorboard": "/t", "params.lr": "0.1", "params.a.b-c": "{params.lr}"}


@pytest.mark.parametrize(
    ("word", "filled"),
    [
        ("{checkpoints.read}", "/r"),
        ("--out={checkpoints.write}/x:{tensorboard}", "--out=/w/x:/t"),
        ("{params.lr}{params.lr}", "0.10.1"),
        ("{params.a.b-c}", "{params.lr}"),
        ("{{params.lr}}", "{params.lr}"),
        ('{"m":{"lr":{params.lr}}}', '{"m":{"lr":0.1}}'),
        ('{"a": {"b": {}}}', '{"a": {"b": {}}}'),
        ("${params.lr} ${HOME} $HOME", "${params.lr} ${HOME} $HOME"),
        ("{} {{}} {0} {x} {x.y} {{x}} {read}", "{} {{}} {0} {x} {x.y} {{x}} {read}"),
        ("awk '{print $1}'", "awk '{print $1}'"),
        ("{params.lr", "{params.lr"),
        ("{ params.lr }", "{ params.lr }"),
    ],
)
def test_only_our_own_braces_are_filled(word: str, filled: str) -> None:
    assert fill(["x", word], VALUES) == ("x", filled)


def test_a_benchmark_has_placeholders_of_its_own_and_not_a_trainings() -> None:
    words = ("quiz", "{checkpoint}", "--shard={shard}/{shards}", "{items.done}", "{params.n}", "{{seed}}", '{"a": {step}}')
    check_placeholders(words, {"n": 1}, BENCHMARK_PLACEHOLDERS)
    values = {**dict.fromkeys(BENCHMARK_PLACEHOLDERS, "x"), "params.n": "1"}
    assert fill(words, values, BENCHMARK_PLACEHOLDERS) == ("quiz", "x", "--shard=x/x", "x", "1", "{seed}", '{"a": x}')
    assert fill(("{seed}",), {}) == ("{seed}",)  # in a training's command these braces are its own
    for word, near in (("{checkpoints.read}", "{checkpoint}"), ("{items}", "{items.done}")):
        with pytest.raises(InvalidInput) as caught:
            check_placeholders(("quiz", word), {}, BENCHMARK_PLACEHOLDERS)
        assert near in caught.value.message


def test_an_unknown_placeholder_is_not_filled_with_nothing() -> None:
    with pytest.raises(InvalidInput, match=r"\{params\.x\}") as caught:
        fill(["{params.x}"], VALUES)
    assert "{checkpoints.read}" in caught.value.hint


@settings(deadline=None)
@given(st.text(max_size=40).filter(lambda text: not placeholders_in([text]) and "{{" not in text))
def test_text_without_placeholders_is_left_alone(text: str) -> None:
    assert fill([text], {}) == (text,)


def test_params_become_text_as_a_program_reads_it() -> None:
    params: dict[str, ParamValue] = {"a": True, "b": False, "c": 1e-5, "d": 3, "e": "x y", "f": None}
    values = placeholder_values(params, read="/r", write="/w", tensorboard="/t")
    assert fill([f"{{params.{name}}}" for name in params], values) == ("true", "false", "1e-05", "3", "x y", "")
    assert fill(["{checkpoints.read}{checkpoints.write}{tensorboard}"], values) == ("/r/w/t",)


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("{param.lr}", "{params.lr}"),
        ("{checkpoint.read}", "{checkpoints.read}"),
        ("{checkpoints.raed}", "{checkpoints.read}"),
        ("{checkpoints}", ""),
        ("{tensorboard.dir}", "{tensorboard}"),
        ("{params}", ""),
    ],
)
def test_a_near_miss_is_told_with_all_that_are_known(word: str, near: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_placeholders(["python", word], {"lr": 1})
    assert f"found the placeholder {word}, expected one of" in caught.value.message
    assert all(f"{{{name}}}" in caught.value.message for name in ("checkpoints.read", "checkpoints.write", "tensorboard", "params.lr"))
    assert near in caught.value.hint


def test_a_param_that_is_not_there_is_told_with_how_to_give_it() -> None:
    with pytest.raises(InvalidInput) as caught:
        check_placeholders(["python", "train.py", "--lr", "{params.lr}"], {})
    assert caught.value.message == "found the placeholder {params.lr}, but there is no param lr"
    assert "--param lr=VALUE, or lr: VALUE under params" in caught.value.hint
    with pytest.raises(InvalidInput) as caught:
        check_placeholders(["{params.lrr}"], {"lr": 1})
    assert caught.value.hint.startswith("did you mean {params.lr}?")


def test_a_null_param_cannot_go_into_a_command() -> None:
    with pytest.raises(InvalidInput, match="null"):
        check_placeholders(["{params.a}"], {"a": None})


def test_known_and_doubled_placeholders_pass_the_check() -> None:
    check_placeholders(["{params.a}", "{{params.b}}", "{tensorboard}", "${params.c}", "{x.y}"], {"a": 0})


# ── names ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python train.py", "train"),
        ("/opt/bin/python3.11 -u -X dev src/my_train.py --lr 1", "my_train"),
        ("python -m pkg.fit --x", "fit"),
        ("python -m torch.distributed.run --nproc 2 train.py", "train"),
        ("torchrun --nproc-per-node 2 fit.py", "fit"),
        ("bash -eu job.sh", "job"),
        ("bash -c 'x'", "bash"),
        ("./simulate --x", "simulate"),
        ("python -c 'x'", "python"),
        ("2fast", "run-2fast"),
    ],
)
def test_a_command_has_a_name_to_offer(command: str, name: str) -> None:
    assert name_from_command(split_command(command)) == name


# ── the entry point ───────────────────────────────────────────────────────────


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with scripts, and `bin` with a python, a sh, a bash and nothing else."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python").symlink_to(sys.executable)
    for shell in ("sh", "bash"):
        (programs / shell).symlink_to("/bin/sh")
    (tmp_path / "train.py").write_text("print('hi')\n")
    (tmp_path / "broken.py").write_text("a = 1\nb = = 2\n")
    (tmp_path / "job.sh").write_text("true\n")
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "data.txt").write_text("x\n")
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "fit.py").write_text("pass\n")
    (package / "bad.py").write_text("def\n")
    return tmp_path


def check(command: str, folder: Path) -> None:
    check_entry(split_command(command), folder, str(folder / "bin"))


@pytest.mark.parametrize(
    "command",
    [
        "python train.py --lr 0.1",
        "python -u -O -W ignore -X dev -Xfrozen_modules=off train.py",
        "python -uW ignore train.py",
        "python --check-hash-based-pycs never train.py",
        "./bin/python train.py",
        "python -c 'b = = 2'",
        "python -m pkg.fit",
        "python -um pkg.fit",
        "python -m installed.elsewhere",
        "python -mjson.tool",
        "python {params.script}",
        "{params.program} nothing.py",
        "bash job.sh nothing",
        "bash -eux -o pipefail job.sh",
        "bash -euxo pipefail job.sh",
        "bash --norc --rcfile x job.sh",
        "bash -c nothing",
        "sh -ec nothing",
        "./tool nothing.py",
    ],
)
def test_what_can_start_passes(command: str, folder: Path) -> None:
    check(command, folder)


@pytest.mark.parametrize(
    ("command", "message", "hint"),
    [
        ("nothing train.py", "the program nothing is not on the PATH", "activate"),
        ("tool", "the program tool is not on the PATH", "./tool"),
        ("cd src", "the program cd is not on the PATH", "bash -c"),
        ("./nothing", "no program ./nothing", ""),
        ("./data.txt", "is not executable", "chmod +x"),
        ("bin/", "no program bin/", ""),
        ("python trian.py", "no script trian.py", "did you mean train.py?"),
        ("python -u missing/train.py", "no script missing/train.py", "no folder"),
        ("python bin", "no script bin", ""),
        ("python", "the command names no script", ""),
        ("python -X", "the command names no script", ""),
        ("python broken.py", "broken.py:2: Python cannot compile it: invalid syntax", ""),
        ("python -m pkg.bad", "bad.py:1: Python cannot compile it", ""),
        ("python -m pkg.none", "python -m pkg.none has nothing to run", ""),
        ("python -m pkg", "python -m pkg has nothing to run", ""),
        ("python -m train.py", "python -m train.py has nothing to run", ""),
        ("python -m", "expected a module's name", ""),
        ("python -m ../x", "expected a module's name", ""),
        ("bash jbo.sh", "no script jbo.sh", "did you mean job.sh?"),
        ("bash -e", "bash has no script to run", ""),
    ],
)
def test_what_cannot_start_is_told_before_it_waits_in_a_queue(command: str, message: str, hint: str, folder: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        check(command, folder)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_a_script_with_a_nul_byte_does_not_compile(folder: Path) -> None:
    (folder / "train.py").write_bytes(b"a\0b")
    with pytest.raises(InvalidInput, match=r"train\.py:1: Python cannot compile it"):
        check("python train.py", folder)


def test_a_script_that_only_warns_compiles(folder: Path) -> None:
    (folder / "train.py").write_text("x = '\\d'\nassert (x, 'y')\n")
    check("python train.py", folder)


def test_a_script_in_another_encoding_compiles(folder: Path) -> None:
    (folder / "train.py").write_bytes(b"# -*- coding: latin-1 -*-\nx = '\xe9'\n")
    check("python train.py", folder)


def test_a_folder_or_archive_with_a_main_is_a_script(folder: Path) -> None:
    with zipfile.ZipFile(folder / "app.pyz", "w") as archive:
        archive.writestr("__main__.py", "pass")
    check("python app.pyz", folder)
    (folder / "pkg" / "__main__.py").write_text("pass\n")
    check("python pkg", folder)
    check("python -m pkg", folder)


def test_syntax_newer_than_ours_is_left_to_the_runs_own_python(folder: Path) -> None:
    program = folder / "bin" / "python3.99"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    check("python3.99 broken.py", folder)
    program.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(InvalidInput, match=r"broken\.py:2"):
        check("python3.99 broken.py", folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_script_that_may_not_be_read_is_named(folder: Path) -> None:
    (folder / "train.py").chmod(0)
    with pytest.raises(InvalidInput, match="cannot be read"):
        check("python train.py", folder)


@settings(deadline=None)
@given(
    words=st.lists(
        st.sampled_from(["python", "bash", "-m", "-c", "-", "--", "-X", "-o", "", "a.b", "../x", "\0", "x" * 300, "/"]), max_size=6
    )
)
def test_any_command_passes_or_is_invalid_input(words: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    try:
        check_entry(["python", *words], folder, os.environ["PATH"])
    except InvalidInput as error:
        assert error.message


@pytest.mark.parametrize("command", ["torchrun train.py", "python3.14 train.py", "python bad.py"])
def test_where_the_environment_is_prepared_in_the_job_its_programs_and_its_python_are_left_to_it(folder: Path, command: str) -> None:
    (folder / "bad.py").write_text("def\n")
    check_entry(split_command(command), folder, "/nowhere", prepared=True)


@pytest.mark.parametrize(
    ("command", "said"), [("python nothing.py", "no script nothing.py"), ("./nothing train.py", "no program ./nothing")]
)
def test_but_files_of_ones_own_must_be_there(folder: Path, command: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        check_entry(split_command(command), folder, "/nowhere", prepared=True)
