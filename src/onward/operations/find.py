"""Find a run by what a person types: an id or its beginning, a folder, or a name."""

from __future__ import annotations

import difflib
import json
from pathlib import Path

from onward.errors import Conflict, InvalidInput, NotFound
from onward.operations.wiring import Desk
from onward.rundir.layout import RunDir


def find_run(desk: Desk, text: str) -> RunDir:
    if not text.strip():  # an unset variable in somebody's script must not mean "the only run there is"
        raise InvalidInput("no run is named", hint="`onward runs` lists the runs; name one by its id, name or folder")
    if "/" in text or text in (".", ".."):
        return _folder(text)
    runs = [(run, *_labels(run)) for run in desk.runs()]
    for match in (
        [run for run, id, _ in runs if text in (id, run.path.name)],
        [run for run, _, name in runs if name == text],
        [run for run, id, _ in runs if id.startswith(text)],
        [run for run, _, _ in runs if run.path.name.startswith(text)],
    ):
        if len(match) == 1:
            return match[0]
        if match:
            newest = ", ".join(f"{_labels(run)[0]} ({run.path.name})" for run in match[-8:])
            raise Conflict(f"{text!r} may mean {len(match)} runs", hint=f"take one by its id: {newest}")
    if RunDir(Path(text)).is_run():
        return _folder(text)
    near = difflib.get_close_matches(text, {name for _, _, name in runs}, n=1)
    guess = f"did you mean {near[0]}? " if near else ""
    raise NotFound(
        f"there is no run {text!r} under {' or '.join(map(str, desk.roots))}",
        hint=f"{guess}`onward runs` lists the runs; ONWARD_ROOT says where to look",
    )


def _folder(text: str) -> RunDir:
    run = RunDir(Path(text).absolute())
    if not run.is_run():
        raise NotFound(f"{text} is not a run's folder", hint="`onward runs` lists the runs")
    return run


def _labels(run: RunDir) -> tuple[str, str]:
    try:
        spec = json.loads(run.spec.read_bytes())
        return str(spec["id"]), str(spec["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", ""
