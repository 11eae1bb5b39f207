"""What a job would find missing on its node, looked for at submit: there a mistake costs seconds, and not a night in the queue."""

from __future__ import annotations

import shutil

from onward.errors import InvalidInput, SchedulerUnavailable
from onward.model.quantity import duration_text
from onward.model.spec import Cluster
from onward.schedulers.base import expected_start_of

_PROGRAMS = ("mpirun", "horovodrun")  # torchrun is a module of the training's own Python, srun is there where sbatch is


def check_launcher_is_there(launcher: str, path: str) -> None:
    """`path`: a PATH. For runs whose environment is not prepared in the job: what is not here will not be there either."""
    if launcher in _PROGRAMS and shutil.which(launcher, path=path) is None:
        raise InvalidInput(
            f"launcher {launcher}: the program {launcher} is not on the PATH",
            hint="load its module or activate its environment first, or let the job do it with --module, --conda, --venv or --setup",
        )


def notes_on_python(cluster: Cluster) -> list[str]:
    """The profile's Pythons are the nodes' to have: here their absence is only worth a word."""
    named = [python for python in (cluster.python, *cluster.other_pythons) if python]
    if not named or any(map(shutil.which, named)):
        return []
    which = f"python, {named[0]}, is" if len(named) == 1 else f"Pythons, {', '.join(named)}, are"
    return [f"the profile's {which} not on this machine; nodes without it use the first suitable Python of their own"]


def notes_on_start(scheduler: object, script: str, *, now: float) -> list[str]:
    """When such a job would start if it were submitted now, where the scheduler can tell; nothing where it does not answer."""
    try:
        expected = expected_start_of(scheduler, script)
    except SchedulerUnavailable:
        return []
    if expected is None:
        return []
    if expected.refused:
        return [f"the scheduler would refuse it: {expected.refused}"]
    if expected.at is None:
        return []
    where = f" on {expected.nodes}" if expected.nodes else ""
    queue = f" (queue {expected.queue})" if expected.queue else ""
    return [f"submitted now, it is expected to start {_soon(expected.at - now)}{where}{queue}; other jobs may change that"]


def _soon(seconds: float) -> str:
    if seconds < 90:
        return "immediately"
    return f"in about {duration_text(seconds)}"
