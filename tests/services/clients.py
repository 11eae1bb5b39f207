"""Real MLflow clients: each version in a virtual environment of its own, made once."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import missing

CLIENTS = {"3": "mlflow-skinny==3.17.2", "2": "mlflow-skinny==2.22.5"}


@pytest.fixture(params=sorted(CLIENTS))
def client(request: pytest.FixtureRequest) -> tuple[str, Path]:
    """A Python with this version of MLflow's client, and where to find it."""
    version = request.param
    folder = Path(__file__).resolve().parents[2] / ".venv-clients" / version
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / f"{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            install = [str(folder / "bin" / "pip"), "install", "-q", "--disable-pip-version-check", CLIENTS[version], "pandas", "numpy"]
            done = subprocess.run(install, capture_output=True, text=True)
            if done.returncode:
                missing(f"{CLIENTS[version]} cannot be installed: {done.stderr[-500:]}")
            (folder / "ready").touch()
    return version, folder / "bin" / "python"
