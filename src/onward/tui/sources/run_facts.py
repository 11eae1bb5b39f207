"""What a run's first page says in words, from the same data whether a server or a folder told it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onward.tui.drawing.text import clock, number, span


def facts_of(told: Mapping[str, Any], *, now: float) -> tuple[tuple[str, str], ...]:
    """`told`: progress or pace, and the accounts that `operations.inspect.account` makes."""
    rows = [
        ("progress", _progress(told.get("pace") or {})),
        ("finish", _finish(told.get("finish"), now)),
        ("at risk", _risk(told.get("risk"), now)),
        ("goodput", _goodput(told.get("effort"))),
        ("command", str(told.get("command") or "")),
        ("params", _pairs(told.get("params"))),
        ("asks for", _pairs(told.get("resources"))),
        ("cluster", str(told.get("cluster") or "")),
        ("code", _code(told.get("code"))),
        ("folder", str(told.get("folder") or "")),
    ]
    return tuple((label, words) for label, words in rows if words)


def _progress(pace: Mapping[str, Any]) -> str:
    step, total, rate = pace.get("step"), pace.get("total"), pace.get("rate")
    if step is None:
        return "no step logged yet"
    words = f"step {step}" + (f" of {total}" if total else "")
    return words + (f", {number(rate)} steps/s" if isinstance(rate, int | float) else "")


def _finish(told: Mapping[str, Any] | None, now: float) -> str:
    if not told:
        return ""
    return f"about {clock(told['at'], now)} ({span(told['at'] - now)}); {told['words']}"


def _risk(told: Mapping[str, Any] | None, now: float) -> str:
    if not told:
        return ""
    since = f"since the checkpoint of step {told['since_step']}" if told.get("since_step") is not None else "no checkpoint yet"
    steps = f", {told['steps']} steps" if told.get("steps") else ""
    return f"{span(told['seconds'])} of work{steps}: {since}"


def _goodput(told: Mapping[str, Any] | None) -> str:
    if told and told.get("unknown"):
        return "unknown: only the training knows what stays"
    if not told or told.get("goodput") is None:
        return ""
    return f"{100 * told['goodput']:.0f}% of {span(told['allocated'])} of job time was useful; {span(told['waited'])} in queues"


def _pairs(told: Mapping[str, Any] | None) -> str:
    return "  ".join(f"{key}={value}" for key, value in (told or {}).items() if value not in (None, "", (), []))


def _code(told: Mapping[str, Any] | None) -> str:
    told = told or {}
    commit, branch = str(told.get("git_commit") or ""), str(told.get("git_branch") or "")
    changed = " with changes" if told.get("git_dirty") or told.get("git_diff") else ""
    return f"{commit[:12]} {branch}{changed}".strip() if commit else ""
