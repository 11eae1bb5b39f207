"""Which of a training's processes this is, read from the variables of whatever started it."""

from __future__ import annotations

from collections.abc import Mapping

from onward.sdk import contract

# rank, world size, local rank: by our own task, torchrun, Open MPI, horovodrun, MPICH and Intel MPI, srun
_FAMILIES = (
    (contract.RANK, contract.WORLD_SIZE, contract.LOCAL_RANK),
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),  # of a step alone: a batch script has SLURM_NTASKS too, and is one process
)


class Ranks:
    """One process of `world_size`; rank 0 logs and saves."""

    __slots__ = ("local_rank", "rank", "world_size")

    def __init__(self, rank: int = 0, world_size: int = 1, local_rank: int = 0) -> None:
        self.rank = rank
        self.world_size = world_size
        self.local_rank = local_rank

    @property
    def first(self) -> bool:
        return self.rank == 0

    @property
    def several(self) -> bool:
        return self.world_size > 1


def ranks_of(env: Mapping[str, str]) -> Ranks:
    """The first family of variables that is complete and consistent; else a single process."""
    for names in _FAMILIES:
        rank, world, local = (env.get(name, "") for name in names)
        if rank.isdecimal() and world.isdecimal() and int(rank) < int(world):
            return Ranks(int(rank), int(world), int(local) if local.isdecimal() else 0)
    return Ranks()
