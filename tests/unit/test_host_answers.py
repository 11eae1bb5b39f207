"""What a host answers is the same after it travelled as JSON."""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from onward.model.plain_data import value_from_json, value_to_json
from onward.operations.hosts.local import LocalHost, run_after_act, submitted_run
from onward.operations.runs.record import read_folder
from tests.sandbox import Sandbox


def travelled(value: Any) -> Any:
    assert is_dataclass(value)
    return value_from_json(type(value), json.loads(json.dumps(value_to_json(value))))


def test_lists_and_matches_of_runs(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    sandbox.play("digits").begin(1)
    here = LocalHost(sandbox.context)
    runs, matches = here.runs(state=None, newest=None), here.matches(text="digits")
    assert len(runs.runs) == 1 == len(matches.matches) and travelled(runs).roots == runs.roots
    assert travelled(runs).runs[0]["id"] == runs.runs[0]["id"]
    assert travelled(matches) == matches
    near = here.matches(text="digit5")
    assert near.matches == () and travelled(near) == near


def test_open_runs_and_how_each_was_cancelled(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    sandbox.play("digits").begin(1)
    here = LocalHost(sandbox.context)
    found = here.open_runs(words="")
    assert [run.name for run in found.runs] == ["digits"] and travelled(found) == found
    ended = here.cancel_many(folders=[found.runs[0].folder, str(tmp_path / "nothing")], silent=["away"])
    assert [(run.state, bool(run.error)) for run in ended.runs] == [("cancelled", False), ("", True)]
    assert ended.silent == ("away",) and travelled(ended) == ended


def test_a_run_after_an_act_and_after_a_submit(tmp_path: Path) -> None:
    run = Sandbox(tmp_path).play("digits").begin(1)
    for value in (run_after_act(read_folder(run.dir)), submitted_run(run.dir)):
        assert travelled(value) == value


def test_findings_about_a_host(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    found = LocalHost(sandbox.context).examine(clusters=[sandbox.context.settings.cluster("auto")[0].name])
    assert found.machine and found.clusters and found.roots and found.runs
    assert travelled(found) == found
