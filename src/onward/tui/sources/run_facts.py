"""What a run's first page says in words, from the same data whether a server or a folder told it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onward.tui.drawing.text import clock, number, span


def facts_of(record: Mapping[str, Any], *, now: float) -> tuple[tuple[str, str], ...]:
    """`told`: progress or pace, and the accounts that `operations.inspect.account` makes."""
    rows = [
        ("progress", _progress(record.get("pace") or {})),
        ("finish", _finish(record.get("finish"), now)),
        ("at risk", _risk(record.get("risk"), now)),
        ("goodput", _goodput(record.get("effort"))),
        ("command", str(record.get("command") or "")),
        ("params", _pairs(record.get("params"))),
        ("asks for", _pairs(record.get("resources"))),
        ("cluster", str(record.get("cluster") or "")),
        ("code", _code(record.get("code"))),
        ("folder", str(record.get("folder") or "")),
    ]
    return tuple((label, words) for label, words in rows if words)


def _progress(pace: Mapping[str, Any]) -> str:
    step, total, rate = pace.get("step"), pace.get("total"), pace.get("rate")
    if step is None:
        return "no step logged yet"
    words = f"step {step}" + (f" of {total}" if total else "")
    return words + (f", {number(rate)} steps/s" if isinstance(rate, int | float) else "")


def _finish(record: Mapping[str, Any] | None, now: float) -> str:
    if not record:
        return ""
    return f"about {clock(record['at'], now)} ({span(record['at'] - now)}); {record['words']}"


def _risk(record: Mapping[str, Any] | None, now: float) -> str:
    if not record:
        return ""
    since = f"since the checkpoint of step {record['since_step']}" if record.get("since_step") is not None else "no checkpoint yet"
    steps = f", {record['steps']} steps" if record.get("steps") else ""
    return f"{span(record['seconds'])} of work{steps}: {since}"


def _goodput(record: Mapping[str, Any] | None) -> str:
    if record and record.get("unknown"):
        return "unknown: only the training knows what stays"
    if not record or record.get("goodput") is None:
        return ""
    return f"{100 * record['goodput']:.0f}% of {span(record['allocated'])} of job time was useful; {span(record['waited'])} in queues"


def _pairs(record: Mapping[str, Any] | None) -> str:
    return "  ".join(f"{key}={value}" for key, value in (record or {}).items() if value not in (None, "", (), []))


def _code(record: Mapping[str, Any] | None) -> str:
    record = record or {}
    commit, branch = str(record.get("git_commit") or ""), str(record.get("git_branch") or "")
    changed = " with changes" if record.get("git_dirty") or record.get("git_diff") else ""
    return f"{commit[:12]} {branch}{changed}".strip() if commit else ""
