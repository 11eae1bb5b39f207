"""A batch script as a leg's training: how it is started, what it finds around it, when it is stopped and what its exit code means.

A script that knows nothing of us cannot be asked anything. It runs to the limit, as it would under its scheduler alone;
only its last seconds are ours, so that the end of the leg is written down (ADR 7).
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from onward.errors import SchedulerUnavailable
from onward.model.spec import RunSpec, Script
from onward.model.stop_reason import StopReason
from onward.rundir.layout import LegLocal, RunDir
from onward.schedulers.command import run_command
from onward.sdk.contract import EXIT_AGAIN, RELAY_WRITER
from onward.supervisor.processes.child import Child
from onward.supervisor.stop.plan import StopPlan

log = logging.getLogger(__name__)

_SHORTEST_END, _LONGEST_END = 3.0, 10.0  # seconds before the limit at which a script that heard nothing is ended
_SHARE_OF_A_LEG = 0.01
_KEPT = ("PYTHONPATH",)  # of the user's own variables that ours replace, those which hold theirs too


def script_command(script: Script, run: RunDir) -> tuple[str, ...]:
    return (*script.shell, str(run.batch_script), *script.arguments)


def script_environment(script: Script, env: Mapping[str, str], *, run: RunDir, folder: Path, job: str) -> dict[str, str]:
    """What the script's author counts on: their own variables, and the scheduler's as if this were the only job there is."""
    frozen = json.loads(run.environment.read_bytes()) if run.environment.exists() else {}
    own = {key: value for key, value in frozen.items() if not key.startswith("ONWARD_") and key not in _KEPT}
    variables = {**env, **own}
    start = script.submitted_from or str(folder)
    words = _slurm_words(script, job, start) if script.family == "slurm" else _gridengine_words(script, job, start)
    variables.update(words)
    variables["PWD"] = str(folder)
    return variables


def _slurm_words(script: Script, job: str, start: str) -> dict[str, str]:
    words = {"SLURM_JOB_ID": job, "SLURM_JOBID": job, "SLURM_JOB_NAME": script.job_name, "SLURM_SUBMIT_DIR": start}
    if script.task is not None:
        first, last, step, count = _bounds(script)
        words |= {"SLURM_ARRAY_JOB_ID": job, "SLURM_ARRAY_TASK_ID": str(script.task), "SLURM_ARRAY_TASK_COUNT": str(count)}
        words |= {"SLURM_ARRAY_TASK_MIN": str(first), "SLURM_ARRAY_TASK_MAX": str(last), "SLURM_ARRAY_TASK_STEP": str(step)}
    return words


def _gridengine_words(script: Script, job: str, start: str) -> dict[str, str]:
    words = {"JOB_ID": job, "JOB_NAME": script.job_name, "REQUEST": script.job_name, "SGE_O_WORKDIR": start}
    words |= {"SGE_TASK_ID": "undefined", "SGE_TASK_FIRST": "undefined", "SGE_TASK_LAST": "undefined", "SGE_TASK_STEPSIZE": "undefined"}
    if script.task is not None:
        first, last, step, _ = _bounds(script)
        words |= {"SGE_TASK_ID": str(script.task), "SGE_TASK_FIRST": str(first)}
        words |= {"SGE_TASK_LAST": str(last), "SGE_TASK_STEPSIZE": str(step)}
    return words


def _bounds(script: Script) -> tuple[int, int, int, int]:
    """First, last, step and number of an array's tasks."""
    numbers: set[int] = set()
    step = 1
    for part in (script.array or str(script.task)).split(","):
        span, _, option = part.partition(":")
        first, _, last = span.partition("-")
        step = int(option or 1)
        numbers.update(range(int(first), int(last or first) + 1, step))
    return min(numbers), max(numbers), step, len(numbers)


# ── stopping ──────────────────────────────────────────────────────────────────


def script_plan(spec: RunSpec, usual: StopPlan, *, limit: float | None, local: LegLocal) -> StopPlan:
    """A signal that the script set comes as long before the limit as it said. Without one it is ended in its last seconds, unasked.

    Once it shows that it knows about Onward, it is stopped like any training, but no later than it said.
    """
    length = 86400.0 if limit is None else max(limit, 0.001)
    said = min(float(spec.stop_lead), 0.9 * length) if spec.stop_signal and spec.stop_lead else 0.0
    if (spec.stop_signal and spec.stop_lead is None) or uses_onward(local):
        return replace(usual, ask=said) if said > usual.ask else usual
    end = min(max(_SHARE_OF_A_LEG * length, _SHORTEST_END), _LONGEST_END, 0.25 * length)
    return StopPlan(ask=max(said, end), kill=end)


def uses_onward(local: LegLocal) -> bool:
    """It logged through the SDK, or wrote into the folder for checkpoints."""
    try:
        own = (
            path for path in local.spool.glob("leg-*.train-*") if f".{RELAY_WRITER}" not in path.name
        )  # the relay is ours, and in every leg
        return any(own) or any(local.checkpoints.iterdir())
    except OSError:
        return False


def send_stop_signal(spec: RunSpec, child: Child) -> None:
    """To whom the scheduler would have sent it: the shell alone, the steps that srun started, or all of them."""
    number = getattr(signal, f"SIG{spec.stop_signal}")
    to = spec.script.signal_to if spec.script else "shell"
    if to == "all":
        child.kill(number)
    elif to == "shell":
        child.signal(number)
    elif job := os.environ.get("SLURM_JOB_ID"):
        threading.Thread(target=_signal_steps, args=(job, spec.stop_signal), name="signal to steps", daemon=True).start()


def _signal_steps(job: str, word: str) -> None:
    try:
        answer = run_command(["scancel", f"--signal={word}", job], timeout=25)
    except SchedulerUnavailable as error:
        log.warning("the steps of job %s could not be sent %s: %s", job, word, error)
        return
    if answer.code:
        log.warning("the steps of job %s could not be sent %s: %s", job, word, answer.err.strip())


def adjusted_exit(
    spec: RunSpec, *, code: int, asked: StopReason | None, ended_by_us: bool, local: LegLocal, own: bool = False, deaf: bool = False
) -> tuple[int, StopReason | None]:
    """The exit code and the asking that count. What a script that heard nothing exits with is its own word, as if it had not been
    asked; what its shell made of being ended or signalled by us (143, or the code of a trap) is not. So it is with the 0 of any
    training that surely heard nothing (`deaf`), or that keeps its `own` checkpoints."""
    if asked not in (StopReason.DEADLINE, StopReason.WARNING, StopReason.REQUEST):
        return code, asked
    if spec.script is None:
        heard_nothing = (deaf or (own and not uses_onward(local))) and not ended_by_us and not spec.stop_signal
        return code, None if heard_nothing and code == 0 else asked
    if ended_by_us:
        return (code if code in (0, EXIT_AGAIN) or code < 0 else -signal.SIGTERM), asked
    if not spec.stop_signal and (deaf or not uses_onward(local)):
        return code, None
    return (128 - code if code > 128 else code), asked
