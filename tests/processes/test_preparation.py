"""Before launch, with a real bash: what modules, conda, a venv and setup lines leave behind, and what is said when one fails."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from onward.errors import InvalidInput, PreparationFailed
from onward.model.spec import Environment
from onward.supervisor.preparation.setup_steps import check_setup_paths, prepare, steps, time_for, with_absolute_paths

MODULE = """
module() {
    [ "$1" = load ] || return 2
    case $2 in
        cuda/12.0) export CUDA_HOME=/opt/cuda PATH=/opt/cuda/bin:$PATH LOADEDMODULES=${LOADEDMODULES:+$LOADEDMODULES:}$2 ;;
        old/1) echo "old/1: not found" >&2 ;;
        *) echo "Lmod has detected the following error: $2 is unknown" >&2; return 1 ;;
    esac
}
"""
CONDA = """
conda() {
    [ "$1" = activate ] || return 2
    case $2 in
        missing) echo "EnvironmentNameNotFound: Could not find conda environment: missing" >&2; return 1 ;;
        /*) export CONDA_PREFIX=$2 ;;
        *) export CONDA_PREFIX=HOME_OF_CONDA/envs/$2 ;;
    esac
    export PATH=$CONDA_PREFIX/bin:$PATH
}
"""


class Node:
    """What one finds on a node: a home, a PATH, and stand-ins for a module system and conda where a test puts them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output = folder / "leg-0001.err"
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(folder / "home"), "ONWARD_LEG": "1", "PYTHONPATH": "/run/supervisor.pyz"}

    def file(self, name: str, text: str, *, mode: int = 0o644) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def has_modules(self) -> None:
        self.file("modules/init/bash", MODULE)
        self.env["MODULESHOME"] = str(self.folder / "modules")

    def prepared(self, *, seconds: float = 60, **environment: Any) -> dict[str, str]:
        made = prepare(
            Environment(**environment),
            self.env,
            cwd=self.folder,
            folder=self.folder,
            output=self.output,
            seconds=seconds,
        )
        assert made is not None
        return made

    def failure(self, **environment: Any) -> PreparationFailed:
        with pytest.raises(PreparationFailed) as caught:
            self.prepared(**environment)
        return caught.value


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_nothing_to_prepare_changes_nothing_and_starts_nothing(node: Node) -> None:
    assert node.prepared() == node.env
    assert not node.output.exists()


def test_things_are_done_in_the_order_modules_conda_venv_setup() -> None:
    everything = Environment(setup=("a", "b"), venv="/v", conda="c", modules=("m", "n"))
    assert steps(everything) == [("module", "m"), ("module", "n"), ("conda", "c"), ("venv", "/v"), ("setup", "a"), ("setup", "b")]


# ── setup lines ───────────────────────────────────────────────────────────────


def test_setup_lines_share_one_shell_and_their_variables_reach_the_training(node: Node) -> None:
    made = node.prepared(setup=('word="two words"', 'export MESSAGE="$word, $ONWARD_LEG"', "umask 077; cd /"))
    assert made["MESSAGE"] == "two words, 1"
    assert "word" not in made


def test_values_with_newlines_and_odd_bytes_survive(node: Node) -> None:
    made = node.prepared(setup=(r"export ODD=$'a\nb=c\xff d'",))
    assert made["ODD"] == "a\nb=c\udcff d"


def test_what_the_lines_print_is_in_the_logs(node: Node) -> None:
    node.output.write_text("before\n")
    node.prepared(setup=("echo out", "echo err >&2"))
    assert node.output.read_text() == "before\nout\nerr\n"


def test_a_failing_line_is_named_with_its_number_its_exit_code_and_its_last_words(node: Node) -> None:
    node.has_modules()
    error = node.failure(
        modules=("cuda/12.0",), setup=("true", "echo torch 2 requires numpy; exit_with() { return 3; }; exit_with", "true")
    )
    assert error.message.startswith("setup line 2 `echo torch 2 requires numpy;")
    assert error.message.endswith("failed with exit code 3")
    assert error.hint == "torch 2 requires numpy"


def test_of_two_equal_lines_the_one_that_failed_is_named(node: Node) -> None:
    error = node.failure(setup=("mkdir made", "mkdir made"))
    assert error.message == "setup line 2 `mkdir made` failed with exit code 1"


def test_a_line_with_a_syntax_error_is_named(node: Node) -> None:
    assert node.failure(setup=("true", "if then")).message.startswith("setup line 2 `if then` failed with exit code")


def test_a_line_after_set_e_is_named_too(node: Node) -> None:
    assert node.failure(setup=("set -e", "false; true")).message == "setup line 2 `false; true` failed with exit code 1"


@pytest.mark.parametrize("line", ["exit 0", "exec true"])
def test_a_line_that_ends_the_shell_is_a_failure(node: Node, line: str) -> None:
    assert node.failure(setup=(line, "export LATER=1")).message == f"setup line 1 `{line}` ended the shell, so nothing after it could run"


def test_a_line_that_kills_the_shell_is_a_failure(node: Node) -> None:
    assert node.failure(setup=("kill -9 $$",)).message == "setup line 1 `kill -9 $$` was killed by SIGKILL"


def test_a_line_that_takes_too_long_is_ended_with_all_it_started(node: Node) -> None:
    with pytest.raises(PreparationFailed, match=r"setup line 1 `sleep 600 & .*` took more than 1 s"):
        node.prepared(setup=("sleep 600 & echo $! > pid; wait",), seconds=1)
    pid = (node.folder / "pid").read_text().strip()
    state = Path("/proc") / pid / "stat"
    end = time.monotonic() + 30
    while state.exists() and state.read_text().split()[2] != "Z":
        assert time.monotonic() < end, "what the line started goes on"
        time.sleep(0.05)


def test_an_interruption_ends_it_without_a_failure(node: Node) -> None:
    asked = threading.Event()
    threading.Timer(0.3, asked.set).start()
    made = prepare(
        Environment(setup=("sleep 600",)),
        node.env,
        cwd=node.folder,
        folder=node.folder,
        output=node.output,
        seconds=60,
        interrupted=asked.is_set,
    )
    assert made is None


def test_no_line_changes_the_contract_or_takes_onward_away(node: Node) -> None:
    made = node.prepared(setup=("export ONWARD_LEG=7 PYTHONPATH=/mine", "set -a", "late=1"))
    assert made["ONWARD_LEG"] == "1"
    assert made["PYTHONPATH"] == "/mine:/run/supervisor.pyz"
    assert made["late"] == "1"
    assert not [name for name in made if name.startswith("__onward")]
    assert node.prepared(setup=("unset PYTHONPATH",))["PYTHONPATH"] == "/run/supervisor.pyz"


def test_nothing_of_it_stays_in_the_folder(node: Node) -> None:
    node.prepared(setup=("true",))
    assert [path.name for path in node.folder.iterdir()] == ["leg-0001.err"]


def test_it_gets_half_of_the_legs_time_and_an_hour_at_most() -> None:
    assert time_for(None, 0.0) == 3600
    assert time_for(86400.0, 0.0) == 3600
    assert time_for(160.0, 100.0) == 30
    assert time_for(101.0, 100.0) == 10


# ── modules ───────────────────────────────────────────────────────────────────


def test_modules_are_loaded(node: Node) -> None:
    node.has_modules()
    made = node.prepared(modules=("cuda/12.0",))
    assert made["CUDA_HOME"] == "/opt/cuda"
    assert made["PATH"].startswith("/opt/cuda/bin:")


def test_a_module_command_from_bash_env_is_used(node: Node) -> None:
    node.env["BASH_ENV"] = str(node.file("site.sh", MODULE))
    assert node.prepared(modules=("cuda/12.0",))["CUDA_HOME"] == "/opt/cuda"


def test_a_module_that_is_not_there_is_named(node: Node) -> None:
    node.has_modules()
    error = node.failure(modules=("cuda/12.0", "cudnn/9"))
    assert error.message == "loading the module cudnn/9 failed with exit code 1"
    assert "cudnn/9 is unknown" in error.hint


def test_an_old_module_command_that_always_succeeds_is_not_believed(node: Node) -> None:
    node.has_modules()
    error = node.failure(modules=("old/1",))
    assert error.message == "loading the module old/1 failed with exit code 1"
    assert "not among the loaded modules" in error.hint


def test_a_modules_name_is_never_shell(node: Node) -> None:
    node.has_modules()
    node.failure(modules=("x; touch made",))
    assert not (node.folder / "made").exists()


# ── conda ─────────────────────────────────────────────────────────────────────


def test_conda_is_found_by_its_own_variable(node: Node) -> None:
    node.file("miniconda/etc/profile.d/conda.sh", CONDA)
    node.env["CONDA_EXE"] = str(node.file("miniconda/bin/conda", "#!/bin/sh\n", mode=0o755))
    assert node.prepared(conda="lab")["CONDA_PREFIX"] == "HOME_OF_CONDA/envs/lab"


def test_conda_is_found_in_the_home_and_takes_a_prefix(node: Node) -> None:
    node.file("home/miniforge3/etc/profile.d/conda.sh", CONDA)
    node.file("home/miniforge3/bin/conda", "#!/bin/sh\n", mode=0o755)
    made = node.prepared(conda="/data/env")
    assert made["CONDA_PREFIX"] == "/data/env"
    assert made["PATH"].startswith("/data/env/bin:")


def test_conda_without_its_profile_is_asked_for_its_hook(node: Node) -> None:
    program = f"#!/bin/sh\n[ \"$*\" = 'shell.bash hook' ] && cat <<'X'\n{CONDA}\nX\n"
    node.file("tools/conda", program, mode=0o755)
    node.env["PATH"] = f"{node.folder / 'tools'}:{node.env['PATH']}"
    assert node.prepared(conda="lab")["CONDA_PREFIX"].endswith("envs/lab")


def test_micromamba_is_asked_in_its_own_words(node: Node) -> None:
    hook = CONDA.replace("conda()", "micromamba()")
    node.file("tools/micromamba", f"#!/bin/sh\n[ \"$*\" = 'shell hook --shell bash' ] && cat <<'X'\n{hook}\nX\n", mode=0o755)
    node.env["PATH"] = f"{node.folder / 'tools'}:{node.env['PATH']}"
    assert node.prepared(conda="lab")["CONDA_PREFIX"].endswith("envs/lab")


def test_a_conda_environment_that_is_not_there_is_named(node: Node) -> None:
    node.file("home/miniconda3/etc/profile.d/conda.sh", CONDA)
    node.file("home/miniconda3/bin/conda", "#!/bin/sh\n", mode=0o755)
    error = node.failure(conda="missing")
    assert error.message == "activating the conda environment missing failed with exit code 1"
    assert "EnvironmentNameNotFound" in error.hint


@pytest.mark.skipif(any(Path("/opt", name).exists() for name in ("conda", "miniconda3", "miniforge3", "anaconda3")), reason="it has one")
def test_a_node_without_conda_is_told_apart(node: Node) -> None:
    error = node.failure(conda="lab")
    assert error.message == "activating the conda environment lab failed with exit code 127"
    assert "there is no conda, mamba or micromamba here" in error.hint


# ── venv ──────────────────────────────────────────────────────────────────────


def test_a_venv_is_activated(node: Node) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(node.folder / "my venv")], check=True, timeout=60)
    made = node.prepared(venv=str(node.folder / "my venv"), setup=("command -v python > which",))
    assert made["VIRTUAL_ENV"] == str(node.folder / "my venv")
    assert (node.folder / "which").read_text().strip() == str(node.folder / "my venv" / "bin" / "python")


def test_a_venv_that_is_not_there_is_named(node: Node) -> None:
    error = node.failure(venv="/nowhere")
    assert error.message == "activating the virtual environment /nowhere failed with exit code 1"
    assert error.hint == "there is no file /nowhere/bin/activate here"


def test_relative_paths_are_placed_at_submit_and_names_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    cwd = Path("/work/project")
    assert with_absolute_paths(Environment(conda="../env", venv=".venv"), cwd) == Environment(conda="/work/env", venv="/work/project/.venv")
    assert with_absolute_paths(Environment(conda="lab", venv="~/venvs/a"), cwd) == Environment(conda="lab", venv="/home/alice/venvs/a")
    assert with_absolute_paths(Environment(), cwd) == Environment()


def test_a_folder_that_is_not_there_is_refused_at_submit(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"venv: found no .*/env/bin/activate") as caught:
        check_setup_paths(Environment(venv=str(tmp_path / "env")))
    assert "setup line" in caught.value.hint
    with pytest.raises(InvalidInput, match=r"conda: found no .*/env/conda-meta"):
        check_setup_paths(Environment(conda=str(tmp_path / "env")))
    (tmp_path / "env" / "conda-meta").mkdir(parents=True)
    (tmp_path / "env" / "bin").mkdir()
    (tmp_path / "env" / "bin" / "activate").touch()
    check_setup_paths(Environment(conda=str(tmp_path / "env"), venv=str(tmp_path / "env")))
    check_setup_paths(Environment(conda="name"))


def test_a_working_folder_that_is_gone_is_a_failure_with_words(node: Node) -> None:
    with pytest.raises(PreparationFailed, match=r"the environment cannot be prepared: .*nowhere"):
        prepare(Environment(setup=("true",)), node.env, cwd=Path("/nowhere"), folder=node.folder, output=node.output, seconds=60)
