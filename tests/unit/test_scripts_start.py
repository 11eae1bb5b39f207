"""A batch script that cannot be started is refused at submit; what its shell would read is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from onward.errors import InvalidInput
from onward.inputs.scripts.preflight import check_folder, check_program, check_syntax
from onward.inputs.scripts.refused_lines import lines_about
from onward.model.spec import Script


def script(*shell: str, name: str = "train.sh") -> Script:
    return Script(name=name, folder="/", shell=shell)


BASH = script("/bin/bash")


@pytest.mark.parametrize("shell", [("/bin/bash",), ("/bin/sh",), ("/usr/bin/env", "bash"), ("/bin/bash", "-l")])
def test_an_open_if_is_told_with_its_line(shell: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput, match=r"train\.sh:\d: (bash|sh) cannot read it: .*end of file"):
        check_syntax(script(*shell), "#!/bin/bash\nif true; then\necho a\n")


@pytest.mark.parametrize(
    "text",
    [
        "echo fine\n",
        "shopt -s extglob\nls !(a|b)\n",
        "echo done\nexit 0\nnotes of mine (not to be run\n",
        "cat <<END\nno end of it\n",
        "echo \udcff\n",
    ],
)
def test_what_bash_would_run_is_taken(text: str) -> None:
    check_syntax(BASH, text)


def test_what_is_no_shell_is_not_read_as_one() -> None:
    check_syntax(script("/usr/bin/python3", name="train.py"), "if True:\n    pass\n")
    check_syntax(script("/bin/csh", name="train.csh"), "if (1) then\n")
    check_syntax(script("/no/such/bash"), "if\n")


@pytest.mark.parametrize("word", ["/no/such/interp", "no-such-shell", "train.txt"])
def test_a_program_that_is_not_there_is_told(tmp_path: Path, word: str) -> None:
    (tmp_path / "train.txt").write_text("")
    with pytest.raises(InvalidInput, match=rf"train\.sh is run by {word}, but there is no such program"):
        check_program(script(word), tmp_path, os.environ["PATH"])


def test_a_program_may_be_named_by_its_path_or_found_on_the_path(tmp_path: Path) -> None:
    check_program(BASH, tmp_path, "")
    check_program(script("bash", "-l"), tmp_path, os.environ["PATH"])


def test_a_folder_that_may_not_be_entered_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_folder(BASH, tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InvalidInput, match="which you may not enter"):
        check_folder(BASH, tmp_path)


SCRIPT = "#!/bin/bash\n#SBATCH --time=10\n#SBATCH --licenses=matlab:2\n#SBATCH -p nope --qos=long\ntrue\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sbatch: error: Batch job submission failed: Invalid license specification matlab", "train.sh:3 says --licenses=matlab:2"),
        ("sbatch: error: invalid partition specified: nope", "train.sh:4 says --partition=nope"),
        ("Invalid qos specification", "train.sh:4 says --qos=long"),
        ("Access denied", "its options are in train.sh:2–4"),
    ],
)
def test_a_refusal_of_the_scheduler_is_told_with_the_lines_it_is_about(words: str, message: str) -> None:
    assert lines_about(words, name="train.sh", text=SCRIPT, family="slurm") == message
    assert lines_about(words, name="train.sh", text="#!/bin/bash\ntrue\n", family="slurm") == ""


def test_a_request_of_grid_engine_is_found_by_its_resource() -> None:
    text = "#!/bin/bash\n#$ -N a\n#$ -l h_rt=60,gpux=1\n#$ -P lab\n"
    said = 'Unable to run job: unknown resource "gpux".'
    assert lines_about(said, name="job.qsub", text=text, family="gridengine") == "job.qsub:3 says -l h_rt=60,gpux=1"
