"""`onward clusters`: where runs can go, and whether it answers."""

from __future__ import annotations

from typing import Any

from onward.cli.desk import JsonOption, open_desk
from onward.cli.render import out_json, table


def clusters(json: JsonOption = False) -> None:
    """List the clusters, and whether they answer."""
    from onward.errors import OnwardError

    desk = open_desk()
    chosen = desk.settings.cluster("auto")[0].name
    rows: list[dict[str, Any]] = []
    for name in desk.settings.names():
        if name == "auto":
            continue
        cluster, profile = desk.settings.cluster(name)
        try:
            answers, words = True, desk.scheduler(cluster).check()
        except OnwardError as error:
            answers, words = False, error.message
        root = str(desk.settings.root(desk.env, profile))
        rows.append(
            {"name": name, "scheduler": cluster.scheduler, "auto": name == chosen, "answers": answers, "about": words, "root": root}
        )
    if json:
        out_json({"schema": 1, "clusters": rows})
        return
    table(
        ("NAME", "SCHEDULER", "AUTO", "ANSWERS", "ABOUT"),
        [(r["name"], r["scheduler"], "auto" if r["auto"] else "", "yes" if r["answers"] else "no", r["about"]) for r in rows],
    )
