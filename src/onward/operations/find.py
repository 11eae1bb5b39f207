"""Find a run by what a person types: an id or its beginning, a folder, or a name."""

from __future__ import annotations

import json
from pathlib import Path

from onward.errors import Conflict, NotFound
from onward.operations.wiring import Desk
from onward.rundir.layout import RunDir, runs_under


def find_run(desk: Desk, text: str) -> RunDir:
    direct = RunDir(Path(text).absolute())
    if "/" in text or direct.is_run():
        if direct.is_run():
            return direct
        raise NotFound(f"{text} is not a run's folder", hint="`onward runs` lists the runs")
    runs = runs_under(desk.root)
    labels = [(run, *_labels(run)) for run in runs]
    for match in (
        [run for run, id, _ in labels if id == text or run.path.name == text],
        [run for run, _, name in labels if name == text],
        [run for run, id, _ in labels if id.startswith(text)],
        [run for run in runs if run.path.name.startswith(text)],
    ):
        if len(match) == 1:
            return match[0]
        if match:
            raise Conflict(
                f"{text!r} may mean {len(match)} runs",
                hint="take one by its id: " + ", ".join(f"{_labels(run)[0]} ({run.path.name})" for run in match[-8:]),
            )
    raise NotFound(f"there is no run {text!r} under {desk.root}", hint="`onward runs` lists the runs; ONWARD_ROOT says where to look")


def _labels(run: RunDir) -> tuple[str, str]:
    try:
        spec = json.loads(run.spec.read_bytes())
        return str(spec["id"]), str(spec["name"])
    except (OSError, ValueError, KeyError):
        return "", ""
