"""What a job would find missing on its node, looked for at submit: there a mistake costs seconds, and not a night in the queue."""

from __future__ import annotations

import shutil

from onward.errors import InvalidInput

_PROGRAMS = ("mpirun", "horovodrun")  # torchrun is a module of the training's own Python, srun is there where sbatch is


def check_launcher_is_there(launcher: str, path: str) -> None:
    """`path`: a PATH. For runs whose environment is not prepared in the job: what is not here will not be there either."""
    if launcher in _PROGRAMS and shutil.which(launcher, path=path) is None:
        raise InvalidInput(
            f"launcher {launcher}: the program {launcher} is not on the PATH",
            hint="load its module or activate its environment first, or have it done in the job by --module, --conda, --venv or --setup",
        )


def notes_on_python(python: str | None) -> list[str]:
    """The profile's Python is the nodes' to have: here its absence is only worth a word."""
    if python is None or shutil.which(python):
        return []
    return [f"the profile's python, {python}, is not on this machine; nodes that do not have it either take their python3"]
