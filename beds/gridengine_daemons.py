"""The daemons of the Grid Engine bed: a qmaster on this machine, an execd on each host."""

import shutil
import signal
from dataclasses import dataclass
from functools import cached_property

from beds.daemon import Daemon, listens
from beds.errors import BedError
from beds.gridengine_layout import BINARIES, HOST_NAMES, HOSTS, MASTER_PORT, Host, Layout
from beds.gridengine_objects import Cell
from beds.namespaces import Network
from beds.process import Process, all_processes
from beds.waiting import until

NETWORK = Network(bridge="onward-ge", gateway="10.213.0.1", hosts={host.name: f"10.213.0.{host.number}" for host in HOSTS})
_SHEPHERD = "sge_shepherd"


@dataclass(frozen=True)
class GridEngineDaemons:
    layout: Layout

    @cached_property
    def cell(self) -> Cell:
        return Cell(self.layout, self.layout.environment)

    @cached_property
    def master(self) -> Daemon:
        """It needs up to eleven seconds to end."""
        return self._daemon("qmaster", str(BINARIES / "sge_qmaster"), port=MASTER_PORT, patience=30)

    @property
    def execds(self) -> dict[str, Daemon]:
        return {host.name: self.execd(host) for host in self.layout.hosts}

    def execd(self, host: Host) -> Daemon:
        program = str(BINARIES / "sge_execd")
        argv = NETWORK.command(host.name, program) if self.layout.separate else (program,)
        return self._daemon(f"execd-{host.name}", *argv)

    def all(self) -> list[Daemon]:
        return [self.master, *self.execds.values()]

    def start_master(self) -> bool:
        return self.master.start(lambda: listens(MASTER_PORT) and self.cell.answers(), timeout=60)

    def start_execd(self, host: Host) -> bool:
        """It is ready when its queues are, which `Cell.repair` waits for."""
        return self.execd(host).start(lambda: True)

    def forget_jobs(self, host: Host) -> None:
        """Where nothing runs, drop what is noted of jobs: an execd dies of a note that a hard end left half-written, at every start."""
        if self.execd(host).process() is None and not self.processes(host):
            for part in ("active_jobs", "jobs", "job_scripts"):
                for path in (self.layout.execd_spool / host.name / part).glob("*"):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    def processes(self, host: Host) -> list[Process]:
        """The host's shepherds, then every process of its jobs; its execd is not among them."""
        if self.layout.separate:
            found = NETWORK.processes(host.name)
        else:
            found = [process for process in all_processes() if self._is_a_jobs(process)]
        daemon = self.execd(host).process()
        living = [process for process in found if process.alive and process != daemon]
        return sorted(living, key=lambda process: _SHEPHERD not in process.command)

    def kill_all(self, host: Host) -> int:
        """Kill every process of the host's jobs, the reporting shepherds first; say how many it were."""
        killed: set[Process] = set()

        def none_left() -> bool:
            left = self.processes(host)
            for process in left:
                process.send(signal.SIGKILL)
            killed.update(left)
            return not left

        if not until(none_left, timeout=10):
            left = ", ".join(str(process.pid) for process in self.processes(host))
            raise BedError(f"processes of {host.name} do not end, not even by SIGKILL: {left}")
        return len(killed)

    def _is_a_jobs(self, process: Process) -> bool:
        """Without namespaces: by what a job or its shepherd has in its environment."""
        found = process.environment
        ours = found.get("SGE_ROOT") == str(self.layout.root)
        return ours and ("JOB_ID" in found or _SHEPHERD in process.command)

    def _daemon(self, name: str, *argv: str, port: int | None = None, patience: float = 10) -> Daemon:
        """SGE_ND keeps it in the foreground. An execd's environment is given to every job, so it is bare."""
        spool = self.layout.master_spool if name == "qmaster" else self.layout.execd_spool / name.partition("-")[2]
        return Daemon(
            name=name,
            argv=argv,
            record=self.layout.records / name,
            output=self.layout.log / f"{name}.output",
            log=spool / "messages",
            port=port,
            patience=patience,
            environment={**self.layout.environment, "SGE_ND": "1"},
        )


def host_named(layout: Layout, name: str) -> Host:
    for host in layout.hosts:
        if host.name == name:
            return host
    if name in HOST_NAMES:
        raise BedError(f"the bed has no host {name!r} here: this machine gives no network namespaces", hint="its one host is e1")
    raise BedError(f"the bed has no host {name!r}", hint=f"its hosts are {', '.join(host.name for host in layout.hosts)}")
