"""What a training finds around it: its node-local folder, its environment, its command line."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from onward.checkpoints.disk_space import is_in_memory
from onward.checkpoints.restoring.newest_entry import newest_entry
from onward.model.commands.optional_words import with_optional
from onward.model.commands.placeholders import fill, placeholder_values
from onward.model.spec import ParamValue, RunSpec
from onward.rundir.layout import LegLocal, RunDir
from onward.sdk import contract
from onward.supervisor.disk.owner import mark_as_own

log = logging.getLogger(__name__)

# The gateway's own, with passwords among them: no run needs to know them.
_OF_THE_GATEWAY = ("RABBITMQ_", "HPC_RABBITMQ_", "RODAN_")

_SYSTEM_DISKS = ("/var/tmp", "/tmp")

# Belongs to the shell or job it was taken in, not to the run.
_NOT_CARRIED = (
    "SLURM_",
    "SBATCH_",
    "SGE_",
    "PBS_",
    "ONWARD_",
    "SSH_",
    "XDG_RUNTIME",
    "XDG_SESSION",
    "DBUS_",
    "TMUX",
    "BASH_FUNC_",
    *_OF_THE_GATEWAY,
)
_NOT_CARRIED_NAMES = {
    *("TMPDIR", "TMP", "TEMP", "PWD", "OLDPWD", "SHLVL", "_", "DISPLAY", "TERM", "HOSTNAME", "WINDOWID"),
    "CUDA_VISIBLE_DEVICES",
    # Trackers of the shell's: inside a run they are its relay's, unless the run's own variables say otherwise.
    *("TRACKER_API", "TRACKER_API_KEY", "MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME"),
    *("MLFLOW_TRACKING_PASSWORD", "MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME"),
}

TRAINERS_TENSORBOARD_DIR = "TENSORBOARD_LOGGING_DIR"  # the Hugging Face Trainer's word; what the user set stays

# What launchers tell the processes they start. The supervisor is none of them, whatever its environment says.
RANK_FAMILIES = ("PMI", "OMPI_", "PRTE_", "ORTE_", "HOROVOD_", "TORCHELASTIC_")
RANK_NAMES = {
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_NAME"),
    *("ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", contract.RANK, contract.WORLD_SIZE, contract.LOCAL_RANK),
}


def inherited_variables(environment: Mapping[str, str], *, functions: bool = False) -> dict[str, str]:
    """The part of a submitting shell's environment that every leg gets, wherever it was queued from.

    `functions`: also those that bash exports, which is how `module` reaches a batch script.
    """
    without = tuple(prefix for prefix in _NOT_CARRIED if not (functions and prefix == "BASH_FUNC_"))
    return {key: value for key, value in environment.items() if not key.startswith(without) and key not in _NOT_CARRIED_NAMES}


def local_folder(spec: RunSpec, leg: int, *, node: int = 0, run: RunDir | None = None) -> LegLocal:
    """On the node's own disk, for this process's eyes and care. Nobody else may read it.

    `node` is the number of the node in its job: "nodes" may share a disk. `run` is noted there, for whoever finds what is left.
    """
    base = local_base(spec)
    mine = base / f"onward-{os.getuid()}"
    mine.mkdir(parents=True, exist_ok=True, mode=0o700)
    if mine.is_symlink() or mine.stat().st_uid != os.getuid():  # somebody else took the name in a shared folder
        mine = Path(tempfile.mkdtemp(prefix="onward-", dir=base))
    local = LegLocal(mine / spec.id / (f"leg-{leg:04d}.node-{node}" if node else f"leg-{leg:04d}"))
    local.make()
    mark_as_own(local.path, run=run.path if run else None)
    return local


def local_base(spec: RunSpec) -> Path:
    """The profile's disk where it names one; else SLURM_TMPDIR, TMPDIR, or the system's, whichever is first and no memory.

    What lies in a tmpfs is paid for with the job's memory: it is taken only where there is nothing else.
    """
    disk = os.path.expandvars(spec.cluster.local_disk or "")
    if disk and "$" not in disk:
        return Path(disk)
    if disk:
        log.warning("the profile's local disk %s names a variable that is not set here, so it is not used", disk)
    offered = [os.environ.get("SLURM_TMPDIR", ""), tempfile.gettempdir(), *_SYSTEM_DISKS]
    usable = [Path(folder) for index, folder in enumerate(offered) if folder and (index < 2 or os.access(folder, os.W_OK | os.X_OK))]
    return next((folder for folder in usable if not is_in_memory(folder)), usable[0])


def frozen_variables(run: RunDir) -> dict[str, str]:
    """Of the shell it was submitted from, and its own."""
    return json.loads(run.environment.read_bytes()) if run.environment.exists() else {}


def training_environment(
    spec: RunSpec, run: RunDir, local: LegLocal, *, leg: int, deadline: float | None, resume: tuple[Path, int] | None
) -> dict[str, str]:
    frozen = frozen_variables(run)
    env = {**os.environ, **frozen}
    for name in (contract.DEADLINE, contract.RESUME_DIR, contract.RESUME_STEP, contract.RESUME_NEWEST):
        env.pop(name, None)
    env.update(
        {
            contract.RUN_ID: spec.id,
            contract.RUN_DIR: str(run.path),
            contract.LEG: str(leg),
            contract.CHECKPOINT_EVERY: spec.checkpoints.every,
            **local_variables(local),
            **resume_variables(local, resume),
            "PERSISTENT_TENSORBOARD_DIR": str(run.tensorboard),
            "PERSISTENT_LOGGING_DIR": str(run.logs),
            TRAINERS_TENSORBOARD_DIR: frozen.get(TRAINERS_TENSORBOARD_DIR) or str(local.tensorboard),
            "EXPERIMENT_ID": frozen.get("EXPERIMENT_ID") or spec.experiment,
            "PYTHONFAULTHANDLER": env.get("PYTHONFAULTHANDLER", "1"),
            "PYTHONUNBUFFERED": env.get("PYTHONUNBUFFERED", "1"),
            "PYTHONPATH": os.pathsep.join(part for part in (env.get("PYTHONPATH", ""), str(run.supervisor)) if part),
        }
    )
    if deadline is not None:
        env[contract.DEADLINE] = f"{deadline:.0f}"
    return env


def local_variables(local: LegLocal) -> dict[str, str]:
    """What differs from node to node."""
    return {
        contract.STOP_FILE: str(local.told_stop_file),
        contract.CHECKPOINT_DIR: str(local.checkpoints),
        contract.SAVE_SOCKET: str(local.save_socket),
        contract.SPOOL_DIR: str(local.spool),
        contract.TENSORBOARD_DIR: str(local.tensorboard),
        contract.ARTIFACTS_DIR: str(local.artifacts),
        contract.RANKS_DIR: str(local.ranks),
        "LOCAL_CHECKPOINTS_DIR": str(local.checkpoints),
        "LOCAL_TENSORBOARD_DIR": str(local.tensorboard),
        "LOCAL_LOGGING_DIR": str(local.logs),
    }


def resume_variables(local: LegLocal, resume: tuple[Path, int] | None) -> dict[str, str]:
    variables = {"PERSISTENT_CHECKPOINTS_DIR": str(resume[0] if resume else local.empty)}
    if resume is None:
        return variables
    variables |= {contract.RESUME_DIR: str(resume[0]), contract.RESUME_STEP: str(resume[1])}
    newest = newest_entry(*resume)
    return variables | ({contract.RESUME_NEWEST: str(newest)} if newest else {})


def relay_variables(local: LegLocal) -> dict[str, str]:
    """What the relay of this node told; nothing where there is none."""
    try:
        relay = json.loads(local.relay.read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(name): str(value) for name, value in relay.items()}


def launcher_environment(env: Mapping[str, str]) -> dict[str, str]:
    """The training's environment without what some other launcher left in it."""
    return {key: value for key, value in env.items() if not key.startswith(RANK_FAMILIES) and key not in RANK_NAMES}


def training_command(
    command: tuple[str, ...], params: Mapping[str, ParamValue], local: LegLocal, *, resume: tuple[Path, int] | None
) -> tuple[str, ...]:
    newest = newest_entry(*resume) if resume else None
    values = placeholder_values(
        params,
        read=str(resume[0] if resume else local.empty),
        write=str(local.checkpoints),
        tensorboard=str(local.tensorboard),
        newest=str(newest) if newest else None,
    )
    return fill(with_optional(command, resuming=resume is not None), values)


def working_folder(spec: RunSpec, run: RunDir) -> Path:
    """Inside the frozen code; or, where code is not frozen, where the user stood."""
    return run.code / spec.workdir if spec.code.get("frozen") else Path(spec.workdir)
