"""What a login on this machine would have around it: ssh starts a command without it, and some sites put sbatch there."""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from onward.schedulers.cluster_settings import ClusterSettings

_PROGRAMS = {"local": "sh", "slurm": "sbatch", "gridengine": "qsub"}
_PATIENCE = 60.0  # seconds: modules and conda in a profile take their time
_TELL = "import json, os, sys; sys.stdout.write(chr(30) + json.dumps(dict(os.environ)) + chr(10))"
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


def ensure_programs(schedulers: Iterable[str]) -> None:
    """Where a scheduler's program is not on the PATH, take over the environment of a login shell. What a plugin's is, nobody knows."""
    if any(name not in _PROGRAMS or shutil.which(_PROGRAMS[name]) is None for name in schedulers):
        os.environ.update(login_environment())


def login_environment() -> dict[str, str]:
    """As a login shell of this user sets it up; what we have where that cannot be had."""
    shell = os.environ.get("SHELL") or _account_shell()
    tell = shlex.join([sys.executable, "-I", "-S", "-c", _TELL])
    how = ["-c", tell] if Path(shell).name in ("csh", "tcsh") else ["-l", "-c", tell]  # csh takes -l alone; its .cshrc is read anyway
    try:
        done = subprocess.run([shell, *how], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False)
        variables = json.loads(done.stdout.rpartition(b"\x1e")[2])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return dict(os.environ)
    found = {str(key): str(value) for key, value in variables.items() if not str(key).startswith("ONWARD_") or key == "ONWARD_STATE_DIR"}
    both = [*found.get("PATH", "").split(os.pathsep), *os.environ.get("PATH", "").split(os.pathsep)]
    return {**found, "PATH": os.pathsep.join(dict.fromkeys(filter(None, both)))}  # a profile may begin its PATH anew


def with_resolved_root(profile: ClusterSettings) -> ClusterSettings:
    """With its runs folder as it is here, `~` and variables and all. One that cannot be told troubles no other profile."""
    if profile.root is None:
        return profile
    text = str(profile.root)
    if any(name not in os.environ for name in _names(text)):
        os.environ.update(login_environment())
    missing = [name for name in _names(text) if not os.environ.get(name)]
    if missing:
        return replace(profile, root=None, trouble=f"clusters.{profile.name}.root: ${missing[0]} is not set there")
    return replace(profile, root=Path(_VARIABLE.sub(lambda match: os.environ[match[1] or match[2]], os.path.expanduser(text))).absolute())


def _names(text: str) -> list[str]:
    return [match[1] or match[2] for match in _VARIABLE.finditer(text)]


def _account_shell() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return "/bin/sh"
