"""The shape of the Grid Engine bed: its hosts, queues, accounts, ports and folders."""

from dataclasses import dataclass
from pathlib import Path

ADMIN = "sgeadmin"  # made by Debian's packages
USERS = ("alice", "bob", "carol")
PROJECT = "ml"
CELL = "default"
BINARIES = Path("/usr/lib/gridengine")  # compiled in; /usr/bin has slow wrappers of the same names
PACKAGES = (
    "gridengine-common",
    "gridengine-client",
    "gridengine-master",
    "gridengine-exec",
    "bsd-mailx",  # these two, or apt takes a whole mail server
    "dma",
    "iproute2",
)
ANSWERS = tuple(f"{name} shared/gridengineconfig boolean false" for name in PACKAGES[:4])  # build no cell of your own

MASTER = "ge-master"  # what this machine is called in the cluster, whatever its own name is
MASTER_PORT = 16444
EXECD_PORT = 16445


@dataclass(frozen=True)
class Host:
    """An execution host: a network of its own, its own name, and what it claims to have."""

    name: str
    number: int  # the last number of its address
    submits: bool = True
    slots: int = 8
    gpus: int = 2
    gpu_c: float = 8.0

    @property
    def complexes(self) -> str:
        return f"slots={self.slots},gpus={self.gpus},gpu_c={self.gpu_c},h_vmem=256G"


HOSTS = (Host("e1", 11), Host("e2", 12), Host("e3", 13, submits=False, gpu_c=6.0))
HOST_NAMES = tuple(host.name for host in HOSTS)


@dataclass(frozen=True)
class Queue:
    """Jobs that name no queue go to the lowest `sequence` that has room."""

    name: str
    hosts: tuple[str, ...]
    sequence: str
    notify: str = "00:00:10"
    h_rt: str = "INFINITY"


QUEUES = (
    Queue("all.q", HOST_NAMES, "10,[e3=25]"),  # e3 last: what runs there cannot submit
    Queue("short.q", ("e1", "e2"), "20", notify="00:00:02", h_rt="00:02:00"),
    Queue("nosubmit.q", ("e3",), "30"),
)

# Parallel environments: name and allocation rule. mpi2 puts exactly two slots on each host.
ENVIRONMENTS = {"smp": "$pe_slots", "mpi": "$round_robin", "mpi2": "2"}


@dataclass(frozen=True)
class Layout:
    """The folders and files of one Grid Engine bed, all below `top`."""

    top: Path

    @property
    def root(self) -> Path:
        return self.top / "root"

    @property
    def common(self) -> Path:
        return self.root / CELL / "common"

    @property
    def master_spool(self) -> Path:
        return self.top / "qmaster"

    @property
    def database(self) -> Path:
        return self.top / "spooldb"

    @property
    def execd_spool(self) -> Path:
        return self.top / "execd"

    @property
    def log(self) -> Path:
        return self.top / "log"

    @property
    def records(self) -> Path:
        """One file a daemon this bed started: which process it is."""
        return self.top / "run"

    @property
    def applied(self) -> Path:
        """The fingerprint of the configuration that the qmaster was given."""
        return self.top / "applied"

    @property
    def chosen_hosts(self) -> Path:
        """The names of the hosts this bed has: all of them, or one where there are no namespaces."""
        return self.top / "hosts"

    @property
    def hosts(self) -> tuple[Host, ...]:
        try:
            names = self.chosen_hosts.read_text().split()
        except FileNotFoundError:
            return HOSTS
        return tuple(host for host in HOSTS if host.name in names)

    @property
    def separate(self) -> bool:
        """Whether each host has a network and a name of its own."""
        return len(self.hosts) > 1

    @property
    def master(self) -> str:
        """What this machine is called in the cluster: a host that is the machine itself gives it its name."""
        return MASTER if self.separate else self.hosts[0].name

    @property
    def environment(self) -> dict[str, str]:
        return {
            "SGE_ROOT": str(self.root),
            "SGE_CELL": CELL,
            "SGE_QMASTER_PORT": str(MASTER_PORT),
            "SGE_EXECD_PORT": str(EXECD_PORT),
        }
