"""What a training wrote into its working folder comes from the server as artifacts do; the code beside it does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward.operations.submit.new_run import submit
from onward.rundir.journal import read_run
from onward.rundir.layout import RunDir
from tests.databases import tracker_in
from tests.unit.test_api_routes import Harness, good


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def submitted(harness: Harness, **others: Any) -> tuple[str, RunDir]:
    harness.sandbox.write("lib/model.py", "secret = 7\n")
    draft = harness.sandbox.draft(command=("python3", "train.py"), **others)
    dir = submit(harness.sandbox.context, draft, cwd=harness.sandbox.project)
    harness.opened.tracker.files.look(harness.sandbox.context.roots)
    return f"/api/v1/runs/{read_run(dir).spec.id}/written", dir


def test_files_are_listed_and_downloaded_and_code_is_neither(harness: Harness) -> None:
    at, dir = submitted(harness)
    assert good(harness.client.get(at)) == {"files": [], "more": 0}
    (dir.code / "out").mkdir()
    (dir.code / "out" / "loss.csv").write_text("1,2")
    (reply,) = good(harness.client.get(at))["files"]
    assert (reply["path"], reply["is_dir"], reply["bytes"]) == ("out", True, None)
    (reply,) = good(harness.client.get(f"{at}?path=out"))["files"]
    assert (reply["path"], reply["is_dir"], reply["bytes"]) == ("out/loss.csv", False, 3)
    answer = harness.client.get(f"{at}/out/loss.csv")
    assert (answer.status, answer.text) == (200, "1,2")
    assert answer.headers["content-disposition"].startswith("attachment") and "sandbox" in answer.headers["content-security-policy"]
    for path in ("train.py", "lib/model.py"):
        refused = harness.client.get(f"{at}/{path}")
        assert refused.status == 404 and "not a file that the training wrote" in refused.text and "secret" not in refused.text


def test_very_many_files_come_page_by_page(harness: Harness) -> None:
    at, dir = submitted(harness)
    for number in range(1_050):
        (dir.code / f"{number:04d}.bin").touch()
    first = good(harness.client.get(at))
    assert (len(first["files"]), first["more"]) == (200, 850)
    rest = good(harness.client.get(f"{at}?limit=1000&after={first['files'][-1]['path']}"))
    assert (len(rest["files"]), rest["more"], rest["files"][0]["path"]) == (850, 0, "0200.bin")
    assert harness.client.get(f"{at}?limit=1001").status == 400


def test_where_the_code_was_not_frozen_there_is_nothing(harness: Harness) -> None:
    at, _ = submitted(harness, freeze=False)
    assert good(harness.client.get(at)) == {"files": [], "more": 0}
    assert "nothing tells what the training" in harness.client.get(f"{at}/train.py").text
