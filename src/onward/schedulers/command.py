"""The one door to scheduler programs: argument lists, a timeout, no shell."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onward.errors import SchedulerUnavailable

# What a scheduler program needs of our environment. The rest stays here: a job's environment is kept by the scheduler
# where others may read it, and a job inside a job must not inherit its parent's SLURM_* and SBATCH_* settings.
_PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ"),
    *("SLURM_CONF", "SGE_ROOT", "SGE_CELL", "SGE_QMASTER_PORT", "SGE_EXECD_PORT", "SGE_CLUSTER_NAME"),
)


@dataclass(frozen=True, kw_only=True)
class Answer:
    code: int
    out: str
    err: str


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    return {**{key: os.environ[key] for key in _PASSED if key in os.environ}, **(extra or {})}


def run_command(argv: Sequence[str], *, timeout: float, extra: Mapping[str, str] | None = None) -> Answer:
    """Run a scheduler's program to its end. What its exit code means is the adapter's business; no answer is an error."""
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
            env=clean_environment(extra),
        )
    except subprocess.TimeoutExpired as error:
        raise SchedulerUnavailable(f"{argv[0]} gave no answer within {timeout:.0f} s") from error
    except OSError as error:
        raise SchedulerUnavailable(f"{argv[0]} cannot be run: {error.strerror}", hint=f"is {argv[0]} on the PATH here?") from error
    return Answer(code=done.returncode, out=done.stdout, err=done.stderr.strip())
