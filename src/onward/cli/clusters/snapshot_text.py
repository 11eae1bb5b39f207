"""A cluster's picture as text, at 80 columns: totals as bars, nodes as rows or as a map, queues, jobs with their reasons, openings."""

from __future__ import annotations

import itertools
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from onward.cli.output import bold, coloured, dim, safe, table, terminal_width, time_text, to_stdout
from onward.model.quantity import counted, duration_text, format_duration

Data = dict[str, Any]

_ROWS = 24  # nodes; of more, a map
_CELLS = 60  # nodes a line of the map
_NAME = 24
_LEAST_NAME = 6
_COLOURS = {"free": "finished", "partly": "running", "full": "waiting"}  # of a state, by that of a run; the others are red


def show_snapshot(seen: Data, *, mine: bool) -> None:
    where = f" through {seen['host']}" if seen["host"] else ""
    to_stdout(
        f"{bold(seen['name'])}  {seen['scheduler']}{where}, {counted(len(seen['nodes']), 'node')}, as of {time_text(seen['taken_at'])}"
    )
    _bars(seen["totals"])
    _title("Nodes")
    (_rows if len(seen["nodes"]) <= _ROWS else _map)(seen["nodes"])
    _title("Queues")
    _queues(seen["queues"])
    _title("My jobs" if mine else "Jobs, mine first")
    _jobs(seen["jobs"], mine=mine)
    _title("Could start now")
    _openings(seen["openings"])
    for words in seen["notes"]:
        to_stdout(dim(f"({words})"))


# ── totals ────────────────────────────────────────────────────────────────────


def _bars(totals: list[Data]) -> None:
    for total in totals:
        if total["total"]:
            what = {"cpus": "CPUs", "mem": "memory"}.get(total["what"]) or total["what"].removeprefix("gpu:") or "GPUs"
            amount = f"{_gib(total['used'])} of {_gib(total['total'])}" if what == "memory" else f"{total['used']} of {total['total']}"
            to_stdout(f"  {what[:12].ljust(12)}  {_bar(total['used'], total['total'], 30)}  {amount}")


def _bar(used: int, total: int, width: int) -> str:
    """Something used is never drawn as nothing, nor something free as full."""
    filled = round(width * min(used / total, 1.0)) if total else 0
    if used and total > 1:
        filled = max(filled, 1) if used < total else width
    if used < total:
        filled = min(filled, width - 1)
    full, empty = _signs()
    return full * filled + empty * (width - filled)


def _signs() -> tuple[str, str]:
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    return ("█", "░") if encoding.startswith("utf") else ("#", ".")


# ── nodes ─────────────────────────────────────────────────────────────────────


def _rows(nodes: list[Data]) -> None:
    table(
        ("NODE", "STATE", "CPUS", "MEMORY", "GPUS", "WHY"),
        [
            (
                node["name"],
                node["state"],
                f"{_bar(node['cpus_used'], node['cpus'], 8)} {node['cpus_used']}/{node['cpus']}",
                f"{_gib(node['mem_used'], unit='')}/{_gib(node['mem'])}" if node["mem"] else "–",
                " ".join(f"{gpu['type'] or 'gpu'} {gpu['used']}/{gpu['total']}" for gpu in node["gpus"]) or "–",
                node["why"],
            )
            for node in nodes
        ],
        state_columns=(1,),
    )


def _map(nodes: list[Data]) -> None:
    """A character a node, those of one make together; then those that take no jobs, by why."""

    def make(node: Data) -> tuple[Any, ...]:
        return (-sum(gpu["total"] for gpu in node["gpus"]), [gpu["type"] for gpu in node["gpus"]], -node["cpus"], -node["mem"])

    for _, alike in itertools.groupby(sorted(nodes, key=make), key=make):
        group = list(alike)
        gpus = "".join(f", {gpu['total']} {gpu['type'] or 'GPUs'}" for gpu in group[0]["gpus"])
        to_stdout(f"  {counted(len(group), 'node')} of {counted(group[0]['cpus'], 'CPU')}, {_gib(group[0]['mem'])}{gpus}")
        for row in _batched(group, _CELLS):
            to_stdout(f"    {''.join(_cell(node) for node in row)}  {dim(safe(row[0]['name']))}")
    to_stdout(dim("  . free  1-9 tenths in use  # full  x accepts no jobs"))
    shut = [node for node in nodes if node["state"] not in _COLOURS]
    for (state, why), some in _grouped(shut).items():
        names = ", ".join(some[:6]) + (f" and {len(some) - 6} more" if len(some) > 6 else "")
        _wrapped(f"{state}{f' ({why})' if why else ''}: {names}", indent=2)


def _batched(nodes: list[Data], size: int) -> Iterable[list[Data]]:
    return (nodes[start : start + size] for start in range(0, len(nodes), size))


def _cell(node: Data) -> str:
    """How much of what there is least of is in use: GPUs where there are some."""
    if node["state"] not in _COLOURS:
        return coloured("x", "failed")
    if node["state"] == "free":
        return "."
    total, used = (sum(gpu[key] for gpu in node["gpus"]) for key in ("total", "used"))
    share = max(node["cpus_used"] / (node["cpus"] or 1), used / total if total else 0.0)
    sign = "#" if node["state"] == "full" or share >= 1 else str(min(max(round(share * 10), 1), 9))
    return coloured(sign, _COLOURS["full" if sign == "#" else "partly"])


def _grouped(nodes: list[Data]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        found.setdefault((node["state"], node["why"]), []).append(node["name"])
    return found


# ── queues, jobs, openings ────────────────────────────────────────────────────


def _queues(queues: list[Data]) -> None:
    table(
        ("QUEUE", "TIME LIMIT", "NODES", "RUNNING", "WAITING", ""),
        [
            (
                queue["name"],
                format_duration(queue["time_limit"]) if queue["time_limit"] else "none",
                str(len(queue["nodes"])),
                str(queue["running"]),
                str(queue["waiting"]),
                "; ".join(_about(queue)),
            )
            for queue in queues
        ],
    )


def _about(queue: Data) -> list[str]:
    said = ["default"] if queue["default"] else []
    said += [] if queue["open"] else [f"closed: {queue['why']}"]
    said += [f"closed on {', '.join(queue['closed_on'][:3])}"] if queue["open"] and queue["closed_on"] else []
    said += [f"at most {counted(queue['max_nodes'], 'node')}"] if queue["max_nodes"] else []
    return said + (["may be preempted"] if queue["preemptible"] else [])


def _jobs(jobs: list[Data], *, mine: bool) -> None:
    if not jobs:
        to_stdout("  none" if not mine else "  none; --jobs all shows everyone's")
        return
    ranked = any(job.get("priority") is not None for job in jobs)
    header = ("JOB", "NAME", *(() if mine else ("USER",)), "STATE", "QUEUE", "ASKS", *(("PRIO",) if ranked else ()), "WHEN")
    cells = [[safe(" ".join(cell.split())) for cell in _job(job, mine=mine, ranked=ranked)] for job in jobs]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    over = sum(widths) + 2 * (len(widths) - 1) - terminal_width()
    if terminal_width() and over > 0:  # the name gives way
        widths[1] = max(widths[1] - over, _LEAST_NAME)
        cells = [[row[0], _cut(row[1], widths[1]), *row[2:]] for row in cells]
    state = header.index("STATE")

    def line(row: Sequence[str]) -> str:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        padded[state] = coloured(padded[state], row[state])
        return "  ".join(padded).rstrip()

    to_stdout(dim(line(header)))
    for job, row in zip(jobs, cells, strict=True):
        to_stdout(line(row))
        if job["reason"]:
            _wrapped(job["reason"], indent=4)
        if job["mine"] and job.get("factors"):
            _wrapped(f"priority: {job['factors']}", indent=4)


def _job(job: Data, *, mine: bool, ranked: bool) -> list[str]:
    name, id_ = job["name"], str(job["id"])
    short = terminal_width() > 0
    if short:
        name = _cut(name, _NAME)
        id_ = id_ if len(id_) <= 14 else f"{id_[:13]}…"
    priority = [] if not ranked else [""] if job.get("priority") is None else [f"{job['priority']:g}"]
    user = [] if mine else [job["user"]]
    return [id_, name, *user, job["state"], job["queue"] or "any", _asks(job["asked"]), *priority, _when(job)]


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _asks(asked: Data) -> str:
    parts = [f"{asked['nodes']}n"] if asked["nodes"] > 1 else []
    parts += [f"{asked['cpus']}c"]
    parts += [_gib(asked["mem"], unit="G")] if asked["mem"] else []
    parts += [f"{gpu['total']}×{gpu['type'] or 'gpu'}" for gpu in asked["gpus"]]
    return " ".join(parts)


def _when(job: Data) -> str:
    if job["started"]:
        return f"until {time_text(job['ends'])}" if job["ends"] else f"since {time_text(job['started'])}"
    return f"start ~{time_text(job['expected_start'])}" if job["expected_start"] else ""


def _openings(openings: list[Data]) -> None:
    if not openings:
        to_stdout("  nothing: no queue has a free CPU")
        return
    width = max(len(opening["queue"]) for opening in openings)
    last = None
    for one in openings:
        gpus = f", {one['gpus']} {one['gpu_type'] or 'GPUs'}" if one["gpus"] else ""
        mem = f", {_gib(one['mem'])}" if one["mem"] else ""
        each = "" if one["nodes"] == 1 else " each"
        limit = f", for at most {duration_text(one['time_limit'])}" if one["time_limit"] and one["queue"] != last else ""
        ahead = f"; {counted(one['ahead'], 'job')} ahead in the queue" if one["ahead"] and one["queue"] != last else ""
        name = one["queue"] if one["queue"] != last else ""
        to_stdout(
            f"  {safe(name).ljust(width)}  {counted(one['nodes'], 'node')}: {counted(one['cpus'], 'CPU')}{mem}{gpus}{each}{limit}{ahead}"
        )
        last = one["queue"]


# ── words ─────────────────────────────────────────────────────────────────────


def _title(text: str) -> None:
    to_stdout("")
    to_stdout(bold(text))


def _wrapped(text: str, *, indent: int) -> None:
    width = terminal_width()
    parts = textwrap.wrap(safe(text), max(width - indent, 20)) if width else [safe(text)]
    for part in parts:
        to_stdout(" " * indent + part)


def _gib(mib: int, unit: str = " GiB") -> str:
    size = mib / 1024
    return f"{size:.0f}{unit}" if size >= 10 or size == int(size) else f"{size:.1f}{unit}"
