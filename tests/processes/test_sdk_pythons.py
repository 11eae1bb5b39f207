"""The SDK in other Pythons than Onward's own: a training imports it into whatever Python it has."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from onward.rundir.freeze import build_archive
from tests.interpreters import SUPPORTED, TOO_OLD, interpreter

TOUR = Path(__file__).parents[1] / "sdk_tour.py"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As it stands on the PYTHONPATH of every training."""
    path = tmp_path_factory.mktemp("params") / "supervisor.pyz"
    build_archive(path)
    return path


def run(version: str, *arguments: str, archive: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}: install it as python{version} on PATH or with pyenv")
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(archive), "LC_ALL": "C.UTF-8"}
    return subprocess.run([python, *arguments], env=env, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("version", SUPPORTED)
def test_a_training_can_do_everything_in_any_python_from_3_8_on(version: str, archive: Path, tmp_path: Path) -> None:
    done = run(version, "-W", "error", str(TOUR), str(tmp_path), archive=archive, cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["done"]), done.stderr


@pytest.mark.parametrize("version", TOO_OLD)
def test_an_older_python_is_turned_away_with_one_sentence(version: str, archive: Path, tmp_path: Path) -> None:
    done = run(version, "-c", "import onward", archive=archive, cwd=tmp_path)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and last.startswith(
        "ImportError: onward needs Python 3.8 or newer in a training, and this is Python " + version
    )
    assert "ONWARD_CHECKPOINT_DIR" in last and "SyntaxError" not in done.stderr
