"""Before launch: modules, conda, a venv and setup lines, run once on the first node. The training, on every node, gets what came of it."""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from onward.errors import InvalidInput, PreparationFailed
from onward.model.spec import Environment
from onward.rundir.layout import LegLocal
from onward.rundir.mirror import Mirror, carry
from onward.sdk import contract
from onward.supervisor.background import MIRROR_SECONDS, Repeating, never_hurts_training
from onward.supervisor.leg.context import LegContext
from onward.supervisor.leg.verdict import describe_exit, last_words
from onward.supervisor.preparation.environment import working_folder
from onward.supervisor.preparation.setup_shell import SHELL
from onward.supervisor.processes.child import Child
from onward.supervisor.stop.run_folder_watch import StopRequest
from onward.supervisor.stop.signals import Signals

log = logging.getLogger(__name__)

Step = tuple[str, str]  # what to do, and with what

_LONGEST = 3600.0  # seconds
_SHORTEST = 10.0
_LOOK_SECONDS = 0.1
_TERM_TO_KILL, _KILLED_TO_GONE = 3.0, 10.0  # seconds
_OURS = re.compile(
    r"ONWARD_|(PERSISTENT|LOCAL)_(CHECKPOINTS|TENSORBOARD|LOGGING)_DIR$"
)  # the contract with the training: no line may change it
_THE_SHELLS = ("PWD", "OLDPWD", "SHLVL", "_")

# Takes the place of a training whose preparation was interrupted: it leaves as soon as the leg's reason to stop reaches it.
LEAVES_WHEN_ASKED = ("/bin/sh", "-c", 'while [ ! -e "$ONWARD_STOP_FILE" ]; do sleep 0.1; done; exit 75')


def steps(environment: Environment) -> list[Step]:
    """In the order in which they are done."""
    return [
        *(("module", name) for name in environment.modules),
        *([("conda", environment.conda)] if environment.conda else []),
        *([("venv", environment.venv)] if environment.venv else []),
        *(("setup", line) for line in environment.setup),
    ]


def with_absolute_paths(environment: Environment, cwd: Path) -> Environment:
    """At submit: paths that do not depend on the folder a leg starts in. A conda environment with a slash in it is a path."""
    conda, venv = environment.conda, environment.venv
    return replace(
        environment,
        conda=_absolute(conda, cwd) if conda and ("/" in conda or conda == "~") else conda,
        venv=_absolute(venv, cwd) if venv else venv,
    )


def check_setup_paths(environment: Environment) -> None:
    """At submit: folders that are named must be there, where a mistake costs seconds and not a night in the queue."""
    for what, folder, mark in (("venv", environment.venv, "bin/activate"), ("conda", environment.conda, "conda-meta")):
        if folder and folder.startswith("/") and not (Path(folder) / mark).exists():
            raise InvalidInput(
                f"{what}: found no {Path(folder) / mark}",
                hint="name the environment's own folder; activate one that exists only on the nodes in a setup line",
            )


def time_for(deadline: float | None, now: float) -> float:
    """Seconds that preparing may take: half of what the leg has, and an hour at most."""
    return _LONGEST if deadline is None else min(_LONGEST, max(_SHORTEST, (deadline - now) / 2))


def prepare_environment(context: LegContext, local: LegLocal, env: Mapping[str, str], signals: Signals) -> dict[str, str] | None:
    """What a leg's training is started with. None where the leg is to stop before it began: then LEAVES_WHEN_ASKED is started instead."""
    environment, dir, now = context.spec.environment, context.dir, context.clock.now()
    if not steps(environment):
        return dict(env)
    log.info("preparing the environment: %s", ", ".join(" ".join(step) for step in steps(environment)))
    asked = StopRequest(dir, context.clock.now)
    mirroring = Repeating("mirroring", Mirror(local, dir).carry, every=MIRROR_SECONDS)
    try:
        return prepare(
            environment,
            env,
            cwd=working_folder(context.spec, dir),
            folder=local.path,
            output=local.log(context.leg, "err"),
            seconds=time_for(context.allocation.deadline, now),
            interrupted=lambda: signals.ending or signals.warned or asked.to_stop(),
        )
    finally:
        mirroring.stop(within=5.0)
        with never_hurts_training("mirroring the output of the preparation"):
            carry(local, dir)


def prepare(
    environment: Environment,
    env: Mapping[str, str],
    *,
    cwd: Path,
    folder: Path,
    output: Path,
    seconds: float,
    interrupted: Callable[[], bool] = lambda: False,
) -> dict[str, str] | None:
    """The environment that came of it; None where it was interrupted. What the steps print is appended to `output`.

    Raises PreparationFailed, which names the step that failed and has its last lines.
    """
    todo = steps(environment)
    if not todo:
        return dict(env)
    at, into = folder / "preparing.at", folder / "preparing.env"
    began = time.monotonic()
    start = output.stat().st_size if output.exists() else 0
    woken = threading.Event()
    mine = (contract.RUN_ID, contract.LEG)
    try:
        shell = Child(
            ["/bin/bash", "-c", SHELL, "onward-prepare", str(at), str(into), *(word for step in todo for word in step)],
            cwd=cwd,
            env=env,
            mark={name: env[name] for name in mine} if all(name in env for name in mine) else {},
            out=output,
            err=output,
            woken=woken,
        )
    except OSError as error:
        raise PreparationFailed(
            f"the environment cannot be prepared: {error}", hint="do the folder and /bin/bash exist on the nodes?"
        ) from error
    late = stopped = False
    while shell.running and not (late or stopped):
        if not woken.wait(_LOOK_SECONDS):
            late = time.monotonic() - began > seconds
            stopped = interrupted()
    if late or stopped:
        _end(shell, woken)
    if stopped:
        log.info("preparing the environment was interrupted")
        return None
    try:
        if late:
            raise PreparationFailed(f"{_at_work(todo, at)} took more than {seconds:.0f} s", hint=_said(output, start))
        return {**_result(todo, shell.code or 0, at=at, into=into, printed=(output, start)), **_kept(env, into)}
    finally:
        for file in (at, into):
            file.unlink(missing_ok=True)
        log.info("preparing the environment took %.1f s", time.monotonic() - began)


def _result(todo: Sequence[Step], code: int, *, at: Path, into: Path, printed: tuple[Path, int]) -> dict[str, str]:
    if code:
        how = f"failed with {describe_exit(code)}" if code > 0 else f"was {describe_exit(code)}"
        raise PreparationFailed(f"{_at_work(todo, at)} {how}", hint=_said(*printed))
    if not into.exists():
        raise PreparationFailed(
            f"{_at_work(todo, at)} ended the shell, so nothing after it could run",
            hint=_said(*printed) or "leave out exit and exec: the lines are run one after another in one shell",
        )
    return {key: value for key, value in _read(into).items() if not key.startswith("__onward_") and key not in _THE_SHELLS}


def _kept(env: Mapping[str, str], into: Path) -> dict[str, str]:
    """What no step may change: the contract's variables, what belonged to the shell, and `import onward`."""
    kept = {key: value for key, value in env.items() if _OURS.match(key) or key in _THE_SHELLS}
    archive = env.get("PYTHONPATH", "").rpartition(os.pathsep)[2]
    parts = [part for part in _read(into).get("PYTHONPATH", "").split(os.pathsep) if part and part != archive]
    return {**kept, "PYTHONPATH": os.pathsep.join([*parts, archive])} if archive else kept


def _read(into: Path) -> dict[str, str]:
    pairs = (os.fsdecode(pair).partition("=") for pair in into.read_bytes().split(b"\0") if pair)
    return {key: value for key, _, value in pairs}


def _at_work(todo: Sequence[Step], at: Path) -> str:
    """The step that was at work, in words: `setup line 2` counts setup lines alone, as the user does."""
    code = at.read_text().strip() if at.exists() else "0"
    index = int(code) if code.isdigit() else len(todo) - 1
    what, text = todo[index]
    match what:
        case "module":
            return f"loading the module {text}"
        case "conda":
            return f"activating the conda environment {text}"
        case "venv":
            return f"activating the virtual environment {text}"
        case _:
            return f"setup line {index + 1 - sum(step[0] != 'setup' for step in todo)} `{text}`"


def _said(output: Path, start: int) -> str:
    """The last lines that were printed since."""
    return last_words(output, output) if output.stat().st_size > start else ""


def _end(shell: Child, woken: threading.Event) -> None:
    shell.kill(signal.SIGTERM)
    woken.wait(_TERM_TO_KILL)
    shell.kill()
    shell.gone.wait(_KILLED_TO_GONE)


def _absolute(path: str, cwd: Path) -> str:
    return os.path.normpath(cwd / Path(path).expanduser())
