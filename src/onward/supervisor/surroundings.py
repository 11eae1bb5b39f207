"""What a training finds around it: its node-local folder, its environment, its command line."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from onward.model.command import fill, placeholder_values
from onward.model.spec import RunSpec
from onward.rundir.layout import LegLocal, RunDir
from onward.sdk import contract

log = logging.getLogger(__name__)

# Belongs to the shell or job it was taken in, not to the run.
_NOT_CARRIED = ("SLURM_", "SBATCH_", "SGE_", "PBS_", "ONWARD_", "SSH_", "XDG_RUNTIME", "XDG_SESSION", "DBUS_", "TMUX", "BASH_FUNC_")
_NOT_CARRIED_NAMES = {
    *("TMPDIR", "TMP", "TEMP", "PWD", "OLDPWD", "SHLVL", "_", "DISPLAY", "TERM", "HOSTNAME", "WINDOWID"),
    "CUDA_VISIBLE_DEVICES",
}


def carried(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of a submitting shell's environment that every leg gets, wherever it was queued from."""
    return {key: value for key, value in environment.items() if not key.startswith(_NOT_CARRIED) and key not in _NOT_CARRIED_NAMES}


def local_folder(spec: RunSpec, leg: int) -> LegLocal:
    """On the node's own disk: the profile's, SLURM_TMPDIR, TMPDIR, or the system's. Nobody else may read it."""
    told = os.path.expandvars(spec.cluster.local_disk or "")
    if "$" in told:
        log.warning("the profile's local disk %s names a variable that is not set here; it is not used", told)
        told = ""
    base = Path(told or os.environ.get("SLURM_TMPDIR") or tempfile.gettempdir())
    mine = base / f"onward-{os.getuid()}"
    mine.mkdir(parents=True, exist_ok=True, mode=0o700)
    if mine.is_symlink() or mine.stat().st_uid != os.getuid():  # somebody else took the name in a shared folder
        mine = Path(tempfile.mkdtemp(prefix="onward-", dir=base))
    local = LegLocal(mine / spec.id / f"leg-{leg:04d}")
    local.make()
    return local


def training_environment(
    spec: RunSpec, run: RunDir, local: LegLocal, *, leg: int, deadline: float | None, resume: tuple[Path, int] | None
) -> dict[str, str]:
    frozen = json.loads(run.environment.read_bytes()) if run.environment.exists() else {}
    env = {**os.environ, **frozen}
    for name in (contract.DEADLINE, contract.RESUME_DIR, contract.RESUME_STEP):
        env.pop(name, None)
    env.update(
        {
            contract.RUN_ID: spec.id,
            contract.RUN_DIR: str(run.path),
            contract.LEG: str(leg),
            contract.STOP_FILE: str(local.stop_file),
            contract.CHECKPOINT_DIR: str(local.checkpoints),
            contract.CHECKPOINT_EVERY: spec.checkpoints.every,
            contract.SPOOL_DIR: str(local.spool),
            contract.TENSORBOARD_DIR: str(local.tensorboard),
            "LOCAL_CHECKPOINTS_DIR": str(local.checkpoints),
            "LOCAL_TENSORBOARD_DIR": str(local.tensorboard),
            "PERSISTENT_CHECKPOINTS_DIR": str(resume[0] if resume else local.empty),
            "PERSISTENT_TENSORBOARD_DIR": str(run.tensorboard),
            "EXPERIMENT_ID": spec.experiment,
            "PYTHONFAULTHANDLER": env.get("PYTHONFAULTHANDLER", "1"),
            "PYTHONUNBUFFERED": env.get("PYTHONUNBUFFERED", "1"),
            "PYTHONPATH": os.pathsep.join(part for part in (env.get("PYTHONPATH", ""), str(run.supervisor)) if part),
        }
    )
    if deadline is not None:
        env[contract.DEADLINE] = f"{deadline:.0f}"
    if resume:
        env[contract.RESUME_DIR] = str(resume[0])
        env[contract.RESUME_STEP] = str(resume[1])
    return env


def training_command(spec: RunSpec, local: LegLocal, *, resume: Path | None) -> tuple[str, ...]:
    read, write, tensorboard = (str(path) for path in (resume or local.empty, local.checkpoints, local.tensorboard))
    return fill(spec.command, placeholder_values(spec.params, read=read, write=write, tensorboard=tensorboard))


def working_folder(spec: RunSpec, run: RunDir) -> Path:
    """Inside the frozen code; or, where code is not frozen, where the user stood."""
    return run.code / spec.workdir if spec.code.get("frozen") else Path(spec.workdir)
