"""A param's value in a command: any text arrives as that text or is refused, and no shell ever runs it. With the real bash."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onward.errors import InvalidInput
from onward.model.commands.placeholders import check_params, fill, params_that_choose_the_program

SHOW = "printf '%s\\0' "
QUOTED = [
    SHOW + "'{params.x}'",
    SHOW + '"{params.x}"',
    SHOW + "'a {params.x} b'",
    SHOW + '"a {params.x} b"',
    SHOW + """'it'\\''s {params.x}'""",
    SHOW + """"say \\"{params.x}\\" $HOME" """,
    "cd / && A='{params.x}' && " + SHOW + '"$A" "{params.x}"',
    'export A="{params.x}"; if [ -n "$A" ]; then ' + SHOW + "\"--x={params.x}\"'{params.x}'; fi",
]
UNQUOTED = [SHOW + "{params.x}", SHOW + "--x={params.x} y", "cd / && " + SHOW + "a{params.x}b | cat"]
DOUBTFUL = [  # evaluated twice, or hard to follow: plain text alone
    "eval \"printf '%s' '{params.x}'\"",
    "bash -c 'printf %s \"{params.x}\"'",
    "echo $(( {params.x} + 1 ))",
    "[[ '{params.x}' -eq 3 ]]",
    "N='{params.x}'; echo $((N))",
    "echo \"$(echo '{params.x}')\"",
    "echo `echo '{params.x}'`",
    "cat <<END\n{params.x}\nEND",
    "# it's\necho '{params.x}'",
    "printf -v '{params.x}' 1",
    "a[{params.x}]=1",
    "python3 -c 'print({params.x})'",
    "ssh host 'echo {params.x}'",
    'echo "\\{params.x}"',
    "trap '{params.x}' EXIT",
    "CMD='{params.x}'; $CMD",
    "f() { srun $1; }; f '{params.x}'",
    "for x in '{params.x}'; do nice ${x}; done",
    "(true)#it's\necho '{params.x}'",
    "PS4='{params.x}'; set -x; true",
    "echo a >&'{params.x}'",
    "echo a 2>&1'{params.x}'",
    "A=( '{params.x}'",
    "eval> out echo '{params.x}'",
]
EVIL = st.sampled_from(
    [
        "; touch HIT #",
        "$(touch HIT)",
        "`touch HIT`",
        "'; touch HIT; '",
        '"; touch HIT; "',
        "\n touch HIT\n",
        "a[$(touch HIT)]",
        "\\",
        "'\\''",
        "${x}",
    ]
)
TEXTS = st.lists(st.one_of(EVIL, st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=12)), max_size=4).map("".join)


def run(command: tuple[str, ...], folder: Path) -> list[str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False, env={"PATH": "/usr/bin:/bin", "HOME": "/h"})
    return done.stdout.decode().split("\0")[:-1]


def arrives(folder: Path, template: str, value: str) -> list[str] | None:
    """The words that the command saw; None: the value was refused. Never anything else."""
    try:
        check_params(("bash", "-c", template), {"x": value})
    except InvalidInput as error:
        assert "{params.x}" in error.message
        assert error.hint
        return None
    words = run(fill(("bash", "-c", template), {"params.x": value}), folder)
    assert not list(folder.rglob("HIT*")), f"{value!r} ran as a command"
    return words


@settings(deadline=None, max_examples=60)
@given(template=st.sampled_from(range(len(QUOTED))), value=TEXTS)
@example(template=0, value="1; id >HIT; echo ")
@example(template=1, value='"$(touch HIT)`touch HIT`\\')
def test_any_text_between_quotes_in_a_shells_source_arrives_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, template: int, value: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "quoted"
    folder.mkdir(exist_ok=True)
    words = arrives(folder, QUOTED[template], value)
    wanted = {
        0: [value],
        1: [value],
        2: [f"a {value} b"],
        3: [f"a {value} b"],
        4: [f"it's {value}"],
        5: [f'say "{value}" /h'],
        6: [value, value],
        7: [f"--x={value}{value}"] if value else [],
    }
    assert words == wanted[template]


@settings(deadline=None, max_examples=60)
@given(template=st.sampled_from(range(len(UNQUOTED))), value=TEXTS)
@example(template=0, value="1; touch HIT; echo ")
@example(template=0, value="~")
@example(template=1, value="a b")
@example(template=2, value="*")
@example(template=1, value="größe-1e-05/x.y")
def test_text_without_quotes_around_it_arrives_as_it_is_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, template: int, value: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "unquoted"
    folder.mkdir(exist_ok=True)
    words = arrives(folder, UNQUOTED[template], value)
    assert words is None or words == {0: [value], 1: [f"--x={value}", "y"], 2: [f"a{value}b"]}[template]


@settings(deadline=None, max_examples=60)
@given(template=st.sampled_from(DOUBTFUL), value=TEXTS)
@example(template=DOUBTFUL[3], value="a[$(touch HIT)]")
@example(template=DOUBTFUL[13], value="$(touch HIT)")
def test_where_a_shell_reads_it_twice_only_plain_text_is_taken(tmp_path_factory: pytest.TempPathFactory, template: str, value: str) -> None:
    folder = tmp_path_factory.getbasetemp() / "doubtful"
    folder.mkdir(exist_ok=True)
    if all(sign.isalnum() or sign in "_@%+=:,./-" for sign in value):
        check_params(("bash", "-c", template), {"x": value.removeprefix("-")})
    else:
        assert arrives(folder, template, value) is None


@pytest.mark.parametrize("template", [*QUOTED, *UNQUOTED, *DOUBTFUL])
@pytest.mark.parametrize("value", [3, 0.001, 1e-05, True, "adam", "data/train.csv", "2026-11-18T12:00:00", "a,b", "user@host:/x"])
def test_plain_values_stand_in_any_source_as_they_always_did(template: str, value: str | float) -> None:
    text = str(value).lower() if value is True else str(value)
    assert fill(("bash", "-c", template), {"params.x": text}) == ("bash", "-c", template.replace("{params.x}", text))
    check_params(("bash", "-c", template), {"x": value})


@pytest.mark.parametrize(
    "command",
    [
        ("bash", "-c", "train {params.x}"),
        ("bash", "-lc", "train {params.x}"),
        ("/bin/bash", "-euo", "pipefail", "-c", "train {params.x}"),
        ("env", "A=1", "bash", "-c", "train {params.x}"),
        ("srun", "-n", "2", "sh", "-c", "train {params.x}"),
        ("apptainer", "exec", "image.sif", "bash", "--norc", "-ec", "train {params.x}"),
        ("zsh", "-c", "train '{params.x}'"),
        ("ksh", "-c", "train '{params.x}'"),
        ("bash", "-oc", "pipefail", "train {params.x}"),
        ("bash-5.2", "-c", "train {params.x}"),
        ("{params.shell}", "-c", "train {params.x}"),
        ("flock", "lock", "-c", "{params.x}"),
        ("unknown-runner", "-c", "train {params.x}"),
        ("bash", "-c", "{params.x}"),
        ("bash", "{params.x}"),
        ("bash", "-c{params.x}"),
        ("ssh", "host", "train {params.x}"),
        ("ssh", "host", "{params.x}"),
        ("su", "me", "-c", "{params.x}"),
        ("fish", "-c", "train '{params.x}'"),
        ("python3", "-c", "print('{params.x}')"),
        ("python3", "-X", "dev", "-uc", "print('{params.x}')"),
        ("python3", "-m", "{params.x}"),
        ("python3", "{params.x}"),
        ("perl", "-we", "print '{params.x}'"),
        ("awk", "BEGIN { print {params.x} }"),
        ("env", "-S", "train {params.x}"),
        ("unknown-runner", "cd x && train {params.x}"),
        ("{params.x}",),
    ],
)
def test_no_program_is_given_a_params_text_as_its_source(command: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput, match="source code"):
        fill(command, {"params.x": "1; id >HIT; echo ", "params.shell": "bash"})


@pytest.mark.parametrize("value", ["1; id >x; echo ", "-0.5", "a b", "$(id)", "'"])
@pytest.mark.parametrize(
    "command",
    [
        ("python", "train.py", "{params.x}"),
        ("python", "train.py", "-c", "{params.x}"),
        ("python", "-m", "train", "--lr={params.x}"),
        ("python", "train.py", "model.lr=[{params.x}]"),
        ("python", "train.py", '{"a": "{params.x}"}'),
        ("bash", "train.sh", "{params.x}"),
        ("bash", "-c", 'train "$1"', "bash", "{params.x}"),
        ("torchrun", "train.py", "--data", "{params.x}/train"),
    ],
)
def test_arguments_take_any_text(command: tuple[str, ...], value: str) -> None:
    assert fill(command, {"params.x": value}) == tuple(word.replace("{params.x}", value) for word in command)


def test_where_a_program_is_expected_no_option_is_taken() -> None:
    for command in (("python", "{params.x}", "train.py"), ("bash", "{params.x}")):
        with pytest.raises(InvalidInput):
            fill(command, {"params.x": "-mhttp.server"})


def test_a_run_of_its_own_folder_with_a_space_is_one_word_in_a_shell(tmp_path: Path) -> None:
    command = fill(("bash", "-c", SHOW + '{checkpoints.write} "{checkpoints.write}"'), {"checkpoints.write": "/a b/c"})
    assert run(command, tmp_path) == ["/a b/c", "/a b/c"]


def test_a_nul_can_be_given_to_no_program() -> None:
    with pytest.raises(InvalidInput, match="NUL"):
        fill(("train", "{params.x}"), {"params.x": "a\0b"})


@pytest.mark.parametrize(
    ("command", "chosen"),
    [
        (("{params.p}", "x"), {"p"}),
        (("python", "{params.p}", "{params.lr}"), {"p"}),
        (("python", "configs/{params.p}.py"), {"p"}),
        (("python", "-m", "{params.p}"), {"p"}),
        (("bash", "-c", "{params.p} --lr {params.lr}"), {"p"}),
        (("bash", "-c", "cd x && A=1 '{params.p}' --lr '{params.lr}'"), {"p"}),
        (("bash", "-c", "exec {params.p} {params.lr}"), {"p"}),
        (("bash", "-c", "CMD={params.p}; $CMD --lr {params.lr}"), {"p"}),
        (("bash", "-c", "$PYTHON train.py --lr={params.lr}; LR={params.lr} true"), {"lr"}),
        (("bash", "-c", "$PYTHON train.py --lr {params.lr}"), set()),
        (("bash", "-c", "python train.py --lr {params.lr}; echo {params.lr}"), set()),
        (("python", "train.py", "{params.lr}"), set()),
        (("python", "-c", "print({params.lr})"), set()),
    ],
)
def test_which_params_say_what_program_is_run(command: tuple[str, ...], chosen: set[str]) -> None:
    assert params_that_choose_the_program(command) == chosen
