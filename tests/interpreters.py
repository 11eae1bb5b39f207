"""Other Pythons on this machine, for what a training imports: it must work in whatever Python the training has."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

SUPPORTED = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
TOO_OLD = ("2.7", "3.6", "3.7")


@functools.cache
def interpreter(version: str) -> str | None:
    """A Python of this version (`3.8`), from PATH, pyenv or Debian's PyPy. None: this machine has none."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    found = [shutil.which(f"python{version}"), *sorted(map(str, pyenv.glob(f"{version}.*/bin/python"))), shutil.which("pypy3")]
    return next((path for path in found if path and version_of(path) == version), None)


def version_of(path: str) -> str | None:
    script = "import sys; sys.stdout.write('%d.%d' % sys.version_info[:2])"
    try:
        return subprocess.run([path, "-c", script], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None  # such as pyenv's shim for a version that is not installed
