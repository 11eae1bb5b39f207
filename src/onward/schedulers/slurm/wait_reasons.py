"""Slurm's words for why a job waits, in plain ones. A word that is not listed is shown as Slurm wrote it, and said to be Slurm's."""

from __future__ import annotations

import re

REASONS = {
    "None": "Slurm has not looked at it yet",
    "Resources": "next in the queue: waits until enough nodes, CPUs, memory or GPUs are free",
    "Priority": "other jobs are ahead in the queue",
    "Dependency": "waits for the previous job",
    "DependencyNeverSatisfied": "can never start: the job that it depends on did not end as required",
    "BeginTime": "may not start before a set time",
    "JobHeldUser": "held by its owner; scontrol release releases it",
    "JobHeldAdmin": "held by an administrator; only an administrator can release it",
    "JobHoldMaxRequeue": "held because it was restarted too often",
    "job requeued in held state": "held when it was requeued; scontrol release releases it",
    "launch failed requeued held": "held because it could not be started; scontrol release retries it",
    "JobArrayTaskLimit": "its array already runs its maximum number of tasks",
    "Licenses": "waits for a licence that is in use",
    "Reservation": "waits for its reservation to begin",
    "ReservationDeleted": "the reservation that it requests was deleted",
    "PartitionDown": "its queue starts no jobs for now",
    "PartitionInactive": "its queue is inactive",
    "PartitionTimeLimit": "requests more time than its queue allows, and cannot start",
    "PartitionNodeLimit": "requests more nodes than its queue allows, or more than are up in it",
    "PartitionConfig": "requests something that its queue does not have",
    "NodeDown": "a node that it needs is down",
    "BadConstraints": "no node can ever provide what it requests",
    "FrontEndDown": "the machine that starts its processes is down",
    "Prolog": "its nodes are being prepared",
    "Cleaning": "its last start is being cleaned up",
    "Preempted": "was preempted and will start again",
    "JobLaunchFailure": "could not be started",
    "InvalidAccount": "its account is no longer valid",
    "InvalidQOS": "its quality of service is no longer valid",
    "AccountingPolicy": "a limit of its account is reached",
    "AccountNotAllowed": "its account may not use this queue",
    "QOSNotAllowed": "its quality of service may not use this queue",
    "QOSUsageThreshold": "its account has used more than its quality of service allows for now",
    "QOSTimeLimit": "its quality of service has used up its time",
    "QOSResourceLimit": "its quality of service has reached a limit",
    "QOSJobLimit": "its quality of service runs as many jobs as allowed",
    "AssociationJobLimit": "its owner runs as many jobs as allowed",
    "AssociationResourceLimit": "its owner has reached a limit on resources in use",
    "AssociationTimeLimit": "its owner has used up the time allowed",
    "AssocMaxJobsLimit": "its owner runs as many jobs as allowed",
    "MaxMemPerLimit": "requests more memory than allowed per node or CPU",
    "MaxGRESPerAccount": "its account uses as many GPUs as allowed",
    "NoDynamicNodes": "waits for nodes to be provisioned",
    "NonZeroExitCode": "its last start failed",
    "RaisedSignal": "its last start was ended by a signal",
    "SystemFailure": "something went wrong in Slurm or on a node",
    "TimeLimit": "reached its time limit",
    "InactiveLimit": "was idle for longer than allowed",
    "BurstBufferResources": "waits for room in the burst buffer",
    "BurstBufferStageIn": "its data is being copied in",
    "FedJobLock": "another cluster of the federation is looking at it",
    "PowerNotAvail": "waits for a power budget",
    "PowerReserved": "waits for reserved power",
    "DeadLine": "can no longer end before its deadline",
    "ReqNodeNotAvail": "a node that it needs is not available",
}

IN_LINE = ("None", "Resources", "Priority")  # waits for room alone

# AssocGrpGRES, QOSMaxCpuPerUserLimit, QOSGrpCPUMinutesLimit …: whose limit, of the group or of one, of what, for whom.
_FAMILY = re.compile(r"(?P<whose>QOS|Assoc)(?P<how>Grp|Max)(?P<what>\w+?)(?P<whom>Per(?:User|Job|Account|Node|Assoc))?(?:Limit)?")
_WHOSE = {"QOS": "its quality of service", "Assoc": "its account"}
_WHAT = {
    "cpu": "CPUs",
    "gres": "GPUs (or other devices)",
    "mem": "memory",
    "memory": "memory",
    "node": "nodes",
    "jobs": "running jobs",
    "submitjobs": "submitted jobs",
    "submit": "submitted jobs",
    "wall": "run time",
    "walldurationperjob": "run time of a job",
    "walldur": "run time",
    "cpumin": "CPU minutes",
    "cpumins": "CPU minutes",
    "cpuminutes": "CPU minutes",
    "cpurunminutes": "CPU minutes still to run",
    "gresminutes": "GPU minutes",
    "gresrunminutes": "GPU minutes still to run",
    "billing": "billed resources",
    "billingminutes": "billed minutes",
    "energy": "energy",
    "license": "licences",
    "bb": "burst buffer",
}
_WHOM = {"PerUser": " for one user", "PerJob": " for one job", "PerAccount": " for one account", "PerNode": " on one node", "PerAssoc": ""}


def plain_reason(native: str) -> str:
    """Why a job waits, in plain words. Empty if there is no reason."""
    word, _, rest = native.strip().partition(",")
    rest = rest.strip()
    if word == "ReqNodeNotAvail" and rest:
        return _nodes(rest)
    if native.replace("_", " ").startswith("Nodes required for job are"):
        return "the nodes that it needs are down, drained or reserved for higher-priority queues"
    word = word.replace("_", " ") if word.replace("_", " ") in REASONS else word
    if word in REASONS:
        return REASONS[word]
    family = _FAMILY.fullmatch(word)
    if family and (what := _WHAT.get(family["what"].lower())):
        together = " in total" if family["how"] == "Grp" else ""
        return f"{_WHOSE[family['whose']]} has reached its limit on {what}{_WHOM.get(family['whom'], '')}{together}"
    return f"Slurm says {native!r}" if native else ""


def _nodes(rest: str) -> str:
    head, _, names = rest.partition(":")
    if head == "UnavailableNodes":
        return f"a node that it needs is down or drained{': ' + names if names else ''}"
    if rest == "Reserved for maintenance":
        return "it would overlap a maintenance reservation; a shorter time limit may fit before it"
    return f"a node that it needs is not available ({rest})"
