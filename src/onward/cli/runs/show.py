"""`onward show`: one run, why it is as it is, and what to do."""

from __future__ import annotations

import shlex
import time
from typing import Any

from onward.cli.context import JsonOption, RunArgument, folder_text, locate_run, repair_seen_runs
from onward.cli.output import (
    age_text,
    bold,
    coloured,
    field,
    json_to_stdout,
    progress_words,
    safe,
    table,
    time_text,
    to_stdout,
)
from onward.model.quantity import counted, duration_text


def show(run: RunArgument, json: JsonOption = False) -> None:
    """Show a run: state and cause, progress, legs, checkpoints."""
    from onward.operations.runs.record import SCHEMA

    found = locate_run(run)
    entry = found.host.show(run=found.run)
    if json:
        json_to_stdout({"schema": SCHEMA, **entry, "host": found.host.hostname})
    else:
        _print(found.host.hostname, dict(entry))
    if found.host.hostname is None:
        repair_seen_runs()


def _print(host: str | None, entry: dict[str, Any]) -> None:
    entry["folder"] = folder_text(host, entry["folder"])
    to_stdout(f"{bold(entry['name'])}  {entry['id']}  {coloured(entry['state'])}")
    for label, text in _facts(entry):
        field(label, text)
    if entry["legs"]:
        to_stdout("")
        _legs(entry["legs"])
    for leg in entry["legs"]:
        for words in (*leg["fell_back"], *leg["warnings"]):
            to_stdout(f"  leg {leg['number']}: {safe(words)}")


def _facts(entry: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [("why", entry["reason"])]
    if entry.get("no_job_since"):
        facts.append(("no job", f"since {age_text(entry['no_job_since'])}: the run waits until one is queued"))
    if entry.get("priority"):
        facts.append(("priority", entry["priority"]))
    if entry.get("copy_of"):
        facts.append(("copy", f"of {entry['copy_of']}: the run's jobs and its files on nodes belong to that folder"))
    if entry["evidence"]:
        facts.append(("evidence", entry["evidence"]))
    if entry["next"]:
        facts.append(("next", entry["next"]))
    facts.append(("progress", progress_words(entry["progress"])))
    metrics = entry["progress"]["metrics"]
    if metrics:
        facts.append(("metrics", "  ".join(f"{name} {value:.5g}" for name, value in sorted(metrics.items())[:8])))
    facts += account_words(entry)
    good = [c for c in entry["checkpoints"] if c["state"] != "damaged"]
    if good:
        newest = good[-1]
        count = counted(len(good), "checkpoint")
        facts.append(("saved", f"{count}, the newest at step {newest['step']} (leg {newest['leg']}), {age_text(newest['created'])}"))
    own = entry.get("own_files")
    if own and not good:
        facts.append(("saved", f"by the training itself, {age_text(own['written'])} (leg {own['leg']}): {', '.join(own['files'])}"))
    written = entry.get("written")
    if written and written["count"]:
        names = ", ".join(one["path"] for one in written["newest"][:5])
        left = written["count"] - 5
        more = f" and {left} more" if left > 0 else ""
        more = more if written["all"] else f" and more than {max(left, 0)} more"
        facts.append(("wrote", f"{names}{more}; in {written['folder']}"))
    damaged = [c for c in entry["checkpoints"] if c["state"] == "damaged"]
    if damaged:
        facts.append(("damaged", f"{len(damaged)} of them: onward checkpoints {entry['id']} shows which"))
    if broken := entry.get("broken_lines"):
        more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
        facts.append(("journal", f"not an event, and ignored: {broken[0]}{more}; in {entry['folder']}/journal"))
    facts += [
        ("command", shlex.join(entry["command"])),
        ("cluster", f"{entry['cluster']}, by {entry['user']}, {age_text(entry['created'])}"),
        ("folder", entry["folder"]),
    ]
    return facts


def account_words(entry: dict[str, Any]) -> list[tuple[str, str]]:
    """Expected finish, what is at risk, and how the time in jobs was spent; an older server reports none of them."""
    facts = []
    expected, risk, effort = entry.get("finish"), entry.get("risk"), entry.get("effort")
    if expected and (expected["legs"] or expected["waiting"]):
        facts.append(("finish", f"about {time_text(expected['at'])}: {expected['words']}"))
    if risk:
        steps = f"{risk['steps']} steps, " if risk["steps"] is not None else ""
        alone = (entry.get("own_files") or {}).get("written") == risk["since"]
        since = "since it saved by itself" if alone else "since the start"
        since = since if risk["since_step"] is None else f"since the checkpoint of step {risk['since_step']}"
        facts.append(("at risk", f"{steps}{duration_text(risk['seconds'])} of work {since}"))
    if effort and effort.get("unknown") and effort["allocated"] >= 1:
        facts.append(("goodput", f"unknown: only the training knows what was useful of {duration_text(effort['unknown'])}"))
    elif effort and effort["goodput"] is not None and effort["allocated"] >= 1:
        kept = f"{effort['goodput']:.0%} of {duration_text(effort['allocated'])} in jobs was useful"
        lost = f"; {duration_text(effort['lost'])} lost" if effort["lost"] >= 1 else ""
        facts.append(("goodput", kept + lost + (f"; {duration_text(effort['waited'])} in queues" if effort["waited"] >= 1 else "")))
    return facts


def _legs(legs: list[dict[str, Any]]) -> None:
    from onward.model.analysis.why import state_words

    def ran(leg: dict[str, Any]) -> str:
        if not leg["started"] or (not leg["ended"] and leg["state"] != "running"):
            return "–"
        return duration_text(max(0.0, (leg["ended"] or time.time()) - leg["started"]))

    def steps(leg: dict[str, Any]) -> str:
        return f"{leg['first_step']}–{leg['last_step']}" if leg["first_step"] is not None else "–"

    table(
        ("LEG", "JOB", "STATE", "END", "STEPS", "RAN", "NODES", "WHY"),
        [
            (
                str(leg["number"]),
                leg["job"] or "–",
                state_words(leg["state"]),
                state_words(leg["end"] or "–"),
                steps(leg),
                ran(leg),
                ",".join(leg["nodes"]) or "–",
                leg["reason"],
            )
            for leg in legs
        ],
        state_columns=(2,),
    )
