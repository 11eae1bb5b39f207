"""The daemons of the Slurm bed: how each is run, and when it counts as ready."""

from dataclasses import dataclass
from functools import cached_property

from beds.command import attempt
from beds.daemon import Daemon, listens
from beds.mariadb import MariaDB
from beds.munge import Munge
from beds.slurm_accounts import Accounts
from beds.slurm_layout import (
    ACCOUNTING_PORT,
    CONTROLLER_PORT,
    DATABASE_PORT,
    NODES,
    REST_PORT,
    SLURM_USER,
    Layout,
    Node,
)


@dataclass(frozen=True)
class SlurmDaemons:
    layout: Layout

    @cached_property
    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.layout.slurm_conf)}

    @cached_property
    def munge(self) -> Munge:
        return Munge(self.layout.munge, self.layout.record("munged"))

    @cached_property
    def mariadb(self) -> MariaDB:
        return MariaDB(
            folder=self.layout.database,
            record=self.layout.record("mariadbd"),
            account=SLURM_USER,
            port=DATABASE_PORT,
            database="slurm_acct_db",
        )

    @cached_property
    def munged(self) -> Daemon:
        return self.munge.daemon()

    @cached_property
    def database(self) -> Daemon:
        return self.mariadb.daemon()

    @cached_property
    def accounting(self) -> Daemon:
        return self._daemon("slurmdbd", "/usr/sbin/slurmdbd", "-D", port=ACCOUNTING_PORT)

    @cached_property
    def controller(self) -> Daemon:
        return self._daemon("slurmctld", "/usr/sbin/slurmctld", "-D", port=CONTROLLER_PORT)

    @cached_property
    def nodes(self) -> dict[str, Daemon]:
        return {node.name: self._slurmd(node) for node in NODES}

    @cached_property
    def rest(self) -> Daemon:
        """It refuses to run as root or as Slurm's own user."""
        return Daemon(
            name="slurmrestd",
            argv=("/usr/sbin/slurmrestd", "-a", "rest_auth/jwt", f"127.0.0.1:{REST_PORT}"),
            record=self.layout.record("slurmrestd"),
            output=self.layout.log / "slurmrestd.log",
            account="nobody",
            port=REST_PORT,
            environment={**self.environment, "SLURM_JWT": "daemon"},
        )

    def all(self) -> list[Daemon]:
        """In the order of starting."""
        return [
            *(self.munged, self.database, self.accounting, self.controller),
            *(*self.nodes.values(), self.rest),
        ]

    def controller_answers(self) -> bool:
        return attempt(["scontrol", "ping"], env=self.environment, timeout=10).ok

    def start_munged(self) -> bool:
        return self.munged.start(self.munge.socket.exists)

    def start_database(self) -> bool:
        return self.database.start(lambda: listens(DATABASE_PORT), timeout=60)

    def start_accounting(self) -> bool:
        """The first time it builds its tables, which takes a while on a busy machine."""
        accounts = Accounts(self.environment)
        return self.accounting.start(lambda: listens(ACCOUNTING_PORT) and accounts.answer(), timeout=90)

    def start_controller(self) -> bool:
        return self.controller.start(lambda: listens(CONTROLLER_PORT) and self.controller_answers(), timeout=30)

    def start_node(self, node: Node) -> bool:
        return self.nodes[node.name].start(lambda: listens(node.port))

    def start_rest(self) -> bool:
        return self.rest.start(lambda: listens(REST_PORT))

    def _slurmd(self, node: Node) -> Daemon:
        argv = ("/usr/sbin/slurmd", "-D", "-N", node.name)
        return self._daemon(f"slurmd-{node.name}", *argv, port=node.port)

    def _daemon(self, name: str, *argv: str, port: int) -> Daemon:
        """Their logs repeat what they print, with times; both are kept for early deaths."""
        return Daemon(
            name=name,
            argv=argv,
            record=self.layout.record(name),
            output=self.layout.log / f"{name}.output",
            log=self.layout.daemon_log(name),
            port=port,
            environment=self.environment,
        )
