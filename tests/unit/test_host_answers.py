"""What a host answers is the same after it travelled as JSON."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from onward.model.plain_data import value_from_json, value_to_json
from onward.operations.hosts.answers import ArrivalFolder, EntrustedRun, UnpackedCode
from onward.operations.hosts.local import LocalHost, run_after_act, submitted_run
from onward.operations.runs.record import read_folder
from onward.operations.ssh.agent import HostAgent
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


def test_the_parts_of_a_submit_from_another_machine(tmp_path: Path) -> None:
    sandbox, code = Sandbox(tmp_path), io.BytesIO()
    with tarfile.open(fileobj=code, mode="w|") as archive:
        archive.add(sandbox.project / "train.py", arcname="train.py")
    agent = HostAgent(sandbox.context, io.BytesIO(code.getvalue()))

    waits = agent.serve("arrive", {"id": "k0arrive", "draft": value_to_json(sandbox.draft())})
    there = agent.serve("unpack", {"folder": waits.folder, "files": 1})
    assert (travelled(waits), travelled(there)) == (waits, UnpackedCode(folder=waits.folder, files=1))
    assert Path(waits.folder, "train.py").is_file()
    assert travelled(agent.serve("discard", {"folder": waits.folder})) == ArrivalFolder(folder=waits.folder)
    assert not Path(waits.folder).exists()


def test_the_spec_of_a_run_and_the_token_that_its_jobs_are_given(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    run, agent = sandbox.play("digits"), HostAgent(sandbox.context, io.BytesIO())
    where = {"run": str(run.dir.path)}
    assert travelled(agent.serve("spec", where)) == run.spec
    assert travelled(agent.serve("entrust", {**where, "secret": "hush"})) == EntrustedRun(id=run.spec.id)
    assert run.dir.tracker_token.read_text() == "hush"
