"""A Slurm cluster in five short calls: nodes, partitions, jobs, what the jobs ask for, and priorities. The reading of the texts is pure."""

from __future__ import annotations

import getpass
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from onward.errors import InvalidInput, SchedulerUnavailable
from onward.model.cluster import Asked, ClusterJob, ClusterSnapshot, Gpus, Node, NodeState, Queue, by_use, in_order
from onward.model.job import JobId, JobState
from onward.model.quantity import parse_duration, parse_size
from onward.schedulers.command import run_command
from onward.schedulers.hostlist import expand_hosts
from onward.schedulers.slurm.job_states import HOLDS, parse_state
from onward.schedulers.slurm.priority import all_priorities
from onward.schedulers.slurm.wait_reasons import IN_LINE, plain_reason

_TIMEOUT = 90.0
_EPOCH = {"SLURM_TIME_FORMAT": "%s"}
_CUT = "\x1f"
_COLUMNS = _CUT.join(("%A", "%i", "%u", "%T", "%P", "%D", "%C", "%b", "%l", "%V", "%S", "%e", "%N", "%r", "%j"))  # a name may hold anything
_CALLS = {
    "nodes": ["scontrol", "-d", "-o", "show", "node"],
    "partitions": ["scontrol", "-o", "show", "partition"],
    "jobs": ["squeue", "-h", "-o", _COLUMNS],
    "asked": ["squeue", "-h", "-O", "JobID:24,tres-alloc:400"],
}

# A node's state is one word and flags. These say that it takes jobs, as far as there is room; those in _SHUT that it does not.
_OPEN = {
    *("IDLE", "MIXED", "ALLOCATED", "ALLOC", "COMPLETING", "PLANNED", "CLOUD", "DYNAMIC_NORM", "DYNAMIC_FUTURE"),
    *("POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "POWERING_UP", "POWER_UP", "POWER_DRAIN"),  # started when a job needs them
    *("REBOOT_CANCELED", "UNDRAIN", "RESUME"),
}
_SHUT = {
    "DRAIN": NodeState.DRAINED,
    "DRAINED": NodeState.DRAINED,
    "DRAINING": NodeState.DRAINED,
    "REBOOT_REQUESTED": NodeState.DRAINED,
    "REBOOT_ISSUED": NodeState.DOWN,
    "REBOOT": NodeState.DOWN,
    "DOWN": NodeState.DOWN,
    "ERROR": NodeState.DOWN,
    "FAIL": NodeState.DOWN,
    "FAILING": NodeState.DOWN,
    "FUTURE": NodeState.DOWN,
    "INVAL": NodeState.DOWN,
    "INVALID_REG": NodeState.DOWN,
    "NOT_RESPONDING": NodeState.DOWN,
    "NO_RESPOND": NodeState.DOWN,
    "RESERVED": NodeState.RESERVED,
    "MAINT": NodeState.RESERVED,
}
_WORST = (NodeState.UNKNOWN, NodeState.DOWN, NodeState.DRAINED, NodeState.RESERVED)
_WHY = {
    "NOT_RESPONDING": "does not answer",
    "NO_RESPOND": "does not answer",
    "MAINT": "reserved for maintenance",
    "RESERVED": "reserved",
    "REBOOT_REQUESTED": "will be restarted",
    "REBOOT_ISSUED": "is being restarted",
    "REBOOT": "is being restarted",
}
_PARTITION_WHY = {
    "DOWN": "accepts jobs, but starts none for now",
    "DRAIN": "accepts no new jobs",
    "INACTIVE": "inactive: neither accepts nor starts jobs",
}


def take_snapshot() -> ClusterSnapshot:
    said: dict[str, str] = {}
    for what, argv in _CALLS.items():
        answer = run_command(argv, timeout=_TIMEOUT, extra=_EPOCH)
        if answer.code and not (what == "nodes" and "No nodes" in answer.out + answer.err):
            raise SchedulerUnavailable(f"{argv[0]}: {answer.err or answer.out.strip() or f'exit code {answer.code}'}")
        said[what] = answer.out
    user = getpass.getuser()
    return ClusterSnapshot(
        scheduler="slurm",
        taken_at=time.time(),
        user=user,
        nodes=tuple(parse_nodes(said["nodes"])),
        queues=tuple(parse_partitions(said["partitions"])),
        jobs=in_order(with_priorities(list(parse_jobs(said["jobs"], parse_asked(said["asked"]), user=user)))),
    )


# ── nodes ─────────────────────────────────────────────────────────────────────


def parse_nodes(text: str) -> Iterator[Node]:
    for line in text.splitlines():
        fields = _pairs(line)
        if "NodeName" not in fields:
            continue
        node = by_use(
            Node(
                name=fields["NodeName"],
                state=NodeState.UNKNOWN,
                cpus=_number(fields.get("CPUEfctv")) or _number(fields.get("CPUTot")),
                cpus_used=_number(fields.get("CPUAlloc")),
                mem=max(_number(fields.get("RealMemory")) - _number(fields.get("MemSpecLimit")), 0),
                mem_used=_number(fields.get("AllocMem")),
                gpus=_gpus_of(fields.get("Gres", ""), fields.get("GresUsed", "")),
            )
        )
        shut = _shut(fields.get("State", ""), busy=node.cpus_used > 0)
        yield replace(node, state=shut[0], why=_why(line) or shut[1]) if shut else node


def _shut(native: str, *, busy: bool) -> tuple[NodeState, str] | None:
    """`IDLE+DRAIN`, `DOWN*`: why it takes no jobs; None where it does. A word that is in neither table makes it unknown."""
    words = [*native.rstrip("*").split("+"), *(["NOT_RESPONDING"] if native.endswith("*") else [])]
    found = {word: _SHUT.get(word, NodeState.UNKNOWN) for word in words if word not in _OPEN}
    if not found:
        return None
    worst = min(found.values(), key=_WORST.index)
    if worst is NodeState.UNKNOWN:
        return worst, f"Slurm says {native}"
    why = next((_WHY[word] for word in found if word in _WHY), "")
    return NodeState.DRAINING if worst is NodeState.DRAINED and busy else worst, why


def _why(line: str) -> str:
    """What an administrator, or Slurm itself, wrote: `Reason=bad DIMM [root@1794783000]`."""
    found = re.search(r" Reason=(.*?)(?: \[[^\]]*@[^\]]*\])?(?: (?:Comment|Extra)=.*)?$", line)
    return "" if found is None or found[1] in ("none", "(null)") else found[1].strip()


def _gpus_of(there: str, used: str) -> tuple[Gpus, ...]:
    have, busy = _gres(there), _gres(used)
    untyped = busy.get("", 0) if "" not in have else 0
    found = []
    for kind, total in have.items():
        taken = busy.get(kind, 0)
        extra = min(untyped, total - taken)
        untyped -= extra
        found.append(Gpus(type=kind, total=total, used=taken + extra))
    return tuple(found)


def _gres(text: str) -> dict[str, int]:
    """`gpu:a100:2(S:0-1),shard:8` are two of type a100; also `gres:gpu:2`, `gres/gpu:a100=2`, and in jobs a type without a number: one."""
    found: dict[str, int] = {}
    for part in re.sub(r"\([^)]*\)", "", text).split(","):
        words = re.split(r"[:=]", re.sub(r"^gres[:/]", "", part.strip()))
        if words[0] == "gpu":
            count = int(words[-1]) if len(words) > 1 and words[-1].isdigit() else 1
            kind = ":".join(words[1:-1] if words[-1].isdigit() else words[1:])
            found[kind] = found.get(kind, 0) + count
    return found


# ── partitions ────────────────────────────────────────────────────────────────


def parse_partitions(text: str) -> Iterator[Queue]:
    every = [fields for line in text.splitlines() if "PartitionName" in (fields := _pairs(line))]
    tiers = [_number(fields.get("PriorityTier")) for fields in every]
    for fields in every:
        state = fields.get("State", "")
        lower = _number(fields.get("PriorityTier")) < max(tiers)
        yield Queue(
            name=fields["PartitionName"],
            nodes=_hosts(fields.get("Nodes", "")),
            default=fields.get("Default") == "YES",
            open=state == "UP",
            why="" if state == "UP" else _PARTITION_WHY.get(state, f"Slurm says {state}"),
            time_limit=_duration(fields.get("MaxTime", "")),
            max_nodes=_limit(fields.get("MaxNodes", "")),
            max_cpus=_limit(fields.get("MaxCPUsPerNode", "")),
            max_mem=_limit(fields.get("MaxMemPerNode", "")),
            preemptible=lower and fields.get("PreemptMode", "OFF") != "OFF",
        )


# ── jobs ──────────────────────────────────────────────────────────────────────


def parse_asked(text: str) -> Mapping[str, str]:
    """Job → its TRES, as `cpu=1,mem=200M,node=1,billing=1,gres/gpu:a100=2`."""
    return {words[0]: words[1] for line in text.splitlines() if len(words := line.split()) == 2}


def parse_jobs(text: str, asked: Mapping[str, str], *, user: str) -> Iterator[ClusterJob]:
    for line in text.split("\n"):  # a name may hold other characters that end a line
        parts = line.split(_CUT, 14)
        if len(parts) < 15:
            continue
        base, job, owner, native, queue, nodes, cpus, gres, limit, submitted, start, end, hosts, reason, name = parts
        state = parse_state(native)
        if state is JobState.QUEUED and reason in HOLDS:
            state = JobState.HELD
        waits = state in (JobState.QUEUED, JobState.HELD)
        yield ClusterJob(
            id=JobId(job),
            name=name,
            user=owner,
            mine=owner == user,
            state=state,
            queue=queue,
            tasks=_tasks(job),
            asked=_asked(asked.get(base, ""), nodes=_number(nodes) or 1, cpus=_number(cpus), gres=gres, limit=limit),
            nodes=() if waits else _hosts(hosts),
            submitted=_moment(submitted),
            started=None if waits else _moment(start),
            ends=None if waits else _moment(end),
            expected_start=_moment(start) if waits else None,
            reason=plain_reason(reason) if waits else "",
            native=reason if waits else "",
            in_line=state is JobState.QUEUED and reason in IN_LINE,
        )


def with_priorities(jobs: list[ClusterJob]) -> list[ClusterJob]:
    """Those that wait have theirs. Where it cannot be asked, the picture is whole without."""
    if not any(job.waiting for job in jobs):
        return jobs
    try:
        known = all_priorities()
    except SchedulerUnavailable:
        return jobs
    fields = {job.id: known[base] for job in jobs if job.waiting and (base := job.id.partition("_")[0]) in known}
    return [replace(job, priority=float(fields[job.id][0]), factors=fields[job.id][1]) if job.id in fields else job for job in jobs]


def _asked(tres: str, *, nodes: int, cpus: int, gres: str, limit: str) -> Asked:
    fields = dict(part.split("=", 1) for part in tres.split(",") if "=" in part)
    kinds = {key.partition(":")[2]: int(value) for key, value in fields.items() if re.match("gres/gpu(?::|$)", key) and value.isdigit()}
    untyped = kinds.pop("", 0) - sum(kinds.values())  # the plain count has those of every type in it
    if untyped > 0:
        kinds[""] = untyped
    if not kinds:  # a site that does not count GPUs: what was asked for on each node
        kinds = {kind: count * nodes for kind, count in _gres(gres).items()}
    return Asked(
        nodes=nodes,
        cpus=cpus,
        mem=parse_size(fields["mem"]) if re.fullmatch(r"[\d.]+[KMGT]?", fields.get("mem", "")) else None,
        gpus=tuple(Gpus(type=kind, total=count) for kind, count in kinds.items()),
        time=_duration(limit),
    )


def _tasks(job: str) -> int:
    """`41_[1-3,7%2]` is four tasks of an array that wait; a list that Slurm cut short counts as what is left of it."""
    found = re.search(r"_\[([\d,-]+)", job)
    spans = re.findall(r"(\d+)(?:-(\d+))?", found[1]) if found else []
    return sum(int(last or first) - int(first) + 1 for first, last in spans) or 1


# ── words ─────────────────────────────────────────────────────────────────────


def _pairs(line: str) -> dict[str, str]:
    """The first of each: what people write comes last on a line."""
    found: dict[str, str] = {}
    for key, value in re.findall(r"(?:^| )(\w+)=(\S*)", line):
        found.setdefault(key, "" if value == "(null)" else value)
    return found


def _hosts(text: str) -> tuple[str, ...]:
    try:
        return tuple(expand_hosts(text)) if text and not text.startswith("(") else ()
    except InvalidInput:
        return (text,)


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0


def _limit(text: str) -> int | None:
    return int(text) if text.isdigit() else None  # UNLIMITED


def _duration(text: str) -> int | None:
    try:
        return parse_duration(text)
    except InvalidInput:  # UNLIMITED, NOT_SET, INVALID
        return None


def _moment(text: str) -> float | None:
    return float(text) if text.isdigit() and text != "0" else None
