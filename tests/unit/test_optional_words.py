"""Optional words of a command: there only when there is a checkpoint to read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onward.checkpoints.restoring.newest_entry import newest_entry
from onward.errors import InvalidInput
from onward.inputs.command_line import check_entry, check_placeholders, name_from_command, split_command
from onward.model.commands.optional_words import with_optional
from onward.model.commands.placeholders import BENCHMARK_PLACEHOLDERS
from onward.rundir.layout import LegLocal
from onward.sdk import contract
from onward.supervisor.preparation.environment import resume_variables, training_command

RESUME = "{?checkpoints.read --resume {checkpoints.read}/last.pt}"


@pytest.mark.parametrize(
    "words",
    [
        f"python train.py {RESUME} --epochs 3",
        ["python", "train.py", RESUME, "--epochs", "3"],
        ["python", "train.py", "{?checkpoints.read", "--resume", "{checkpoints.read}/last.pt}", "--epochs", "3"],
        f"python train.py '{RESUME}' --epochs 3",
        "python train.py {? checkpoints.read --resume {checkpoints.read}/last.pt } --epochs 3",
        "python train.py {?checkpoints.read: --resume {checkpoints.read}/last.pt} --epochs 3",
    ],
)
def test_however_it_was_written_it_is_one_word_of_the_command(words: str | list[str]) -> None:
    command = split_command(words)
    assert len(command) == 5
    assert with_optional(command, resuming=False) == ("python", "train.py", "--epochs", "3")
    assert with_optional(command, resuming=True) == ("python", "train.py", "--resume", "{checkpoints.read}/last.pt", "--epochs", "3")


def test_only_a_leg_with_a_checkpoint_gets_them(tmp_path: Path) -> None:
    local = LegLocal(tmp_path)
    (tmp_path / "resume").mkdir()
    (tmp_path / "resume" / "last.pt").touch()
    command = split_command("python t.py {?checkpoints.read --resume {checkpoints.newest} --lr {params.lr}} --out {checkpoints.write}")
    first = training_command(command, {"lr": 0.1}, local, resume=None)
    assert first == ("python", "t.py", "--out", str(local.checkpoints))
    later = training_command(command, {"lr": 0.1}, local, resume=(tmp_path / "resume", 7))
    assert later == ("python", "t.py", "--resume", str(tmp_path / "resume" / "last.pt"), "--lr", "0.1", "--out", str(local.checkpoints))


def test_inside_a_shells_source_the_text_is_there_or_not(tmp_path: Path) -> None:
    command = split_command(["bash", "-c", f"cd sub && exec python train.py {RESUME} --x '{{\"a\": 1}}'"])
    local = LegLocal(tmp_path)
    assert training_command(command, {}, local, resume=None)[2] == "cd sub && exec python train.py  --x '{\"a\": 1}'"
    later = training_command(command, {}, local, resume=(tmp_path / "a b", 7))[2]
    assert later == f"cd sub && exec python train.py --resume '{tmp_path}/a b'/last.pt --x '{{\"a\": 1}}'"


def test_quotes_inside_hold_words_together() -> None:
    command = split_command("""python t.py "{?checkpoints.read --note 'a b' --json '{\\"k\\": {}}'}" """)
    assert with_optional(command, resuming=True) == ("python", "t.py", "--note", "a b", "--json", '{"k": {}}')
    listed = split_command(["python", "t.py", "{?checkpoints.read", "--note", "a b", "it's", "}"])
    assert with_optional(listed, resuming=True) == ("python", "t.py", "--note", "a b", "it's")


@pytest.mark.parametrize("word", ["{?page}", "x{?q: 1}", "${?checkpoints.read x}", "{{?checkpoints.read x}}", "a?b", "{?paramsx: 1}"])
def test_braces_of_others_stay_as_they_are(word: str) -> None:
    assert with_optional(split_command(["x", word]), resuming=False) == ("x", word)


@settings(deadline=None)
@given(st.lists(st.text(max_size=20).filter(lambda text: "{?" not in text), max_size=5))
def test_words_without_them_are_left_alone(words: list[str]) -> None:
    assert with_optional(words, resuming=False) == tuple(words) == with_optional(words, resuming=True)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("python t.py {?checkpoints.read --resume {checkpoints.read}", "never closed"),
        ("python t.py {?checkpoints.read}", "has no words"),
        ("python t.py {?checkpoints.read:}", "has no words"),
        ("python t.py {?checkpoint.read: --x}", r"expected \{\?checkpoints.read …\}"),
        ("python t.py {?params.lr: --lr 1}", r"expected \{\?checkpoints.read …\}"),
        ("python t.py {?checkpoints.write: --x}", r"expected \{\?checkpoints.read …\}"),
        ("python t.py {?checkpoints.read a {?checkpoints.read b}}", "inside optional words"),
        ("python t.py --x={?checkpoints.read a b}", "begin inside an argument"),
        ("{?checkpoints.read python} t.py", "where the program is expected"),
        ('python t.py "{?checkpoints.read \'a}"', "with an unclosed quote"),
        ("python t.py {?checkpoints.read {checkpoints.raed}}", "found the placeholder {checkpoints.raed}"),
        ("python t.py {?checkpoints.read {params.lr}}", "found the placeholder {params.lr}"),
        ("python t.py {checkpoints.newest}", "is empty in the first leg"),
    ],
)
def test_what_no_leg_could_make_sense_of_is_refused(command: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        check_placeholders(split_command(command), {})
    assert caught.value.hint


def test_a_benchmark_has_none() -> None:
    with pytest.raises(InvalidInput, match="expected them in a training only"):
        check_placeholders(("quiz", "{?checkpoints.read x}"), {}, BENCHMARK_PLACEHOLDERS)


def test_the_name_and_the_script_are_those_without_them(tmp_path: Path) -> None:
    words = ["python3", "{?checkpoints.read -v}", "train.py", "{?checkpoints.read other.py}"]
    assert name_from_command(words) == "train"
    (tmp_path / "train.py").write_text("pass")
    check_entry(split_command(words), tmp_path, "/usr/bin")


@pytest.mark.parametrize(
    ("names", "step", "newest"),
    [
        (["checkpoint-500"], 500, "checkpoint-500"),
        (["epoch=3-step=1200.ckpt", "config.json"], 1200, "epoch=3-step=1200.ckpt"),
        (["checkpoint.pth.tar", "model_best.pth.tar", "args.json"], 8, "checkpoint.pth.tar"),
        (["state.json"], 3, "state.json"),
        (["manifest.json", "state.json", ".hidden", "log.tfevents.1"], 3, "state.json"),
        (["model_100.pt", "optim_100.pt"], 100, None),
        (["a.pt", "b.pt"], 100, None),
        ([], 100, None),
    ],
)
def test_the_newest_is_the_one_file_that_a_training_can_load(tmp_path: Path, names: list[str], step: int, newest: str | None) -> None:
    for name in names:
        (tmp_path / name).touch()
    found = newest_entry(tmp_path, step)
    assert (found.name if found else None) == newest
    variables = resume_variables(LegLocal(tmp_path / "local"), (tmp_path, step))
    assert variables.get(contract.RESUME_NEWEST) == (str(tmp_path / newest) if newest else None)


def test_several_files_that_could_be_meant_are_told_when_the_leg_starts(tmp_path: Path) -> None:
    for name in ("model_7.pt", "optim_7.pt"):
        (tmp_path / name).touch()
    command = split_command("python t.py {?checkpoints.read --resume {checkpoints.newest}}")
    with pytest.raises(InvalidInput, match="no single newest file or folder") as caught:
        training_command(command, {}, LegLocal(tmp_path), resume=(tmp_path, 7))
    assert "{checkpoints.read}/NAME" in caught.value.hint
