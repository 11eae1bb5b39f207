"""`onward clusters`: where runs can go, and whether it answers."""

from __future__ import annotations

from typing import Any

from onward.cli.context import JsonOption, open_hosts
from onward.cli.output import json_to_stdout, table


def clusters(json: JsonOption = False) -> None:
    """List the clusters, and whether they answer."""
    hosts = open_hosts()
    settings = hosts.context.settings
    chosen = settings.cluster("auto")[0].name
    names = [name for name in settings.names() if name != "auto"]
    by_host: dict[str | None, list[str]] = {host.hostname: [] for host in hosts.all}
    for name in names:
        by_host[settings.cluster(name)[0].ssh].append(name)
    replies = {reply.host.hostname: reply for reply in hosts.ask(hosts.all, lambda host: host.examine(clusters=by_host[host.hostname]))}
    rows: list[dict[str, Any]] = []
    for name in names:
        cluster = settings.cluster(name)[0]
        reply = replies[cluster.ssh]
        answers, words, root = False, reply.error.message if reply.error else "", str(settings.clusters[name].root) if cluster.ssh else ""
        if reply.answer:
            answers, _, words = reply.answer.clusters[name]
            root = reply.answer.roots[name][-1]
        row = {"name": name, "scheduler": cluster.scheduler, "host": cluster.ssh, "auto": name == chosen}
        rows.append({**row, "answers": answers, "about": words, "root": root})
    if json:
        json_to_stdout({"schema": 1, "clusters": rows})
        return
    table(
        ("NAME", "SCHEDULER", "AUTO", "ANSWERS", "ABOUT"),
        [(r["name"], r["scheduler"], "auto" if r["auto"] else "", "yes" if r["answers"] else "no", _about(r)) for r in rows],
    )


def _about(row: dict[str, Any]) -> str:
    return f"{row['host']}: {row['about']}" if row["host"] and row["answers"] else str(row["about"])
