"""Pages for those who come from elsewhere: their files are written and their commands run as they stand, on this machine's own queue."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs" / "howto"
_FILE = re.compile(r"^```\w+ title=(\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMANDS = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.slow


def run_page(page: str, folder: Path) -> dict[str, str]:
    """What each command of the page printed, both streams together."""
    text = (DOCS / page).read_text()
    for name, content in _FILE.findall(text):
        (folder / name).write_text(content)
    env = {key: value for key, value in os.environ.items() if not key.startswith(("ONWARD_", "SLURM_"))}
    env |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "ONWARD_STATE_DIR": str(folder / "state")}
    said = {}
    for command in [line[2:] for block in _COMMANDS.findall(text) for line in block.splitlines() if line.startswith("$ ")]:
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=300)
        said[command] = done.stdout + done.stderr
        assert done.returncode == 0, f"{command}\n{said[command]}"
    for run in (folder / "runs").glob("2*"):
        if not (run / "params" / "done.json").exists():
            cancel = [sys.executable, "-m", "onward", "cancel", str(run)]
            done = subprocess.run(cancel, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0 or "is finished" in done.stderr, done.stderr  # it may have ended meanwhile
    return said


def legs(folder: Path, name: str) -> int:
    [run] = (folder / "runs").glob(f"*_{name}")
    return len(list((run / "params" / "claims").iterdir()))


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def test_the_page_for_those_who_come_from_submitit_works(tmp_path: Path) -> None:
    needs("submitit")
    said = run_page("coming-from-submitit.md", tmp_path)
    assert "trained 60 steps\n" in said["onward logs callable"] and legs(tmp_path, "callable") >= 2
    assert "trained 60 steps with 0.1\n" in said["onward logs script"] and legs(tmp_path, "script") >= 2
    assert said["onward runs"].count("train ") == 2


def test_the_page_for_those_who_come_from_lightning_works(tmp_path: Path) -> None:
    needs("lightning")
    said = run_page("coming-from-lightning.md", tmp_path)
    assert "trained 400 steps\n" in said["onward logs line"] and legs(tmp_path, "line") >= 2
