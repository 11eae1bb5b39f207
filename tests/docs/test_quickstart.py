"""The quickstart is run as it stands, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
_FILE = re.compile(r"^```\w+ title=(\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMANDS = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_every_command_of_the_quickstart_works(tmp_path: Path) -> None:
    page = (DOCS / "quickstart.md").read_text()
    for name, text in _FILE.findall(page):
        (tmp_path / name).write_text(text)
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "ONWARD_STATE_DIR": str(tmp_path / "state")}
    env.pop("ONWARD_ROOT", None)
    commands = [line[2:] for block in _COMMANDS.findall(page) for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) >= 9
    said = {}
    for command in commands:
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        said[command] = done.stdout
    assert "the result is 1770.0" in said["onward logs quick"]
    assert "verified" in said["onward checkpoints quick --verify"]
    assert "finished" in said["onward show quick"]


def test_the_example_in_the_readme_is_the_one_that_is_run_here() -> None:
    readme = (DOCS.parent / "README.md").read_text()
    assert dict(_FILE.findall(readme)).items() <= dict(_FILE.findall((DOCS / "quickstart.md").read_text())).items()
    assert "train.py" in dict(_FILE.findall(readme))
