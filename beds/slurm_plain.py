"""A small Slurm beside the Slurm bed: no control groups, no accounting, ports of its own. For one test, and gone with it.

It follows jobs as sites without control groups do (`proctrack/linuxproc`): when a job's batch process dies, what that process
started runs on.
"""

import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from beds.command import attempt, run
from beds.daemon import Daemon, listens
from beds.errors import BedError
from beds.munge import Munge
from beds.place import own_folder, require_root, write_whole
from beds.slurm_layout import SLURM_USER, Layout
from beds.waiting import until

NODES = ("p1", "p2")


@contextmanager
def plain_slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Yields the environment for Slurm's commands. All jobs are cancelled, all daemons ended, and the folder removed at the end."""
    require_root("a Slurm without control groups")
    layout = Layout(folder.absolute())
    daemons = _daemons(layout)
    environment = {"SLURM_CONF": str(layout.slurm_conf)}
    try:
        for daemon, ready in daemons:
            daemon.start(ready, timeout=30)
        if not until(lambda: _idle(environment), timeout=60, pause=0.2):
            raise BedError("the nodes of the Slurm without control groups do not take jobs", hint=f"their logs are in {layout.log}")
        yield environment
    finally:
        _cancel_all(environment)
        for daemon, _ in reversed(daemons):
            daemon.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _daemons(layout: Layout) -> list[tuple[Daemon, Callable[[], bool]]]:
    """In the order of starting, each with what says that it is ready."""
    for place in (layout.top, layout.etc, layout.spool, layout.records):
        own_folder(place)
    for place in (layout.log, layout.pids):
        own_folder(place, owner=SLURM_USER)
    own_folder(layout.saved, owner=SLURM_USER, mode=0o700)
    munge = Munge(layout.munge, layout.record("munged"))
    munge.prepare()
    controller, *nodes = _free_ports(1 + len(NODES))
    write_whole(layout.slurm_conf, _conf(layout, controller, dict(zip(NODES, nodes, strict=True))).encode(), mode=0o644)
    write_whole(layout.etc / "cgroup.conf", b"# not used\n", mode=0o644)
    environment = {"SLURM_CONF": str(layout.slurm_conf)}

    def daemon(name: str, *argv: str, port: int) -> Daemon:
        return Daemon(
            name=name,
            argv=argv,
            record=layout.record(name),
            output=layout.log / f"{name}.output",
            log=layout.daemon_log(name),
            port=port,
            environment=environment,
        )

    def answers() -> bool:
        return attempt(["scontrol", "ping"], env=environment, timeout=10).ok

    found: list[tuple[Daemon, Callable[[], bool]]] = [
        (munge.daemon(), munge.socket.exists),
        (daemon("slurmctld", "/usr/sbin/slurmctld", "-D", port=controller), answers),
    ]
    for name, port in zip(NODES, nodes, strict=True):
        own_folder(layout.spool / name)
        found.append((daemon(f"slurmd-{name}", "/usr/sbin/slurmd", "-D", "-N", name, port=port), partial(listens, port)))
    return found


def _conf(layout: Layout, controller: int, nodes: dict[str, int]) -> str:
    lines = "\n".join(
        f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=64 RealMemory=65536 State=UNKNOWN"
        for name, port in nodes.items()
    )
    return f"""\
ClusterName=onwardplain
SlurmctldHost=localhost(127.0.0.1)
SlurmUser={SLURM_USER}
SlurmctldPort={controller}
StateSaveLocation={layout.saved}
SlurmctldPidFile={layout.pids}/slurmctld.pid
SlurmctldLogFile={layout.log}/slurmctld.log
SlurmdSpoolDir={layout.spool}/%n
SlurmdPidFile={layout.pids}/slurmd-%n.pid
SlurmdLogFile={layout.log}/slurmd-%n.log
SlurmdParameters=config_overrides
MpiDefault=none
PropagateResourceLimits=NONE
AuthType=auth/munge
AuthInfo=socket={layout.munge / "socket"},cred_expire=5
CredType=cred/munge
MessageTimeout=5
KillWait=3
SlurmdTimeout=30
MinJobAge=60
CompleteWait=0
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,batch_sched_delay=0,bf_interval=2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=512
AccountingStorageType=accounting_storage/none
{lines}
PartitionName=plain Nodes={",".join(nodes)} MaxTime=1-00:00:00 Default=YES
"""


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def _idle(environment: dict[str, str]) -> bool:
    shown = attempt(["sinfo", "-h", "-N", "-o", "%N %t"], env=environment, timeout=10)
    return shown.ok and sorted(shown.out.splitlines()) == [f"{name} idle" for name in NODES]


def _cancel_all(environment: dict[str, str]) -> None:
    def jobs() -> list[str]:
        return attempt(["squeue", "-h", "-o", "%A"], env=environment, timeout=10).out.split()

    if left := jobs():
        run(["scancel", *left], env=environment)
        until(lambda: not jobs(), timeout=30, pause=0.2)
