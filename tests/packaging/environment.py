"""An empty environment to install into."""

from __future__ import annotations

import contextlib
import os
import subprocess
import venv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 600


@dataclass(frozen=True)
class Environment:
    """A virtual environment with nothing but pip, and a home of its own."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Environment:
        venv.create(folder / "venv", with_pip=True)
        return cls(folder)

    @property
    def variables(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ONWARD_", "PYTHON", "VIRTUAL_ENV", "PYTEST_"))}
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return kept | {"HOME": str(home), "ONWARD_STATE_DIR": str(home / "state"), "ONWARD_ROOT": str(self.folder / "runs")}

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.folder / "venv" / "bin" / program), *arguments]
        return subprocess.run(command, cwd=self.folder, env=self.variables, capture_output=True, text=True, timeout=PATIENCE, check=False)

    @contextlib.contextmanager
    def server(self) -> Iterator[Iterable[str]]:
        """`onward up` while the block lasts: the lines that it prints."""
        command = [str(self.folder / "venv" / "bin" / "onward"), "up", "--port", "0"]
        with subprocess.Popen(
            command, cwd=self.folder, env=self.variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout
            try:
                yield process.stdout
            finally:
                process.terminate()
                process.communicate(timeout=PATIENCE)

    def install(self, *requirements: str) -> None:
        done = self.run("python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements)
        assert done.returncode == 0, done.stderr
