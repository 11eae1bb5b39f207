"""The Slurm bed's configuration files, as texts made from its layout."""

from collections.abc import Iterable
from dataclasses import dataclass

from beds import cgroups
from beds.slurm_layout import (
    ACCOUNTING_PORT,
    CLUSTER,
    CONTROLLER_PORT,
    DATABASE_PORT,
    NODES,
    PARTITIONS,
    SLURM_USER,
    Layout,
    Node,
    Partition,
)


@dataclass(frozen=True)
class Tracking:
    """How jobs are followed and their memory is bounded: by control groups, or by polling."""

    by_cgroup: bool
    swap: bool = False

    @classmethod
    def of_this_machine(cls) -> "Tracking":
        by_cgroup = cgroups.writable(("freezer", "memory", "cpuset", "cpuacct"))
        return cls(by_cgroup, swap=by_cgroup and cgroups.limits_swap())

    def __str__(self) -> str:
        if self.by_cgroup:
            return "cgroup v1: memory over --mem is OUT_OF_MEMORY, nothing outlives a job"
        return "linuxproc, cgroups are not writable: memory is polled, children may outlive a job"

    @property
    def plugins(self) -> str:
        if self.by_cgroup:
            return (
                "ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup\nJobAcctGatherType=jobacct_gather/cgroup\nJobAcctGatherFrequency=5"
            )
        return (
            "ProctrackType=proctrack/linuxproc\n"
            "TaskPlugin=task/none\n"
            "JobAcctGatherType=jobacct_gather/linux\n"
            "JobAcctGatherFrequency=2\n"
            "JobAcctGatherParams=OverMemoryKill"
        )


def files(layout: Layout, tracking: Tracking, database_password: str) -> dict[str, str]:
    """Every file of the configuration folder, by name."""
    return {
        "slurm.conf": slurm_conf(layout, tracking),
        "slurmdbd.conf": slurmdbd_conf(layout, database_password),
        "gres.conf": gres_conf(layout),
        "cgroup.conf": cgroup_conf(tracking),
    }


def slurm_conf(layout: Layout, tracking: Tracking) -> str:
    socket = layout.munge / "socket"
    return f"""\
# Written by onward-beds; 'python3 -m beds up' writes it again.
ClusterName={CLUSTER}
SlurmctldHost=localhost(127.0.0.1)
SlurmUser={SLURM_USER}
SlurmctldPort={CONTROLLER_PORT}
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
AuthInfo=socket={socket},cred_expire=5
CredType=cred/munge
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={layout.jwt_key}

# short timers: tests wait for them
MessageTimeout=5
KillWait=3
SlurmdTimeout=10
MinJobAge=60
CompleteWait=0
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,batch_sched_delay=0,bf_interval=2

# how jobs are followed and bounded
{tracking.plugins}

SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
GresTypes=gpu
DefMemPerCPU=512
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PriorityType=priority/multifactor
PriorityWeightFairshare=1000
PriorityWeightAge=100

AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={ACCOUNTING_PORT}
AccountingStoragePass={socket}
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:v100

{_lines(map(_node_line, NODES))}

{_lines(map(_partition_line, PARTITIONS))}
"""


def slurmdbd_conf(layout: Layout, database_password: str) -> str:
    return f"""\
AuthType=auth/munge
AuthInfo=socket={layout.munge / "socket"}
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={layout.jwt_key}
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ACCOUNTING_PORT}
SlurmUser={SLURM_USER}
MessageTimeout=5
PidFile={layout.pids}/slurmdbd.pid
LogFile={layout.log}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={DATABASE_PORT}
StorageUser={SLURM_USER}
StoragePass={database_password}
StorageLoc=slurm_acct_db
"""


def gres_conf(layout: Layout) -> str:
    """GPUs by character devices: with a plain file a job gets no CUDA_VISIBLE_DEVICES."""
    return "".join(
        f"NodeName={node.name} Name=gpu Type={node.gpu} File={layout.devices}/gpu[0-{node.gpus - 1}]\n" for node in NODES if node.gpus
    )


def cgroup_conf(tracking: Tracking) -> str:
    if not tracking.by_cgroup:
        return "# not used: the control groups of this machine are not writable\n"
    return f"""\
CgroupPlugin=cgroup/v1
CgroupMountpoint={cgroups.ROOT}
CgroupAutomount=no
ConstrainCores=no
ConstrainDevices=no
ConstrainRAMSpace=yes
ConstrainSwapSpace={"yes" if tracking.swap else "no"}
"""


def _node_line(node: Node) -> str:
    gres = f" Gres=gpu:{node.gpu}:{node.gpus}" if node.gpus else ""
    return (
        f"NodeName={node.name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={node.port} "
        f"CPUs={node.cpus} RealMemory={node.memory_mib}{gres} State=UNKNOWN"
    )


def _partition_line(partition: Partition) -> str:
    preemption = "PreemptMode=REQUEUE GraceTime=0" if partition.preemptible else "PreemptMode=OFF"
    return (
        f"PartitionName={partition.name} Nodes={partition.nodes} MaxTime={partition.max_time} "
        f"PriorityTier={partition.tier} {preemption}{' Default=YES' if partition.default else ''}"
    )


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(parts)
