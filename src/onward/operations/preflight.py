"""What a job would find missing on its node, looked for at submit: there a mistake costs seconds, and not a night in the queue."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence

from onward.errors import InvalidInput, SchedulerUnavailable
from onward.schedulers.command import run_command

_PROGRAMS = ("mpirun", "horovodrun")  # torchrun is a module of the training's own Python, srun is there where sbatch is


def check_launcher_is_there(launcher: str, path: str) -> None:
    """`path`: a PATH. For runs whose environment is not prepared in the job: what is not here will not be there either."""
    if launcher in _PROGRAMS and shutil.which(launcher, path=path) is None:
        raise InvalidInput(
            f"launcher {launcher}: the program {launcher} is not on the PATH",
            hint="load its module or activate its environment first, or have it done in the job by --module, --conda, --venv or --setup",
        )


def check_setup(lines: Sequence[str]) -> None:
    """Lines for bash, each of which it reads by itself."""
    for number, line in enumerate(lines, start=1):
        try:
            answer = run_command(["bash", "-O", "extglob", "-n", "-c", line], timeout=10)
        except SchedulerUnavailable:  # no bash here: there may be one on the nodes
            return
        if answer.code:
            words = re.sub(r"^.*?: line \d+: ", "", answer.err.splitlines()[0]) if answer.err else "no reason is given"
            raise InvalidInput(
                f"setup line {number} `{line}`: bash cannot read it: {words}", hint="each line is run by itself, and must be whole"
            )
