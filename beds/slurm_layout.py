"""The shape of the Slurm bed: its nodes, partitions, accounts, ports and folders."""

from dataclasses import dataclass
from pathlib import Path

CLUSTER = "onwardbed"
SLURM_USER = "slurm"  # made by Debian's packages
ACCOUNTS = {"alice": "ml", "bob": "vision", "carol": "ml"}  # by user
PACKAGES = (
    "munge",
    "mariadb-server-core",
    "mariadb-client-core",  # mariadb-install-db needs its my_print_defaults
    "slurm-client",
    "slurmctld",
    "slurmd",
    "slurmdbd",
    "slurmrestd",
    "slurm-wlm-jwt-plugin",
)

CONTROLLER_PORT = 16817
ACCOUNTING_PORT = 16819
REST_PORT = 16820
DATABASE_PORT = 16806


@dataclass(frozen=True)
class Node:
    """What a node claims to be. Only `port` is real."""

    name: str
    port: int
    gpu: str | None = None  # the type of its GPUs
    gpus: int = 0
    cpus: int = 16
    memory_mib: int = 65536

    @property
    def cgroup(self) -> str:
        """Slurm names a node's control groups after it, since many slurmd may share a host."""
        return f"slurm_{self.name}"


NODES = (
    Node("g1", 16831, gpu="a100", gpus=2),
    Node("g2", 16832, gpu="a100", gpus=2),
    Node("g3", 16833, gpu="v100", gpus=2),
    Node("c1", 16834),
    Node("c2", 16835),
)
NODE_NAMES = tuple(node.name for node in NODES)


@dataclass(frozen=True)
class Partition:
    name: str
    nodes: str
    max_time: str
    tier: int = 10
    default: bool = False
    preemptible: bool = False


DEFAULT_NODES = ("c1", "c2")  # those of the default partition
PARTITIONS = (
    Partition("cpu", "c[1-2]", "1-00:00:00", default=True),
    Partition("gpu", "g[1-3]", "2-00:00:00"),
    Partition("debug", "c1,g1", "00:30:00"),
    Partition("spot", "c[1-2],g[1-3]", "7-00:00:00", tier=1, preemptible=True),
)


@dataclass(frozen=True)
class Layout:
    """The folders and files of one Slurm bed, all below `top`."""

    top: Path

    @property
    def etc(self) -> Path:
        return self.top / "etc"

    @property
    def slurm_conf(self) -> Path:
        return self.etc / "slurm.conf"

    @property
    def jwt_key(self) -> Path:
        return self.top / "jwt.key"

    @property
    def saved(self) -> Path:
        """Where slurmctld keeps its state."""
        return self.top / "controller"

    @property
    def spool(self) -> Path:
        return self.top / "spool"

    @property
    def devices(self) -> Path:
        return self.top / "dev"

    @property
    def log(self) -> Path:
        return self.top / "log"

    def daemon_log(self, daemon: str) -> Path:
        return self.log / f"{daemon}.log"

    @property
    def pids(self) -> Path:
        """The daemons' own pid files; the bed goes by its records instead."""
        return self.top / "pid"

    @property
    def munge(self) -> Path:
        return self.top / "munge"

    @property
    def database(self) -> Path:
        return self.top / "database"

    @property
    def raised(self) -> Path:
        """Holds the boot in which the bed was brought up; there until it is taken down."""
        return self.top / "raised"

    @property
    def records(self) -> Path:
        """One file a daemon this bed started: which process it is."""
        return self.top / "run"

    def record(self, daemon: str) -> Path:
        return self.records / daemon
